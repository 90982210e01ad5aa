import { assert, describe, it } from "@effect/vitest"
import * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Decision from "effect-compaction/Decision"
import * as Gate from "effect-compaction/Gate"
import * as Guard from "effect-compaction/Guard"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as Transcript from "effect-compaction/Transcript"
import * as View from "effect-compaction/View"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { seed, seeded } from "../seed.ts"
import {
  answers,
  assistant,
  bytesOf,
  calls,
  changesOf,
  prompt,
  result,
  session,
  system,
  turn,
  user,
  words
} from "./conversation.ts"

/** A budget that nothing comes down to, so that a rung shows all that it does. */
const exhausting = (settings: Settings.Input = {}) =>
  Stage.fromPrompt(session, { settings: seed({ protectedToolResults: 1, targetUsage: 0, ...settings }), budget: 1_000 })

const even = (from: number, to: number) => Array.from({ length: (to - from) / 2 + 1 }, (_, at) => from + 2 * at)
const all = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

const rungs: ReadonlyArray<readonly [name: string, changes: Partial<ReturnType<typeof changesOf>>]> = [
  ["truncate-25", { truncated: even(4, 8) }],
  ["truncate-50", { truncated: even(4, 14) }],
  ["remove", { removed: all(3, 20) }],
  ["truncate-75", { truncated: even(4, 20) }],
  ["remove-0.6", { removed: all(3, 24) }],
  ["truncate-100", { truncated: even(4, 24) }],
  ["remove-0.3", { removed: [...all(3, 24), 28], stubbed: [27] }],
  ["last-resort", { removed: [2], stubbed: [1] }]
]

describe("the eight rungs, each alone on a pass made of a prompt", () => {
  it("are those of the default ladder", () =>
    assert.deepStrictEqual(Ladder.progressive.rungs.map((rung) => rung.name), rungs.map(([name]) => name)))

  for (const [at, [name, changes]] of rungs.entries()) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const pass = yield* exhausting()
        const after = yield* Rung.stage(Ladder.progressive.rungs[at]!)(pass)
        assert.deepStrictEqual(changesOf(after), { removed: [], truncated: [], stubbed: [], ...changes })
        assert.strictEqual(after.report.level, 1)
        const fresh = View.make(after.view.transcript, after.view.decisions)
        assert.strictEqual(after.view.price, fresh.price, "the running price is that of the view made anew")
        assert.strictEqual(bytesOf(View.toPrompt(after.view)), bytesOf(View.toPrompt(fresh)))
        assert.deepStrictEqual(changesOf(pass), { removed: [], truncated: [], stubbed: [] }, "the pass before stays")
      }))

    it.effect(`${name} stops at the target`, () =>
      Effect.gen(function*() {
        const pass = yield* exhausting()
        const sizes = { ...pass.sizes, target: pass.view.price - 1 }
        const after = yield* Rung.stage(Ladder.progressive.rungs[at]!)({ ...pass, sizes })
        assert.strictEqual(after.view.decisions.length, 1)
        assert.isAtMost(after.view.price, sizes.target)
      }))
  }

  it.effect("shares are rounded up: a quarter of three results is one, and 0.9 of ten entries are nine", () =>
    Effect.gen(function*() {
      const three = prompt(user("go"), ...["a", "b", "c"].flatMap((id) => turn(id, 2_000)), user("end"))
      const options = { settings: { protectedToolResults: 0, targetUsage: 0 }, budget: 1_000 }
      const truncated = yield* Rung.stage(Ladder.progressive.rungs[0]!)(yield* Stage.fromPrompt(three, options))
      assert.deepStrictEqual(changesOf(truncated).truncated, [2])
      const ten = prompt(...Array.from({ length: 10 }, (_, n) => assistant(words(`answer ${n}`, 400))))
      const settings = { ...options.settings, protectedRecent: 0.9 }
      const removed = yield* Rung.stage(Ladder.progressive.rungs[2]!)(
        yield* Stage.fromPrompt(ten, { ...options, settings: seed(settings) })
      )
      assert.deepStrictEqual(changesOf(removed).removed, [0])
    }))

  it.effect("a rung adds to what was decided before it", () =>
    Effect.gen(function*() {
      const pass = yield* exhausting()
      const [first, second] = Ladder.progressive.rungs.map(Rung.stage)
      const once = yield* first!(pass)
      const twice = yield* Stage.pipeline(first!, second!)(pass)
      assert.deepStrictEqual(twice.view.decisions.slice(0, 3), once.view.decisions)
      assert.deepStrictEqual(changesOf(twice).truncated, even(4, 14))
      assert.isTrue((yield* first!(twice)).view === twice.view, "done once, nothing is left to do")
    }))

  it.effect("a rung of a stage runs alone too, with the errors it has", () =>
    Effect.gen(function*() {
      const pass = yield* exhausting()
      const own = Rung.make("own", Rung.stage(Rung.remove({ relax: 1 })))
      assert.deepStrictEqual(changesOf(yield* Rung.stage(own)(pass)).removed, all(3, 20))
      const failing = Rung.make("failing", () => Effect.fail("no" as const))
      assert.strictEqual(yield* Effect.flip(Rung.stage(failing)(pass)), "no")
    }))

  it.effect("climb goes to a target of its own", () =>
    Effect.gen(function*() {
      const pass = yield* exhausting()
      const target = Math.floor(pass.view.price * 0.9)
      const after = yield* Ladder.climb(Ladder.progressive, pass, { target })
      assert.isAtMost(after.view.price, target)
      assert.strictEqual(after.report.level, 1)
      assert.strictEqual(after.report.target, target)
    }))
})

