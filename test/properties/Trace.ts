import * as ContextManager from "effect-compaction/ContextManager"
import type * as Decision from "effect-compaction/Decision"
import * as Estimator from "effect-compaction/Estimator"
import * as Ladder from "effect-compaction/Ladder"
import type * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as Transcript from "effect-compaction/Transcript"
import * as View from "effect-compaction/View"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Traits from "../../src/wire/traits.ts"
import { seeded } from "../seed.ts"
import type * as Script from "./Script.ts"

export type Failure = Policy.PassError

/** What a request did. `before` is the view of the same entries under the decisions taken before it. */
export interface Outcome {
  readonly result: Result.Result<ContextManager.Request, Failure>
  /** The same request once more, when the first one succeeded and the run repeats requests. */
  readonly again: Result.Result<ContextManager.Request, Failure> | undefined
  readonly before: View.View
  readonly after: View.View
  readonly statusBefore: ContextManager.Status
  readonly statusAfter: ContextManager.Status
}

/** What an operation left behind. */
export interface Step {
  readonly at: number
  readonly operation: Script.Operation
  /** Rises with every reset: what was sent before no longer counts as sent. */
  readonly resets: number
  /** Rises with every reset and restore. */
  readonly segment: number
  /** What the history must be. */
  readonly expected: ReadonlyArray<Prompt.Message>
  readonly history: ReadonlyArray<Prompt.Message>
  /** How many times the caller's prompt was not the one seen before. */
  readonly divergences: number
  readonly outcome: Outcome | undefined
}

export interface Trace {
  readonly script: Script.Script
  readonly steps: ReadonlyArray<Step>
  readonly price: (message: Prompt.Message) => number
}

// ---------------------------------------------------------------------------------------------------------------------
// What a script names
// ---------------------------------------------------------------------------------------------------------------------

const lengthOf = (message: Prompt.Message): number => {
  if (message.role === "system") return message.content.length
  let length = 0
  for (const part of message.content) {
    if (part.type === "text") length += part.text.length
    else if (part.type === "tool-call") length += part.name.length
    else if (part.type === "tool-result") length += (JSON.stringify(part.result) ?? "").length
  }
  return length
}

export const estimators: { readonly [name in Script.Script["estimator"]]: Estimator.Service } = {
  chars: Estimator.chars,
  // Prices of zero: what is removed may save nothing.
  quarter: Estimator.make((message) => Math.floor(lengthOf(message) / 4)),
  // Every truncation and every stub costs as much as what it replaces.
  one: Estimator.make(() => 1)
}

/** An effectful rung: takes out the oldest unit that may go, as decisions over a view made anew. */
const dropOldest = Rung.make("drop-oldest", (pass) =>
  Effect.sync(() => {
    const { decisions, items, transcript } = pass.view
    const at = items.findIndex(({ entry }) =>
      entry !== undefined && entry.kind === "message" && entry.role !== "system" && !entry.human && !entry.pinned
      && !(entry.calls.length > 0 && Transcript.isOpen(transcript, entry.seq))
    )
    const oldest = items[at]?.entry
    if (oldest === undefined) return pass
    const seqs = [oldest.seq]
    for (let next = at + 1; oldest.group >= 0 && items[next]?.group === oldest.group; next++) {
      if (items[next]!.seq >= 0) seqs.push(items[next]!.seq)
    }
    const removal: Decision.Remove = { _tag: "Remove", seqs, at: transcript.entries.length }
    return { ...pass, view: View.make(transcript, [...decisions, removal]) }
  }))

/** A rung that names a result without its call. */
const dropResult = Rung.make("drop-result", (pass) =>
  Effect.sync(() => {
    const { decisions, items, transcript } = pass.view
    const result = items.find(({ entry }) => entry?.kind === "result" && !entry.pinned)
    if (result === undefined) return pass
    const removal: Decision.Remove = { _tag: "Remove", seqs: [result.seq], at: transcript.entries.length }
    return { ...pass, view: View.make(transcript, [...decisions, removal]) }
  }))

const ladders: { readonly [name in Script.Script["ladder"]]: Ladder.Ladder } = {
  progressive: Ladder.progressive,
  withOwnRung: Ladder.progressive.pipe(Ladder.insertBefore("remove", dropOldest)),
  withCarelessRung: Ladder.progressive.pipe(Ladder.append(dropResult))
}

