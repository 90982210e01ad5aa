/**
 * What the commands of `session` do.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Decision from "../Decision.ts"
import * as Estimator from "../Estimator.ts"
import * as Session from "../Session.ts"
import * as Growing from "../session/growing.ts"
import * as SessionLog from "../SessionLog.ts"
import type * as SessionStore from "../SessionStore.ts"
import * as View from "../View.ts"
import * as Failed from "./Failed.ts"
import * as OutputFile from "./OutputFile.ts"
import * as SessionSource from "./SessionSource.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

/** Everything that a log says. */
interface Read {
  readonly path: string
  readonly torn: number
  readonly counts: ReadonlyMap<string, number>
  readonly state: Session.State
  readonly events: number
  readonly view: View.View
}

type ReadError = SessionLog.ReadError | SessionStore.SessionNotFound

/** Reads a session as its log tells it. */
export const read = Effect.fnUntraced(function*(
  given: SessionSource.Source
): Effect.fn.Return<Read, ReadError, FileSystem.FileSystem | Path.Path> {
  const contents = yield* SessionSource.read(given)
  const counts = new Map<string, number>()
  const { events, state } = yield* SessionLog.fold(contents.path, contents, ({ _tag }) => {
    counts.set(_tag, (counts.get(_tag) ?? 0) + 1)
  })
  const transcript = SessionLog.transcriptOf(state, (yield* Estimator.Estimator).price)
  const view = View.make(transcript, Growing.toArray(state.decisions))
  return { path: contents.path, torn: contents.torn, counts, state, events, view }
})

const tornLine = ({ torn }: Read): ReadonlyArray<string> =>
  torn === 0 ? [] : [`torn        ${torn} bytes at the end count for nothing; they are cut off when it is opened`]

const summaryOf = ({ counts, events, path, state, torn, view }: Read) => ({
  path,
  events,
  byKind: Object.fromEntries(counts),
  torn,
  messages: state.messages.length,
  entries: state.entries,
  decisions: state.decisions.length,
  counts: Decision.counts(Decision.index(Growing.toArray(state.decisions))),
  generation: state.generation,
  viewEntries: view.items.length,
  viewTokens: view.price,
  billed: state.meter.anchor?.used ?? null,
  ...state.figures,
  readings: state.meter.readings,
  inFlight: state.meter.inFlight !== null,
  compacting: state.isCompacting
})

const ended = <R>(self: Effect.Effect<number, ReadError | OutputFile.NotWritten, R>) =>
  Effect.flatMap(Failed.codeOf(self), Failed.end)

/** `session inspect`. */
export const inspect = ({ json, ...given }: SessionSource.Source & { readonly json: boolean }) =>
  ended(Effect.gen(function*() {
    const session = yield* read(given)
    const summary = summaryOf(session)
    const { absorbed, altered, removed, stubbed, truncated } = summary.counts
    const { breakdown, pressure, usage } = summary
    const occupied = Session.occupied(pressure)
    const kinds = Object.entries(summary.byKind).map(([tag, count]) => [tag, Table.number(count)])
    yield* Console.log(
      json ? Shown.json(summary) : [
        Shown.line(summary.path),
        `events      ${summary.events}`,
        ...tornLine(session),
        `entries     ${summary.entries} in ${summary.messages} messages`,
        `decisions   ${summary.decisions}: ${removed} removed, ${truncated} truncated, ${stubbed} stubbed, ${altered} otherwise altered, ${absorbed} absorbed`,
        `generation  ${summary.generation}`,
        `view        ${summary.viewEntries} entries, ${summary.viewTokens} tokens (estimated)`,
        `billed      ${
          summary.billed === null ? "nothing yet" : `${summary.billed} tokens for the last request`
        }, ${summary.readings} readings`,
        `all bills   ${usage.answers} answers: ${usage.input} tokens in, ${usage.cacheRead} read from the cache, ${usage.cacheWrite} written to it, ${usage.output} out`,
        `holds       ${breakdown.system} tokens of system, ${breakdown.tools} of tools, ${breakdown.messages} of messages, ${breakdown.checkpoints} of checkpoints`,
        `window      ${occupied.tokens} tokens (${occupied.kind})${
          pressure.window === null ? "" : ` of ${pressure.window}`
        }`,
        `request     ${summary.inFlight ? "one was sent and not answered" : "none is open"}`,
        `compaction  ${summary.compacting ? "one was begun and not ended" : "none is open"}`,
        "",
        ...Table.lines([{ title: "event", align: "left" }, { title: "count", align: "right" }], kinds)
      ].join("\n")
    )
    return 0
  }))

/** `session verify`. */
export const verify = (given: SessionSource.Source) =>
  ended(Effect.gen(function*() {
    const session = yield* read(given)
    const unknown = View.receipts(session.view).filter((receipt) => receipt._tag === "Unknown").length
    yield* Console.log([
      `${Shown.line(session.path)}: ${session.events} events, every line and sum holds, and every event follows`,
      ...tornLine(session)
    ].join("\n"))
    return session.torn > 0 || unknown > 0 ? 1 : 0
  }))

const sentenceOf = (receipt: View.Receipt): string => {
  switch (receipt._tag) {
    case "Kept":
      return "is in the view as it was appended"
    case "Altered":
      return `is in the view, altered: ${
        receipt.decisions.map(({ _tag, at }) => `${_tag} when there were ${at} entries`).join(", ")
      }`
    case "Covered":
      return `is covered by the checkpoint at entry ${receipt.checkpoint}`
    case "Lost":
      return `is lost: removed when there were ${receipt.at} entries`
    case "Dropped":
      return "was dropped by the repair of the transcript"
    case "Waiting":
      return "is a checkpoint that no view stands on"
    case "Unknown":
      return "is no entry of this session"
  }
}

/** `session explain`. */
export const explain = ({ seq, ...given }: SessionSource.Source & { readonly seq: number }) =>
  ended(Effect.gen(function*() {
    const { view } = yield* read(given)
    const receipt = View.receipt(view, seq)
    const entry = view.transcript.entries[seq]
    const what = entry === undefined ? "" : ` (${entry.role}, ${entry.price} tokens)`
    yield* Console.log(`entry ${seq}${what} ${sentenceOf(receipt)}`)
    return receipt._tag === "Unknown" ? 1 : 0
  }))

/** `session export`. */
export const exportTo = ({ target, ...given }: SessionSource.Source & { readonly target: string }) =>
  ended(Effect.gen(function*() {
    const { state: session } = yield* read(given)
    const text = Shown.json(yield* Effect.orDie(Schema.encodeEffect(Session.SavedJson)(Session.save(session))))
    yield* target === "-" ? Console.log(text) : OutputFile.write(
      target,
      `${text}
`,
      { isNew: true, mode: 0o600 }
    )
    return 0
  }))