describe("edges of the rungs", () => {
  it.effect("a result of exactly the threshold is not pruned, one of a character more is", () =>
    Effect.gen(function*() {
      const rung = Rung.stage(
        Rung.pruneToolResults({
          thresholdChars: 500,
          headChars: 100,
          tailChars: 50,
          keepNewest: 0,
          stopAtTarget: false
        })
      )
      const at = (length: number) =>
        Effect.gen(function*() {
          const given = prompt(user("go"), ...turn("a", length), user("end"))
          const pass = yield* Stage.fromPrompt(given, { settings: seed({ targetUsage: 0 }), budget: 1_000 })
          return (yield* rung(pass)).view.decisions.map((decision) => decision._tag)
        })
      assert.deepStrictEqual(yield* at(500), [])
      assert.deepStrictEqual(yield* at(501), ["Prune"])
    }))

  /** A pass whose count is above its trigger while its price is far below. */
  const heavy = Effect.fnUntraced(function*(
    { generation = 0, memory = Stage.noMemory }: Partial<Pick<Stage.Pass, "generation" | "memory">>,
    settings: Settings.Input = {}
  ) {
    const pass = yield* Stage.fromPrompt(prompt(user("go"), assistant("yes"), user("end")), {
      settings: seed(settings),
      budget: 4_000
    })
    return { ...pass, count: { ...pass.count, tokens: 3_900 }, generation, memory }
  })

  it.effect("a pass without power is named once in each generation, not once for good", () =>
    Effect.gen(function*() {
      const named: Array<string> = []
      const publish = (event: CompactionEvent.CompactionEvent) =>
        Effect.sync(() => {
          named.push(event._tag)
        })
      const run = (pass: Stage.Pass) =>
        Effect.provideService(Ladder.progressive(pass), CompactionEvent.Publisher, publish)
      const first = yield* run(yield* heavy({ generation: 1 }))
      yield* run(yield* heavy(first))
      assert.deepStrictEqual(named, ["CompactionPowerless"])
      yield* run(yield* heavy({ ...first, generation: 2 }))
      assert.deepStrictEqual(named, ["CompactionPowerless", "CompactionPowerless"])
    }))

  it.effect("whether the number of entries alone called for a pass is asked of the count, not of the price", () =>
    Effect.gen(function*() {
      const given = prompt(user("go"), ...Array.from({ length: 12 }, (_, n) => turn(`t${n}`, 600)).flat(), user("end"))
      const settings: Settings.Input = { maxMessages: 10, protectedToolResults: 0, protectedRecent: 0 }
      const pass = yield* Stage.fromPrompt(given, { settings: seed(settings), budget: 4_000 })
      assert.isBelow(pass.view.price, pass.budget.trigger)
      const crowded = yield* Ladder.progressive(pass)
      assert.deepStrictEqual(changesOf(crowded).truncated, [], "below the trigger nothing is shortened")
      const pressed = yield* Ladder.progressive({ ...pass, count: { ...pass.count, tokens: pass.budget.trigger } })
      assert.isAbove(pressed.view.decisions.filter((decision) => decision._tag === "Truncate").length, 0)
    }))
})

