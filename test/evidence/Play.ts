/** Sessions to measure on, and what a policy makes of one. */
import * as Estimator from "effect-compaction/Estimator"
import * as Format from "effect-compaction/format/Format"
import * as Session from "effect-compaction/format/Session"
import * as Policy from "effect-compaction/Policy"
import * as Optimum from "effect-compaction/simulate/Optimum"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Retention from "effect-compaction/simulate/Retention"
import * as Simulation from "effect-compaction/simulate/Simulation"
import * as Summarizer from "effect-compaction/Summarizer"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"

const root = process.cwd()

/** A session with facts planted in it, and as it was recorded. */
export interface Subject {
  readonly name: string
  readonly session: Session.Session
  readonly planted: Retention.Planted
}

/** How many facts are planted in a session. */
export const probes = 64

const read = (path: string): Subject => {
  const session = Result.getOrThrow(Format.fromString(readFileSync(path, "utf8"), { file: basename(path) }))
  return {
    name: basename(path).replace(/(?:\.traj)?\.jsonl?$/, ""),
    session,
    planted: Retention.plant(session.messages, { seed: 1, count: probes })
  }
}

const sampleFolder = join(root, "docs/examples/sessions")

/** The sample sessions of this repository that are long enough to be compacted; the broken one is for readers. */
export const samples = (): ReadonlyArray<Subject> =>
  readdirSync(sampleFolder)
    .filter((name) => /\.jsonl?$/.test(name) && !name.startsWith("broken"))
    .map((name) => read(join(sampleFolder, name)))

const transcripts = join(root, "../shared/transcripts")

/** Long sessions of coding agents, real ones, which are not in this repository; none where they are not at hand. */
export const recorded = (): ReadonlyArray<Subject> => {
  const list = join(transcripts, "LONG.txt")
  if (!existsSync(list)) return []
  const paths = readFileSync(list, "utf8").split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  return paths.map((path) => read(join(transcripts, path)))
}

/** What lies beside the long sessions and is long enough to be compacted at 45,000 tokens. */
const others = [
  "pi/before-compaction-990-messages.jsonl",
  "pi/compact-1010-messages-images.jsonl",
  "mini-swe-agent/sqlfluff-1733-316-messages.traj.json",
  "claude-code/opus45-malformed-line.jsonl",
  "claude-code/opus47-image-in-tool-result.jsonl",
  "codex/gpt55-image-orphan.jsonl",
  "gemini/contents-trajectory-105-turns.json"
]

/** The long sessions, and what lies beside them: what is kept is measured on all of them. */
export const kept = (): ReadonlyArray<Subject> => [
  ...recorded(),
  ...others.map((path) => join(transcripts, path)).filter(existsSync).map(read)
]

export const price = Price.presets["claude-opus-4-5"]

/** It stands for the model of the conversation: its calls read the cache of the session where the layout allows it. */
export const summarizer: Summarizer.Service = { ...Summarizer.extractive, cache: "shared" }

/** What is measured of one session under one policy. */
export interface Figures extends Simulation.Totals {
  readonly requests: number
  readonly budget: number
  /** The cheapest schedule that leaves as much at its boundaries, with the same output, in dollars. */
  readonly optimum: number
  /** Requests whose input, as it is billed, is more than the budget, reserve of the notice included. */
  readonly billedOver: number
  /** The most refusals of the clear floor in a row. */
  readonly longestStreak: number
  /** What is retained of the facts that stand in the body of a result, and of those that people or the assistant said. */
  readonly bodies: number
  readonly said: number
  /** What a boundary leaves, on average, in tokens, and how many requests there are for each. */
  readonly left: number
}

const estimate = Effect.runSync(Effect.gen(function*() {
  return (yield* Estimator.Estimator).price
}))

/** What a message costs in a view, where each result is an entry of its own. */
const priceOf = (message: Prompt.Message): number =>
  message.role === "tool"
    ? message.content.reduce((sum, part) => sum + estimate({ ...message, content: [part] }), 0)
    : estimate(message)

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

