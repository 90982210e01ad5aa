import type * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Ladder from "effect-compaction/Ladder"
import * as Marks from "effect-compaction/Marks"
import * as Stage from "effect-compaction/Stage"
import * as Transcript from "effect-compaction/Transcript"
import * as View from "effect-compaction/View"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { normalMessage } from "../../src/wire/normal.ts"
import { seed } from "../seed.ts"
import * as Validators from "../wireValidators.ts"
import * as Oracle from "./Oracle.ts"
import * as Random from "./Random.ts"
import type * as Script from "./Script.ts"
import * as Trace from "./Trace.ts"

/** What must hold for every script; the answer is what was violated, or `undefined`. */
export interface Property {
  readonly name: string
  readonly check: (trace: Trace.Trace) => Effect.Effect<string | undefined>
}

const pure = (name: string, check: (trace: Trace.Trace) => string | undefined): Property => ({
  name,
  check: (trace) => Effect.sync(() => check(trace))
})

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const sameLists = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((each, at) => each === b[at])

const firstDifference = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): string => {
  const at = a.findIndex((each, index) => each !== b[index])
  const where = at < 0 ? a.length : at
  return `message ${where} of ${a.length} and ${b.length}: ${a[where]} / ${b[where]}`
}

const itemText = (item: View.Item): string => `${item.seq}:${item.state}:${Trace.bytes(item.message)}`

const itemsText = (view: View.View): ReadonlyArray<string> => view.items.map(itemText)

interface Asked {
  readonly step: Trace.Step
  readonly outcome: Trace.Outcome
}

const requests = (trace: Trace.Trace): ReadonlyArray<Asked> =>
  trace.steps.flatMap((step) => step.outcome === undefined ? [] : [{ step, outcome: step.outcome }])

/** The first thing that is wrong with a request. */
const eachRequest = (
  name: string,
  check: (asked: Asked, trace: Trace.Trace) => string | undefined
): Property =>
  pure(name, (trace) => {
    for (const asked of requests(trace)) {
      const wrong = check(asked, trace)
      if (wrong !== undefined) return `operation ${asked.step.at}: ${wrong}`
    }
    return undefined
  })

const successOf = ({ result }: Trace.Outcome) => result._tag === "Success" ? result.success : undefined

/** The messages of a request without its ephemeral tail. */
const stableOf = (request: ContextManager.Request): ReadonlyArray<Prompt.Message> =>
  request.prompt.content.slice(0, request.stableLength)

const compactedOf = (outcome: Trace.Outcome) => successOf(outcome)?.events.find((event) => event._tag === "Compacted")

// ---------------------------------------------------------------------------------------------------------------------
// 1. Nothing is lost
// ---------------------------------------------------------------------------------------------------------------------

const historyIsKept = pure("history", (trace) => {
  for (const { at, expected, history, segment } of trace.steps) {
    if (history.length !== expected.length) return `operation ${at}: ${history.length} of ${expected.length} messages`
    for (let each = 0; each < history.length; each++) {
      if (history[each] === expected[each]) continue
      const isJson = Result.getOrThrow(normalMessage(expected[each]!)) === expected[each]
      if (segment === 0 && trace.script.owner === "manager" && isJson) {
        return `operation ${at}: message ${each} is another object`
      }
      // What JSON cannot hold was made JSON at the door, and a session that was read from JSON holds other objects.
      if (Trace.said(history[each]!) !== Trace.said(expected[each]!)) {
        return `operation ${at}: message ${each} says ${Trace.bytes(history[each]!)}`
      }
    }
  }
  // Written before the session began, and now again.
  for (const operation of trace.script.operations) {
    if (operation._tag !== "append") continue
    for (const message of operation.messages) {
      if (Trace.written(message) !== Trace.bytes(message)) return `a message was changed: ${Trace.written(message)}`
    }
  }
  return undefined
})

