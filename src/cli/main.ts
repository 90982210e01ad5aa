/**
 * The entry of the command line: the process around it, its two streams, its signals and its exit code.
 *
 * @since 0.1.0
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { writeSync } from "node:fs"
import { constants } from "node:os"
import process from "node:process"
import manifest from "../../package.json" with { type: "json" }
import * as Cli from "./Cli.ts"
import * as Failed from "./Failed.ts"
import * as Output from "./Output.ts"

const args = process.argv.slice(2)
const about = {
  args,
  version: manifest.version,
  platform: `Node ${process.version}, ${process.platform} ${process.arch}`
}

// Loaded by the commands that play under policies: the help needs none of it.
const policies = Effect.map(Effect.promise(() => import("../Policy.ts")), (loaded) => loaded.withKinds())

const program = Effect.gen(function*() {
  const output = yield* Output.make
  yield* Cli.run(args, { version: manifest.version, policies }).pipe(
    Effect.raceFirst(output.refused),
    (running) => Failed.reporting(running, about),
    Effect.provideService(Console.Console, output.console),
    Effect.onInterrupt(() => Effect.ignore(output.end)),
    Effect.result,
    // What could not be written counts before how the command ended.
    Effect.flatMap((result) => Effect.andThen(output.end, Effect.fromResult(result)))
  )
}).pipe(Effect.provide(NodeServices.layer))

// What no fiber has caught.
process.on("uncaughtException", (fault) => {
  writeSync(2, `${Failed.report(fault, about)}\n`)
  process.exit(Failed.fault)
})

const run = Runtime.makeRunMain(({ fiber, teardown }) => {
  let signalled = 0
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      const code = 128 + constants.signals[signal]
      // Whoever asks twice does not want to wait for what is being tidied up.
      if (signalled !== 0) process.exit(code)
      signalled = code
      fiber.interruptUnsafe(fiber.id)
    })
  }
  fiber.addObserver((exit) =>
    teardown(exit, (code) => {
      if (signalled !== 0 || code !== 0) process.exit(signalled || code)
    })
  )
})

run(program, { disableErrorReporting: true })