export interface World {
  readonly maxTokens?: number
  readonly window?: number
  readonly ratio?: number
  readonly cache?: PromptCache.Rules
  /** Whether what was recorded of the time between messages is played. */
  readonly isTimed?: boolean
}

/** The share of the facts of some sources that views hold, on average over those that know one. */
const retainedOf = (
  rows: ReadonlyArray<Simulation.Row>,
  ...sources: ReadonlyArray<Retention.Source>
): number =>
  mean(rows.flatMap(({ retention }) => {
    if (retention === null) return []
    const known = sources.reduce((sum, source) => sum + retention.sources[source].known, 0)
    return known === 0 ? [] : [sources.reduce((sum, source) => sum + retention.sources[source].held, 0) / known]
  }))

/** How long nothing was written before each message; planted facts move no message. */
export const timesOf = ({ session }: Subject): ReadonlyMap<number, number> => Session.gaps(session)

/** Plays a session under a policy. */
export const figures = (subject: Subject, policy: Policy.Policy, world: World): Effect.Effect<Figures> =>
  Effect.gen(function*() {
    const { messages, probes: facts } = subject.planted
    const { cache = PromptCache.anthropic, isTimed = false, ratio = 1, ...limits } = world
    const options = Policy.options(policy)
    const { settings } = options
    const { budget, rows, totals } = yield* Simulation.run({ messages }, options, {
      ...limits,
      ...(isTimed ? { gaps: timesOf(subject) } : undefined),
      cache,
      ratio,
      price,
      probes: facts,
      summarizer
    })
    const left = mean(rows.flatMap(({ boundary }) => boundary === null ? [] : [boundary.after]))
    const { head, segments } = Optimum.segmentsOf(messages, priceOf)
    const { cost } = Optimum.solve({ head, segments, limit: budget, retain: left, rules: cache, price })
    const notice = settings.notice === false ? 0 : settings.noticeReserve ?? 0
    return {
      ...totals,
      requests: rows.length,
      budget,
      optimum: cost + totals.output * price.output / 1_000_000,
      billedOver: rows.filter(({ cached, fresh, written }) => cached + fresh + written > budget + notice).length,
      longestStreak: rows.reduce((most, { skipped }) => Math.max(most, skipped?.streak ?? 0), 0),
      bodies: retainedOf(rows, "body"),
      said: retainedOf(rows, "person", "assistant"),
      left
    }
  }).pipe(Effect.orDie)

/** Sums over sessions; shares are means. */
export const total = (all: ReadonlyArray<Figures>): Omit<Figures, "budget"> => {
  const sum = (value: (each: Figures) => number): number => all.reduce((so, each) => so + value(each), 0)
  const cacheRead = sum((each) => each.cacheRead)
  return {
    ...all[0]!,
    requests: sum((each) => each.requests),
    cost: sum((each) => each.cost),
    optimum: sum((each) => each.optimum),
    boundaries: sum((each) => each.boundaries),
    waste: sum((each) => each.waste),
    cacheRead,
    cacheReadShare: cacheRead / sum((each) => each.cacheRead + each.cacheWrite + each.fresh),
    retained: mean(all.map((each) => each.retained ?? 1)),
    bodies: mean(all.map((each) => each.bodies)),
    said: mean(all.map((each) => each.said)),
    stale: sum((each) => each.stale ?? 0),
    summaryCost: sum((each) => each.summaryCost),
    skips: sum((each) => each.skips),
    failed: sum((each) => each.failed),
    violations: sum((each) => each.violations),
    overBudget: sum((each) => each.overBudget),
    billedOver: sum((each) => each.billedOver),
    longestStreak: all.reduce((most, each) => Math.max(most, each.longestStreak), 0),
    left: mean(all.map((each) => each.left))
  }
}
