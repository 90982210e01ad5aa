/**
 * Reads the contents of Gemini's API: a request body, a bare list of contents, or a checkpoint that gemini-cli saved
 * with `/chat save`.
 *
 * What is read and what is lost is in `docs/formats/gemini.md`.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Parts from "./parts/gemini.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Usage from "./parts/usage.ts"
import type * as Reader from "./Reader.ts"

const format = "gemini"

/** The list of contents in a document, and the name of the member that holds it. */
const contentsOf = (
  value: Schema.Json | undefined
): { readonly key: string; readonly list: Schema.Json | undefined } => {
  if (!Json.isObject(value)) return { key: "", list: value }
  const key = value.contents === undefined && value.history !== undefined ? "history" : "contents"
  return { key, list: value[key] }
}

const isContent = (value: Schema.Json | undefined): boolean =>
  Json.isObject(value) && (value.role === undefined || value.role === "user" || value.role === "model") &&
  Json.isArray(value.parts) &&
  value.parts.every((part) => Json.isObject(part) && part.type === undefined)

/**
 * Reads `contents` with `systemInstruction`.
 *
 * **Details**
 *
 * - The function responses of a content form a tool message; what stands before or after them is a user message.
 * - Calls without an id get one; results without an id belong to the calls of the turn before by name, in order.
 * - `thoughtSignature` is kept on its part, in `options.google`.
 * - Fails on an unknown role and on fields of a wrong type.
 *
 * @see https://ai.google.dev/api/caching#Content
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    if (kind !== "document") return undefined
    const { list } = contentsOf(first[0])
    return Json.isArray(list) && isContent(list[0]) ? "a list of contents with roles and parts" : undefined
  },
  start: (file, why) => {
    const session = Building.make(file, format, why)
    const ids = Parts.pairing(session)
    let modelSpoke = false

    const content = (value: Schema.Json, place: Json.Place): Json.Read<void> =>
      Result.gen(function*() {
        const wire = yield* Json.object(value, place)
        const role = yield* Json.optionalStringAt(wire, "role", place)
        const within = Json.at(place, "parts")
        const parts = yield* Parts.parts(yield* Json.arrayAt(wire, "parts", place), within)
        if (role === "model") {
          if (!modelSpoke) Parts.turn(ids)
          modelSpoke = true
          Building.push(session, Message.assistant(yield* Parts.assistantParts(parts, within, ids)), place.line)
          bill(wire, place)
          return
        }
        if (role !== undefined && role !== "user" && role !== "function") {
          return yield* Json.fail(
            Json.at(place, "role"),
            `unknown role ${JSON.stringify(role)}, expected user or model; the system prompt is the systemInstruction`
          )
        }
        modelSpoke = false
        for (const message of yield* Parts.userMessages(parts, within, ids, Parts.sourceOf(parts))) {
          Building.push(session, message, place.line)
        }
      })

    const bill = (value: Schema.JsonObject, place: Json.Place) => {
      if (!Json.isObject(value.usageMetadata)) return
      Building.bill(session, Usage.read(value.usageMetadata, Json.at(place, "usageMetadata"), convention), place.line)
    }

    return {
      record: (value, line) =>
        Result.gen(function*() {
          const root: Json.Place = { file, line, field: "" }
          const { key, list } = contentsOf(value)
          const place = key === "" ? root : Json.at(root, key)
          if (Json.isObject(value)) {
            session.model = yield* Json.optionalStringAt(value, "model", root)
            const system = value.systemInstruction ?? value.system_instruction
            if (system !== undefined && system !== null) {
              const within = Json.at(root, "systemInstruction")
              const parts = Json.isObject(system)
                ? yield* Parts.parts(system.parts, Json.at(within, "parts"))
                : yield* Parts.parts(system, within)
              const texts = parts.map((part) => typeof part.text === "string" ? part.text : "")
              Building.push(session, Message.system(texts.join("\n\n")), line)
            }
          }
          for (const [index, one] of (yield* Json.array(list, place)).entries()) {
            yield* content(one, Json.at(place, index))
          }
          if (Json.isObject(value)) bill(value, root)
        }),
      end: () => Result.succeed(Building.end(session))
    }
  }
}

/** The prompt count holds what was cached but not the prompt of tool use; thoughts are beside the candidates. */
const convention: Usage.Convention = {
  input: ["promptTokenCount"],
  inside: ["cacheRead"],
  cacheRead: ["cachedContentTokenCount"],
  besideInput: ["toolUsePromptTokenCount"],
  output: ["candidatesTokenCount"],
  besideOutput: ["thoughtsTokenCount"]
}
