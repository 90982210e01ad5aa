/** Every exported class of errors is met here once, as a caller would meet it, and says what to do about it. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Library from "effect-compaction"
import * as ClusterConversations from "effect-compaction/ClusterConversations"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Format from "effect-compaction/format/Format"
import * as Gate from "effect-compaction/Gate"
import * as Ladder from "effect-compaction/Ladder"
import * as Marks from "effect-compaction/Marks"
import * as Policy from "effect-compaction/Policy"
import * as Recall from "effect-compaction/Recall"
import * as Rung from "effect-compaction/Rung"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Settings from "effect-compaction/Settings"
import * as Chat from "effect-compaction/simulate/Chat"
import * as Retention from "effect-compaction/simulate/Retention"
import * as SpillStore from "effect-compaction/SpillStore"
import * as Stage from "effect-compaction/Stage"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Testing from "effect-compaction/testing"
import * as AiError from "effect/ai/AiError"
import * as DecisionModel from "effect/ai/DecisionModel"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import * as PolicyInput from "../src/cli/PolicyInput.ts"
import * as SettingsFlags from "../src/cli/SettingsFlags.ts"
import { prompt, session, system, user, words } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"
import * as OneLog from "./session/oneLog.ts"
import * as Sessions from "./summary/Sessions.ts"

interface Row {
  /** The class that must come of it, by its identifier. */
  readonly error: string
  /** What the message tells to turn: a setting, a flag, something to call; or the place of what is wrong. */
  readonly names: ReadonlyArray<string>
  readonly test: Effect.Effect<unknown, unknown, Scope.Scope>
}

/** The places that tests were given: their names are random, and any word may be a part of one. */
const places: Array<string> = []

const temporary = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "errors-"))
    places.push(directory)
    return directory
  }),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

/** How a test fails, and what its message says but for the places it happened at. */
const failing = (test: Row["test"]) =>
  Effect.map(Effect.flip(Effect.scoped(test)), (failure) => {
    const message = failure instanceof Error ? failure.message : ""
    return { failure, message: places.reduce((said, place) => said.replaceAll(place, "<place>"), message) }
  })

const openFile = (directory: string) => Effect.provide(SessionStore.openDirectory(directory), NodeServices.layer)

const asking = (settings: Settings.Input, content = session) =>
  Effect.gen(function*() {
    const manager = yield* ContextManager.make(seeded({ settings: { notice: false, ...settings } }))
    yield* manager.append(content)
    return yield* manager.request
  })

const byHand = (service: Summarizer.Service, summary: Settings.Input["summary"] = {}) =>
  Effect.gen(function*() {
    const settings = Sessions.withSummary({ trigger: 1, ...summary })
    const { manager } = yield* Sessions.watched(settings, { summarizer: service })
    yield* Sessions.step(manager, ...Sessions.opening)
    yield* Sessions.play(manager, 0, 8)
    return manager
  })

const compacting = (service: Summarizer.Service, summary: Settings.Input["summary"] = {}) =>
  Effect.flatMap(byHand(service, summary), (manager) => manager.compactNow())

const never = Sessions.answering(() => Effect.never).service

/** What runs beside what is done meanwhile, and how it ends. */
const meanwhile = <E>(
  service: Summarizer.Service,
  during: (manager: Sessions.Manager) => Effect.Effect<unknown, E>
) =>
  Effect.gen(function*() {
    const manager = yield* byHand(service)
    const fiber = yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
    yield* Sessions.settle
    yield* during(manager)
    return yield* Fiber.join(fiber)
  })

/** A session whose log fails when it is to write an event of a kind, or to flush, while it is compacted by hand. */
const running = (fails: string) =>
  Effect.gen(function*() {
    const log = yield* OneLog.memory
    const full = (operation: "append" | "flush") =>
      new SessionStore.SessionStoreError({ operation, path: "disk", reason: "the disk is full" })
    const failing: SessionStore.Log = {
      ...log,
      append: (events) =>
        events.some((event) => JSON.stringify(event).startsWith(`{"_tag":"${fails}"`))
          ? Effect.fail(full("append"))
          : log.append(events),
      flush: fails === "flush" ? Effect.fail(full("flush")) : log.flush
    }
    const manager = yield* ContextManager.open("one", seeded({ settings: Sessions.base })).pipe(
      OneLog.provide(failing)
    )
    yield* Sessions.playToTrigger(manager)
    return yield* manager.compactNow()
  })

