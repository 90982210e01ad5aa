/**
 * How the command line ends when it does not end well.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Shown from "./Shown.ts"

/**
 * Bad input: a file that cannot be read as a session, or a setting that is out of its range; or what was made could not be
 * written.
 */
export const badInput = 1

/** The command was called in a wrong way: an unknown flag, a missing argument. */
export const usage = 2

/** A request was infeasible, and `--strict` was given. */
export const infeasible = 3

/** A fault of the program, where nothing is wrong with what it was given. */
export const fault = 70

/** The reader of standard output has gone: the code of a process that the signal of a closed pipe ends. */
export const pipeGone = 141

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

/** The exit code of two things that were done: bad input hides what a good file would have said. */
export const worse = (a: number, b: number): number => a === badInput || b === badInput ? badInput : Math.max(a, b)

/** An error for a person: its message, or several problems in a line each. */
export interface Said {
  readonly message: string
  readonly lines?: ReadonlyArray<string>
}

/** Says an error on standard error, in one line for each problem, whatever the names in it hold. */
export const say = ({ lines, message }: Said): Effect.Effect<void> =>
  Console.error((lines ?? [message]).map(Shown.line).join("\n"))

/** Says an error on standard error and returns its exit code; else the code that was returned. */
export const codeOf = <R>(self: Effect.Effect<number, Said, R>): Effect.Effect<number, never, R> =>
  Effect.catch(self, (error) => Effect.as(say(error), badInput))

/** Fails unless the code is 0. */
export const end = (code: number): Effect.Effect<void, Failed> => code === 0 ? Effect.void : new Failed({ code })

/** The longest part of a stack trace that is shown, in characters. */
const traceChars = 6_000

/** What to report of a fault of the program, in lines. */
export const report = (
  cause: unknown,
  { args, platform, version }: {
    readonly args: ReadonlyArray<string>
    readonly platform: string
    readonly version: string
  }
): string =>
  [
    "This is a fault of effect-compaction, not of its input. Please report it with these lines, and with the input if you can:",
    `effect-compaction ${version}, ${platform}`,
    `arguments: ${Shown.json(args)}`,
    Shown.lines(cause instanceof Error ? cause.stack ?? String(cause) : String(cause)).slice(0, traceChars)
  ].join("\n")

/** Says what is to be reported of a fault of the program, and fails with its exit code. What ended it stays as it is. */
export const reporting = <A, R>(
  self: Effect.Effect<A, Failed, R>,
  options: Parameters<typeof report>[1]
): Effect.Effect<A, Failed, R> =>
  Effect.catchCauseIf(
    self,
    Cause.hasDies,
    (cause) => Effect.andThen(Console.error(report(Cause.squash(cause), options)), new Failed({ code: fault }))
  )
