/**
 * Who writes the summaries of a replay.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import type * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import type * as PlayFlags from "./PlayFlags.ts"
import * as ShellCommand from "./ShellCommand.ts"

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
export const make = (choice: PlayFlags.Choice) =>
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

/** Settings with summaries, where somebody writes them: whoever asks for them by the flag gets them at any size. */
export const withSummaries = (choice: PlayFlags.Choice, settings: Settings.Input): Settings.Input =>
  choice._tag === "none" ? settings : { ...settings, summary: settings.summary ?? { maxSizes: null } }
