/**
 * The metrics, the span and the log lines of a session; `docs/telemetry.md` lists them.
 *
 * Everything is made of the session's own events, at one place. The names are part of the public contract.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as CompactionEvent from "../CompactionEvent.ts"

/**
 * The boundaries, by `level` and `kind`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const boundaries = Metric.counter("compaction_boundaries_total", {
  description: "Boundaries: committed passes, each of which changed the prefix",
  incremental: true
})

/**
 * The passes that were taken back because they freed too little.
 *
 * @category metrics
 * @since 0.1.0
 */
export const skips = Metric.counter("compaction_skips_total", {
  description: "Passes that the clear floor took back",
  incremental: true
})

/**
 * What each boundary freed, in tokens of price.
 *
 * @category metrics
 * @since 0.1.0
 */
export const freed = Metric.histogram("compaction_freed_tokens", {
  description: "Tokens of price that a boundary freed",
  boundaries: Metric.exponentialBoundaries({ start: 1_000, factor: 2, count: 11 })
})

/**
 * How long each summary took that was written or failed, in milliseconds.
 *
 * @category metrics
 * @since 0.1.0
 */
export const summaryDuration = Metric.histogram("compaction_summary_milliseconds", {
  description: "How long a summary took, written or failed",
  boundaries: Metric.exponentialBoundaries({ start: 250, factor: 2, count: 10 })
})

/**
 * The summaries that were not taken, by `cause`: failed, or written and refused.
 *
 * @category metrics
 * @since 0.1.0
 */
export const summaryFailures = Metric.counter("compaction_summary_failures_total", {
  description: "Summaries that failed or were refused",
  incremental: true
})

/**
 * The passes that failed, by `error`: the tag of what failed. The last good view was sent in their place.
 *
 * @category metrics
 * @since 0.1.0
 */
export const passFailures = Metric.counter("compaction_pass_failures_total", {
  description: "Passes that failed: the last good view was sent",
  incremental: true
})

/**
 * The turns that a store did not take; they wait in memory.
 *
 * @category metrics
 * @since 0.1.0
 */
export const storeFailures = Metric.counter("compaction_store_failures_total", {
  description: "Turns that the store of a session did not take",
  incremental: true
})

/**
 * How full the budget of the last request was before it was decided whether to compact, as a ratio.
 *
 * @category metrics
 * @since 0.1.0
 */
export const occupancy = Metric.gauge("compaction_occupancy_ratio", {
  description: "What the last request counted, as a ratio of its budget"
})

/**
 * Whether what a session tells is recorded: of one that is only played again nothing is telemetry of the app.
 *
 * @category services
 * @since 0.1.0
 */
export const IsRecorded = Context.Reference<boolean>("effect-compaction/session/Telemetry/IsRecorded", {
  defaultValue: () => true
})

const by = (attributes: { readonly [key: string]: string | number }): Record<string, string> =>
  Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, String(value)]))

const ofBoundary = (event: typeof CompactionEvent.Compacted.Type) => ({
  "compaction.before": event.before,
  "compaction.after": event.after,
  "compaction.freed": event.freed,
  "compaction.level": event.level,
  "compaction.generation": event.generation,
  "compaction.kind": event.kind
})

const log = (message: string, annotations: Record<string, unknown>) =>
  Effect.annotateLogs(Effect.logDebug(message), annotations)

const warn = (message: string, annotations: Record<string, unknown>) =>
  Effect.annotateLogs(Effect.logWarning(message), annotations)

/**
 * Records an event in the metrics, and what matters to a person in the log: at the level debug, and what failed as a warning.
 *
 * @category running
 * @since 0.1.0
 */
export const record = (event: CompactionEvent.CompactionEvent): Effect.Effect<void> =>
  Effect.flatMap(IsRecorded, (isRecorded) => isRecorded ? recorded(event) : Effect.void)

const recorded = (event: CompactionEvent.CompactionEvent): Effect.Effect<void> => {
  switch (event._tag) {
    case "TokenCounted":
      return event.budget > 0 ? Metric.update(occupancy, event.used / event.budget) : Effect.void
    case "Compacted":
      return Effect.all([
        Metric.update(Metric.withAttributes(boundaries, by({ level: event.level, kind: event.kind })), 1),
        Metric.update(freed, event.freed),
        log("compacted", ofBoundary(event))
      ], { discard: true })
    case "CompactionSkipped":
      return Effect.andThen(
        Metric.update(skips, 1),
        log("compaction skipped", { "compaction.freed": event.freed, "compaction.required": event.required })
      )
    case "SummaryReady":
      return Metric.update(summaryDuration, event.milliseconds)
    case "SummaryFailed":
      return Effect.all([
        Metric.update(summaryDuration, event.milliseconds),
        Metric.update(Metric.withAttributes(summaryFailures, by({ cause: event.cause })), 1),
        warn("summary failed", { "compaction.cause": event.cause, "compaction.reason": event.reason })
      ], { discard: true })
    case "SummaryRefused":
      return Effect.andThen(
        Metric.update(Metric.withAttributes(summaryFailures, by({ cause: event.cause })), 1),
        warn("summary refused", { "compaction.cause": event.cause, "compaction.reason": event.reason })
      )
    case "PassFailed":
      return Effect.andThen(
        Metric.update(Metric.withAttributes(passFailures, by({ error: event.error })), 1),
        warn("a pass failed, the last good view is sent", {
          "compaction.error": event.error,
          "compaction.reason": event.reason
        })
      )
    case "CountFailed":
      return warn("the provider gave no count, and a pass went by prices", { "compaction.reason": event.reason })
    case "EstimatorFailed":
      return warn("the estimator could not read a message, which is priced by its characters", {
        "compaction.reason": event.reason
      })
    case "SessionNotStored":
      return Effect.andThen(
        Metric.update(storeFailures, 1),
        warn("the session could not be stored, and waits in memory", {
          "compaction.events": event.events,
          "compaction.reason": event.reason
        })
      )
    default:
      return Effect.void
  }
}

/**
 * Runs what a boundary does once it is decided (publishing it, writing spilled texts) in its span.
 *
 * @category running
 * @since 0.1.0
 */
export const span = (event: typeof CompactionEvent.Compacted.Type) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.withSpan(effect, "compaction.boundary", { attributes: ofBoundary(event), captureStackTrace: false })