describe("what a proposer may not do", () => {
  const propose = (proposer: Rung.Propose) => Rung.stage(Rung.propose("custom", proposer))
  const said = prompt(
    system(words("rules", 4_000)),
    user(words("first", 400)),
    calls("a", "b"),
    answers(result("a", words("a", 2_000)), result("b", words("b", 2_000))),
    assistant(words("answer", 400)),
    user("last")
  )
  const start = Stage.fromPrompt(said, { settings: seed({ targetUsage: 0 }), budget: 1_000 })

  const refused: ReadonlyArray<readonly [name: string, decision: (at: number) => Decision.Edit]> = [
    ["remove a system entry", (at) => ({ _tag: "Remove", seqs: [0], at })],
    ["stub a system entry", (at) => ({ _tag: "Stub", seq: 0, at, k: 5 })],
    ["stub what the assistant said", (at) => ({ _tag: "Stub", seq: 5, at, k: 5 })],
    ["truncate what a human said", (at) => ({ _tag: "Truncate", seq: 1, at, k: 5, shape: "head" })],
    ["name an entry that does not exist", (at) => ({ _tag: "Truncate", seq: 99, at, k: 5, shape: "head" })],
    ["make an entry dearer", (at) => ({ _tag: "Stub", seq: 6, at, k: 50 })]
  ]
  for (const [name, decision] of refused) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const pass = yield* start
        const after = yield* propose((draft) => [decision(draft.at)])(pass)
        assert.deepStrictEqual(after.view.decisions, [])
        assert.isTrue(after.view === pass.view)
      }))
  }

  const whole: ReadonlyArray<readonly [name: string, seqs: ReadonlyArray<number>, removed: ReadonlyArray<number>]> = [
    ["one member means the group", [4], [2, 3, 4]],
    ["and what else is named goes too", [3, 5], [2, 3, 4, 5]],
    ["as many names as members, one of a system entry", [0, 1, 4], [1, 2, 3, 4]],
    ["as many names as members, two of nothing", [98, 99, 4], [2, 3, 4]],
    ["one member named three times", [4, 4, 4], [2, 3, 4]]
  ]
  for (const [name, seqs, removed] of whole) {
    it.effect(`take a group apart: ${name}`, () =>
      Effect.gen(function*() {
        const pass = yield* start
        const { view } = yield* propose((draft) => [{ _tag: "Remove", seqs, at: draft.at }])(pass)
        assert.deepStrictEqual(
          view.decisions.flatMap((_) => _._tag === "Remove" ? _.seqs : []).toSorted((a, b) => a - b),
          removed
        )
        assert.deepStrictEqual(changesOf({ ...pass, view }).removed, removed)
        assert.strictEqual(view.price, View.make(view.transcript, view.decisions).price)
      }))
  }
})