const rules: { readonly [name in Script.Script["rules"]]: Wire.Rules } = {
  all: Wire.all,
  anthropic: Wire.anthropic,
  openaiChat: Wire.openaiChat,
  openaiResponses: Wire.openaiResponses,
  gemini: Wire.gemini
}

export const rulesOf = (script: Script.Script): Wire.Rules => rules[script.rules]

// ---------------------------------------------------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------------------------------------------------

const known = new WeakMap<Prompt.Message, string>()

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const sorted = (value: { readonly [key: string]: unknown }): { readonly [key: string]: unknown } =>
  Object.fromEntries(Object.keys(value).sort().map((key) => [key, value[key]]))

/** The order of the keys of messages and parts reaches no provider, that of what a tool was given or returned does. */
const ordered = (message: Prompt.Message): unknown => {
  if (message.role === "system") return sorted({ ...message })
  const parts: ReadonlyArray<Prompt.Part> = message.content
  const content = parts.map((part) =>
    sorted({
      ...part,
      ...(part.type === "tool-result" && { result: part.result ?? null }),
      ...(part.type === "tool-result" && part.modelOutput !== undefined
        && { modelOutput: part.modelOutput.map((each) => sorted({ ...each })) })
    })
  )
  return sorted({ ...message, content })
}

/** What a message is, as JSON, to be compared; each object is written once. */
export const bytes = (message: Prompt.Message): string => {
  const made = known.get(message)
  if (made !== undefined) return made
  const json = written(message)
  known.set(message, json)
  return json
}

/** The same, written anew. */
export const written = (message: Prompt.Message): string =>
  JSON.stringify(ordered(message), (key, value: unknown) => key.startsWith("~effect") ? undefined : value)

export const bytesOf = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> => messages.map(bytes)

/** What a message says, without its options and those of its parts. */
export const said = (message: Prompt.Message): string =>
  JSON.stringify(ordered(message), (key, value: unknown) => key === "options" ? undefined : value)

// ---------------------------------------------------------------------------------------------------------------------
// Running
// ---------------------------------------------------------------------------------------------------------------------

/** A copy in which no object is the one of the original. */
const copy = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return value.slice()
  if (value instanceof URL) return new URL(value)
  if (Array.isArray(value)) return value.map(copy)
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copy(each)])) : value
}

const annotated = (message: Prompt.Message): Prompt.Message => ({
  ...message,
  options: { ...message.options, anthropic: { cacheControl: { type: "ephemeral" } } }
})

const entriesOf = (messages: ReadonlyArray<Prompt.Message>): number => {
  let entries = 0
  for (const message of messages) entries += message.role === "tool" ? message.content.length : 1
  return entries
}

const isOfMachine = (message: Prompt.Message): boolean => message.role === "user" && !Traits.isHuman(message)

/** How many messages stay: those that are the same, and those of a system, or of a machine at the head, that are others now. */
const commonLength = (a: ReadonlyArray<Prompt.Message>, b: ReadonlyArray<Prompt.Message>): number => {
  let at = 0
  let isHead = true
  for (; at < a.length && at < b.length; at++) {
    const [before, now] = [a[at]!, b[at]!]
    const mayReplace = before.role === "system"
      ? now.role === "system"
      : isHead && isOfMachine(before) && isOfMachine(now)
    if (before !== now && said(before) !== said(now) && !mayReplace) break
    isHead &&= before.role === "system" || isOfMachine(before)
  }
  return at
}

/** How a script is run. */
export interface Options {
  readonly price?: (message: Prompt.Message) => number
  /** Sends each request that succeeded once more. */
  readonly repeat?: boolean
  /** Called before each operation, and after the last. */
  readonly mark?: (at: number) => void
  /** Called with whether what is priced now is for the one who looks, and not for a request. */
  readonly look?: (looking: boolean) => void
}