const stateOf = {
  Truncate: "truncated",
  Stub: "stubbed",
  Excerpt: "stubbed",
  Prune: "pruned",
  Cap: "capped",
  Clear: "cleared",
  Trim: "trimmed",
  Placeholder: "placeholder"
}

const viewIsExplained = eachRequest("explained", ({ outcome, step }) => {
  const { decisions, items, transcript } = outcome.after
  const altered = new Map(decisions.flatMap((each) => "seqs" in each ? [] : [[each.seq, each._tag] as const]))
  const places = Oracle.places(step.history, decisions)
  const standing = new Set<number>()
  for (const item of items) {
    if (item.state === "synthetic") {
      if (item.seq !== -1 || item.entry !== undefined) return "a synthetic result has a seq"
      continue
    }
    if (standing.has(item.seq)) return `entry ${item.seq} stands twice`
    standing.add(item.seq)
    if (item.entry !== transcript.entries[item.seq]) return `entry ${item.seq} is not of the transcript`
    const decided = altered.get(item.seq)
    const expected = decided === undefined ? "kept" : stateOf[decided]
    if (item.state !== expected) return `entry ${item.seq} is ${item.state}, decided was ${decided}`
    if (item.state === "kept" && item.message !== item.entry?.message) return `entry ${item.seq} was changed`
  }
  for (const [seq, place] of places.entries()) {
    if (place === "either") continue
    if (standing.has(seq) !== (place === "view")) {
      return `entry ${seq} (${place}) is ${standing.has(seq) ? "" : "not "}in the view`
    }
  }
  for (const decision of decisions) {
    const seqs = "seqs" in decision ? decision.seqs : [decision.seq]
    if (seqs.some((seq) => seq >= decision.at)) return `a decision about entry ${seqs} was taken at ${decision.at}`
  }
  return undefined
})

// ---------------------------------------------------------------------------------------------------------------------
// 2. Every view is valid on the wire
// ---------------------------------------------------------------------------------------------------------------------

const judges: { readonly [name: string]: (messages: ReadonlyArray<Prompt.Message>) => ReadonlyArray<string> } = {
  anthropic: (messages) => Validators.anthropic(Validators.toAnthropic(messages)),
  openaiChat: (messages) => Validators.chat(Validators.toChat(messages)),
  openaiResponses: (messages) => Validators.responses(Validators.toResponses(messages)),
  gemini: (messages) => Validators.gemini(Validators.toGemini(messages)),
  approvals: Validators.approvals
}

const wireIsValid = eachRequest("wire", ({ outcome }, { script }) => {
  const request = successOf(outcome)
  // A session in which nothing was said has nothing to send.
  if (request === undefined || outcome.after.length === 0) return undefined
  const rules = Trace.rulesOf(script)
  const violation = Wire.check(request.prompt, rules)[0]
  if (violation !== undefined) return `${violation.rule} ${violation.index}.${violation.part}: ${violation.detail}`
  for (const [name, judge] of Object.entries(judges)) {
    if (rules.name !== "all" && name !== rules.name && name !== "approvals") continue
    const refused = judge(request.prompt.content)[0]
    if (refused !== undefined) return `${name} refuses: ${refused}`
  }
  return undefined
})

/** Approval responses may stand anywhere behind their request: they are compared apart from everything else. */
const apart = (messages: ReadonlyArray<Prompt.Message>) => {
  const others: Array<string> = []
  const responses: Array<string> = []
  for (const message of messages) {
    if (message.role !== "tool") {
      others.push(Trace.bytes(message))
      continue
    }
    for (const part of message.content) {
      const list = part.type === "tool-approval-response" ? responses : others
      list.push(Trace.bytes(Prompt.makeMessage("tool", { content: [part], options: message.options })))
    }
  }
  return { others, responses: responses.sort() }
}

