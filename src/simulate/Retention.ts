/**
 * What a policy keeps: facts are planted in a session, and looked for in every view that is sent later, without a model.
 *
 * **Details**
 *
 * A probe is a statement with the words it cannot do without: a constraint, an exact path, a number, a decision. It is
 * *verbatim* in a view that holds the whole statement in a message of the session, in a *checkpoint* when a checkpoint
 * holds all its words, and *lost* otherwise. Some probes are stated again later, and some are corrected: from then on the
 * correction counts in their place, and a view that holds the old statement without the correction is *stale*, an error.
 *
 * Whether a model would make use of what is in the view is not asked here; `compare --judge` of the command line asks one.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as Text from "../text/text.ts"
import * as Random from "./parts/random.ts"
import * as Telling from "./parts/telling.ts"
import * as Wordings from "./parts/wordings.ts"

/**
 * @category models
 * @since 0.1.0
 */
export type Kind = "constraint" | "path" | "number" | "decision"

/**
 * Who states a fact: a person, the assistant, or a result, inside its body or in its last line.
 *
 * @category models
 * @since 0.1.0
 */
export type Source = "person" | "assistant" | "body" | "end"

/**
 * A planted fact.
 *
 * **Details**
 *
 * - `source`: who states it. `text`: the statement. `words`: what every telling of it must hold.
 * - `at`: the positions of the messages that state it, in order. `depth`: the first of them as a share of the session.
 * - `corrects`: the id of the probe that this one corrects; `null` when it states something new.
 *
 * @category models
 * @since 0.1.0
 */
export interface Probe {
  readonly id: number
  readonly kind: Kind
  readonly source: Source
  readonly text: string
  readonly words: ReadonlyArray<string>
  readonly at: ReadonlyArray<number>
  readonly depth: number
  readonly corrects: number | null
}

/**
 * A session with probes in it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Planted {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly probes: ReadonlyArray<Probe>
}

const kinds: readonly [Kind, ...ReadonlyArray<Kind>] = ["constraint", "path", "number", "decision"]
const sources: readonly [Source, ...ReadonlyArray<Source>] = ["person", "body", "assistant", "end"]

const human = (text: string): Prompt.UserMessage =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

/** Where a statement may stand: a person's words before an answer, a line in a result, or words of the assistant. */
interface Place {
  readonly at: number
  readonly how: "before" | "words" | "body" | "end"
}

/** Before a message of the assistant nothing is open, whatever the session is. Where nobody else can say it, a person does. */
const placesOf = (messages: ReadonlyArray<Prompt.Message>, source: Source): ReadonlyArray<Place> => {
  const places: Array<Place> = []
  messages.forEach((message, at) => {
    if (source === "person") {
      if (message.role === "assistant" && at > 0) places.push({ at, how: "before" })
    } else if (source === "assistant") {
      if (message.role === "assistant" && at > 0) places.push({ at, how: "words" })
    } else if (Telling.withLine(message, "", source) !== undefined) places.push({ at, how: source })
  })
  return places.length > 0 || source === "person" ? places : placesOf(messages, "person")
}

/** The place nearest to a depth. */
const nearest = (places: ReadonlyArray<Place>, position: number): Place | undefined => {
  let best = places[0]
  for (const place of places) {
    if (best === undefined || Math.abs(place.at - position) < Math.abs(best.at - position)) best = place
  }
  return best
}

interface Told {
  readonly probe: number
  readonly place: Place
  readonly text: string
}

/** The session with every telling in it, and the position at which each probe is told. */
const insert = (
  messages: ReadonlyArray<Prompt.Message>,
  tellings: ReadonlyArray<Told>
): { readonly messages: ReadonlyArray<Prompt.Message>; readonly at: ReadonlyMap<number, ReadonlyArray<number>> } => {
  const byPlace = new Map<number, Array<Told>>()
  for (const telling of tellings) {
    const there = byPlace.get(telling.place.at)
    if (there === undefined) byPlace.set(telling.place.at, [telling])
    else there.push(telling)
  }
  const out: Array<Prompt.Message> = []
  const at = new Map<number, Array<number>>()
  const told = (probe: number): void => {
    const positions = at.get(probe)
    if (positions === undefined) at.set(probe, [out.length])
    else positions.push(out.length)
  }
  messages.forEach((original, position) => {
    let message = original
    for (const { place, probe, text } of byPlace.get(position) ?? []) {
      if (place.how === "before") {
        told(probe)
        out.push(human(text))
      }
    }
    for (const { place, probe, text } of byPlace.get(position) ?? []) {
      if (place.how === "before") continue
      told(probe)
      if (place.how !== "words") message = Telling.withLine(message, text, place.how) ?? message
      else if (message.role === "assistant") message = Telling.withWords(message, text)
    }
    out.push(message)
  })
  return { messages: out, at }
}

