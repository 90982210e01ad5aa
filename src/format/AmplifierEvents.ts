/**
 * Reads the log of a session of Amplifier (`events.jsonl`) in which the requests are logged whole.
 *
 * What is read and what is lost is in `docs/formats/amplifier.md`.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AnthropicMessages from "./AnthropicMessages.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import * as OpenAiResponses from "./OpenAiResponses.ts"
import * as Json from "./parts/json.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import * as Session from "./Session.ts"

const format = "amplifier-events"

/**
 * Reads logs of Amplifier: the longest request of the session, and the answer to it.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    if (kind !== "lines") return undefined
    for (const [index, record] of first.entries()) {
      if (
        Json.isObject(record) && typeof record.event === "string" && Json.isObject(record.schema) &&
        record.schema.name === "amplifier.log"
      ) {
        return `record ${index + 1} is an event of the schema amplifier.log`
      }
    }
    return undefined
  },
  start: (file, why) => start(file, why)
}

interface Request {
  readonly body: Schema.JsonObject
  readonly line: number
  readonly length: number
  answer: Schema.JsonObject | undefined
}

const start = (file: string, why: string): Reader.Parse => {
  let longest: Request | undefined
  let last: { readonly answers: number; readonly request: Request } | undefined
  let requests = 0
  // By how many answers the request before it had: that of the answer it was billed for.
  const bills = new Map<number, Session.Usage>()
  const asked = new Map<number, number>()
  const answered = new Map<number, number>()

  return {
    record: (value, line) =>
      Result.gen(function*() {
        const place: Json.Place = { file, line, field: "" }
        const record = yield* Json.object(value, place)
        const data = Json.isObject(record.data) ? record.data : Wire.emptyObject
        if (record.event === "llm:request") {
          requests++
          last = undefined
          const body = data.raw
          const items = Json.isObject(body) ? body.messages ?? body.input : undefined
          if (!Json.isObject(body) || !Json.isArray(items)) return
          const request: Request = { body, line, length: items.length, answer: undefined }
          // What a request repeats of the one before need not be kept.
          if (longest === undefined || request.length >= longest.length) longest = request
          const answers = items.filter((item) => Json.isObject(item) && item.role === "assistant").length
          last = { answers, request }
          note(asked, answers, record.ts)
          return
        }
        if (record.event !== "llm:response" || last === undefined) return
        const { answers, request } = last
        last = undefined
        note(answered, answers, record.ts)
        if (Json.isObject(data.raw)) request.answer = data.raw
        if (Json.isObject(data.usage)) {
          const billed = yield* Usage.read(data.usage, Json.at(Json.at(place, "data"), "usage"), convention)
          if (Object.keys(billed).length > 0) bills.set(answers, billed)
        }
      }),
    end: () =>
      Result.gen(function*() {
        if (longest === undefined) {
          return yield* Json.fail(
            { file, line: 0, field: "" },
            requests === 0
              ? "no request to a model in the log"
              : "the requests are not logged whole; read the transcript.jsonl beside it"
          )
        }
        const { body, line } = longest
        const { answer } = longest
        const whole = answer !== undefined && Json.isArray(body.messages) && Json.isArray(answer.content)
          ? { ...body, messages: [...body.messages, { role: "assistant", content: answer.content }] }
          : body
        const wire = [AnthropicMessages.reader, OpenAiResponses.reader, OpenAiChat.reader].find((reader) =>
          reader.detect({ kind: "document", first: [whole] }) !== undefined
        )
        const place: Json.Place = { file, line, field: "data.raw" }
        if (wire === undefined) return yield* Json.fail(place, "expected the body of a request of a known API")
        const parse = wire.start(file, why)
        const read = yield* Result.mapError(
          Result.flatMap(parse.record(whole, 0), parse.end),
          ({ expected, field }) => new Session.FormatError({ file, line, field: `data.raw.${field}`, expected })
        )
        const usage = new Map<number, Session.Usage>()
        const times = new Map<number, number>()
        const time = (index: number, at: number | undefined): void => {
          if (index >= 0 && at !== undefined) times.set(index, at)
        }
        let nth = 0
        for (const [index, { role }] of read.messages.entries()) {
          if (role !== "assistant") continue
          const billed = bills.get(nth)
          if (billed !== undefined) usage.set(index, billed)
          // What is asked stands last when the request is made.
          time(index - 1, asked.get(nth))
          time(index, answered.get(nth))
          nth++
        }
        const findings = read.findings.map((finding) => ({ ...finding, line }))
        return { ...read, format, usage, times, findings }
      })
  }
}

const note = (times: Map<number, number>, answers: number, ts: Schema.Json | undefined): void => {
  const time = Time.ofText(ts)
  if (time !== undefined) times.set(answers, time)
}

/** The input holds what was read from the cache, but not what was written to it. */
const convention: Usage.Convention = {
  input: ["input_tokens"],
  inside: ["cacheRead"],
  cacheRead: ["cache_read_tokens"],
  cacheWrite: ["cache_write_tokens"],
  output: ["output_tokens"]
}