const viewIsSent = eachRequest("view is sent", ({ outcome }, { script }) => {
  const request = successOf(outcome)
  if (request === undefined || outcome.after.length === 0) return undefined
  const expected = Wire.repair(View.toPrompt(outcome.after), Trace.rulesOf(script)).content
  const [repaired, sent] = [apart(expected), apart(stableOf(request))]
  if (!sameLists(repaired.others, sent.others)) {
    return `view and prompt differ, ${firstDifference(repaired.others, sent.others)}`
  }
  return sameLists(repaired.responses, sent.responses)
    ? undefined
    : "other approval responses are sent than stand in the view"
})

/** How many images, files and other media a message carries. */
const mediaOf = (message: Prompt.Message): number => {
  if (message.role === "system") return 0
  const parts: ReadonlyArray<Prompt.Part> = message.content
  const blocks = parts.flatMap((part): ReadonlyArray<unknown> => {
    const shown: unknown = part.type === "tool-result" ? part.modelOutput ?? part.result : part
    return Array.isArray(shown) ? shown : [shown]
  })
  return blocks.filter((block) => {
    const type = typeof block === "object" && block !== null && "type" in block ? block.type : undefined
    return type === "file" || type === "image"
  }).length
}

/** Whether all media of a message are in what tools of the provider's returned, which nobody may change. */
const isOnlyOfProvider = (message: Prompt.Message): boolean =>
  message.role === "assistant"
  && mediaOf(Prompt.makeMessage("assistant", {
      content: message.content.filter((part) => part.type !== "tool-result"),
      options: message.options
    })) === 0

const mediaAreWithinLimits = eachRequest("media", ({ outcome }, { script }) => {
  const { maxImages = null } = script.settings
  if (successOf(outcome) === undefined || maxImages === null) return undefined
  const { items, transcript } = outcome.after
  // A turn that its provider signed is not touched while a call of it is open.
  const actor = transcript.entries[transcript.lastActor]
  if (actor !== undefined && actor.calls.length > 0 && Transcript.isOpen(transcript, actor.seq)) return undefined
  const showing = items.filter((item) => mediaOf(item.message) > 0)
  const media = showing.reduce((sum, item) => sum + mediaOf(item.message), 0)
  if (media <= maxImages) return undefined
  const loose = showing.find(({ entry, message }) =>
    entry !== undefined && !entry.pinned && entry.seq !== transcript.lastHuman && !isOnlyOfProvider(message)
  )
  return loose === undefined ? undefined : `${media} media, and entry ${loose.seq} still shows one`
})

// ---------------------------------------------------------------------------------------------------------------------
// 3. The prefix is stable
// ---------------------------------------------------------------------------------------------------------------------

const isPrefix = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): boolean =>
  before.length <= after.length && before.every((each, at) => each === after[at])

const withoutSystem = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  messages.filter((message) => message.role !== "system")

const prefixIsStable = pure("prefix", (trace) => {
  let previous: { readonly resets: number; readonly messages: ReadonlyArray<Prompt.Message> } | undefined
  for (const { outcome, step } of requests(trace)) {
    const request = successOf(outcome)
    if (request === undefined) continue
    const messages = stableOf(request)
    const before = previous?.resets === step.resets ? previous.messages : []
    previous = { resets: step.resets, messages }
    const extended = isPrefix(before.map(Trace.said), messages.map(Trace.said))
    const compacted = compactedOf(outcome) !== undefined
    const cause = extended
      ? null
      : compacted
      ? "boundary"
      : isPrefix(withoutSystem(before).map(Trace.said), withoutSystem(messages).map(Trace.said))
      ? "system"
      : "repair"
    if (request.prefixChanged !== cause) {
      return `operation ${step.at}: the cause is ${request.prefixChanged}, should be ${cause}`
    }
    const published = request.events.filter((event) => event._tag === "PrefixChanged")
    if (published.length !== (cause === null ? 0 : 1) || published.some((event) => event.cause !== cause)) {
      return `operation ${step.at}: published ${JSON.stringify(published)} for ${cause}`
    }
  }
  return undefined
})

