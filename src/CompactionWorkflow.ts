/**
 * Summaries that are billed once: each is written by a workflow of `effect/workflow`, so a process that dies after the model
 * has answered, and before the session has the summary, leaves it to the next one.
 *
 * **Details**
 *
 * A summary is known by a digest of all that the summariser is given. Asked for again, in any process of the same engine, it
 * is the one that was written. A summary that failed is written anew when it is asked for again.
 *
 * The module loads `effect/workflow`, so it is no part of the index.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import type * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import * as Summarizer from "./Summarizer.ts"
import * as Sha256 from "./text/sha256.ts"

const Failure = Schema.Union([
  Summarizer.SummarizerFailed,
  Summarizer.SummaryTruncated,
  Summarizer.SummaryEmpty,
  Summarizer.NotASummary
])

type Failure = typeof Failure.Type

/** One summary. `attempt` counts those that failed before it. What is to be summarised stays with whoever asks. */
const Summary = Workflow.make("effect-compaction/Summary", {
  payload: { digest: Schema.String, attempt: Schema.Natural },
  // The reply as JSON.
  success: Schema.String,
  error: Failure,
  idempotencyKey: ({ attempt, digest }) => `${digest}/${attempt}`
})

/** What is asked for now, by digest; `called` tells whether this process has called the summariser for it. */
interface Asked {
  readonly request: Summarizer.Request
  called: boolean
}

interface Billing {
  readonly service: Summarizer.Service
  readonly asked: Map<string, Asked>
}

const digestOf = ({ fallback, focus, layout, maxTokens, messages, prompt, text, tools }: Summarizer.Request): string =>
  Sha256.hex(
    JSON.stringify([
      layout,
      fallback,
      focus,
      maxTokens,
      messages,
      prompt.content,
      text,
      Object.keys(tools ?? {}).sort()
    ])
  )

/** Writes the summary, where somebody of this process asks for it. */
const written = Effect.fnUntraced(function*(
  { asked, service }: Billing,
  digest: string
): Effect.fn.Return<string, Failure> {
  const wanted = asked.get(digest)
  if (wanted === undefined) {
    const reason = "whoever asked for it is gone, and it had not been written"
    return yield* new Summarizer.SummarizerFailed({ reason, isOverflow: false })
  }
  wanted.called = true
  return JSON.stringify(yield* service.summarize(wanted.request))
})

const summarize = Effect.fnUntraced(function*(
  self: Billing,
  request: Summarizer.Request
): Effect.fn.Return<Summarizer.Reply, Failure, WorkflowEngine.WorkflowEngine> {
  const digest = digestOf(request)
  const wanted: Asked = { request, called: false }
  self.asked.set(digest, wanted)
  for (let attempt = 0;; attempt++) {
    const ended = yield* Effect.result(Summary.execute({ digest, attempt }))
    // What was encoded above is a reply.
    if (ended._tag === "Success") return JSON.parse(ended.success) as Summarizer.Reply
    // A failure of an earlier time is none of this one.
    if (wanted.called) return yield* ended.failure
  }
})

/**
 * Has the summaries of the `Summarizer` in the context written by workflows of the engine in the context. Without a
 * summariser nothing is changed.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never, never, WorkflowEngine.WorkflowEngine> = Layer.unwrap(
  Effect.map(Summarizer.Summarizer, (service) => {
    if (service === undefined) return Layer.empty
    const self: Billing = { service, asked: new Map() }
    const billed = Layer.effect(
      Summarizer.Summarizer,
      Effect.map(Effect.context<WorkflowEngine.WorkflowEngine>(), (context): Summarizer.Service => ({
        ...service,
        summarize: (request) =>
          summarize(self, request).pipe(
            Effect.ensuring(Effect.sync(() => self.asked.delete(digestOf(request)))),
            Effect.provideContext(context)
          )
      }))
    )
    const workflow = Summary.toLayer(({ digest }) =>
      Activity.make({
        name: "effect-compaction/Summary/write",
        success: Schema.String,
        error: Failure,
        execute: written(self, digest)
      })
    )
    return Layer.provideMerge(billed, workflow)
  })
)
