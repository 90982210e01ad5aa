import * as TokenMeter from "effect-compaction/TokenMeter"
import * as Effect from "effect/Effect"
import { differences, isObject, type Kind, type Outcome } from "./Case.ts"

interface Header {
  readonly route: string
  readonly system: number
  readonly tools?: number
}

type Event =
  | { readonly op: "append"; readonly chars: number }
  | { readonly op: "header" } & Header
  | { readonly op: "step" | "dispatch" | "failed" }
  | {
    readonly op: "response"
    readonly chars: number
    readonly usage?: { readonly input?: number; readonly cacheRead?: number; readonly cacheWrite?: number }
  }
  | { readonly op: "replace"; readonly start: number; readonly end: number; readonly chars: number }

interface Case {
  readonly name: string
  readonly events: ReadonlyArray<Event>
  readonly after: ReadonlyArray<unknown>
  readonly final: unknown
  readonly override?: Header
  readonly overridden?: unknown
}

const tokens = (chars: number): number => Math.floor(chars / 4)

const envelopeOf = ({ route, system, tools = 0 }: Header): TokenMeter.Envelope => ({
  key: JSON.stringify([route, system, tools]),
  price: tokens(system) + tokens(tools)
})

const answerOf = (reading: TokenMeter.Reading) => ({
  kind: reading.kind,
  count: reading.tokens,
  delta: reading.tailTokens
})

/** The surface of a case: entries by the event that made them, in order, with their prices. */
interface Node {
  readonly event: number
  readonly price: number
}

const run = (self: Case): Outcome => {
  let state = TokenMeter.empty
  let envelope: TokenMeter.Envelope | null = null
  let surface: ReadonlyArray<Node> = []
  const priceOf = () => surface.reduce((sum, node) => sum + node.price, 0)
  const counted = (around: TokenMeter.Envelope | null): TokenMeter.Counted => ({
    price: priceOf(),
    entries: surface.length,
    generation: 0,
    envelope: around
  })
  const apply = (event: Event, at: number): string | undefined => {
    switch (event.op) {
      case "append":
        surface = [...surface, { event: at, price: tokens(event.chars) }]
        return undefined
      case "header":
        envelope = envelopeOf(event)
        return undefined
      case "step":
        return undefined
      case "dispatch":
        state = TokenMeter.dispatch(state, counted(envelope))
        return undefined
      case "failed":
        state = TokenMeter.abandon(state)
        return undefined
      case "response": {
        if (state.inFlight === null) return "no-request"
        const { cacheRead, cacheWrite, input } = event.usage ?? {}
        state = TokenMeter.observe(state, { uncached: input, cacheRead, cacheWrite }, TokenMeter.assumedWindow)
        surface = [...surface, { event: at, price: tokens(event.chars) }]
        return undefined
      }
      case "replace": {
        const start = surface.findIndex((node) => node.event === event.start)
        const end = surface.findIndex((node) => node.event === event.end)
        if (start < 0 || end < 0) return "not-on-surface"
        if (start > end) return "reversed"
        surface = [...surface.slice(0, start), { event: at, price: tokens(event.chars) }, ...surface.slice(end + 1)]
        return undefined
      }
    }
  }
  const after = self.events.map((event, at) => {
    const error = apply(event, at)
    if (error !== undefined) return { error }
    const { count, delta, kind } = answerOf(TokenMeter.read(state, "hybrid", counted(envelope)))
    return [kind, count, delta, priceOf()]
  })
  const read = (around: TokenMeter.Envelope | null) => answerOf(TokenMeter.read(state, "hybrid", counted(around)))
  const expected = {
    after: self.after,
    final: self.final,
    ...(self.overridden === undefined ? undefined : { overridden: self.overridden })
  }
  const actual = { after, final: read(envelope), overridden: self.override && read(envelopeOf(self.override)) }
  return { name: self.name, failures: differences("", expected, actual) }
}

/** The `hybrid` count, event by event. */
export const kind: Kind = {
  name: "meter",
  recognises: (file) =>
    isObject(file) && Array.isArray(file.cases) && file.cases.some((each) => isObject(each) && "final" in each),
  // The shape was recognised by its cases; one that lies about it fails.
  run: (file) => Effect.sync(() => (file as { readonly cases: ReadonlyArray<Case> }).cases.map(run))
}
