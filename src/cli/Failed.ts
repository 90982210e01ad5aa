/**
 * How the command line ends when it does not end well.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"

/** Bad input: a file that cannot be read as a session, or a setting that is out of its range. */
const badInput = 1

/** The command was called in a wrong way: an unknown flag, a missing argument. */
export const usage = 2

/** A request was infeasible, and `--strict` was given. */
export const infeasible = 3

/**
 * Ends the process with an exit code, after everything was said on standard error.
 */
export class Failed extends Schema.TaggedError<Failed>("effect-compaction/cli/Failed")("Failed", {
  code: Schema.Natural
}) {
  override readonly [Runtime.errorExitCode] = this.code
  override readonly [Runtime.errorReported] = false
  override get message() {
    return `exit code ${this.code}`
  }
}

/**
 * Fails when a file could not be written.
 */
export class NotWritten extends Schema.TaggedError<NotWritten>("effect-compaction/cli/NotWritten")("NotWritten", {
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.file}: it could not be written: ${this.reason}`
  }
}

/** The exit code of two things that were done: bad input hides what a good file would have said. */
export const worse = (a: number, b: number): number => a === badInput || b === badInput ? badInput : Math.max(a, b)

/** Says an error on standard error and returns its exit code; else the code that was returned. */
export const codeOf = <R>(
  self: Effect.Effect<number, { readonly message: string }, R>
): Effect.Effect<number, never, R> => Effect.catch(self, (error) => Effect.as(Console.error(error.message), badInput))

/** Fails unless the code is 0. */
export const end = (code: number): Effect.Effect<void, Failed> => code === 0 ? Effect.void : new Failed({ code })
