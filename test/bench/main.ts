/**
 * `npm run bench`: what a session costs, against one pass of the default estimator over every entry in the same run.
 *
 * All figures of a table are measured in turn, round after round. Milliseconds are taken in processor time, because a long
 * figure may not have a single round to itself on a busy machine; microseconds by the clock. What is printed is the best
 * round and the median; the bars hold for the best one, since noise only adds.
 */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import type * as Settings from "effect-compaction/Settings"
import type * as Transcript from "effect-compaction/Transcript"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import { performance } from "node:perf_hooks"
import { seeded } from "../seed.ts"
import { messages, sizeOf } from "./transcript.ts"

const scope = Scope.makeUnsafe()
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): A => Effect.runSync(Scope.provide(effect, scope))

const managerOf = (settings: Settings.Input, estimator = Estimator.chars) =>
  run(Effect.provide(ContextManager.make({ settings }), Estimator.layer(estimator)))

/** The same with the ladder and the settings of `context-simple`, which the bars of a pass were set with. */
const seedOf = (settings: Settings.Input) => run(ContextManager.make(seeded({ settings })))

type Manager = ReturnType<typeof managerOf>

const append = (manager: Manager, prompt: Prompt.Prompt) => run(manager.append(prompt))
const request = (manager: Manager, budget: number) => run(manager.requestWith({ budget }))

/** How long some work takes, in milliseconds: by the clock, or as the processor's time, garbage collection included. */
const timed = {
  clock: (work: () => void): number => {
    const start = performance.now()
    work()
    return performance.now() - start
  },
  processor: (work: () => void): number => {
    const start = process.cpuUsage()
    work()
    const { system, user } = process.cpuUsage(start)
    return (system + user) / 1_000
  }
}

const median = (times: ReadonlyArray<number>): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN

/** Each round prepares every figure, then measures it; the first rounds only warm the code up. */
const measure = (
  figures: { readonly [name: string]: () => () => void },
  options: { readonly rounds: number; readonly warmUp: number; readonly by: keyof typeof timed }
) => {
  const times = new Map<string, Array<number>>(Object.keys(figures).map((name) => [name, []]))
  for (let round = -options.warmUp; round < options.rounds; round++) {
    for (const [name, prepare] of Object.entries(figures)) {
      const time = timed[options.by](prepare())
      if (round >= 0) times.get(name)?.push(time)
    }
  }
  return (name: string) => {
    const all = times.get(name) ?? []
    return { best: Math.min(...all), median: median(all) }
  }
}

interface Row {
  readonly figure: string
  readonly bar: string
  readonly measured: string
  readonly passes: boolean
}

const rows: Array<Row> = []

const ms = (time: number): string => time < 1 ? `${(time * 1_000).toFixed(0)} µs` : `${time.toFixed(2)} ms`

type Time = ReturnType<ReturnType<typeof measure>>

/** A figure whose bar is a multiple of another one, both of the same run. */
const ratio = (figure: string, time: Time, of: Time, bar: number): void => {
  const [best, middle] = [time.best / of.best, time.median / of.median]
  rows.push({
    figure,
    bar: `≤ ${bar}×`,
    measured: `${best.toFixed(2)}× (median ${middle.toFixed(2)}×): ${ms(time.best)} of ${ms(of.best)}`,
    passes: best <= bar
  })
}

const said = (text: string) =>
  Prompt.fromMessages([
    Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text })] })
  ])
const next = said("That explains it: the cursor is past the end, so the last page comes back empty.")

// The session of the main figures.
const history = Prompt.fromMessages(messages(2_000))
const size = sizeOf(history.content)

const roomy = 100_000_000

const entriesOf = (): ReadonlyArray<Transcript.Entry> => {
  const manager = managerOf({})
  append(manager, history)
  return run(manager.view).transcript.entries
}

const entries = entriesOf()
const total = entries.reduce((sum, entry) => sum + entry.price, 0)
/** An eighth of the session fits: the ladder goes far down. */
const tight = Math.floor(total / 8)
const refusing: Settings.Input = { clearAtLeast: 1_000_000_000, maxConsecutiveSkips: 1_000_000_000 }