const refusalChangesNothing = eachRequest("refusal", ({ outcome }) => {
  if (compactedOf(outcome) !== undefined) return undefined
  const { after, before, statusAfter, statusBefore } = outcome
  if (!same(before.decisions, after.decisions)) return `decisions changed without a boundary`
  if (!sameLists(itemsText(before), itemsText(after))) return "the view changed without a boundary"
  if (statusAfter.level !== statusBefore.level) return "the level changed without a boundary"
  if (statusAfter.generation !== statusBefore.generation) return "the generation changed without a boundary"
  return undefined
})

// ---------------------------------------------------------------------------------------------------------------------
// 4. Deterministic
// ---------------------------------------------------------------------------------------------------------------------

const sentBy = (outcome: Trace.Outcome): ReadonlyArray<string> => {
  const request = successOf(outcome)
  return request === undefined ? [] : Trace.bytesOf(request.prompt.content)
}

const describeOutcome = ({ after, result, statusAfter }: Trace.Outcome) => ({
  result: result._tag === "Success" ? { ...result.success, prompt: undefined } : result.failure,
  status: statusAfter,
  decisions: after.decisions
})

interface Second {
  readonly trace: Trace.Trace
  /** Every call of the estimator, with the operation during which it came. */
  readonly priced: ReadonlyArray<{ readonly at: number; readonly message: Prompt.Message }>
}

const seconds = new WeakMap<Trace.Trace, Second>()

/** The same script once more, in another manager, with no request repeated and the calls of the estimator counted. */
const secondOf = Effect.fnUntraced(function*(first: Trace.Trace) {
  const known = seconds.get(first)
  if (known !== undefined) return known
  const priced: Array<Second["priced"][number]> = []
  let now = 0
  let looks = false
  const trace = yield* Trace.run(first.script, {
    price: (message) => {
      if (!looks) priced.push({ at: now, message })
      return first.price(message)
    },
    mark: (at) => {
      now = at
    },
    look: (looking) => {
      looks = looking
    }
  })
  const second: Second = { trace, priced }
  seconds.set(first, second)
  return second
})

const repeatable: Property = {
  name: "repeatable",
  check: Effect.fnUntraced(function*(trace) {
    const others = requests((yield* secondOf(trace)).trace)
    for (const [at, { outcome, step }] of requests(trace).entries()) {
      const second = others[at]!.outcome
      if (!same(describeOutcome(outcome), describeOutcome(second))) return `operation ${step.at}: another outcome`
      if (!sameLists(sentBy(outcome), sentBy(second))) return `operation ${step.at}: another prompt`
    }
    return undefined
  })
}

/** The streak and what was last published are not kept, so a request may fail in one session and not in the other. */
const lasting = ({ after, statusAfter }: Trace.Outcome) => ({
  decisions: after.decisions,
  entries: statusAfter.entries,
  counts: statusAfter.counts,
  level: statusAfter.level,
  generation: statusAfter.generation,
  overrides: statusAfter.overrides
})

