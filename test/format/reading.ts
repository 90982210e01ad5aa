/** Tables of what a reader makes of a text, and of the errors that it gives. */
import { assert, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Result from "effect/Result"
import { kinds, outline } from "./recorded.ts"

export const document = (value: unknown): string => JSON.stringify(value)

export const sessionOf = (text: string, format: Session.FormatName): Session.Session => {
  const session = Result.getOrThrow(Format.fromString(text, { file: "f" }))
  assert.strictEqual(session.format, format)
  return session
}

/** The text is found to be of the format, and read as messages with nothing to report but these kinds. */
export const reads = (
  format: Session.FormatName,
  name: string,
  text: string,
  expected: ReadonlyArray<string>,
  found: ReadonlyArray<string> = []
): void =>
  it(name, () => {
    const session = sessionOf(text, format)
    assert.deepStrictEqual(outline(session), expected)
    assert.deepStrictEqual(kinds(session), found)
  })

/** Each text fails with its message; the format is named, since a broken record need not be told. */
export const fails = (
  format: Session.FormatName,
  cases: ReadonlyArray<readonly [name: string, text: string, message: string]>
): void => {
  for (const [name, text, message] of cases) {
    it(name, () => {
      const read = Format.fromString(text, { file: "f", format })
      assert.strictEqual(Result.isFailure(read) ? read.failure.message : "read", message)
    })
  }
}

/** The options of the parts, in order, of messages that have any. */
export const options = (session: Session.Session): ReadonlyArray<object> =>
  session.messages.flatMap((message) =>
    message.role === "system"
      ? []
      : message.content.map((part) => part.options).filter((options) => Object.keys(options).length > 0)
  )