describe("Guard.clearAtLeast, alone", () => {
  const truncate = Rung.stage(Ladder.progressive.rungs[0]!)
  const guarded = Stage.guard(truncate, Guard.clearAtLeast)
  const judge = (settings: Settings.Input, streak = 0) =>
    Effect.gen(function*() {
      const events: Array<CompactionEvent.CompactionEvent> = []
      const pass = yield* exhausting(settings)
      const before = Stage.remember(pass, Guard.clearFloor, { streak, skipped: null, overrides: 0 })
      const freed = pass.view.price - (yield* truncate(pass)).view.price
      const after = yield* Effect.result(guarded(before)).pipe(
        Effect.provideService(CompactionEvent.Publisher, (event) => Effect.sync(() => events.push(event)))
      )
      return { after, before, events, freed }
    })

  it.effect("off, or freed enough: accepted, and the streak ends", () =>
    Effect.gen(function*() {
      const { freed } = yield* judge({})
      assert.isAbove(freed, 1_000)
      for (const clearAtLeast of [freed, freed - 1, 1]) {
        const { after, events } = yield* judge({ clearAtLeast }, 2)
        assert.strictEqual(after._tag, "Success")
        if (after._tag === "Failure") return
        assert.deepStrictEqual(changesOf(after.success).truncated, [4, 6, 8])
        assert.strictEqual(Stage.recall(after.success, Guard.clearFloor).streak, 0)
        assert.deepStrictEqual(events, [])
      }
      const off = yield* judge({ clearAtLeast: null }, 2)
      if (off.after._tag === "Success") {
        assert.strictEqual(Stage.recall(off.after.success, Guard.clearFloor).streak, 2, "off, it touches nothing")
      }
    }))

  it.effect("freed too little: taken back, counted and published", () =>
    Effect.gen(function*() {
      const { after, before, events, freed } = yield* judge({ clearAtLeast: 5_000 }, 1)
      assert.strictEqual(after._tag, "Success")
      if (after._tag === "Failure") return
      assert.isTrue(after.success.view === before.view)
      assert.strictEqual(Stage.recall(after.success, Guard.clearFloor).streak, 2)
      assert.deepStrictEqual(events, [{
        _tag: "CompactionSkipped",
        freed,
        required: 5_000,
        level: 1,
        streak: 2,
        baseline: before.view.price,
        budget: 200,
        protectedRecent: 0.3,
        protectedToolResults: 1
      }])
    }))

  it.effect("too often: a typed error with the numbers, whose message names the knobs", () =>
    Effect.gen(function*() {
      const { after, freed } = yield* judge({ clearAtLeast: 5_000 }, 2)
      assert.strictEqual(after._tag, "Failure")
      if (after._tag === "Success") return
      const error = after.failure
      assert.strictEqual(error._tag, "ClearFloorUnsatisfied")
      assert.deepInclude({ ...error }, {
        freed,
        required: 5_000,
        level: 1,
        streak: 3,
        budget: 200,
        protectedResults: 1,
        results: 12,
        recentMessages: 10,
        messages: 31
      })
      for (
        const says of [
          "clearAtLeast",
          "protectedToolResults",
          "protectedRecent",
          "1 of 12",
          "10 of 31",
          "5000",
          `${freed}`
        ]
      ) {
        assert.include(error.message, says)
      }
    }))

  it("below 1 it is a share of the budget, else tokens, rounded down", () => {
    const rows: ReadonlyArray<readonly [clearAtLeast: number | null, limit: number, required: number]> = [
      [null, 1_000, 0],
      [0.1, 1_009, 100],
      [0.0001, 1_000, 0],
      [0.5, -10, 0],
      [1, 1_000, 1],
      [1.9, 1_000, 1],
      [20_000, 1_000, 20_000]
    ]
    for (const [clearAtLeast, limit, required] of rows) {
      // Only this key is read.
      const settings = { clearAtLeast } as Settings.Settings
      assert.strictEqual(Guard.requiredOf(settings, limit), required)
    }
  })
})