/** Runs a script and tells what each operation did. */
export const run = Effect.fnUntraced(
  function*(
    script: Script.Script,
    options: Options = {}
  ): Effect.fn.Return<Trace, never, Scope.Scope> {
    const price = estimators[script.estimator].price
    const make = ContextManager.make(seeded({
      settings: script.settings,
      ladder: ladders[script.ladder],
      wire: rulesOf(script)
    })).pipe(
      Effect.provideService(Estimator.Estimator, Estimator.make(options.price ?? price)),
      Effect.orDie
    )
    let manager = yield* make
    let kept: ReadonlyArray<Prompt.Message> = []
    let seen: ReadonlyArray<Prompt.Message> = []
    let segment = 0
    let resets = 0
    let divergences = 0
    let counted = 0
    const owned = script.owner === "manager"
    const steps: Array<Step> = []

    const request = (budget: number | undefined): Effect.Effect<ContextManager.Request, Failure> =>
      owned
        ? budget === undefined ? manager.request : manager.requestWith({ budget })
        : Effect.catchTag(manager.sync(Prompt.fromMessages(kept)), "InvalidMessages", Effect.die)

    const looking = <A>(look: Effect.Effect<A>): Effect.Effect<A> =>
      Effect.suspend(() => {
        options.look?.(true)
        return Effect.tap(look, () => Effect.sync(() => options.look?.(false)))
      })

    const ask = Effect.fnUntraced(function*(budget: number | undefined) {
      const statusBefore: ContextManager.Status = yield* manager.status
      let { decisions } = yield* looking(manager.view)
      if (!owned) {
        const common = commonLength(seen, kept)
        const isReplaced = seen.slice(0, common).some((message, at) => said(message) !== said(kept[at]!))
        if (common < seen.length || isReplaced) divergences++
        if (common < seen.length) {
          const length = entriesOf(seen.slice(0, common))
          decisions = decisions.filter((decision) => decision.at <= length)
        }
        // What is known already stays as it was first seen, but for what a system says.
        seen = [
          ...seen.slice(0, common).map((message, at) => said(message) === said(kept[at]!) ? message : kept[at]!),
          ...kept.slice(common)
        ]
      }
      const result = yield* Effect.result(request(budget))
      const again = options.repeat === true && result._tag === "Success"
        ? yield* Effect.result(request(budget))
        : undefined
      const after = yield* looking(manager.view)
      const statusAfter = yield* manager.status
      const outcome: Outcome = {
        result,
        again,
        before: yield* looking(Effect.sync(() => View.make(after.transcript, decisions))),
        after,
        statusBefore,
        statusAfter
      }
      return outcome
    })

    const restored = Effect.fnUntraced(function*() {
      const text = JSON.stringify(yield* manager.export)
      manager = yield* make
      yield* Effect.orDie(manager.restore(JSON.parse(text)))
      segment++
      if (owned) kept = (yield* manager.history).content
    })

    // Written before anything could change them.
    for (const operation of script.operations) if (operation._tag === "append") operation.messages.forEach(bytes)

    for (const [at, operation] of script.operations.entries()) {
      options.mark?.(at)
      let outcome: Outcome | undefined
      switch (operation._tag) {
        case "append":
          kept = [...kept, ...operation.messages]
          if (owned) yield* Effect.orDie(manager.append(Prompt.fromMessages(operation.messages)))
          break
        case "request":
          outcome = yield* ask(operation.budget)
          counted = outcome.statusAfter.reading?.estimated ?? counted
          break
        case "observe": {
          const total = Math.round(counted * operation.ratio)
          yield* manager.observe({ inputTokens: Number.isNaN(total) ? {} : { total } })
          break
        }
        case "restore":
          yield* restored()
          break
        case "reset":
          yield* manager.reset
          segment++
          resets++
          kept = []
          seen = []
          break
        case "edit":
          if (operation.at < kept.length) kept = kept.with(operation.at, operation.message)
          break
        case "rewind":
          kept = kept.slice(0, operation.at)
          break
        case "reparse":
          // A copy has the type of what it was copied from.
          kept = copy(kept) as ReadonlyArray<Prompt.Message>
          break
        case "annotate":
          if (operation.at < kept.length) kept = kept.with(operation.at, annotated(kept[operation.at]!))
          break
      }
      const history = (yield* manager.history).content
      steps.push({ at, operation, resets, segment, expected: owned ? kept : seen, history, divergences, outcome })
    }
    options.mark?.(script.operations.length)
    return { script, steps, price }
  },
  Effect.scoped,
  Effect.provideService(References.MinimumLogLevel, "None")
)
