/**
 * A command of the shell that stands for a model: what it reads is the request, what it prints is the answer.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const prefix = "command:"

/** The command in the value `command:CMD` of a flag; `undefined` where the value is anything else. */
export const read = (value: string): string | undefined => {
  const command = value.startsWith(prefix) ? value.slice(prefix.length).trim() : ""
  return command === "" ? undefined : command
}

/**
 * Fails when a command cannot be run, or ends with another exit code than 0.
 */
class CommandFailed extends Schema.TaggedError<CommandFailed>("effect-compaction/cli/CommandFailed")(
  "CommandFailed",
  { command: Schema.String, reason: Schema.String }
) {
  override get message() {
    return `${this.command} ${this.reason}`
  }
}

/** How much of what a command says on standard error is handed on, in characters. */
const errorChars = 500

const start = Effect.fnUntraced(function*(command: string, input: string) {
  const process = yield* ChildProcess.make(command, [], {
    shell: true,
    stdin: Stream.make(new TextEncoder().encode(input)),
    forceKillAfter: "1 second"
  })
  const read = (stream: typeof process.stdout) => Stream.mkString(Stream.decodeText(stream))
  const [text, errors, code] = yield* Effect.all([read(process.stdout), read(process.stderr), process.exitCode], {
    concurrency: "unbounded"
  })
  if (code !== 0) {
    const said = errors.trim().slice(-errorChars)
    return yield* new CommandFailed({
      command,
      reason: `ended with exit code ${code}${said === "" ? "" : `: ${said}`}`
    })
  }
  return text
})

/** Runs a command with a text on standard input, and returns what it prints. It is killed when it is interrupted. */
export const run = (
  command: string,
  input: string
): Effect.Effect<string, CommandFailed, ChildProcessSpawner.ChildProcessSpawner> =>
  start(command, input).pipe(
    Effect.scoped,
    Effect.catchTag(
      "PlatformError",
      (error) => new CommandFailed({ command, reason: `could not be run: ${error.message}` })
    )
  )