describe("a ladder", () => {
  const holding = prompt(user(words("x", 8_000)))
  const infeasible = (settings: Settings.Input) =>
    Stage.fromPrompt(holding, { settings: seed(settings), budget: 1_000 })

  it.effect("says what holds a view that cannot fit, and names the knobs", () =>
    Effect.gen(function*() {
      const pass = yield* infeasible({ whenInfeasible: "fail" })
      const error = yield* Effect.flip(Ladder.progressive(pass))
      assert.strictEqual(error._tag, "BudgetInfeasible")
      assert.strictEqual(error.over, pass.view.price - 200)
      assert.deepStrictEqual(error.holders, [{ seq: 0, tokens: pass.view.price }])
      const named = ["window", "maxTokens", "protectedToolResults", "whenInfeasible", "entry 0", `${pass.view.price}`]
      for (const says of named) assert.include(error.message, says)
    }))

  it.effect("sends it otherwise, and remembers the holders", () =>
    Effect.gen(function*() {
      const pass = yield* infeasible({})
      const after = yield* Ladder.progressive(pass)
      assert.isTrue(after.view === pass.view)
      assert.deepStrictEqual(Stage.recall(after, Ladder.infeasible), [0])
      assert.strictEqual(after.report.infeasible?.over, pass.view.price - 200)
    }))

  it("is put together by name", () => {
    const own = Rung.propose("own", () => [])
    const names = (ladder: Ladder.Ladder) => ladder.rungs.map((rung) => rung.name)
    const three = Ladder.make(Rung.propose("a", () => []), Rung.propose("b", () => []), Rung.propose("a", () => []))
    assert.deepStrictEqual(names(three.pipe(Ladder.append(own))), ["a", "b", "a", "own"])
    assert.deepStrictEqual(names(three.pipe(Ladder.insertBefore("b", own))), ["a", "own", "b", "a"])
    assert.deepStrictEqual(names(three.pipe(Ladder.insertBefore("a", own))), ["own", "a", "b", "a"])
    assert.deepStrictEqual(names(three.pipe(Ladder.replace("a", own))), ["own", "b", "own"])
    assert.deepStrictEqual(names(Ladder.insertBefore(three, "b", own)), ["a", "own", "b", "a"])
    assert.deepStrictEqual(names(three), ["a", "b", "a"])
  })

  it.effect("fails where it was to be changed at a rung that it has not", () =>
    Effect.gen(function*() {
      const own = Rung.propose("own", () => [])
      // As in JavaScript, where no name is known to the compiler.
      const read: Ladder.Ladder = Ladder.make(Rung.remove({ relax: 1 }))
      const pass = yield* Stage.fromPrompt(session, { settings: seed(), budget: 6_000 })
      const wrong = [
        read.pipe(Ladder.insertBefore("removee", own)),
        Ladder.replace(read, "removee", own),
        read.pipe(Ladder.replace("removee", own), Ladder.append(own), Ladder.insertBefore("remove", own))
      ]
      for (const ladder of wrong) {
        const error = yield* Effect.flip(ladder(pass))
        assert.deepInclude(error, { _tag: "UnknownRung", name: "removee", names: ["remove"] })
        assert.strictEqual(error.message, "There is no rung \"removee\" in the ladder: write one of \"remove\".")
        assert.strictEqual((yield* Effect.flip(Ladder.climb(ladder, pass, { target: 0 })))._tag, "UnknownRung")
      }
    }))

  it.effect("climbs a rung that is a stage, at its level, and commits what it decided", () =>
    Effect.gen(function*() {
      const effectful = Rung.make("effectful", Rung.stage(Rung.truncateToolResults({ fraction: 1 })))
      const ladder = Ladder.progressive.pipe(Ladder.insertBefore("remove", effectful))
      const settings: Settings.Input = { protectedToolResults: 1, notice: false }
      const pass = yield* Stage.fromPrompt(session, { settings: seed(settings), budget: 6_000 })
      const after = yield* ladder({ ...pass, sizes: { ...pass.sizes, target: 3_000 } })
      assert.strictEqual(after.report.level, 3)
      assert.isAtMost(after.view.price, 3_000)
      assert.strictEqual(after.view.price, View.make(after.view.transcript, after.view.decisions).price)
    }))
})

