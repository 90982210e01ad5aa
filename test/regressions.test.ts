/**
 * Faults that other tools for compaction shipped, each as the small input that shows it and what must happen. Named by the
 * kind of fault: the numbers are those of the list that they were collected in.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Budget from "effect-compaction/Budget"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Marks from "effect-compaction/Marks"
import * as Rung from "effect-compaction/Rung"
import * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import {
  answers,
  assistant,
  bytesOf,
  calls,
  e4,
  prompt,
  result,
  system,
  turn,
  user,
  words
} from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"
import * as Sessions from "./summary/Sessions.ts"

type Manager = Sessions.Manager
type Request = ContextManager.Request

interface Row {
  readonly id: string
  readonly kind: string
  readonly test: Effect.Effect<void, unknown, Scope.Scope>
}

const managing = (settings: Settings.Input) => ContextManager.make(seeded({ settings: { notice: false, ...settings } }))

/** Under E4: four code units are a token, and nothing else costs anything. */
const inE4 = (settings: Settings.Input) => managing(settings).pipe(Effect.provide(e4))

/** Appends messages and requests the view, one step after another; a bill answers each request where one is given. */
const play = Effect.fnUntraced(function*(
  manager: Manager,
  steps: ReadonlyArray<ReadonlyArray<Prompt.Message>>,
  bill?: (request: Request) => Effect.Effect<number>
) {
  const requests: Array<Request> = []
  for (const messages of steps) {
    yield* manager.append(Prompt.fromMessages(messages))
    const request = yield* manager.request
    if (bill !== undefined) yield* manager.observe({ inputTokens: { total: yield* bill(request) } }, request)
    requests.push(request)
  }
  return requests
})

const tagged = <Tag extends Request["events"][number]["_tag"]>(requests: ReadonlyArray<Request>, tag: Tag) =>
  requests.flatMap(({ events }) =>
    events.filter((event): event is Extract<Request["events"][number], { readonly _tag: Tag }> => event._tag === tag)
  )

/** The price of what was sent, under E4. */
const e4Of = ({ prompt }: Request): Effect.Effect<number> =>
  Stage.fromPrompt(prompt, { settings: seed(), budget: 1 }).pipe(
    Effect.provide(e4),
    Effect.orDie,
    Effect.map(({ view }) => view.price)
  )

const valid = (request: Request) => assert.deepStrictEqual(Wire.check(request.prompt, Wire.all), [])

/** The ids of the calls and of the results of a prompt. */
const idsOf = (self: Prompt.Prompt, type: "tool-call" | "tool-result"): ReadonlyArray<string> =>
  self.content.flatMap((message) =>
    message.role === "system" ?
      [] :
      (message.content as ReadonlyArray<Prompt.Part>).flatMap((part) => part.type === type ? [part.id] : [])
  )

/** Text that `String.replace` would read as a pattern. */
const patterns = "a $& b $` c $' d $1 e $$ f "

const image = (bytes: number) => Prompt.makePart("file", { mediaType: "image/png", data: "A".repeat(bytes) })

