/**
 * Plays the sessions of `replay` and prints what the ladder did.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Format from "../format/Format.ts"
import type * as Session from "../format/Session.ts"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import type * as Price from "../simulate/Price.ts"
import type * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Failed from "./Failed.ts"
import * as OutputFile from "./OutputFile.ts"
import * as Paint from "./Paint.ts"
import type * as PlayFlags from "./PlayFlags.ts"
import * as PolicyInput from "./PolicyInput.ts"
import * as PreviewText from "./PreviewText.ts"
import * as Progress from "./Progress.ts"
import * as Replay from "./Replay.ts"
import * as ReplayText from "./ReplayText.ts"
import * as StoryPage from "./report/StoryPage.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"
import * as Story from "./Story.ts"
import * as SummarizerInput from "./SummarizerInput.ts"
import * as Table from "./Table.ts"
import * as Trace from "./Trace.ts"

interface Options {
  readonly format: Option.Option<Session.FormatName>
  readonly strict: boolean
  readonly json: boolean
  readonly html: Option.Option<string>
  readonly at: Option.Option<number>
  readonly cause: Stage.Cause
  readonly price: Price.PresetName
}

/** Fails when a session has fewer messages than a replay is to stop after. */
class NoSuchMessage extends Schema.TaggedError<NoSuchMessage>("effect-compaction/cli/NoSuchMessage")("NoSuchMessage", {
  file: Schema.String,
  at: Schema.Natural,
  messages: Schema.Natural
}) {
  override get message() {
    return `${this.file}: --at ${this.at}: it has ${Table.count(this.messages, "message")}`
  }
}

/** A session up to the message that a replay stops after. */
const upTo = (session: Session.Session, at: Option.Option<number>): Effect.Effect<Session.Session, NoSuchMessage> => {
  const { file, messages } = session
  if (Option.isNone(at)) return Effect.succeed(session)
  return at.value > messages.length
    ? Effect.fail(new NoSuchMessage({ file, at: at.value, messages: messages.length }))
    : Effect.succeed({ ...session, messages: messages.slice(0, at.value) })
}

/** What is printed of a replay that stops to look ahead; `undefined` of one that does not. */
const aheadOf = ({ preview, report }: Replay.Replay, { json, price }: Options): string | undefined => {
  if (preview === undefined) return undefined
  const { file, messages, policy } = report
  const answer = PreviewText.answer(preview, policy, price)
  return json
    ? Shown.json({ file, at: messages, ...answer })
    : PreviewText.render(`${file}, after ${Table.count(messages, "message")}`, answer)
}

/** A replay as a line of JSON; with its story, where a page shows that. */
const jsonOf = ({ report }: Replay.Replay, story: Story.Story | undefined): string =>
  Shown.json(
    story === undefined
      ? report
      : { ...report, ...Story.dataOf(story) }
  )

/** Replays one file under each policy and prints it; returns the exit code it asks for. */
const one = Effect.fnUntraced(function*<E, R>(
  file: string,
  policies: ReadonlyArray<Replay.Named<E, R>>,
  summarizer: Summarizer.Service | undefined,
  stories: Array<Story.Story>,
  options: Options
) {
  const { at, cause } = options
  const session = yield* upTo(yield* Format.read(file, SessionInput.readOptions(options.format)), at)
  const paint = yield* Paint.detect
  const replays: Array<Replay.Replay> = []
  for (const policy of policies) {
    const progress = yield* Progress.make
    const counted = summarizer === undefined ? undefined : SummarizerInput.counted(summarizer)
    const tracing = Option.isSome(options.html) ? Trace.make(true) : undefined
    const replay = yield* Effect.orDie(Replay.play(session, {
      policy,
      ...(Option.isSome(at) ? { cause } : undefined),
      onRequest: (request, of, view) => {
        if (view !== undefined) tracing?.note(request, view)
        return progress.update(`${session.file}: request ${Table.number(request)} of ${Table.number(of)}`)
      }
    })).pipe(Effect.provideService(Summarizer.Summarizer, counted?.service), Effect.ensuring(progress.end))
    const story = tracing && Story.ofReplay(replay, tracing.trace)
    if (story !== undefined) stories.push(story)
    const said = counted?.said()
    if (!options.json && replays.length > 0) yield* Console.log("")
    const ahead = aheadOf(replay, options)
    yield* Console.log(
      ahead ?? (options.json ? jsonOf(replay, story) : ReplayText.render(replay, { session, paint }))
    )
    if (!options.json && said !== undefined) yield* Console.log(Shown.line(said))
    replays.push(replay)
  }
  if (Option.isNone(at) && !options.json && replays.length > 1) {
    yield* Console.log(`\n${ReplayText.compare(replays, paint)}`)
  }
  return options.strict
      && replays.some(({ preview, report }) =>
        preview === undefined ? report.totals.infeasible > 0 : preview.outcome === "fail"
      ) ?
    Failed.infeasible :
    0
})

interface Values extends Options {
  readonly files: ReadonlyArray<string>
  readonly policies: Option.Option<ReadonlyArray<string>>
  readonly summarizer: PlayFlags.Choice
  readonly settings: SettingsFlags.Values
}

/** Replays every file; fails with the exit code. */
export const run = <Kinds extends ReadonlyArray<Kind.Any>>(
  known: Policy.Policies<Kinds>,
  { files, policies: names, settings: values, summarizer: choice, ...options }: Values
) =>
  Effect.gen(function*() {
    const settings = SummarizerInput.withSummaries(choice, SettingsFlags.given(values))
    const policies = Option.isNone(names)
      ? [Replay.standardPolicy(SummarizerInput.withSummaries(choice, yield* SettingsFlags.decode(values)))]
      : yield* Effect.forEach(names.value, (name) => PolicyInput.read(name, settings, known))
    const summarizer = yield* SummarizerInput.make(choice)
    const stories: Array<Story.Story> = []
    let code = 0
    for (const [at, file] of files.entries()) {
      if (at > 0 && !options.json) yield* Console.log("")
      code = Failed.worse(code, yield* Failed.codeOf(one(file, policies, summarizer, stories, options)))
    }
    if (Option.isSome(options.html)) yield* OutputFile.write(options.html.value, StoryPage.render(stories))
    return code
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))
