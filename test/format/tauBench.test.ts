import { describe } from "@effect/vitest"
import { document, fails, reads } from "./reading.ts"

const user = { role: "user", content: "go" }
const simulation = (...messages: ReadonlyArray<unknown>) => ({ messages, termination_reason: "x" })

describe("tau-bench", () => {
  reads("tau-bench", "a single run", document({ task_id: 1, traj: [user] }), ["user go"])

  reads(
    "tau-bench",
    "a single simulation: one result alone, arguments as text, a message of the system",
    document(
      simulation(
        { role: "system", content: "You build." },
        { role: "assistant", content: "Hi", tool_calls: [{ id: "1", name: "run", arguments: "{\"cut" }] },
        { id: "1", role: "tool", content: null, requestor: "assistant", error: true },
        user
      )
    ),
    ["system You build.", "assistant Hi + call(1 run)", "tool result(1 run failed: \"\")", "user go"]
  )

  describe("errors name the conversation and the field", () => {
    const pool = (one: unknown) => document({ simulations: [simulation(user), one] })
    const bad = (message: unknown) => pool(simulation(user, message))
    const cut = (message: unknown) => document([{ traj: [user] }, { traj: [user, message] }])
    fails("tau-bench", [
      ["a run that is none", document([{ traj: [user] }, 5]), "f#1: expected an object, got a number"],
      [
        "a run whose messages are none",
        document([{ traj: [user] }, { traj: {} }]),
        "f#1: traj: expected an array, got an object"
      ],
      ["a message of a run", cut(5), "f#1: traj[1]: expected an object, got a number"],
      [
        "a role of a run",
        cut({ role: "wizard" }),
        "f#1: traj[1].role: unknown role \"wizard\", expected system, developer, user, assistant, tool or function"
      ],
      ["a simulation that is none", pool(5), "f#1: expected an object, got a number"],
      ["a simulation without messages", pool({}), "f#1: messages: expected an array, got nothing"],
      [
        "a role of a simulation",
        bad({ role: "wizard" }),
        "f#1: messages[1].role: unknown role \"wizard\", expected system, user, assistant or tool"
      ],
      [
        "a number for a text",
        bad({ role: "user", content: 5 }),
        "f#1: messages[1].content: expected a string, got a number"
      ],
      [
        "a call without a name",
        bad({ role: "assistant", content: null, tool_calls: [{ id: "1" }] }),
        "f#1: messages[1].tool_calls[0].name: expected a string, got nothing"
      ],
      [
        "a result without an id",
        bad({ role: "tool", tool_messages: [{ content: "x" }] }),
        "f#1: messages[1].tool_messages[0].id: expected a string, got nothing"
      ],
      ["no conversation", document([]), "f: no message of the format tau-bench in the file"]
    ])
  })
})
