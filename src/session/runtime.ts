import type * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as PubSub from "effect/PubSub"
import type * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type * as Policy from "../Policy.ts"
import type * as Session from "../Session.ts"
import type * as SessionStore from "../SessionStore.ts"
import type * as Settings from "../Settings.ts"
import type * as SpillStore from "../SpillStore.ts"
import * as Recalled from "../text/recalled.ts"
import type * as TokenMeter from "../TokenMeter.ts"
import type * as Transcript from "../Transcript.ts"
import type * as Wire from "../Wire.ts"
import type * as Estimating from "./estimating.ts"
import * as Layout from "./layout.ts"
import type * as Sent from "./sent.ts"
import type * as Spills from "./spills.ts"
import type * as Summaries from "./summaries.ts"

/** What follows from the state and may be thrown away at any time: doing so before each call changes no byte. */
export interface Caches {
  layout: Layout.Layout | undefined
  sent: Sent.Sent | undefined
  /** The prompt of the last request. */
  prompt: { readonly requests: number; readonly prompt: Prompt.Prompt } | undefined
  spills: Spills.Spills | undefined
}

export const noCaches = (): Caches => ({ layout: undefined, sent: undefined, prompt: undefined, spills: undefined })

/** Whether caches are kept from call to call. They always are, but in the test that shows that they need not be. */
export const KeepCaches = Context.Reference<boolean>("effect-compaction/session/KeepCaches", {
  defaultValue: () => true
})

/** An append that is under way: how many of the events that wait it holds, and the fiber that writes them. */
interface Writing {
  readonly fiber: Fiber.Fiber<void, SessionStore.WriteError>
}

/**
 * How the events of a session that lasts are written, and its state as it was opened, read whole. It is given by whoever
 * opens a log, so that an app that opens none has no part of it.
 */
export interface Codec {
  readonly encode: (event: Session.Event) => Schema.Json
  readonly whole: Effect.Effect<Session.State>
}

/**
 * A session that is at work: its state, what it works with, and pointers to what runs beside it. Nothing else of a session
 * outlives a call.
 *
 * - `pending`: the events that the store has not taken yet, oldest first. `writing`: the append of the first of them.
 * - `openedAt`: how many requests had been made when this process opened the session: those are not open here.
 * - `lost`: why another process has the session now; nothing is done any more.
 */
export interface Runtime {
  /** What the policy of the last call's route says; see {@link follow}. */
  policy: string
  settings: Settings.Settings
  rules: Wire.Rules
  readonly priceOf: Transcript.PriceOf
  readonly met: Estimating.Met
  readonly counter: TokenMeter.CounterService | undefined
  readonly spillStore: SpillStore.Service
  readonly locate: SpillStore.Locate
  readonly log: SessionStore.Log | undefined
  readonly codec: Codec | undefined
  whenStoreFails: "goOn" | "wait"
  readonly keepsCaches: boolean
  openedAt: number
  readonly lock: Semaphore.Semaphore
  readonly compacting: Semaphore.Semaphore
  readonly hub: PubSub.PubSub<CompactionEvent.CompactionEvent>
  readonly changes: SubscriptionRef.SubscriptionRef<number>
  summaries: Summaries.Summaries | undefined
  state: Session.State
  caches: Caches
  pending: Array<Schema.Json>
  writing: Writing | undefined
  isClosed: boolean
  lost: SessionStore.SessionLost | undefined
}

/** The layout of a state, as far as it was made before. */
export const layoutOf = (self: Runtime, state: Session.State): Layout.Layout =>
  self.caches.layout = Layout.follow(self.caches.layout, state, self.priceOf, self.rules)

/**
 * Where the full text of a result is found: its place in the store, and by the tools of the model, where it has them. What they
 * returned is a copy, and read again from where it came.
 */
export const locateOf = ({ locate }: Runtime, { recall = false }: Session.State["call"]): SpillStore.Locate =>
  recall
    ? (entry) => {
      const place = locate(entry)
      if (Recalled.isOurs(entry.tool)) return place
      const here = Recalled.locator(entry.seq)
      return place === undefined ? here : `${place}, or ${here},`
    }
    : locate

/** Goes by another policy from here on: that of the route of a call. Only who holds the lock may ask for it. */
export const follow = (
  self: Runtime,
  { name, settings, whenStoreFails, wire }: Policy.Resolved<unknown, unknown>,
  writer: Summaries.Summaries | undefined
): void => {
  const { summary } = settings
  self.policy = name
  self.settings = settings
  self.rules = wire
  self.whenStoreFails = whenStoreFails
  if (writer !== undefined && summary !== undefined) writer.summary = summary
  self.summaries = summary === undefined ? undefined : writer
}

/** Tells those who watch the status that it may have changed. */
export const changed = (self: Runtime): Effect.Effect<void> => SubscriptionRef.update(self.changes, (n) => n + 1)
