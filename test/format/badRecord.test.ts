import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Result from "effect/Result"

const user = { role: "user", content: "Why does the build fail?" }
const other = { role: "wizard", content: "?" }

/** One bad record among good ones, with no format named: the error is that of the record, at its place. */
const cases: ReadonlyArray<readonly [name: string, text: string, message: RegExp]> = [
  [
    "a role of a chat body",
    JSON.stringify({ messages: [{ role: "system", content: "x" }, user, other] }),
    /^f: messages\[2\]\.role: unknown role "wizard", expected system, /
  ],
  [
    "a number for a text of a chat body",
    JSON.stringify({ messages: [user, { role: "assistant", content: 7 }] }),
    /^f: messages\[1\]\.content: expected a string or an array, got a number$/
  ],
  ["a role of a list", JSON.stringify([user, other]), /^f: \[1\]\.role: unknown role "wizard"/],
  ["a number in a list", JSON.stringify([user, user, user, 5]), /^f: \[3\]: expected an object, got a number$/],
  ["a role of a line", `${JSON.stringify(user)}\n${JSON.stringify(other)}`, /^f:2: role: unknown role "wizard"/],
  [
    "a role of a body of Anthropic",
    JSON.stringify({ system: "x", messages: [user, other] }),
    /^f: messages\[1\]\.role: unknown role "wizard", expected user or assistant; /
  ],
  [
    "a role of a body of Responses",
    JSON.stringify({ input: [user, other] }),
    /^f: input\[1\]\.role: unknown role "wizard", expected system, /
  ],
  [
    "a role of a prompt",
    JSON.stringify({ content: [{ role: "user", content: [{ type: "text", text: "x" }] }, other] }),
    /^f: content\[1\]\.role: unknown role "wizard", expected system, /
  ],
  [
    "a list that no reader takes",
    JSON.stringify([{ role: "user", words: ["x"] }, { role: "model", words: ["y"] }]),
    /^f: the format is not known; /
  ]
]

describe("a bad record", () => {
  for (const [name, text, message] of cases) {
    it(name, () => {
      const read = Format.fromString(text, { file: "f" })
      assert.isTrue(Result.isFailure(read))
      if (Result.isFailure(read)) assert.match(read.failure.message, message)
    })
  }
})