const rows: ReadonlyArray<Row> = [
  {
    error: "BudgetInfeasible",
    names: ["maxTokens", "window", "protectedToolResults", "whenInfeasible"],
    test: asking({ maxTokens: 2_000, whenInfeasible: "fail" }, prompt(user(words("head", 40_000))))
  },
  {
    error: "TargetBelowOverhead",
    names: ["targetUsage", "strict"],
    test: asking({ maxTokens: 2_000, strict: true }, prompt(system(words("rules", 8_000)), user("go")))
  },
  {
    error: "ClearFloorUnsatisfied",
    names: ["clearAtLeast", "protectedRecent", "protectedToolResults"],
    test: asking({ maxTokens: 6_000, clearAtLeast: 100_000, maxConsecutiveSkips: 1 })
  },
  {
    error: "ProvenanceRefused",
    names: ["observe", "provenanceGate"],
    test: Effect.flatMap(Stage.fromPrompt(session, { settings: seed(), budget: 100_000 }), Gate.provenance)
  },
  {
    error: "ContextCannotFit",
    names: ["window"],
    test: Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* manager.append(prompt(Marks.set(user(words("head", 40_000)), { pinned: true })))
      const request = yield* manager.request
      return yield* manager.recover({ tokens: request.count.tokens, maximum: 2_000 })
    })
  },
  {
    error: "BoundaryNotFound",
    names: ["generation 3", "Compacted"],
    test: Effect.flatMap(ContextManager.make(), (manager) => manager.undo(3))
  },
  {
    error: "EntryNotFound",
    names: ["entry 9", "from 0 to 0"],
    test: Effect.gen(function*() {
      const manager = yield* ContextManager.make()
      yield* manager.append("one")
      return yield* Recall.read(yield* manager.view, 9)
    })
  },
  {
    error: "QueryRefused",
    names: ["words", "search twice"],
    test: Effect.gen(function*() {
      const manager = yield* ContextManager.make()
      return yield* Recall.search(yield* manager.view, "a b c d e f g h i j k l m n o p q")
    })
  },
  {
    error: "UndoCannotFit",
    names: ["maxTokens", "window"],
    test: Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings: { protectedRecent: 0, protectedToolResults: 0 } })
      yield* manager.append(session)
      const { generation } = yield* manager.requestWith({ budget: 3_000 })
      return yield* manager.undo(generation)
    })
  },
  {
    error: "SummarizerFailed",
    names: ["summary", "Summarizer"],
    test: compacting(Sessions.failing.service)
  },
  {
    error: "SummaryTimedOut",
    names: ["summary.timeout"],
    test: meanwhile(never, () => TestClock.adjust("31 seconds"))
  },
  {
    error: "SummaryTruncated",
    names: ["summary.maxTokens"],
    test: compacting(
      Sessions.answering(({ maxTokens }) => Effect.fail(new Summarizer.SummaryTruncated({ maxTokens }))).service
    )
  },
  {
    error: "NotASummary",
    names: ["summary.directive", "Summarizer"],
    test: compacting(Sessions.saying("I'm sorry, but I can't help with that.").service)
  },
  { error: "SummaryEmpty", names: ["summary", "Summarizer"], test: compacting(Sessions.saying(" \n").service) },
  {
    error: "SummaryUnfaithful",
    names: ["summary.faithful"],
    test: compacting(
      Sessions.saying("## State\n\n- The file src/invented/nowhere.ts must never be opened: ERR_INVENTED_42.").service,
      { faithful: "refuse" }
    )
  },
  {
    error: "SummaryNotSmaller",
    names: ["summary.maxTokens", "summary.minSpan"],
    test: compacting(Sessions.saying(words("long", 100_000)).service)
  },
  {
    error: "InvalidMessages",
    names: ["messages[0].content[0].result"],
    test: Effect.flatMap(ContextManager.make(seeded()), (manager) =>
      manager.append(Prompt.makeMessage("tool", {
        content: [
          Prompt.makePart("tool-result", { id: "a", name: "t", isFailure: false, result: 1n, providerExecuted: false })
        ]
      })))
  },
  {
    error: "CompactionBusy",
    names: ["statusChanges"],
    test: Effect.gen(function*() {
      const manager = yield* byHand(never)
      yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      return yield* manager.compactNow()
    })
  },
  { error: "CompactionCancelled", names: ["compactNow"], test: meanwhile(never, (manager) => manager.reset) },
  {
    error: "SpanChanged",
    names: ["compactNow"],
    test: Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { service } = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(Sessions.short)))
      return yield* meanwhile(
        service,
        (manager) => manager.requestWith({ budget: 1_500 }).pipe(Effect.andThen(Deferred.succeed(gate, undefined)))
      )
    })
  },
  { error: "CommitFailed", names: ["SessionStore"], test: running("Decided") },
  { error: "CommitFailed", names: ["ContextManager.open"], test: running("CompactionEnded") },
  { error: "PersistenceFailed", names: ["flush"], test: running("flush") },
  {
    error: "SpillError",
    names: ["SpillStore"],
    test: Effect.gen(function*() {
      const directory = yield* temporary
      // A file where the directory should be.
      const taken = path.join(directory, "taken")
      fs.writeFileSync(taken, "")
      const layer = Layer.provide(SpillStore.layerFileSystem(taken), NodeServices.layer)
      const store = yield* Effect.provide(SpillStore.SpillStore, layer)
      return yield* store.put("tool-result-000001-0123456789abcdef.txt", "text")
    })
  },
  {
    error: "SessionStoreError",
    names: ["SessionStore"],
    test: Effect.gen(function*() {
      const directory = yield* temporary
      const taken = path.join(directory, "taken")
      fs.writeFileSync(taken, "")
      return yield* openFile(taken)
    })
  },
  {
    error: "SessionLocked",
    names: ["remove", "lock"],
    test: Effect.gen(function*() {
      const directory = path.join(yield* temporary, "session")
      yield* openFile(directory)
      return yield* openFile(directory)
    })
  },
  {
    error: "SessionLost",
    names: ["ContextManager.open"],
    test: Effect.gen(function*() {
      const store = yield* SessionStore.makeMemory
      const first = yield* store.open("one")
      yield* store.open("one")
      yield* first.append([1])
    })
  },
  {
    error: "ConversationFailed",
    names: ["user-42", "key"],
    test: new ClusterConversations.ConversationFailed({ id: "user-42", error: "SessionLost", reason: "it is gone." })
  },
  {
    error: "PromiseBroken",
    names: ["SessionStore"],
    test: Effect.gen(function*() {
      const store = yield* SessionStore.makeMemory
      yield* Effect.flatMap(store.open("one"), (log) => log.append([1]))
      const check = Testing.sessionStore.find(({ name }) => name === "a new session is empty")!.check
      yield* Effect.provideService(check, SessionStore.SessionStore, store)
    })
  },
  {
    error: "SessionNotFound",
    names: ["SessionStore"],
    test: Effect.flatMap(SessionStore.makeMemory, (store) => store.read("none"))
  },
  {
    error: "SessionCorrupt",
    names: ["log.jsonl, line 1", "Restore"],
    test: Effect.gen(function*() {
      const directory = path.join(yield* temporary, "session")
      yield* Effect.scoped(Effect.flatMap(openFile(directory), (store) => store.append([1])))
      fs.writeFileSync(
        path.join(directory, "log.jsonl"),
        `{}\n${fs.readFileSync(path.join(directory, "log.jsonl"), "utf8")}`
      )
      return yield* openFile(directory)
    })
  },
  {
    error: "SessionUnreadable",
    names: ["line 1", "version"],
    test: Effect.gen(function*() {
      const store = yield* OneLog.memory
      yield* store.append([{ _tag: "OfTheFuture" }])
      return yield* ContextManager.open("session", seeded()).pipe(OneLog.provide(store))
    })
  },
  {
    error: "PolicyError",
    names: ["targetUsage", "compactThreshold"],
    test: Policy.decode({ targetUsage: 0.95 })
  },
  {
    error: "ScenarioSaturated",
    names: ["budget", "probes"],
    test: Retention.hasHeadroom([{ policy: "none", retained: 1 }])
  },
  {
    error: "FormatError",
    names: ["chat.json", "role"],
    test: Effect.fromResult(
      Format.fromString("{\"messages\":[{\"role\":\"robot\",\"content\":\"x\"}]}", {
        file: "chat.json",
        format: "openai-chat"
      })
    )
  },
  {
    error: "SettingsError",
    names: ["--target"],
    test: SettingsFlags.decode({
      ...Object.fromEntries(Object.keys(SettingsFlags.flags).map((key) => [key, Option.none()])),
      targetUsage: Option.some(2)
    })
  },
  {
    error: "UnknownRung",
    names: ["removee", "\"remove\""],
    test: Effect.gen(function*() {
      // As in JavaScript, where no name is known to the compiler.
      const read: Ladder.Ladder = Ladder.make(Rung.remove({ relax: 1 }))
      const pass = yield* Stage.fromPrompt(session, { budget: 100_000 })
      return yield* read.pipe(Ladder.insertBefore("removee", Rung.propose("own", () => [])))(pass)
    })
  },
  {
    error: "ChatError",
    names: ["chat.json"],
    test: Chat.parse("chat.json", { messages: "{", meta: "{}" })
  },
  {
    error: "DecideFailed",
    names: ["whenFailed", "timeout", "2 units"],
    test: Effect.gen(function*() {
      const model = yield* DecisionModel.make({
        decide: () =>
          AiError.make({
            module: "DecisionModel",
            method: "decide",
            reason: new AiError.InvalidOutputError({ description: "2 units of three" })
          })
      })
      const pass = yield* Stage.fromPrompt(session, { settings: seed(), budget: 3_000 })
      return yield* Effect.provideService(
        Rung.stage(Rung.decide({ whenFailed: "fail" }))(pass),
        DecisionModel.DecisionModel,
        model
      )
    })
  },
  {
    error: "PolicyFailed",
    names: ["--policy", "nowhere.json"],
    test: Effect.provide(PolicyInput.read("nowhere.json", {}, Policy.withKinds()), NodeServices.layer)
  }
]

