import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import * as Random from "../../src/simulate/parts/random.ts"
import * as Watch from "../../src/simulate/parts/watch.ts"

const user = (text: string) => Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })
const system = Prompt.makeMessage("system", { content: "You are terse." })
const said = (text: string) => Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text })] })
const call = (...ids: ReadonlyArray<string>) =>
  Prompt.makeMessage("assistant", {
    content: ids.map((id) => Prompt.makePart("tool-call", { id, name: "read", params: {}, providerExecuted: false }))
  })
const result = (...ids: ReadonlyArray<string>) =>
  Prompt.makeMessage("tool", {
    content: ids.map((id) =>
      Prompt.makePart("tool-result", { id, name: "read", isFailure: false, result: "x", providerExecuted: false })
    )
  })
const asked = (id: string) =>
  Prompt.makeMessage("assistant", {
    content: [
      Prompt.makePart("tool-call", { id, name: "write", params: {}, providerExecuted: false }),
      Prompt.makePart("tool-approval-request", { approvalId: `a-${id}`, toolCallId: id })
    ]
  })

/** Something to go on with: mostly what an agent does, sometimes what breaks a rule. */
const next = (random: () => number, ids: Array<string>): ReadonlyArray<Prompt.Message> => {
  const id = `c${ids.length}`
  const old = ids[Math.floor(random() * ids.length)] ?? id
  const draw = random()
  if (draw < 0.3) {
    ids.push(id)
    return [call(id), result(id)]
  }
  if (draw < 0.45) {
    ids.push(id, `${id}b`)
    return [call(id, `${id}b`), result(id), result(`${id}b`)]
  }
  if (draw < 0.6) return [user("Go on.")]
  if (draw < 0.75) return [said("Done.")]
  const strange = [
    [call(old), result(old)],
    [result(old)],
    [call(id)],
    [call(id), user("wait"), result(id)],
    [system],
    [said("")],
    [asked(id)],
    [call("not legal:1"), result("not legal:1")]
  ]
  return draw < 0.95 ? [user("And now?")] : strange[Math.floor(random() * strange.length)] ?? []
}

describe("violations of prompts that grow from one another", () => {
  it("are those of the whole prompt, for 300 sessions whose prompts grow, shrink and are edited", () => {
    const found = { clean: 0, broken: 0 }
    for (let seed = 1; seed <= 300; seed++) {
      const random = Random.make(seed)
      const watch = Watch.make()
      const ids: Array<string> = []
      let messages: ReadonlyArray<Prompt.Message> = random() < 0.9 ? [system, user("Do it.")] : [said("Hello.")]
      for (let request = 0; request < 25; request++) {
        messages = [...messages, ...next(random, ids)]
        const draw = random()
        // A boundary: some messages go, or one is another.
        if (draw < 0.08) messages = messages.filter((_, at) => at < 2 || random() < 0.7)
        else if (draw < 0.14) messages = messages.map((each) => random() < 0.1 ? user("…") : each)
        const count = Watch.violationsIn(messages)
        assert.strictEqual(Watch.count(watch, messages), count, `seed ${seed}, request ${request}`)
        if (count === 0) found.clean++
        else found.broken++
      }
    }
    assert.isAbove(found.clean, 1_000)
    assert.isAbove(found.broken, 1_000)
  })

  it("are looked for in what is new", () => {
    const watch = Watch.make()
    let messages: ReadonlyArray<Prompt.Message> = [system, user("Do it.")]
    for (let at = 0; at < 200; at++) {
      messages = [...messages, call(`c${at}`), result(`c${at}`)]
      assert.strictEqual(Watch.count(watch, messages), 0)
      assert.isAtLeast(watch.closed, messages.length - 2)
    }
  })
})
