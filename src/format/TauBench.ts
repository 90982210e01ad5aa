/**
 * Reads results of tau-bench and tau2-bench. Their files are pools: many conversations in one document.
 *
 * What is read and what is lost is in `docs/formats/tau-bench.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Chat from "./parts/chatRead.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"

const format = "tau-bench"

const isRun = (value: Schema.Json | undefined): boolean => Json.isObject(value) && Json.isArray(value.traj)

const isSimulation = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  Json.isObject(value) && Json.isArray(value.messages) && value.termination_reason !== undefined

/**
 * Reads a conversation of tau-bench (`traj`) or of tau2-bench (`messages`).
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first }) => {
    const value = first[0]
    if (Json.isArray(value)) return isRun(value[0]) ? "a list of runs with a traj" : undefined
    if (isRun(value)) return "a run with a traj"
    if (isSimulation(value)) return "a simulation with messages and a termination_reason"
    return Json.isObject(value) && Json.isArray(value.simulations) && isSimulation(value.simulations[0])
      ? "a document with simulations"
      : undefined
  },
  split: (value) => {
    if (Json.isArray(value)) return value
    if (!Json.isObject(value) || !Json.isArray(value.simulations)) return isRun(value) ? [value] : undefined
    const { info, simulations } = value
    // The policy of the agent stands once for all of them.
    return simulations.map((one) => Json.isObject(one) ? { ...one, info: info ?? null } : one)
  },
  start: (file, why) => {
    let isRead = false
    const session = Building.make(file, format, why)
    return {
      record: (value, line) =>
        Result.gen(function*() {
          const place: Json.Place = { file, line, field: "" }
          const document = yield* Json.object(value, place)
          isRead = true
          yield* document.traj === undefined ? simulation(session, document, place) : run(session, document, place)
        }),
      end: () =>
        isRead
          ? Result.succeed(Building.end(session, say))
          : Json.fail({ file, line: 0, field: "" }, "expected a run or a simulation")
    }
  }
}

const say = (_kind: string, count: number, what: string): string =>
  `${count} ${what} of the simulated user left out: the agent never saw them`

const run = (session: Building.Building, document: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const within = Json.at(place, "traj")
    const functions: Array<Chat.FunctionCall> = []
    for (const [index, message] of (yield* Json.arrayAt(document, "traj", place)).entries()) {
      yield* Chat.push(session, functions, message, Json.at(within, index))
    }
  })

const simulation = (session: Building.Building, document: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const info = Json.isObject(document.info) ? document.info : Wire.emptyObject
    const environment = Json.isObject(info.environment_info) ? info.environment_info : Wire.emptyObject
    const agent = Json.isObject(info.agent_info) ? info.agent_info : Wire.emptyObject
    if (typeof environment.policy === "string") Building.push(session, Message.system(environment.policy), place.line)
    if (typeof agent.llm === "string") session.model = agent.llm
    const within = Json.at(place, "messages")
    for (const [index, value] of (yield* Json.arrayAt(document, "messages", place)).entries()) {
      yield* message(yield* Json.object(value, Json.at(within, index)), Json.at(within, index), session)
    }
  })

const message = (
  wire: Schema.JsonObject,
  place: Json.Place,
  session: Building.Building
): Json.Read<void> =>
  Result.gen(function*() {
    const time = Time.ofText(wire.timestamp)
    const role = yield* Json.stringAt(wire, "role", place)
    const calls = wire.tool_calls === undefined || wire.tool_calls === null
      ? []
      : yield* Json.arrayAt(wire, "tool_calls", place)
    switch (role) {
      case "system":
        Building.push(session, Message.system(yield* Json.stringAt(wire, "content", place)), place.line, time)
        return
      case "user":
        // The user has tools of its own, and its calls and results are between it and its phone.
        for (const _ of calls) Building.notice(session, "simulated-user", place.line, "calls")
        if (calls.length === 0) {
          Building.push(
            session,
            Message.user([Message.text(yield* Json.stringAt(wire, "content", place))]),
            place.line,
            time
          )
        }
        return
      case "assistant": {
        const parts: Array<Prompt.AssistantMessagePart> = []
        const text = yield* Json.optionalStringAt(wire, "content", place)
        if (text !== undefined) parts.push(Message.text(text))
        for (const [index, value] of calls.entries()) {
          const at = Json.at(Json.at(place, "tool_calls"), index)
          const call = yield* Json.object(value, at)
          const id = yield* Json.stringAt(call, "id", at)
          const name = yield* Json.stringAt(call, "name", at)
          parts.push(
            typeof call.arguments === "string"
              ? Message.callOfText(id, name, call.arguments)
              : Message.call(id, name, call.arguments ?? {})
          )
        }
        Building.push(session, Message.assistant(parts), place.line, time)
        if (Json.isObject(wire.usage)) {
          Building.bill(session, Usage.read(wire.usage, Json.at(place, "usage"), Usage.chat), place.line)
        }
        return
      }
      case "tool": {
        const many = wire.tool_messages
        const at = Json.at(place, "tool_messages")
        const answers: Array<readonly [Schema.JsonObject, Json.Place]> = []
        if (!Json.isArray(many)) answers.push([wire, place])
        else {
          for (const [index, one] of many.entries()) {
            answers.push([yield* Json.object(one, Json.at(at, index)), Json.at(at, index)])
          }
        }
        const results: Array<Prompt.ToolResultPart> = []
        for (const [answer, within] of answers) {
          if (answer.requestor === "user") {
            Building.notice(session, "simulated-user", place.line, "results")
            continue
          }
          const id = yield* Json.stringAt(answer, "id", within)
          const content = (yield* Json.optionalStringAt(answer, "content", within)) ?? ""
          results.push(Message.result(id, "", content, answer.error === true))
        }
        if (results.length > 0) Building.push(session, Message.tool(results), place.line, time)
        return
      }
    }
    return yield* Json.fail(
      Json.at(place, "role"),
      `unknown role ${JSON.stringify(role)}, expected system, user, assistant or tool`
    )
  })