const rows: ReadonlyArray<Row> = [
  {
    id: "R1",
    kind: "two figures that disagree: one scale for trigger, amount and check, and no loop",
    test: Effect.gen(function*() {
      const opening = [user("go"), ...Arr.range(0, 88).flatMap((n) => turn(`c${n}`, 3_980))]
      const later = Arr.range(0, 19).map((n) => turn(`d${n}`, 400))
      // Estimated 89,000 tokens, billed 174,000: because the estimator errs, or because of what is not in the view.
      const shapes = [
        { steps: [[user("first")], opening, ...later], bill: (estimated: number) => Math.round(1.955 * estimated) },
        { steps: [opening, ...later], bill: (estimated: number) => estimated + 85_000 }
      ]
      const meters: ReadonlyArray<readonly [meter: Settings.Input, boundaries: number]> = [
        [{ meter: "actual", sizing: "provider" }, 1],
        [{ meter: "hybrid", sizing: "provider" }, 1],
        [{ meter: "calibrated" }, 2],
        // The count anchors the gate alone: the amount stays in prices, and what no price gives is said, once a generation.
        [{ meter: "hybrid" }, 10]
      ]
      for (const [settings, most] of meters) {
        for (const { bill, steps } of shapes) {
          const manager = yield* inE4({ ...settings, maxTokens: 125_000, compactThreshold: 0.8 })
          const requests = yield* play(manager, steps, (request) => Effect.map(e4Of(request), bill))
          const first = steps.length - 21
          assert.isAtMost(Math.abs((yield* e4Of(requests[first]!)) - 89_000), 1_000)
          assert.isNull(requests[first]!.prefixChanged, "no bill of it yet: the estimate is below")
          assert.strictEqual(requests[first + 1]!.prefixChanged, "boundary")
          const compacted = tagged(requests, "Compacted")
          for (const boundary of compacted) assert.isAbove(boundary.freed, 0)
          assert.isAtMost(compacted.length, most, JSON.stringify(settings))
          assert.isAtMost(tagged(requests, "CompactionPowerless").length, compacted.length, JSON.stringify(settings))
        }
      }
    })
  },
  {
    id: "R2",
    kind: "the range that is replaced is the range that was summarised",
    test: Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(Sessions.withSummary({ trigger: 1 }), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 4)
      const before = yield* manager.view
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      const after = yield* manager.view
      const standing = new Set(after.items.map((item) => item.seq))
      const gone = before.items.filter((item) => !standing.has(item.seq)).map((item) => item.message)
      assert.isAbove(gone.length, 0)
      const texts = (messages: ReadonlyArray<Prompt.Message>) => messages.map((message) => bytesOf(prompt(message)))
      assert.deepStrictEqual(texts(requests[0]!.messages), texts(gone))
      // It read only a part of it, and says so.
      const half = Sessions.answering(() =>
        Effect.succeed({ ...Sessions.reply("## State\n\n- half"), isTruncated: true })
      )
      const other = yield* Sessions.watched(Sessions.withSummary({ trigger: 1 }), { summarizer: half.service })
      yield* Sessions.step(other.manager, ...Sessions.opening)
      yield* Sessions.play(other.manager, 0, 4)
      const view = yield* other.manager.view
      assert.strictEqual((yield* Effect.flip(other.manager.compactNow()))._tag, "SummaryTruncated")
      assert.deepStrictEqual((yield* other.manager.view).items, view.items)
    })
  },
  {
    id: "R3",
    kind: "a second compaction over a first: its ends are those of the view, and nothing is an orphan",
    test: Effect.gen(function*() {
      const { service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(Sessions.withSummary({ trigger: 1 }), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 4)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      for (const request of yield* Sessions.play(manager, 4, 4)) valid(request)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      for (const request of yield* Sessions.play(manager, 8, 2)) {
        valid(request)
        assert.deepStrictEqual(idsOf(request.prompt, "tool-call"), idsOf(request.prompt, "tool-result"))
        const checkpoints = request.prompt.content.filter((message) => Marks.of(message).source === "context-summary")
        assert.strictEqual(checkpoints.length, 1, "the first is in the second")
      }
      // By the ladder too.
      const plain = yield* managing({ maxTokens: 3_000, protectedToolResults: 1 })
      const requests = yield* play(plain, [[user("go")], ...Arr.range(0, 29).map((n) => turn(`c${n}`, 2_000))])
      assert.isAtLeast(tagged(requests, "Compacted").length, 2)
      for (const request of requests) {
        valid(request)
        assert.deepStrictEqual(idsOf(request.prompt, "tool-call"), idsOf(request.prompt, "tool-result"))
      }
    })
  },
  {
    id: "R4",
    kind: "one dead call does not stop everything",
    test: Effect.gen(function*() {
      const manager = yield* managing({ maxTokens: 5_000, protectedToolResults: 1 })
      const steps = [
        [user("go"), calls("dead")],
        [user("and now?"), ...Arr.range(0, 249).flatMap((n) => turn(`c${n}`, 200))],
        turn("last", 200)
      ]
      const requests = yield* play(manager, steps)
      const repaired = tagged(requests, "TranscriptRepaired")
      assert.deepStrictEqual(repaired.map((event) => event.synthetic), [[1]])
      assert.isAtLeast(tagged(requests, "Compacted").length, 1)
      for (const request of requests) valid(request)
    })
  },
  {
    id: "R5",
    kind: "nothing can be removed: said once, and no empty compaction for ever",
    test: Effect.gen(function*() {
      const history = [system(words("rules", 400)), user(words("head", 40_000))]
      const steps = [history, ...Arr.range(0, 9).map((n) => [assistant(`answer ${n}`)])]
      const manager = yield* managing({ maxTokens: 8_000, protectedRecent: 1 })
      const requests = yield* play(manager, steps)
      assert.strictEqual(tagged(requests, "Compacted").length, 0)
      // The holders are the same all the time, but for the third of them.
      const named = tagged(requests, "Infeasible")
      assert.strictEqual(
        new Set(named.map((event) => JSON.stringify(event.holders.map((_) => _.seq)))).size,
        named.length
      )
      assert.isAtMost(named.length, 3)
      assert.strictEqual(named[0]!.holders[0]!.seq, 1)
      const strict = yield* managing({ maxTokens: 8_000, protectedRecent: 1, whenInfeasible: "fail" })
      yield* strict.append(Prompt.fromMessages(history))
      assert.strictEqual((yield* Effect.flip(strict.request))._tag, "BudgetInfeasible")
    })
  },
  {
    id: "R6",
    kind: "reasoning and the item that needs it are one unit",
    test: Effect.gen(function*() {
      const item = (itemId: string) => ({ openai: { itemId } })
      const thought = Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("reasoning", { text: "r1", options: { openai: { itemId: "rs_1", encryptedContent: "x" } } }),
          Prompt.makePart("text", { text: "m1", options: item("msg_1") })
        ]
      })
      const manager = yield* managing({ maxTokens: 4_000, protectedToolResults: 1 })
      const steps = [
        [user("go"), ...Arr.range(0, 9).flatMap((n) => turn(`c${n}`, 800)), thought, user("on")],
        turn("last", 8_000)
      ]
      const requests = yield* play(manager, steps)
      assert.strictEqual(tagged(requests, "Compacted").length, 1)
      const texts = requests.map((request) => bytesOf(request.prompt))
      assert.include(texts[0]!, "rs_1")
      assert.include(texts[0]!, "msg_1")
      assert.include(texts[1]!, "m1")
      assert.notInclude(texts[1]!, "rs_1")
      assert.notInclude(texts[1]!, "msg_1", "an item that asks for reasoning which is not sent is refused")
    })
  },
  {
    id: "R7",
    kind: "a group with an open call is neither removed nor absorbed",
    test: Effect.gen(function*() {
      const ladder = yield* managing({ maxTokens: 40, protectedRecent: 0, protectedToolResults: 0 })
      yield* ladder.append(prompt(user("go"), ...Arr.range(0, 19).flatMap((n) => turn(`c${n}`, 800)), calls("open")))
      const request = yield* ladder.request
      assert.strictEqual(request.prefixChanged, null)
      assert.strictEqual(tagged([request], "Compacted").length, 1)
      assert.include(idsOf(request.prompt, "tool-call"), "open")
      valid(request)

      const { requests, service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(Sessions.withSummary({ trigger: 1, retain: 0 }), {
        summarizer: service
      })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 8)
      // A machine's message does not end the call.
      yield* Sessions.step(manager, calls("open"), user(words("reminder", 400), { source: "hook" }))
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      assert.notInclude(JSON.stringify(requests[0]!.messages), "\"open\"")
      assert.include(bytesOf((yield* manager.request).prompt), "\"open\"")
    })
  },
  {
    id: "R8",
    kind: "what is sent is what was measured, and a summary that says nothing is refused",
    test: Effect.gen(function*() {
      const huge = words("huge", 400_000)
      const settings = Sessions.withSummary({ trigger: 1, layout: "standalone" }, { maxTokens: 500_000 })
      const { requests, service } = Sessions.saying("   \n")
      const { manager } = yield* Sessions.watched(settings, { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening, calls("a"), answers(result("a", huge)))
      const [sent] = [...(yield* Sessions.play(manager, 0, 6))].reverse()
      const measured = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* measured.append(sent!.prompt)
      assert.strictEqual((yield* measured.view).price, sent!.count.tokens)
      assert.isAbove(sent!.count.tokens, 100_000)
      const before = yield* manager.view
      assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "SummaryEmpty")
      assert.deepStrictEqual((yield* manager.view).items, before.items)
      assert.isBelow(requests[0]!.text.length, 20_000, "the text for the summariser is capped")
      assert.include(bytesOf((yield* manager.request).prompt), huge)
    })
  },
  {
    id: "R10",
    kind: "an image is priced flat, not by its bytes, and the current turn stays",
    test: Effect.gen(function*() {
      const manager = yield* managing({ maxTokens: 20_000 })
      const shown = Prompt.makeMessage("user", {
        content: [Prompt.makePart("text", { text: "look" }), image(1_600_000)]
      })
      yield* manager.append(prompt(shown))
      const request = yield* manager.request
      assert.isBelow(request.count.tokens, 2_000)
      assert.strictEqual(request.prompt.content[0], shown)
      assert.strictEqual(tagged([request], "Compacted").length + tagged([request], "Infeasible").length, 0)
    })
  },
  {
    id: "R11",
    kind: "many small edits come in batches at boundaries, and between them the prefix is stable",
    test: Effect.gen(function*() {
      const ladder = Ladder.make(Rung.clearToolResults({ keep: 3 }), Rung.remove({ relax: 1 }))
      const manager = yield* ContextManager.make(seeded({
        settings: { notice: false, maxTokens: 8_000, protectedToolResults: 1 },
        ladder: ladder
      }))
      const requests = yield* play(manager, [[user("go")], ...Arr.range(0, 59).map((n) => turn(`c${n}`, 2_000))])
      const boundaries = tagged(requests, "Compacted")
      assert.isAtLeast(boundaries.length, 3)
      assert.isAtMost(boundaries.length, 12, "not one in each of the 60 turns")
      for (const [before, after] of Arr.zip(requests, requests.slice(1))) {
        if (after.prefixChanged !== null) continue
        assert.deepStrictEqual(after.prompt.content.slice(0, before.stableLength), before.prompt.content)
      }
    })
  },
  {
    id: "R12",
    kind: "the kept tail alone is too large: truncated in the end, else named",
    test: Effect.gen(function*() {
      const large = (pinned: boolean) => {
        const message = answers(result("a", words("large", 120_000)))
        return [user("go"), calls("a"), pinned ? Marks.set(message, { pinned: true }) : message]
      }
      const manager = yield* managing({ maxTokens: 20_000 })
      const [request] = yield* play(manager, [large(false)])
      assert.isBelow(request!.count.tokens, 20_000)
      assert.deepStrictEqual(tagged([request!], "Compacted").map((event) => [event.level, event.truncated]), [[8, 1]])

      const pinned = yield* managing({ maxTokens: 20_000 })
      assert.deepStrictEqual(
        tagged(yield* play(pinned, [large(true)]), "Infeasible").map((event) => event.holders[0]!.seq),
        [2]
      )
      const strict = yield* managing({ maxTokens: 20_000, whenInfeasible: "fail" })
      yield* strict.append(Prompt.fromMessages(large(true)))
      assert.strictEqual((yield* Effect.flip(strict.request))._tag, "BudgetInfeasible")
    })
  },
  {
    id: "R13",
    kind: "what a summary was billed is no pressure on the conversation",
    test: Effect.gen(function*() {
      const billed = Sessions.answering(() =>
        Effect.succeed({
          ...Sessions.reply(Sessions.short),
          usage: { inputTokens: { total: 190_000 }, outputTokens: 400 }
        })
      )
      const readings: Array<unknown> = []
      for (const service of [billed.service, Sessions.saying(Sessions.short).service]) {
        const settings = Sessions.withSummary({ trigger: 1 }, { meter: "hybrid", provenanceGate: false })
        const { manager } = yield* Sessions.watched(settings, { summarizer: service })
        const told = yield* play(
          manager,
          [Sessions.opening, ...Arr.range(0, 5).map(Sessions.turnOf)],
          (request) => Effect.succeed(request.count.tokens)
        )
        assert.strictEqual(told.length, 7)
        assert.isTrue(Option.isSome(yield* manager.compactNow()))
        const request = yield* manager.request
        assert.isBelow(request.count.tokens, 10_000)
        readings.push((yield* manager.status).reading)
      }
      assert.deepStrictEqual(readings[0], readings[1])
    })
  },
  {
    id: "R16",
    kind: "a trigger that is the target is refused, and a cap on messages has hysteresis",
    test: Effect.gen(function*() {
      for (const input of [{ compactThreshold: 0.5, targetUsage: 0.5 }, { compactThreshold: 0.5, targetUsage: 0.6 }]) {
        assert.include((yield* Effect.flip(Settings.decode(seed(input)))).message, "[\"targetUsage\"]")
      }
      const manager = yield* managing({ maxMessages: 80 })
      const requests = yield* play(manager, [
        [user("go")],
        ...Arr.range(0, 79).map((n) => [assistant(`answer ${n}`)]),
        ...Arr.range(80, 119).map((n) => [assistant(`answer ${n}`)])
      ])
      assert.isAtMost(tagged(requests, "Compacted").length, 2)
      assert.isAtLeast(tagged(requests, "Compacted").length, 1)
    })
  },
  {
    id: "R17",
    kind: "every reduction is recorded: restarted, the session has the same view",
    test: Effect.gen(function*() {
      const manager = yield* managing({ maxTokens: 4_000, protectedToolResults: 1 })
      yield* play(manager, [[user("go")], ...Arr.range(0, 19).map((n) => turn(`c${n}`, 2_000))])
      const before = yield* manager.request
      const { counts } = yield* manager.status
      assert.isAbove(counts.truncated + counts.removed, 0)
      const restarted = yield* managing({ maxTokens: 4_000, protectedToolResults: 1 })
      yield* restarted.restore(JSON.parse(JSON.stringify(yield* manager.export)))
      assert.strictEqual(bytesOf((yield* restarted.request).prompt), bytesOf(before.prompt))
      assert.deepStrictEqual((yield* restarted.status).counts, counts)
    })
  },
  {
    id: "R18",
    kind: "the newest entry is the problem",
    test: Effect.gen(function*() {
      const megabyte = [user("go"), calls("a"), answers(result("a", words("huge", 1_000_000)))]
      const manager = yield* managing({ maxTokens: 50_000 })
      const [request] = yield* play(manager, [megabyte])
      assert.isBelow(request!.count.tokens, 50_000)
      assert.include(bytesOf(request!.prompt), "[truncated: ~250,000 tokens] huge lorem")
      valid(request!)
      const exempt = yield* managing({ maxTokens: 50_000, exemptTools: ["read"] })
      assert.strictEqual(tagged(yield* play(exempt, [megabyte]), "Infeasible")[0]!.holders[0]!.seq, 2)
      const strict = yield* managing({ maxTokens: 50_000, exemptTools: ["read"], whenInfeasible: "fail" })
      yield* strict.append(Prompt.fromMessages(megabyte))
      assert.strictEqual((yield* Effect.flip(strict.request))._tag, "BudgetInfeasible")
    })
  },
  {
    id: "R20",
    kind: "a fixed overhead above the threshold is named once, with the numbers",
    test: Effect.gen(function*() {
      // A system prompt of 20,000 tokens and tools of 9,000 against a trigger of 25,000.
      const call = { overhead: 9_000 }
      const rules = system(words("rules", 80_000))
      const settings: Settings.Input = { maxTokens: 36_172, compactThreshold: 0.92 }
      const manager = yield* managing(settings)
      yield* manager.append(prompt(rules, user("go")))
      const requests: Array<Request> = []
      for (let n = 0; n < 20; n++) {
        yield* manager.append(Prompt.fromMessages(turn(`c${n}`, 200)))
        requests.push(yield* manager.requestWith(call))
      }
      assert.deepStrictEqual(tagged(requests, "OverheadAboveTarget").map((event) => [event.fixed, event.budget]), [
        [29_008, 36_172]
      ])
      assert.isAtMost(tagged(requests, "Compacted").length, 2, "no storm")
      const strict = yield* managing({ ...settings, strict: true })
      yield* strict.append(prompt(rules, user("go")))
      assert.strictEqual((yield* Effect.flip(strict.requestWith(call)))._tag, "TargetBelowOverhead")
      // Nothing of it in the view: no room is left for one, and that is said too.
      yield* strict.reset
      yield* strict.append(prompt(user("go")))
      const none = yield* Effect.flip(strict.requestWith({ budget: 27_173, overhead: 29_000 }))
      assert.strictEqual(none._tag, "TargetBelowOverhead")
      // What is off the budget already is not held against it once more: 20,000 tokens of tools leave room.
      yield* strict.reset
      yield* strict.append(prompt(user("go")))
      assert.strictEqual((yield* strict.requestWith({ overhead: 20_000 })).prompt.content.length, 1)
    })
  },
  {
    id: "R21",
    kind: "the limits are those of the model that the request goes to",
    test: Effect.gen(function*() {
      const manager = yield* managing({ window: 200_000, maxOutput: 8_192, compactThreshold: 0.96 })
      yield* manager.append(prompt(user("go"), ...Arr.range(0, 174).flatMap((n) => turn(`c${n}`, 4_000))))
      const large = yield* manager.request
      assert.isAbove(large.count.tokens, 178_000)
      assert.strictEqual(tagged([large], "Compacted").length, 0)
      const small = yield* manager.requestWith({ window: 128_000, maxOutput: 8_192, route: "another" })
      assert.deepStrictEqual(tagged([small], "BudgetResolved").map((event) => event.total), [128_000 - 4_096 - 4_096])
      const [boundary] = tagged([small], "Compacted")
      assert.isAtMost(boundary!.after, boundary!.target!)
      assert.isAtMost(boundary!.target!, 60_000)
      // Back again, what was decided stays, and the limits are the large ones.
      yield* manager.append("more")
      const back = yield* manager.request
      assert.strictEqual(back.prefixChanged, null)
      assert.deepStrictEqual(tagged([back], "BudgetResolved").map((event) => event.total), [200_000 - 4_096 - 4_096])
      const known = yield* Budget.settingsFor("claude-opus-4-5")
      assert.deepStrictEqual(known, { window: 200_000, maxOutput: 64_000 })
    })
  },
  {
    id: "R26",
    kind: "text that looks like a replacement pattern is text",
    test: Effect.gen(function*() {
      const settings: Settings.Input = {
        targetUsage: 0.6,
        protectedRecent: 0,
        protectedToolResults: 0,
        shape: "headTail",
        truncateChars: 100
      }
      const manager = yield* managing(settings)
      yield* manager.append(prompt(
        user(patterns.repeat(10)),
        ...Arr.range(0, 9).flatMap((n) => [calls(`c${n}`), answers(result(`c${n}`, patterns.repeat(100)))]),
        user("and?")
      ))
      const truncated = bytesOf((yield* manager.requestWith({ budget: 7_000 })).prompt)
      const cut = patterns.repeat(100)
      const expected = `[truncated: ~675 tokens] ${cut.slice(0, 50)}\n...[2,600 chars omitted]...\n${cut.slice(-50)}`
      assert.include(truncated, JSON.stringify(expected).slice(1, -1))
      const stubbed = bytesOf((yield* manager.requestWith({ budget: 60 })).prompt)
      assert.include(stubbed, `[earlier user message, shortened: ${patterns.repeat(10).slice(0, 50).trim()}...]`)

      // In a checkpoint, from the words of the summary and of people.
      const { service } = Sessions.saying(`${Sessions.short}\n- ${patterns}`)
      const summarised = yield* Sessions.watched(Sessions.withSummary({ trigger: 1 }), { summarizer: service })
      yield* Sessions.step(summarised.manager, ...Sessions.opening)
      yield* Sessions.step(summarised.manager, user(`You must keep ${patterns}`))
      yield* Sessions.play(summarised.manager, 0, 6)
      assert.isTrue(Option.isSome(yield* summarised.manager.compactNow()))
      const checkpoint = bytesOf((yield* summarised.manager.request).prompt)
      assert.include(checkpoint, `- ${patterns.trim()}`)
      assert.include(checkpoint, `You must keep ${patterns.trim()}`)
    })
  },
  {
    id: "R28",
    kind: "truncating a conversation keeps the system message first and no orphan behind it",
    test: Effect.gen(function*() {
      const manager = yield* managing({ protectedRecent: 0, protectedToolResults: 0 })
      yield* manager.append(prompt(
        system("You are careful."),
        user("go"),
        ...Arr.range(0, 199).flatMap((n) => turn(`c${n}`, 400)),
        assistant("done")
      ))
      for (const budget of [20_000, 2_000, 200, 50]) {
        const request = yield* manager.requestWith({ budget })
        assert.deepStrictEqual(request.prompt.content.slice(0, 2).map((message) => message.role), ["system", "user"])
        assert.deepStrictEqual(idsOf(request.prompt, "tool-call"), idsOf(request.prompt, "tool-result"))
        valid(request)
      }
      assert.isAbove((yield* manager.status).counts.removed, 300)
    })
  }
]

describe("faults that others shipped", () => {
  for (const { id, kind, test } of rows) it.effect(`${kind} (${id})`, () => Effect.scoped(test))
})
