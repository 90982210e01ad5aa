import * as Summarizer from "effect-compaction/Summarizer"
import * as Surface from "effect-compaction/Surface"
import * as Transaction from "effect-compaction/Transaction"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { differences, type Failure, isObject, type Kind, type Outcome } from "./Case.ts"

type Raw = { readonly op: string; readonly [key: string]: unknown }

interface Run extends Raw {
  readonly op: "run"
  readonly owner: "automatic" | "manual"
  readonly retain?: number
  readonly span?: readonly [number, number]
  readonly summary: { readonly outcome: string; readonly price?: number }
  readonly during?: ReadonlyArray<Raw>
  readonly fail?: ReadonlyArray<string>
  readonly flush?: "fails"
  readonly cancel?: "before" | "during" | "ignored" | "flush"
  readonly idle?: boolean
  readonly crash?: string
}

interface TransactionCase {
  readonly name: string
  readonly log: ReadonlyArray<Raw>
  readonly steps: ReadonlyArray<Raw>
  readonly expect: ReadonlyArray<{ readonly [key: string]: unknown }>
}

const eventOf = (raw: Raw): Transaction.Event => {
  const { op, ...rest } = raw
  if (op === "start") return { op, turn: (raw.turn ?? null) as number | null, commandId: null }
  if (op === "end") return { op, turn: null, failed: raw.failed === true, reason: null, commandId: null }
  if (op !== "append" && op !== "replace") return raw as unknown as Transaction.Event
  const { answers = [], calls = [], price = 0, role, ...others } = rest as {
    readonly role: Surface.Node["role"]
    readonly calls?: ReadonlyArray<string>
    readonly answers?: ReadonlyArray<string>
    readonly price?: number
  }
  return { op, ...others, node: { role, calls, answers, price } } as unknown as Transaction.Event
}

/** An event as the case files write it: what is empty is left out. */
const rowOf = (seq: number, event: Transaction.Event): { readonly [key: string]: unknown } => {
  switch (event.op) {
    case "start":
      return { seq, op: event.op, turn: event.turn }
    case "end":
      return { seq, op: event.op, turn: event.turn, failed: event.failed }
    case "summary":
      return { seq, op: event.op, start: event.start, end: event.end, seqs: event.seqs, price: event.price }
    case "append":
    case "replace": {
      const { answers, calls, price, role } = event.node
      const cites = event.op === "replace" || event.cites !== undefined ? { cites: event.cites } : {}
      return {
        seq,
        op: event.op,
        role,
        ...(calls.length > 0 ? { calls } : {}),
        ...(answers.length > 0 ? { answers } : {}),
        ...("text" in event ? { checkpoint: true } : {}),
        price,
        ...(event.op === "replace" ? { start: event.start, end: event.end } : {}),
        ...cites
      }
    }
    default:
      return { seq, ...event }
  }
}

const codes: { readonly [tag: string]: string } = {
  CompactionBusy: "busy",
  CompactionCancelled: "cancelled",
  SurfaceChanged: "changed",
  CommitFailed: "commit",
  PersistenceFailed: "persistence",
  InvalidSpan: "invalid-span",
  NoTurn: "no-turn"
}

/** The code of an exit; every error of the summariser, and a summary that is not smaller, is `summary`. */
const codeOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string | null => {
  if (Exit.isSuccess(exit)) return null
  if (Cause.hasInterruptsOnly(exit.cause)) return "cancelled"
  const error = Cause.findErrorOption(exit.cause)
  return Option.isSome(error) ? codes[error.value._tag] ?? "summary" : String(Cause.squash(exit.cause))
}

/** A log in memory to which the case says what fails. */
class Session {
  readonly events: Array<Transaction.Event> = []
  state = Transaction.empty

  take(event: Transaction.Event): number {
    const next = Transaction.apply(this.state, event)
    if (typeof next === "string") throw new Error(`the case appends what is refused: ${next}`)
    this.state = next
    return this.events.push(event) - 1
  }
}

const summaryOf = ({ outcome, price = 0 }: Run["summary"]): Effect.Effect<
  Transaction.Made<null>,
  Summarizer.SummaryError
> => {
  switch (outcome) {
    case "ok":
      return Effect.succeed({ text: "what was done", framed: "[what was done]", price, evidence: null })
    case "empty":
    case "thoughts":
      return Effect.succeed({ text: "", framed: "[]", price, evidence: null })
    case "blank":
      return Effect.succeed({ text: " \n", framed: "[ ]", price, evidence: null })
    case "truncated":
      return Effect.fail(new Summarizer.SummaryTruncated({ maxTokens: 10 }))
    default:
      return Effect.fail(new Summarizer.SummarizerFailed({ reason: outcome, isOverflow: false }))
  }
}

interface Ran {
  readonly [key: string]: unknown
  readonly error: string | null
}