/** Of the command line alone, which prints them and ends: an exit code, and a file that could not be written. */
const none = ["Failed", "NotWritten"]

const source = fileURLToPath(new URL("../src", import.meta.url))

const files = ["", "format", "simulate", "cli"].flatMap((folder) =>
  fs.readdirSync(path.join(source, folder))
    .filter((name) => name.endsWith(".ts") && name !== "main.ts")
    .map((name) => path.join(source, folder, name))
)

const isErrorClass = (value: unknown): value is { readonly identifier: string } =>
  typeof value === "function" && value.prototype instanceof Error && Schema.isSchema(value)

const tagOf = (identifier: string) => identifier.slice(identifier.lastIndexOf("/") + 1)

describe("errors", () => {
  for (const { error, names, test } of rows) {
    it.effect(`${error} names ${names.join(", ")}`, () =>
      Effect.gen(function*() {
        const { failure, message } = yield* failing(test)
        assert.isTrue(failure instanceof Error)
        assert.strictEqual((failure as { readonly _tag?: unknown })._tag, error, String(failure))
        for (const name of names) assert.include(message, name)
        assert.match(message, /\S{3}/)
        assert.notMatch(message, /undefined|NaN|\[object/)
      }))
  }

  it.effect("every exported class has a row", () =>
    Effect.gen(function*() {
      const found = new Set<string>()
      for (const file of files) {
        const module: object = yield* Effect.promise(() => import(pathToFileURL(file).href))
        for (const value of Object.values(module)) if (isErrorClass(value)) found.add(tagOf(value.identifier))
      }
      assert.deepStrictEqual([...found].sort(), [...new Set([...none, ...rows.map(({ error }) => error)])].sort())
    }))

  it.effect("what the messages name is there: settings, presets, modules, and what a manager can be asked", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded())
      const known = new Set([
        ...Object.keys(Settings.Settings.fields),
        ...Object.keys(Settings.Summary.fields).map((key) => `summary.${key}`),
        ...Object.keys(Rung.Decide.fields),
        ...Object.keys(manager),
        ...Object.keys(Policy.presets),
        ...Object.entries(Library).flatMap(([name, module]) => [
          name,
          ...Object.keys(module).map((key) => `${name}.${key}`)
        ])
      ])
      // Every word of the form of a setting in a message, wherever it stands: what nobody can turn is not named.
      for (const { error, test } of rows) {
        const { message } = yield* failing(test)
        const keys = message.match(
          /\bsummary\.[a-z]\w+|\b(?:SessionStore|SpillStore|Surface|ContextManager|Summarizer)\b(?:\.\w+)?/g
        ) ?? []
        for (const key of keys) assert.isTrue(known.has(key.replace(/\.$/, "")), `${error} names ${key}`)
        const settings = message.match(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g) ?? []
        for (const key of settings) {
          assert.isTrue(known.has(key) || known.has(`summary.${key}`), `${error} names ${key}`)
        }
      }
    }))
})
