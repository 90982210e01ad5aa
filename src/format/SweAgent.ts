/**
 * Reads a trajectory of SWE-agent (`*.traj`).
 *
 * What is read and what is lost is in `docs/formats/swe-agent.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Blocks from "./parts/anthropic.ts"
import * as Building from "./parts/building.ts"
import * as Chat from "./parts/chatRead.ts"
import * as Ids from "./parts/ids.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import type * as Reader from "./Reader.ts"

const format = "swe-agent"

/**
 * Reads trajectories of SWE-agent, with function calls or in text.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    const document = first[0]
    if (kind !== "document" || !Json.isObject(document) || !Json.isArray(document.history)) return undefined
    const head = document.history[0]
    if (Json.isObject(head) && head.parts !== undefined) return undefined
    return Json.isArray(document.trajectory) || document.replay_config !== undefined ||
        (Json.isObject(head) && (head.message_type !== undefined || head.agent !== undefined))
      ? "a history with a trajectory"
      : undefined
  },
  start: (file, why) =>
    Building.document(
      { file, format, why, what: "trajectory", mayBeEmpty: true },
      (value, place, session) =>
        Result.gen(function*() {
          const document = yield* Json.object(value, place)
          const within = Json.at(place, "history")
          const history: Array<Schema.JsonObject> = []
          for (const [index, item] of (yield* Json.arrayAt(document, "history", place)).entries()) {
            history.push(yield* Json.object(item, Json.at(within, index)))
          }
          session.model = modelOf(document.replay_config)
          const functions: Array<Chat.FunctionCall> = []
          for (const [index, wire] of chat(history).entries()) {
            const at = Json.at(within, index)
            yield* Chat.push(session, functions, wire, at)
            const message = session.messages[index]
            const thinking = history[index]?.thinking_blocks
            if (message?.role !== "assistant" || !Json.isArray(thinking)) continue
            const parts: Array<Prompt.AssistantMessagePart> = []
            for (const [position, block] of thinking.entries()) {
              parts.push(yield* Blocks.assistantPart(block, Json.at(Json.at(at, "thinking_blocks"), position)))
            }
            session.messages[index] = Message.assistant([...parts, ...message.content])
          }
        })
    )
}

/** The history as chat messages, one for one. */
const chat = (history: ReadonlyArray<Schema.JsonObject>): ReadonlyArray<Schema.JsonObject> => {
  let action: string | undefined
  return history.map((item, index) => {
    const { content, message_type, role } = item
    const answered = action
    action = undefined
    if (role === "tool") {
      // One observation answers the call; the ids are a list all the same.
      const id = Json.isArray(item.tool_call_ids) ? item.tool_call_ids[0] : undefined
      return { role, content: content ?? null, tool_call_id: id ?? null }
    }
    if (role === "assistant") {
      if (Json.isArray(item.tool_calls) && item.tool_calls.length > 0) {
        return { role, content: content ?? null, tool_calls: item.tool_calls }
      }
      const next = history[index + 1]
      const observed = next?.role === "user" && (next.message_type === undefined || next.message_type === "observation")
      if (!observed || typeof item.action !== "string" || item.action.trim() === "") {
        return { role, content: content ?? null }
      }
      // In the text modes the command stands in the text of the answer, and the next message is what came of it.
      action = Ids.make("action", index)
      return {
        role,
        content: typeof item.thought === "string" ? item.thought : content ?? null,
        tool_calls: [Chat.textCall(action, "bash", item.action)]
      }
    }
    if (answered !== undefined) return { role: "tool", content: content ?? null, tool_call_id: answered }
    const shown = message_type === "demonstration" || item.is_demo === true
    return {
      role: role ?? null,
      content: content ?? null,
      ...(role === "user" && shown ? { metadata: { source: "runtime-context" } } : undefined)
    }
  })
}

const modelOf = (config: Schema.Json | undefined): string | undefined => {
  const value = typeof config === "string" ? Json.parse(config) : config
  const agent = Json.isObject(value) ? value.agent : undefined
  const model = Json.isObject(agent) ? agent.model : undefined
  return Json.isObject(model) && typeof model.name === "string" ? model.name : undefined
}