const resumable: Property = {
  name: "resume",
  check: Effect.fnUntraced(function*(trace) {
    const { operations } = trace.script
    const cut = 1 + Random.make(trace.script.seed ^ 0x5bd1e995).below(operations.length)
    const script: Script.Script = {
      ...trace.script,
      operations: [...operations.slice(0, cut), { _tag: "restore" }, ...operations.slice(cut)]
    }
    const resumed = requests(yield* Trace.run(script))
    for (const [at, { outcome, step }] of requests(trace).entries()) {
      const second = resumed[at]!.outcome
      const where = `restored before operation ${cut}, operation ${step.at}`
      const isFirst = resumed[at]!.step.segment > step.segment &&
        resumed[at - 1]?.step.segment !== resumed[at]!.step.segment
      if (isFirst && second.statusBefore.streak !== 0) return `${where}: the streak outlives the restore`
      if (!same(lasting(outcome), lasting(second))) {
        return `${where}: ${JSON.stringify(lasting(outcome))} / ${JSON.stringify(lasting(second))}`
      }
      const [views, others] = [itemsText(outcome.after), itemsText(second.after)]
      if (!sameLists(views, others)) return `${where}: another view, ${firstDifference(views, others)}`
      const [request, resumedRequest] = [successOf(outcome), successOf(second)]
      if (request === undefined || resumedRequest === undefined) continue
      // The tail belongs to one request: a session that was restored has shown its notice already.
      const [sent, other] = [Trace.bytesOf(stableOf(request)), Trace.bytesOf(stableOf(resumedRequest))]
      if (!sameLists(sent, other)) return `${where}: another prompt, ${firstDifference(sent, other)}`
    }
    return undefined
  })
}

/** Whether a request asks for what the one before it did: nothing came between them but a restore. */
const isRepeat = (trace: Trace.Trace, asked: Asked): boolean => {
  let at = asked.step.at - 1
  while (trace.steps[at]?.operation._tag === "restore") at--
  const before = trace.steps[at]
  return before?.outcome?.result._tag === "Success" && same(before.operation, asked.step.operation)
}

const againIsTheSame = eachRequest("again", (asked, trace) => {
  const { again, after, before, result } = asked.outcome
  if (isRepeat(trace, asked) && (result._tag === "Failure" || !same(before.decisions, after.decisions))) {
    return "the same request again decides something"
  }
  if (result._tag === "Failure" || again === undefined) return undefined
  const request = result.success
  if (again._tag === "Failure") return `the same request again fails: ${again.failure._tag}`
  const second = again.success
  if (!sameLists(Trace.bytesOf(request.prompt.content), Trace.bytesOf(second.prompt.content))) return "another prompt"
  if (second.events.length > 0 || second.prefixChanged !== null) return "the same request again publishes something"
  return same([second.count, second.generation], [request.count, request.generation]) ? undefined : "another count"
})

// ---------------------------------------------------------------------------------------------------------------------
// 5. Decisions need provenance
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a request decided. Limits of media hold whatever a count says and whatever words cost in the place of an image: they
 * keep a request from being refused.
 */
const decidedIn = ({ after, before }: Trace.Outcome) => after.decisions.slice(before.decisions.length)

const needsProvenance = eachRequest("provenance", ({ outcome }, { script }) => {
  const { meter, provenanceGate } = script.settings
  if (!(provenanceGate ?? meter === "hybrid")) return undefined
  const boundary = compactedOf(outcome)
  if (boundary === undefined || boundary.kind === "usage") return undefined
  if (decidedIn(outcome).every(({ _tag }) => _tag === "Placeholder" || _tag === "Trim")) return undefined
  const request = successOf(outcome)
  return request?.events.some((event) => event._tag === "PassOverridden" && event.count >= event.budget) === true
    ? undefined
    : `decided on a count of kind ${boundary.kind}, ${boundary.count} of ${boundary.budget}`
})

// ---------------------------------------------------------------------------------------------------------------------
// 6. Never worse
// ---------------------------------------------------------------------------------------------------------------------

