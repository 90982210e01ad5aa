/** A policy in code: what is wrong with it is said as it is of one that was read from a file. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Conversations from "effect-compaction/Conversations"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Stage from "effect-compaction/Stage"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { session } from "./core/conversation.ts"

/** What does not compile is tried all the same: types are erased in JavaScript, and where `as any` stands. */
const erased = (value: unknown): any => value

const noPass = "pass: write the ladder as ladder: …, or make a whole pass of stages with Policy.passOf(…) or "
  + "Policy.passFrom(…): a bare ladder has no gate before it and would shorten every request (found "

const wrong: ReadonlyArray<readonly [name: string, options: unknown, message: string]> = [
  ["a bare ladder as pass", { pass: Ladder.progressive }, `${noPass}function)`],
  ["a rung as pass", { pass: Rung.stage(Rung.remove({ relax: 1 })) }, `${noPass}function)`],
  ["a pipeline as pass", { pass: Stage.pipeline(Ladder.progressive) }, `${noPass}function)`],
  ["a list of rungs as pass", { pass: [] }, `${noPass}[])`],
  ["no stage as pass", { pass: 1 }, `${noPass}1)`],
  ["a pass as ladder", { ladder: Policy.pass }, "ladder: write what Ladder.make(…) gave (found function)"],
  ["a list as ladder", { ladder: [] }, "ladder: write what Ladder.make(…) gave (found [])"],
  [
    "a ladder and a pass",
    { ladder: Ladder.make(Rung.remove({ relax: 1 })), pass: Policy.pass },
    "ladder: take it out, or put it into the pass: a whole pass is run alone, without the ladder beside it (found function)"
  ],
  [
    "settings that are not under settings",
    { window: 100_000 },
    "window: there is no such key: write it under settings, { settings: { window: … } } (found 100000)"
  ],
  [
    "a rung whose parameter is out of range",
    { ladder: Ladder.make(Rung.lastResort({ relax: 0 }), Rung.remove({ relax: 7 })) },
    "ladder[1].relax: write how much of protectedRecent still holds, a ratio from 0 to 1, for example 0.6 (found 7)"
  ],
  [
    "a rung whose parameter is no number, in a pass",
    { pass: Policy.passOf(Ladder.make(Rung.truncateToolResults({ fraction: Number.NaN }))) },
    "ladder[0].fraction: write a finite number (found NaN)"
  ],
  [
    "a rung with a parameter that does not exist",
    { ladder: Ladder.make(Rung.clearToolResults(erased({ kepe: 3 }))) },
    "ladder[0].kepe: there is no such key: write \"keep\" (found 3)"
  ],
  [
    "a rung with parameters that contradict each other",
    { byRoute: { "a/*": { ladder: Ladder.make(Rung.pruneToolResults({ thresholdChars: 100 })) } } },
    "byRoute[\"a/*\"].ladder[0].thresholdChars: write at least"
  ],
  [
    "a ladder that was to be changed at a rung that it has not",
    { ladder: Ladder.replace(erased(Ladder.progressive), "removee", Rung.remove({ relax: 1 })) },
    "ladder: There is no rung \"removee\" in the ladder: write one of \"truncate-25\""
  ],
  ["a key that does not exist", { lader: 1 }, "lader: there is no such key: write \"ladder\" (found 1)"],
  [
    "a setting that does not exist, and one of another type",
    { settings: { windov: 1, maxTokens: "5k" } },
    "settings.windov: there is no such key: write \"window\" (found 1)\nsettings.maxTokens: write a number (found \"5k\")"
  ],
  [
    "a setting of summaries that does not exist",
    { settings: { summary: { triger: 0.5 } } },
    "settings.summary.triger: there is no such key: write \"trigger\" (found 0.5)"
  ],
  ["no options", null, "write an object in braces, { … }, the policy as a whole (found null)"]
]

describe("a policy in code that is not right", () => {
  for (const [name, options, message] of wrong) {
    it.effect(`${name} fails with its path`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Policy.prepare(erased(options)))
        assert.strictEqual(error._tag, "PolicyError")
        assert.strictEqual(error.message.slice(0, message.length), message)
      }))
  }

  it.effect("fails the manager, the session, the service and the conversation alike", () =>
    Effect.gen(function*() {
      const options = erased({ pass: Ladder.progressive })
      class App extends ContextManager.Service<App>()("test/App", options) {}
      const message = `${noPass}function)`
      const made: ReadonlyArray<Effect.Effect<unknown, { readonly message: string }, never>> = [
        Effect.scoped(ContextManager.make(options)),
        Effect.scoped(ContextManager.open("a", options)).pipe(Effect.provide(SessionStore.layerMemory)),
        App.pipe(Effect.provide(App.layer)),
        Effect.scoped(Effect.flatMap(Conversations.make(options), (chats) => chats.get("a")))
      ]
      for (const each of made) assert.strictEqual((yield* Effect.flip(each)).message, message)
    }))
})