const runOf = Effect.fnUntraced(function*(session: Session, step: Run): Effect.fn.Return<Ran> {
  const nested: Array<string | null> = []
  let flushes = 0
  let summaries = 0
  let isDead = false
  const isSummarising = yield* Deferred.make<void>()
  const isFlushing = yield* Deferred.make<void>()
  const log: Transaction.Log<null> = {
    state: Effect.sync(() => session.state),
    append: (mark) =>
      Effect.suspend(() => {
        if (isDead || step.fail?.includes(mark.op) === true) return Effect.fail("the disk is full")
        const seq = session.take(mark)
        if (step.crash !== mark.op) return Effect.succeed(seq)
        isDead = true
        return Effect.die("crash")
      }),
    flush: Effect.gen(function*() {
      flushes++
      if (step.cancel === "flush") {
        yield* Deferred.succeed(isFlushing, undefined)
        yield* Effect.uninterruptible(Effect.yieldNow)
      }
      if (step.flush === "fails") return yield* Effect.fail("the disk is gone")
    }),
    exclusively: (self) => self
  }
  const awaitsCancel = step.cancel === "during" || step.cancel === "ignored"
  const summarise = Effect.gen(function*() {
    summaries++
    for (const raw of step.during ?? []) {
      if (raw.op === "run") nested.push((yield* runOf(session, raw as Run)).error)
      else for (const event of eventsOf(session, raw)) session.take(event)
    }
    if (awaitsCancel) {
      yield* Deferred.succeed(isSummarising, undefined)
      if (step.cancel === "during") return yield* Effect.never
      yield* Effect.yieldNow
    }
    return yield* summaryOf(step.summary)
  })
  const { cancel, idle, owner, retain, span } = step
  const fiber = yield* Effect.forkChild(
    Transaction.run(log, {
      owner,
      ...(retain === undefined ? {} : { retain }),
      ...(span === undefined ? {} : { span: { first: span[0], last: span[1] } }),
      ...(idle === undefined ? {} : { isIdle: Effect.succeed(idle) }),
      summarise: () => cancel === "ignored" ? Effect.uninterruptible(summarise) : summarise
    }),
    { startImmediately: cancel !== "before" }
  )
  if (cancel === "before") fiber.interruptUnsafe()
  if (awaitsCancel) {
    yield* Effect.raceFirst(Deferred.await(isSummarising), Fiber.await(fiber))
    fiber.interruptUnsafe()
  }
  if (cancel === "flush") {
    yield* Effect.raceFirst(Deferred.await(isFlushing), Fiber.await(fiber))
    fiber.interruptUnsafe()
  }
  const exit = yield* Fiber.await(fiber)
  const found = Exit.isSuccess(exit) && Option.isSome(exit.value) ? exit.value.value : undefined
  return {
    error: isDead ? "crash" : codeOf(exit),
    result: found === undefined ? null : {
      start: found.start,
      summary: found.summary,
      end: found.end,
      span: found.span,
      seqs: found.seqs,
      price: found.price
    },
    flushes,
    summaries,
    nested
  }
})

/** The events of a step that is none of the transaction's. */
const eventsOf = (session: Session, step: Raw): ReadonlyArray<Transaction.Event> => {
  if (step.op === "restart") return session.state.isFresh ? [] : [{ op: "opened" }]
  if (step.op !== "prune") return [eventOf(step)]
  const node = session.state.surface.nodes.find((each) => each.seq === step.seq)
  if (node === undefined) throw new Error("the case prunes what is not on the surface")
  const { seq, ...rest } = node
  return [
    { op: "claim", start: seq, end: seq, price: node.price },
    { op: "replace", node: { ...rest, price: step.price as number }, start: seq, end: seq, cites: [seq] }
  ]
}

const runCase = Effect.fnUntraced(function*(self: TransactionCase): Effect.fn.Return<Outcome> {
  let session = new Session()
  for (const raw of self.log) session.take(eventOf(raw))
  const failures: Array<Failure> = []
  for (const [at, step] of self.steps.entries()) {
    if (step.op === "restart") {
      // The log is read back: everything is folded anew.
      const read = new Session()
      for (const event of JSON.parse(JSON.stringify(session.events)) as ReadonlyArray<Transaction.Event>) {
        read.take(event)
      }
      session = read
    }
    const from = session.events.length
    let row: { readonly [key: string]: unknown } = {}
    if (step.op === "run") row = yield* runOf(session, step as Run)
    else for (const event of eventsOf(session, step)) session.take(event)
    const { lock, surface } = session.state
    const actual = {
      ...row,
      events: session.events.slice(from).map((event, index) => rowOf(from + index, event)),
      surface: surface.nodes.map((node) => node.seq),
      generation: surface.generation,
      total: surface.total,
      exact: Surface.priceOf(surface),
      locked: lock !== null
    }
    failures.push(...differences(`step ${at}`, sorted(self.expect[at]!), sorted(actual)))
  }
  return { name: self.name, failures }
})

/** The same value with the keys of every object in order, so that their order does not tell two apart. */
const sorted = <A>(value: A): A =>
  JSON.parse(
    JSON.stringify(value, (_, each) =>
      isObject(each)
        ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => a < b ? -1 : 1))
        : each)
  )

/** What a compaction appends, leaves and fails with. */
export const kind: Kind = {
  name: "transaction",
  recognises: (file) =>
    isObject(file) && Array.isArray(file.cases) && file.cases.length > 0
    && file.cases.every((each) => isObject(each) && "steps" in each && "log" in each),
  // The shape was recognised by its cases; one that lies about it fails.
  run: (file) => Effect.forEach((file as { readonly cases: ReadonlyArray<TransactionCase> }).cases, runCase)
}