/**
 * Plants probes in a session, at depths spread evenly over its first nine tenths; kinds and sources take turns.
 *
 * **Details**
 *
 * - `count`: how many facts. One in four is stated again half-way to the end, one in four is corrected there (the
 *   correction is a probe of its own). `seed`: the same seed gives the same session.
 * - A person says it in a message before an answer, the assistant before its calls, a result in a line of its body or in
 *   its last line. Where a session has no such place, a person says it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const plant = (
  messages: ReadonlyArray<Prompt.Message>,
  options: { readonly seed: number; readonly count: number }
): Planted => {
  const random = Random.make(options.seed)
  const tellings: Array<Told> = []
  const drafts: Array<Omit<Probe, "at">> = []
  const places = new Map(sources.map((source) => [source, placesOf(messages, source)] as const))
  const tell = (draft: Omit<Probe, "at" | "depth" | "source">, source: Source, position: number): void => {
    const place = nearest(places.get(source) ?? [], position)
    if (place === undefined) return
    const said = place.how === "before" ? "person" : place.how === "words" ? "assistant" : place.how
    drafts.push({ ...draft, source: said, depth: place.at / messages.length })
    tellings.push({ probe: draft.id, place, text: draft.text })
  }
  for (let each = 0; each < options.count; each++) {
    const kind = kinds[each % kinds.length] ?? kinds[0]
    // Each kind is stated by each source in turn.
    const source = sources[(each + Math.floor(each / kinds.length)) % sources.length] ?? sources[0]
    const position = (0.9 * (each + 0.5) / options.count) * messages.length
    const later = (position + messages.length) / 2
    const subject = `${Random.pick(random, Wordings.nouns)}${each}`
    const id = drafts.length
    tell({ id, kind, ...Wordings.statement(kind, random, subject), corrects: null }, source, position)
    const fate = Random.whole(random, 0, 4)
    const again = tellings.at(-1)
    const place = nearest(places.get(source) ?? [], later)
    if (again === undefined || again.probe !== id || place === undefined || place.at <= again.place.at) continue
    if (fate === 1) {
      tellings.push({ ...again, place })
    } else if (fate === 2) {
      const correction = Wordings.statement(kind, random, subject)
      tell({ id: drafts.length, kind, ...correction, text: `Update: ${correction.text}`, corrects: id }, source, later)
    }
  }
  const inserted = insert(messages, tellings)
  return {
    messages: inserted.messages,
    probes: drafts.map((draft) => ({ ...draft, at: inserted.at.get(draft.id) ?? [] }))
  }
}

const isTold = (probe: Probe, told: number): boolean => (probe.at[0] ?? told) < told

/**
 * The facts that hold when `told` messages of the planted session are known: those that were told and not corrected yet.
 *
 * @category running
 * @since 0.1.0
 */
export const inForce = (probes: ReadonlyArray<Probe>, told: number): ReadonlyArray<Probe> => {
  const known = probes.filter((probe) => isTold(probe, told))
  const corrected = new Set(known.map((probe) => probe.corrects))
  return known.filter((probe) => !corrected.has(probe.id))
}

/**
 * What one view holds.
 *
 * **Details**
 *
 * - `known`: how many facts hold by then, corrected ones counted once. `verbatim`, `checkpoint`, `lost`: what became of
 *   each of them. `stale`: how many corrected statements the view asserts without their correction.
 * - `retained`: the share that is not lost, 1 when there is none yet. `sources`: how many of the facts that each source
 *   stated are known, and how many of these are not lost.
 *
 * @category models
 * @since 0.1.0
 */
export interface Score {
  readonly known: number
  readonly verbatim: number
  readonly checkpoint: number
  readonly lost: number
  readonly stale: number
  readonly retained: number
  readonly sources: { readonly [S in Source]: { readonly known: number; readonly held: number } }
}

/**
 * Looks for probes in views.
 *
 * @category models
 * @since 0.1.0
 */
export interface Checker {
  /** Scores a view that was sent when `told` messages of the planted session were known. */
  readonly score: (view: ReadonlyArray<Prompt.Message>, told: number) => Score
}

const isCheckpoint = (message: Prompt.Message): boolean => Marks.of(message).source === "context-summary"

/**
 * Makes a checker of some probes. Each message is searched once, however many views it is in.
 *
 * @category constructors
 * @since 0.1.0
 */