/** Runs, and gives the warnings of it. */
const warnings = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") lines.push(String(message))
  })
  yield* Effect.provide(effect, Logger.layer([logger]))
  return lines
})

const contradiction = "write at most 6760 tokens, or set clearFloorWhenOverBudget to \"override\""

describe("a policy in code that serves and is not what was meant", () => {
  const settings = {
    maxTokens: 13_000,
    notice: false,
    clearAtLeast: 9_000,
    clearFloorWhenOverBudget: "refuse"
  } as const

  it.effect("is told of once, in the words in which a file is refused", () =>
    Effect.gen(function*() {
      const { message } = yield* Effect.flip(Policy.decode(settings))
      assert.include(message, `clearAtLeast: ${contradiction}`)
      const lines = yield* warnings(Effect.scoped(Effect.flatMap(
        ContextManager.make({ settings }),
        (manager) => Effect.andThen(manager.append("hello"), manager.request)
      )))
      assert.deepStrictEqual(lines, [`a policy contradicts itself: settings.${message}`])
    }))

  it.effect("is told of by the place of its route, and by the rung that is there twice", () =>
    Effect.gen(function*() {
      const rung = Rung.remove({ relax: 1 })
      const lines = yield* warnings(Policy.prepare({
        ladder: Ladder.make(rung, rung),
        byRoute: { "a/*": { settings } }
      }))
      assert.lengthOf(lines, 2)
      assert.include(
        lines[0],
        "a policy contradicts itself: ladder[1]: take it out, or change it: it repeats ladder[0]"
      )
      assert.include(lines[1], `byRoute["a/*"].settings.clearAtLeast: ${contradiction}`)
    }))

  it.effect("is told of where nothing writes the summaries that it asks for, of a route too", () =>
    Effect.gen(function*() {
      const line = "the settings ask for summaries and no Summarizer is provided: the ladder serves alone"
      const summary = { window: 200_000, summary: {} }
      const made = (options: Policy.Options, writer: Summarizer.Service | undefined) =>
        warnings(
          Effect.provideService(Effect.scoped(ContextManager.make(options)), Summarizer.Summarizer, writer)
        )
      assert.deepStrictEqual(yield* made({ settings: summary }, undefined), [line])
      assert.deepStrictEqual(yield* made({ byRoute: { "a/*": { settings: summary } } }, undefined), [line])
      assert.deepStrictEqual(yield* made({ settings: summary }, Summarizer.extractive), [])
    }))

  it.effect("says nothing of a policy that is right", () =>
    Effect.gen(function*() {
      const own = () => Rung.propose("own", function*() {})
      const made = warnings(Policy.prepare({ ladder: Ladder.make(own(), own()) }))
      assert.deepStrictEqual(yield* made, [])
      assert.deepStrictEqual(yield* warnings(Policy.prepare({})), [])
      for (const policy of Object.values(Policy.presets)) {
        assert.deepStrictEqual(yield* warnings(Policy.prepare(Policy.options(policy))), [])
      }
    }))
})

describe("what is run at each request", () => {
  const of = (options: Policy.Options) =>
    Effect.gen(function*() {
      const { pass, settings } = yield* Policy.prepare(options)
      assert.isTrue(Policy.isPass(pass))
      const start = yield* Stage.fromPrompt(session, {
        settings: { maxTokens: settings.maxTokens ?? 0, notice: false }
      })
      return (yield* pass(start)).view !== start.view
    })

  it.effect("a ladder in the standard pass, and nothing with no rung", () =>
    Effect.gen(function*() {
      const settings = { maxTokens: 4_000, notice: false }
      assert.isTrue(yield* of({ settings }))
      assert.isTrue(yield* of({ settings, ladder: Ladder.progressive }))
      assert.isFalse(yield* of({ settings, ladder: Ladder.make() }))
      assert.isFalse(yield* of({ settings, pass: Policy.passFrom() }))
    }))
})
