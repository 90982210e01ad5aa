/**
 * The command line: `replay`, `compare`, `inspect`, `compact`, `session`.
 *
 * @since 0.1.0
 */
import * as CliConfig from "effect/cli/CliConfig"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import * as CompactCommand from "./CompactCommand.ts"
import * as CompareCommand from "./CompareCommand.ts"
import * as Failed from "./Failed.ts"
import * as InspectCommand from "./InspectCommand.ts"
import * as ReplayCommand from "./ReplayCommand.ts"
import * as SessionCommand from "./SessionCommand.ts"
import * as Shown from "./Shown.ts"

const commandOf = <Kinds extends ReadonlyArray<Kind.Any>>(policies: Effect.Effect<Policy.Policies<Kinds>>) =>
  Command.make("effect-compaction").pipe(
    Command.withDescription("Shows what a progressive ladder makes of recorded agent sessions."),
    Command.withSubcommands([
      ReplayCommand.make(policies),
      CompareCommand.make(policies),
      InspectCommand.command,
      CompactCommand.command,
      SessionCommand.make(policies)
    ])
  )

/** A wrong call says what is wrong and nothing else, and leaves standard output to what was asked for. */
const presenterOf = (args: ReadonlyArray<string>): CliOutput.Presenter => {
  // The messages have line breaks of their own; those of an argument are written out.
  const broken = args.filter((arg) => arg.includes("\n"))
  const said = ({ message }: CliError.CliError) =>
    broken.reduce((text, arg) => text.replaceAll(arg, Shown.line(arg)), message)
  return {
    present: (event) =>
      event._tag === "InvalidInvocation"
        ? Console.error(`${event.errors.map(said).join("\n")}\nSee ${event.commandPath.join(" ")} --help`)
        : CliOutput.defaultPresenter.present(event)
  }
}

/** Nothing that a terminal would obey gets past this, from wherever it comes; but for colours and the breaks of lines. */
const guarded = (console: Console.Console): Console.Console => ({
  ...console,
  log: (...values) => console.log(...values.map((value) => Shown.coloured(String(value)))),
  error: (...values) => console.error(...values.map((value) => Shown.coloured(String(value))))
})

/**
 * Runs the command line with its arguments. Fails with the exit code, after everything was said. `policies` are those that
 * `--policy` may name; their rungs may need services.
 */
export const run = <Kinds extends ReadonlyArray<Kind.Any>>(
  args: ReadonlyArray<string>,
  options: { readonly version: string; readonly policies: Effect.Effect<Policy.Policies<Kinds>> }
): Effect.Effect<void, Failed.Failed, Command.Environment | Kind.Services<Kinds[number]>> =>
  Command.runWith(commandOf(options.policies), options)(args).pipe(
    Effect.provideService(CliOutput.Presenter, presenterOf(args)),
    Effect.provideService(CliConfig.CliConfig, {
      builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions]
    }),
    // Warnings of the library: standard output belongs to what was asked for.
    Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
    Effect.catchIf(CliError.isCliError, (error) =>
      // Help that was asked for is no failure.
      error._tag === "ShowHelp" && error.errors.length === 0 ? Effect.void : new Failed.Failed({ code: Failed.usage })),
    Effect.updateService(Console.Console, guarded)
  )