export const checker = (probes: ReadonlyArray<Probe>): Checker => {
  const found = new WeakMap<Prompt.Message, ReadonlyArray<number>>()
  const correction = new Map<number, Probe>()
  for (const probe of probes) if (probe.corrects !== null) correction.set(probe.corrects, probe)
  const search = (message: Prompt.Message): ReadonlyArray<number> => {
    const before = found.get(message)
    if (before !== undefined) return before
    const text = Text.ofMessage(message)
    const summary = isCheckpoint(message)
    const ids = probes
      .filter((probe) => summary ? probe.words.every((word) => text.includes(word)) : text.includes(probe.text))
      .map((probe) => probe.id)
    found.set(message, ids)
    return ids
  }
  return {
    score: (view, told) => {
      const verbatim = new Set<number>()
      const summarised = new Set<number>()
      for (const message of view) {
        const into = isCheckpoint(message) ? summarised : verbatim
        for (const id of search(message)) into.add(id)
      }
      const score = { known: 0, verbatim: 0, checkpoint: 0, lost: 0, stale: 0 }
      const none = () => ({ known: 0, held: 0 })
      const bySource = { person: none(), assistant: none(), body: none(), end: none() }
      for (const probe of probes) {
        if (!isTold(probe, told)) continue
        const newer = correction.get(probe.id)
        const isKept = verbatim.has(probe.id) || summarised.has(probe.id)
        if (newer !== undefined && isTold(newer, told)) {
          if (isKept && !verbatim.has(newer.id) && !summarised.has(newer.id)) score.stale++
          continue
        }
        score.known++
        const source = bySource[probe.source]
        source.known++
        if (isKept) source.held++
        if (verbatim.has(probe.id)) score.verbatim++
        else if (summarised.has(probe.id)) score.checkpoint++
        else score.lost++
      }
      return {
        ...score,
        retained: score.known === 0 ? 1 : (score.known - score.lost) / score.known,
        sources: bySource
      }
    }
  }
}

/**
 * Fails when a scenario tells no policies apart, because each of them keeps everything.
 *
 * @category errors
 * @since 0.1.0
 */
export class ScenarioSaturated extends Schema.TaggedError<ScenarioSaturated>("effect-compaction/ScenarioSaturated")(
  "ScenarioSaturated",
  { policies: Schema.Array(Schema.String) }
) {
  override get message() {
    return `Every policy kept every probe (${this.policies.join(", ")}): the scenario shows nothing about any of them. `
      + "Use a longer session, a smaller budget or more probes."
  }
}

/**
 * Checks that a scenario has headroom: at least one policy that was tried on it lost something.
 *
 * @category running
 * @since 0.1.0
 */
export const hasHeadroom = (
  results: ReadonlyArray<{ readonly policy: string; readonly retained: number }>
): Effect.Effect<void, ScenarioSaturated> =>
  results.some(({ retained }) => retained < 1)
    ? Effect.void
    : Effect.fail(new ScenarioSaturated({ policies: results.map(({ policy }) => policy) }))

/**
 * Generates a session of an agent: a request of a person, then turns of a call and its result, with a word of a person
 * every ten turns.
 *
 * **Details**
 *
 * - `turns`: how many calls. `resultChars`: how long results are on average, in characters; a tenth of them is ten times
 *   as long.
 *
 * @category constructors
 * @since 0.1.0
 */
export const generate = (
  options: { readonly seed: number; readonly turns: number; readonly resultChars: number }
): ReadonlyArray<Prompt.Message> => {
  const { resultChars, seed, turns } = options
  const random = Random.make(seed)
  const words = (chars: number): string => {
    const out: Array<string> = []
    for (let length = 0; length < chars;) {
      const word = `${Random.pick(random, Wordings.nouns)}-${Random.whole(random, 0, 1_000)}`
      out.push(word)
      length += word.length + 1
    }
    return out.join(" ")
  }
  const messages: Array<Prompt.Message> = [
    Prompt.makeMessage("system", { content: `You are a careful engineer. ${words(1_200)}` }),
    human(`Find out why the build of ${words(60)} fails, and mend it.`)
  ]
  for (let turn = 0; turn < turns; turn++) {
    const id = `call-${turn}`
    const long = Random.whole(random, 0, 10) === 0 ? 10 : 0.5
    messages.push(
      Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("text", { text: `Next I look at ${words(80)}.` }),
          Prompt.makePart("tool-call", { id, name: "read", params: { path: words(30) }, providerExecuted: false })
        ]
      }),
      Prompt.makeMessage("tool", {
        content: [
          Prompt.makePart("tool-result", {
            id,
            name: "read",
            isFailure: false,
            result: words(Math.round(resultChars * long * (0.5 + random()))),
            providerExecuted: false
          })
        ]
      })
    )
    if (turn % 10 === 9) {
      messages.push(
        Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text: `I found ${words(120)}.` })] }),
        human(`Go on with ${words(60)}.`)
      )
    }
  }
  messages.push(Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text: "Done." })] }))
  return messages
}