const neverWorse = eachRequest("never worse", ({ outcome }) => {
  const { after, before, statusBefore } = outcome
  const isLimited = decidedIn(outcome).some(({ _tag }) => _tag === "Placeholder")
  if (after.price > before.price && !isLimited) return `the price rose from ${before.price} to ${after.price}`
  const boundary = compactedOf(outcome)
  const skipped = successOf(outcome)?.events.some((event) => event._tag === "CompactionSkipped") === true
  if (boundary === undefined) {
    return after.price === before.price ? undefined : "the price fell without a boundary"
  }
  if (skipped && !isLimited) return "refused and committed"
  if (after.price >= before.price && !isLimited) return `a boundary frees nothing: ${before.price} to ${after.price}`
  if (boundary.before !== before.price || boundary.after !== after.price) {
    return `published ${boundary.before} to ${boundary.after}, was ${before.price} to ${after.price}`
  }
  if (boundary.freed !== before.price - after.price) return `published ${boundary.freed} freed`
  if (!same(boundary.session, View.counts(after))) return `published ${JSON.stringify(boundary.session)}`
  return boundary.generation === statusBefore.generation + 1 ? undefined : `generation ${boundary.generation}`
})

const runningPrice = eachRequest("running price", ({ outcome }, { price, script }) => {
  const { after } = outcome
  let sum = 0
  for (const item of after.items) {
    const fresh = price(item.message)
    if (item.price !== fresh) return `the item of entry ${item.seq} has the price ${item.price}, is ${fresh}`
    sum += fresh
  }
  if (after.price !== sum) return `the view has the price ${after.price}, is ${sum}`
  const request = successOf(outcome)
  // Only without bills is a count a sum of prices.
  const isEstimated = (script.settings.meter ?? "estimate") === "estimate"
  if (request === undefined || after.length === 0 || !isEstimated) return undefined
  // What is sent beyond the view: the results of running calls, the message that opens, the tail.
  const standing = new Set(after.items.map((item) => Trace.bytes(item.message)))
  const opening = Trace.bytes(firstUser)
  let added = 0
  for (const [at, message] of request.prompt.content.entries()) {
    const json = Trace.bytes(message)
    if (at >= request.stableLength || json === opening || (isRunning(message) && !standing.has(json))) {
      added += price(message)
    }
  }
  if (script.rules !== "all" && request.count.tokens < sum) return `the count ${request.count.tokens} is below ${sum}`
  return request.count.tokens === sum + added
    ? undefined
    : `the count is ${request.count.tokens}, not ${sum} + ${added}`
})

/** What opens a prompt that holds nothing. */
const firstUser: Prompt.Message = Wire.repair(Prompt.empty, Wire.all).content[0]!

const isRunning = (message: Prompt.Message): boolean =>
  message.role === "tool"
  && message.content.some((part) =>
    part.type === "tool-result" && part.result === "[no result yet: the tool is still running]"
  )

