/**
 * Reads OpenAI chat-completions messages.
 *
 * @since 0.1.0
 */
import { fail } from "../internal/formatJson.ts"
import type * as Reader from "./Reader.ts"

/**
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format: "openai-chat",
  detect: () => undefined,
  start: (file) => ({
    record: (_value, line) => fail({ file, line, field: "" }, "nothing: not written yet"),
    end: () => fail({ file, line: 0, field: "" }, "nothing: not written yet")
  })
}
