/**
 * `session mcp`: the tools of `Recall` over a durable session, for any client of the Model Context Protocol, on standard input
 * and output. The log is read at each call, since another process may be writing it; nothing is opened, locked or written.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import manifest from "../../package.json" with { type: "json" }
import * as Failed from "./Failed.ts"
import * as SessionSource from "./SessionSource.ts"

/** Serves until the client closes its end. */
const serve = Effect.fnUntraced(function*(given: SessionSource.Source) {
  const { Protocol, Recall, Run, Server } = yield* Effect.promise(async () => ({
    Protocol: await import("effect/ai/McpProtocol"),
    Recall: await import("../Recall.ts"),
    Run: await import("./SessionRun.ts"),
    Server: await import("effect/ai/McpServer")
  }))
  // What cannot be read is said at once, not at the first call.
  yield* Run.read(given)
  const services = yield* Effect.context<Effect.Services<ReturnType<typeof Run.read>>>()
  const view = Effect.provideContext(Effect.map(Run.read(given), (session) => session.view), services)
  const server = Server.layerStdio({
    name: manifest.name,
    version: manifest.version,
    instructions: "What a conversation no longer shows: recall_search finds entries of it, recall_read reads them.",
    protocols: [Protocol.v2025_11_25, Protocol.v2025_06_18, Protocol.v2025_03_26, Protocol.v2024_11_05],
    registrations: Server.toolkit(Recall.toolkit).pipe(Layer.provide(Recall.layerView(view)))
  })
  const exit = yield* Effect.flatMap(Effect.forkChild(Layer.launch(server)), Fiber.await)
  // The end of standard input interrupts the server.
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.failCause(exit.cause)
  return 0
})

/** The command. */
export const command = Command.make(
  "mcp",
  SessionSource.source,
  (values) => Effect.flatMap(Failed.codeOf(serve(values)), Failed.end)
).pipe(
  Command.withDescription(
    "Serves recall_search and recall_read over a session to a client of the Model Context Protocol, on standard input and "
      + "output, until the client closes it. The log is read at each call; nothing is opened, locked or written."
      + "\n\nExit codes: 0 the client has closed it, 1 bad input, 2 wrong usage."
  ),
  Command.withShortDescription("Serve what left the view to a client of MCP")
)
