/**
 * Which sessions a command reads, and the settings it reads them under.
 *
 * @since 0.1.0
 */
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as Session from "../format/Session.ts"

/** One session; `Format.read` takes the number of a conversation from the name. */
export const file = Argument.String("file").pipe(
  Argument.withDescription("Recorded session; - reads standard input; FILE#0, FILE#1 … name one of a file of many")
)

/** One session or several. */
export const files = file.pipe(Argument.variadic({ min: 1 }))

/** The format of the sessions, where it is not to be found out. */
export const format = Flag.Literals("format", Session.FormatName.literals).pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("Format of the session; found out from its first records when left out"),
  Flag.optional
)

/** One JSON object a session, a line each, in place of text. */
export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print one line of JSON for each session"),
  Flag.withDefault(false)
)

/** Whether an infeasible request fails the command. */
export const strict = Flag.Boolean("strict").pipe(
  Flag.withDescription("End with exit code 3 when a request was infeasible"),
  Flag.withDefault(false)
)

/** What `Format.read` is told of the format. */
export const readOptions = (
  format: Option.Option<Session.FormatName>
): { readonly format?: Session.FormatName } => Option.isSome(format) ? { format: format.value } : {}
