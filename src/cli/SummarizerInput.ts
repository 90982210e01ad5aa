/**
 * Who writes the summaries of a replay.
 *
 * @since 0.1.0
 */
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import type * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import * as ShellCommand from "./ShellCommand.ts"

/** Nobody, the extract that needs no model, or a command. */
export type Choice =
  | { readonly _tag: "none" }
  | { readonly _tag: "extractive" }
  | { readonly _tag: "command"; readonly command: string }

const choiceOf = (text: string): Choice | undefined => {
  if (text === "none" || text === "extractive") return { _tag: text }
  const command = ShellCommand.read(text)
  return command === undefined ? undefined : { _tag: "command", command }
}

/** The flag; without it nobody writes summaries, whatever a policy says. */
export const flag = Flag.String("summarizer").pipe(
  Flag.withMetavar("extractive|none|command:CMD"),
  Flag.withDescription(
    "Who writes summaries: an extract without a model, nobody (the default), or a command of the shell that reads the span "
      + "and the directive on standard input and prints the summary. It turns summaries on where a policy has none"
  ),
  Flag.withDefault("none"),
  Flag.filter(
    (text) => choiceOf(text) !== undefined,
    (text) => `write extractive, none, or command: and a command, for example "command:llm -m small"; not ${text}`
  ),
  Flag.map((text): Choice => choiceOf(text) ?? { _tag: "none" })
)

/** The text of the request: of a summariser that shares no cache, the prompt is one message of one text. */
const textOf = ({ prompt }: Summarizer.Request): string =>
  prompt.content.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
  ).join("\n\n")

const ofCommand = (
  command: string,
  spawner: ChildProcessSpawner.ChildProcessSpawner["Service"]
): Summarizer.Service => ({
  cache: "other",
  summarize: (request) =>
    ShellCommand.run(command, textOf(request)).pipe(
      Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner),
      Effect.mapBoth({
        onFailure: ({ message }) => new Summarizer.SummarizerFailed({ reason: message, isOverflow: false }),
        onSuccess: (text) => ({ text, model: null, usage: null, isTruncated: false })
      })
    )
})

/** The summariser of a choice. A command runs in the shell, once for each summary, and is killed at the timeout. */
export const make = (choice: Choice) =>
  Effect.map(ChildProcessSpawner.ChildProcessSpawner, (spawner): Summarizer.Service | undefined => {
    switch (choice._tag) {
      case "none":
        return undefined
      case "extractive":
        return Summarizer.extractive
      case "command":
        return ofCommand(choice.command, spawner)
    }
  })

/** A summariser whose calls are counted, and what there is to say about them; nothing where nobody was asked. */
export const counted = (self: Summarizer.Service) => {
  let calls = 0
  let answers = 0
  // A command that is killed says nothing any more: whoever did not answer took too long, unless it said why not.
  let reason = "it took longer than summary.timeout"
  const service: Summarizer.Service = {
    ...self,
    summarize: (request) =>
      Effect.suspend(() => {
        calls++
        return self.summarize(request)
      }).pipe(
        Effect.tap(() => Effect.sync(() => answers++)),
        Effect.tapError((error) =>
          Effect.sync(() => {
            reason = error.message
          })
        )
      )
  }
  const said = () => {
    if (calls === 0) return undefined
    const failed = calls - answers
    return `summaries: ${calls} asked for, ${failed} failed${failed === 0 ? "" : `; the last reason: ${reason}`}`
  }
  return { service, said }
}

/** Settings with summaries, where somebody writes them. */
export const withSummaries = (choice: Choice, settings: Settings.Input): Settings.Input =>
  choice._tag === "none" ? settings : { ...settings, summary: settings.summary ?? {} }
