/** What a request says about the prefix, against what was really sent before it. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { answers, assistant, bytesOf, calls, result, system, turn, user, words } from "../core/conversation.ts"
import * as Random from "../properties/Random.ts"
import { seeded } from "../seed.ts"

const said = ({ prompt, stableLength }: ContextManager.Request): ReadonlyArray<string> =>
  prompt.content.slice(0, stableLength).map((message) => bytesOf(Prompt.fromMessages([message])))

const extendsIt = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): boolean =>
  before.every((each, at) => each === after[at])

/** What was sent, as far as nobody took it back. */
interface Sent {
  readonly last: ReadonlyArray<string>
  /** What was sent before it, while nothing is known to have become of it. */
  readonly before: ReadonlyArray<string> | undefined
}

const next = (random: Random.Random, at: number): ReadonlyArray<Prompt.Message> =>
  random.pick<ReadonlyArray<Prompt.Message>>([
    turn(`c${at}`, random.pick([200, 1_000, 3_000])),
    turn(`c${at}`, 2_000),
    [assistant(words(`answer ${at}`, 300)), user(words(`question ${at}`, 200))],
    [calls(`a${at}`)],
    [answers(result(`a${at - 1}`, words("late", 500)))],
    [user("and?")],
    [system(`rule ${at}`)]
  ])

const budgets = [2_000, 3_000, 3_000, 4_000, 50_000] as const

/** Plays requests that are repeated, abandoned, billed, restored, each at random; returns what it said wrong. */
const play = Effect.fnUntraced(function*(seed: number) {
  const random = Random.make(seed)
  const settings = { notice: random.chance(0.5), noticeReserve: 0, protectedToolResults: 1 }
  let manager = yield* ContextManager.make(seeded({ settings }))
  yield* manager.append(Prompt.fromMessages([system("You are careful."), user("go")]))
  let sent: Sent = { last: [], before: undefined }
  let call: ContextManager.Call = { budget: 3_000 }
  let isSame = false
  let changes = 0
  const ask = Effect.fnUntraced(function*() {
    const request = yield* manager.requestWith(call)
    const now = said(request)
    const isChanged = !extendsIt(sent.last, now)
    if (isChanged) changes++
    assert.strictEqual(request.prefixChanged !== null, isChanged, `seed ${seed}: ${request.prefixChanged}`)
    // Asked for once more while it is awaited, it is the one that was sent.
    if (!(isSame && sent.before !== undefined)) sent = { last: now, before: sent.last }
    isSame = true
    return request
  })
  for (let at = 0; at < 30; at++) {
    if (random.chance(0.6)) {
      yield* manager.append(Prompt.fromMessages(next(random, at)))
      isSame = false
    }
    if (random.chance(0.5)) {
      const other = { budget: random.pick(budgets) }
      isSame &&= other.budget === call.budget
      call = other
    }
    const request = yield* ask()
    while (random.chance(0.3)) yield* ask()
    const become = random.below(6)
    if (become < 2) {
      yield* manager.abandon()
      if (sent.before !== undefined) sent = { last: sent.before, before: undefined }
    } else if (become === 2) {
      yield* manager.observe({ inputTokens: { total: request.count.tokens } })
      sent = { last: sent.last, before: undefined }
      isSame = false
    } else if (become === 3) {
      const saved = JSON.parse(JSON.stringify(yield* manager.export))
      manager = yield* ContextManager.make(seeded({ settings }))
      yield* manager.restore(saved)
    }
    while (random.chance(0.3)) yield* ask()
  }
  return changes
}, Effect.scoped)

describe("prefixChanged", () => {
  it.effect(
    "is named where what is sent does not extend what was sent, and nowhere else",
    () =>
      Effect.gen(function*() {
        let changes = 0
        for (let seed = 1; seed <= 150; seed++) changes += yield* play(seed)
        assert.isAbove(changes, 300)
      }),
    120_000
  )
})
