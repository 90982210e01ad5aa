import * as Schema from "effect/Schema"
import * as TokenMeter from "../TokenMeter.ts"

/** What was billed over the whole session, in tokens, and in how many answers, summaries included. */
const Usage = Schema.Struct({
  input: Schema.Natural,
  cacheRead: Schema.Natural,
  cacheWrite: Schema.Natural,
  output: Schema.Natural,
  answers: Schema.Natural
})

/**
 * How full the window is: the newest request by its bill, without its answer (`null` before the first), what the view gained
 * or lost since by price (`moved`), what all of it costs by price (`estimated`), and the window, `null` when unknown.
 */
const Pressure = Schema.Struct({
  billed: Schema.NullOr(Schema.Natural),
  moved: Schema.Int,
  estimated: Schema.Int,
  window: Schema.NullOr(Schema.Finite)
})

/** What the window holds, by price in tokens: `tools` is what of a request is not in the prompt. Checkpoints are no messages. */
const Breakdown = Schema.Struct({
  system: Schema.Natural,
  tools: Schema.Natural,
  messages: Schema.Int,
  checkpoints: Schema.Int
})

/**
 * What a person reads of a session. It holds no price of any entry, so it is as large after a million events as after one.
 * What decides is the meter.
 */
export const Figures = Schema.Struct({ usage: Usage, pressure: Pressure, breakdown: Breakdown })

export type Figures = typeof Figures.Type

export const initial: Figures = {
  usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, answers: 0 },
  pressure: { billed: null, moved: 0, estimated: 0, window: null },
  breakdown: { system: 0, tools: 0, messages: 0, checkpoints: 0 }
}

/** The fields of what is said of the window at once. */
export const held = {
  system: Schema.Natural,
  tools: Schema.Natural,
  messages: Schema.Natural,
  checkpoints: Schema.Natural,
  window: Schema.NullOr(Schema.Finite)
}

const Held = Schema.Struct(held)

export type Held = typeof Held.Type

const costOf = ({ checkpoints, messages, system, tools }: Figures["breakdown"]): number =>
  system + tools + messages + checkpoints

const withBreakdown = (self: Figures, breakdown: Figures["breakdown"], window = self.pressure.window): Figures => {
  const estimated = costOf(breakdown)
  const moved = self.pressure.moved + estimated - self.pressure.estimated
  return { ...self, breakdown, pressure: { ...self.pressure, estimated, moved, window } }
}

/** Messages came in; they count as they came, before any repair. */
export const appended = (self: Figures, price: { readonly system: number; readonly messages: number }): Figures => {
  const { breakdown } = self
  return price.system + price.messages === 0 ? self : withBreakdown(self, {
    ...breakdown,
    system: breakdown.system + price.system,
    messages: breakdown.messages + price.messages
  })
}

/** The window holds this from now on. */
export const holding = (self: Figures, { checkpoints, messages, system, tools, window }: Held): Figures =>
  withBreakdown(self, { system, tools, messages, checkpoints }, window)

/** Whether the figures say already that the window holds this. */
export const says = ({ breakdown, pressure }: Figures, held: Held): boolean =>
  held.window === pressure.window && held.system === breakdown.system && held.tools === breakdown.tools
  && held.messages === breakdown.messages && held.checkpoints === breakdown.checkpoints

/** An answer was billed; one `beside` the conversation says nothing about its window. A malformed usage is no bill. */
export const billed = (self: Figures, usage: TokenMeter.Usage, output: number, beside: boolean): Figures => {
  const total = TokenMeter.usedOf(usage)
  if (total === undefined) return self
  const { cacheRead = 0, cacheWrite = 0 } = usage
  const { usage: before } = self
  const sum = {
    input: before.input + Math.max(0, total - cacheRead - cacheWrite),
    cacheRead: before.cacheRead + cacheRead,
    cacheWrite: before.cacheWrite + cacheWrite,
    output: before.output + output,
    answers: before.answers + 1
  }
  if (beside) return { ...self, usage: sum }
  return { ...self, usage: sum, pressure: { ...self.pressure, billed: total, moved: 0 } }
}

/** What the next request occupies, in tokens: a bill and what came since, or prices alone. */
export const occupied = (
  { billed, estimated, moved }: Figures["pressure"]
): { readonly tokens: number; readonly kind: "usage" | "estimated" } =>
  billed === null
    ? { tokens: Math.max(0, estimated), kind: "estimated" }
    : { tokens: Math.max(0, billed + moved), kind: "usage" }
