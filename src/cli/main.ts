/**
 * The entry of the command line.
 *
 * @since 0.1.0
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import manifest from "../../package.json" with { type: "json" }
import * as Policy from "../Policy.ts"
import * as Cli from "./Cli.ts"

// A process that ends with an exit code drops what a pipe has not taken yet. A reader that is gone wants nothing more.
const flush = Effect.flatMap(
  Stdio.Stdio,
  (stdio) => Effect.ignore(Stream.run(Stream.empty, stdio.stdout({ endOnDone: true })))
)

Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  yield* Cli.run(yield* stdio.args, { version: manifest.version, policies: Policy.withKinds() })
}).pipe(Effect.ensuring(flush), Effect.provide(NodeServices.layer), NodeRuntime.runMain)