/** Climbing to a raised aim makes the first edits of a climb to the end, and no more than it takes. */
const climbIsPrefix: Property = {
  name: "climb",
  check: Effect.fnUntraced(function*(trace) {
    const history = trace.steps.at(-1)?.history ?? []
    const budget = Math.max(1, Math.floor(0.8 * history.length * 20))
    const pass = yield* Stage.fromPrompt(Prompt.fromMessages(history), {
      settings: seed(trace.script.settings),
      budget
    })
      .pipe(
        Effect.provideService(Estimator.Estimator, Trace.estimators[trace.script.estimator]),
        Effect.orDie
      )
    const full = yield* Ladder.climb(Ladder.progressive, pass, { target: -Infinity })
    for (const share of [0, 0.25, 0.5, 0.9, 1]) {
      const target = Math.floor(full.view.price + share * (pass.view.price - full.view.price))
      const { view } = yield* Ladder.climb(Ladder.progressive, pass, { target })
      const count = view.decisions.length
      if (!same(full.view.decisions.slice(0, count), view.decisions)) return `the climb to ${target} goes another way`
      if (view.price > target) return `the climb to ${target} stops at ${view.price}`
      if (count === 0) continue
      const shorter = View.make(pass.view.transcript, view.decisions.slice(0, -1))
      if (shorter.price <= target) return `the climb to ${target} goes on at ${shorter.price}`
      const again = View.make(pass.view.transcript, view.decisions)
      if (again.price !== view.price || !sameLists(itemsText(again), itemsText(view))) {
        return `the climb to ${target} ends in another view than its decisions`
      }
    }
    return undefined
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// 8. Work
// ---------------------------------------------------------------------------------------------------------------------

/** Who may be priced by what: a replacement or a synthetic result of an entry has the ids of that entry. */
const kinOf = (message: Prompt.Message): string => {
  if (message.role === "system" || message.role === "user") return message.role
  const parts: ReadonlyArray<Prompt.Part> = message.content
  return parts.map(idOf).join()
}

const idOf = (part: Prompt.Part): string =>
  "id" in part ? part.id : part.type === "tool-approval-response" ? part.approvalId : ""

const work: Property = {
  name: "work",
  check: Effect.fnUntraced(function*(trace) {
    const { script } = trace
    const { priced, trace: { steps } } = yield* secondOf(trace)
    // A session that is restored is priced again, and one that diverged from where it did.
    const last = steps.at(-1)!
    if (last.segment > 0 || last.divergences > 0) return undefined
    const entries = Oracle.entriesOf(last.history)
    const times = new Map<Prompt.Message, number>()
    const texts = new Map<string, number>()
    const isEntry = new Set<Prompt.Message>()
    const kin = new Map<string, number>()
    for (const { message, part } of entries) {
      if (part === undefined) isEntry.add(message)
      for (const each of part === undefined && message.role === "assistant" ? message.content : [part]) {
        if (each !== undefined) kin.set(idOf(each), (kin.get(idOf(each)) ?? 0) + 1)
      }
    }
    const opening = Trace.bytes(firstUser)
    for (const { at, message } of priced) {
      const json = Trace.bytes(message)
      times.set(message, (times.get(message) ?? 0) + 1)
      if (json === opening) continue
      texts.set(json, (texts.get(json) ?? 0) + 1)
      const operation = script.operations[at]
      const compacts = steps[at]?.outcome !== undefined &&
        mayCompact(steps[at].outcome, script.settings.maxMessages !== undefined)
      if (operation?._tag !== "request" || compacts || script.owner === "caller") continue
      if (!isSynthetic(message) && Marks.of(message).ephemeral !== true) {
        return `operation ${at}: below the trigger a request prices ${json}`
      }
    }
    for (const message of isEntry) {
      if (times.get(message) !== 1) return `${times.get(message)} times priced: ${Trace.bytes(message)}`
    }
    for (const [json, count] of texts) {
      const message: Prompt.Message = JSON.parse(json)
      const most = message.role === "tool" || message.role === "user"
        ? message.role === "tool" && message.content.length === 1 ? kin.get(kinOf(message)) ?? 1 : entries.length
        : entries.length
      if (count > most) return `${count} times priced, at most ${most}: ${json}`
    }
    return undefined
  })
}

const isSynthetic = (message: Prompt.Message): boolean =>
  isRunning(message)
  || (message.role === "tool"
    && message.content.some((part) =>
      part.type === "tool-result" && part.result === "[no result: the call was interrupted]"
    ))

/** Whether a pass ran, as far as the trigger goes. */
const mayCompact = ({ result, statusAfter, statusBefore }: Trace.Outcome, hasSecondTrigger: boolean): boolean => {
  if (result._tag === "Failure") return true
  const { budget, reading } = statusAfter
  if (hasSecondTrigger) return true
  if (budget === null || reading === null) return false
  return statusAfter.generation !== statusBefore.generation || (budget.limit > 0 && reading.tokens >= budget.trigger)
}

/** Every promise, most telling first. */
export const all: ReadonlyArray<Property> = [
  historyIsKept,
  viewIsExplained,
  wireIsValid,
  viewIsSent,
  mediaAreWithinLimits,
  prefixIsStable,
  refusalChangesNothing,
  againIsTheSame,
  needsProvenance,
  neverWorse,
  runningPrice,
  climbIsPrefix,
  repeatable,
  resumable,
  work
]