const plan = (policy: string, make: (settings: Settings.Input) => Manager) => {
  const deep = make({})
  append(deep, history)
  request(deep, tight)
  const { level, lastBoundary } = run(deep.status)
  console.log(
    `${history.content.length} messages, ${entries.length} entries, ${
      (size / 1e6).toFixed(2)
    } MB of JSON, ${total} tokens; `
      + `${policy} goes to level ${level}: ${lastBoundary?.truncated} truncated, ${lastBoundary?.removed} removed, `
      + `${lastBoundary?.before} to ${lastBoundary?.after} tokens`
  )
  const refused = make(refusing)
  append(refused, history)
  request(refused, tight)
  const of = measure({
    linear: () => () => {
      let price = 0
      for (const entry of entries) price += Estimator.chars.price(entry.message)
      if (price !== total) console.error("the prices changed")
    },
    cold: () => {
      const manager = make({})
      return () => {
        append(manager, history)
        request(manager, tight)
      }
    },
    warm: () => {
      const manager = make({})
      append(manager, history)
      request(manager, roomy)
      return () => {
        append(manager, next)
        request(manager, tight)
      }
    },
    memoised: () => () => {
      append(refused, next)
      request(refused, tight)
    }
  }, { rounds: 80, warmUp: 20, by: "processor" })
  const linear = of("linear")
  console.log(`linear pass: best ${ms(linear.best)}, median ${ms(linear.median)}\n`)
  ratio(`${policy}: full plan, cold`, of("cold"), linear, 2.5)
  ratio(`${policy}: full plan, warm, one new message`, of("warm"), linear, 1.25)
  ratio(`${policy}: full plan, replacements memoised`, of("memoised"), linear, 0.5)
}

const calls = () => {
  const seen = new Set<string>()
  let count = 0
  let distinct = 0
  const counting = Estimator.make((message) => {
    count++
    const content = JSON.stringify(message)
    if (!seen.has(content)) distinct++
    seen.add(content)
    return Estimator.chars.price(message)
  })
  const manager = managerOf(refusing, counting)
  const row = (figure: string, expected: number): void => {
    rows.push({ figure, bar: `= ${expected}`, measured: String(count), passes: count === expected })
    count = 0
    distinct = 0
  }
  append(manager, history)
  row("estimator calls, append: one for each entry", entries.length)
  request(manager, tight)
  row("estimator calls, cold pass: one for each distinct replacement", distinct)
  append(manager, next)
  request(manager, tight)
  row("estimator calls, warm pass: what was not there before", distinct)
}

const growth = () => {
  const all = messages(100_000, 2)
  const sessions = [1_000, 10_000, 100_000].map((length) => {
    const manager = managerOf({})
    append(manager, Prompt.fromMessages(all.slice(0, length)))
    request(manager, roomy)
    return { length, manager }
  })
  const figures = sessions.map(({ length, manager }) =>
    [
      String(length),
      () => () => {
        append(manager, next)
        request(manager, roomy)
      }
    ] as const
  )
  const copied = all.slice()
  let kept = 0
  const of = measure({
    ...Object.fromEntries(figures),
    slice: () => () => {
      kept += copied.slice().length
    }
  }, { rounds: 2_000, warmUp: 500, by: "clock" })
  if (kept === 0) console.error("nothing was copied")
  ratio("below the trigger, 10,000 messages against 1,000", of("10000"), of("1000"), 1.5)
  ratio("below the trigger, 100,000 messages against a bare copy", of("100000"), of("slice"), 2)
}

const memory = () => {
  // npm runs a script in the folder of its package.
  const out = execFileSync(process.execPath, ["--expose-gc", ".ci/ts.mjs", "test/bench/memory.ts"], {
    encoding: "utf8"
  })
  // Printed by `memory.ts` beside this file.
  const { transcript, manager, afterBoundary } = JSON.parse(out) as { readonly [name: string]: number }
  const mb = (bytes = 0) => `${(bytes / 1e6).toFixed(2)} MB`
  const row = (figure: string, bytes = 0, bar: number): void => {
    const share = bytes / (transcript ?? Number.NaN)
    rows.push({
      figure,
      bar: `≤ ${bar}×`,
      measured: `${share.toFixed(2)}×: ${mb(bytes)} of ${mb(transcript)}`,
      passes: share <= bar
    })
  }
  row("memory of a session beside its transcript's own", manager, 1)
  row("memory after a boundary", afterBoundary, 1)
}

plan("context-simple", seedOf)
plan("recommended", managerOf)
calls()
growth()
memory()

const width = (key: "figure" | "bar" | "measured") => Math.max(...rows.map((row) => row[key].length))
const [figureWidth, barWidth, measuredWidth] = [width("figure"), width("bar"), width("measured")]
for (const { bar, figure, measured, passes } of rows) {
  console.log(
    `${figure.padEnd(figureWidth)}  ${bar.padEnd(barWidth)}  ${measured.padEnd(measuredWidth)}  ${
      passes ? "PASS" : "MISS"
    }`
  )
}
if (rows.some((row) => !row.passes)) process.exitCode = 1