describe("the pass of a manager", () => {
  const settings: Settings.Input = { protectedToolResults: 1, notice: false }
  const budget = 4_000
  const built = Policy.passFrom(Stage.when(Stage.guard(Ladder.progressive, Guard.clearAtLeast), Gate.threshold))

  const viewOf = <E>(pass: Policy.Pass<E>, extra: Settings.Input = {}) =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ pass, settings: { ...settings, ...extra } }))
      yield* manager.append(session)
      yield* manager.requestWith({ budget })
      const { decisions, price, transcript } = yield* manager.view
      return { decisions, price, transcript }
    })

  it.effect("is an exported value: run on a prompt without a manager it decides the same", () =>
    Effect.gen(function*() {
      const alone = yield* Policy.passOf(Ladder.progressive)(
        yield* Stage.fromPrompt(session, { settings: seed(settings), budget })
      )
      assert.isAbove(alone.view.decisions.length, 0)
      assert.deepStrictEqual((yield* viewOf(Policy.passOf(Ladder.progressive))).decisions, alone.view.decisions)
    }))

  it.effect("is built from the stages anyone composes", () =>
    Effect.gen(function*() {
      const standard = yield* viewOf(Policy.passOf(Ladder.progressive))
      assert.deepStrictEqual((yield* viewOf(built)).decisions, standard.decisions)
      assert.deepStrictEqual((yield* viewOf(Policy.passOf(Ladder.progressive))).decisions, standard.decisions)
    }))

  it.effect("does something else with another stage in the place of one", () =>
    Effect.gen(function*() {
      const standard = yield* viewOf(Policy.passOf(Ladder.progressive))
      const never = yield* viewOf(Policy.passFrom(Stage.when(Ladder.progressive, () => false)))
      assert.deepStrictEqual(never.decisions, [])
      const onlyRemoves = yield* viewOf(Policy.passOf(Ladder.make(Rung.remove({ relax: 1 }))))
      assert.isAbove(onlyRemoves.decisions.length, 0)
      assert.isTrue(onlyRemoves.decisions.every((decision) => decision._tag === "Remove"))
      assert.isTrue(standard.decisions.some((decision) => decision._tag === "Truncate"))
      const floor = { clearAtLeast: 100_000 }
      assert.deepStrictEqual((yield* viewOf(built, floor)).decisions, [])
      const unguarded = yield* viewOf(Policy.passFrom(Stage.when(Ladder.progressive, Gate.threshold)), floor)
      assert.deepStrictEqual(unguarded.decisions, standard.decisions)
    }))

  it.effect("the gate: at the trigger, not below it, and never without a budget", () =>
    Effect.gen(function*() {
      const pass = yield* Stage.fromPrompt(prompt(user("abcd")), { settings: seed({ notice: false }), budget: 100 })
      const at = (tokens: number, given = pass): Stage.Pass => ({ ...given, count: { ...given.count, tokens } })
      assert.isTrue(Gate.threshold(at(92)))
      assert.isFalse(Gate.threshold(at(91)))
      assert.isFalse(Gate.threshold(at(91.999)))
      for (const limit of [0, -5, Number.NaN]) {
        assert.isFalse(Gate.threshold(at(92, { ...pass, budget: { ...pass.budget, limit, trigger: limit * 0.92 } })))
      }
    }))
})

describe("a transcript taken in part", () => {
  it("prices nothing again and pairs as the whole did", () => {
    let priced = 0
    const whole = Transcript.fromPrompt(session, () => ++priced)
    const part = Transcript.take(whole, 10)
    assert.strictEqual(priced, 32)
    assert.deepStrictEqual(
      part.entries.map((entry) => entry.price),
      whole.entries.slice(0, 10).map((entry) => entry.price)
    )
    assert.deepStrictEqual(
      part.entries.map((entry) => entry.group),
      whole.entries.slice(0, 10).map((entry) => entry.group)
    )
    Transcript.append(part, Prompt.makeMessage("assistant", { content: [] }))
    assert.strictEqual(whole.entries.length, 32)
    assert.strictEqual(priced, 33)
  })
})
