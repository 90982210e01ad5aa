/** What the span of a model's call says of its view. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import type { Request } from "../ContextManager.ts"

/** The attribute of OpenTelemetry's conventions for a conversation whose earlier messages were shortened; only set when true. */
const compacted = "gen_ai.conversation.compacted"

/** How the spans of `effect/ai` begin that are a model's call. */
const ofModel = "LanguageModel."

/** A tracer like another one, whose first span of a model's call says so: what a tool asks of a model is another call. */
const marking = (tracer: Tracer.Tracer): Tracer.Tracer => {
  let isMarked = false
  return {
    ...tracer,
    span: (options) => {
      const span = tracer.span(options)
      if (!isMarked && options.name.startsWith(ofModel)) {
        isMarked = true
        span.attribute(compacted, true)
      }
      return span
    }
  }
}

type Sent = Pick<Request, "generation">

/** Runs the call of a request, so that its span says whether a boundary has shortened what is sent. */
export const mark = <A, E, R>({ generation }: Sent, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  generation > 0
    ? Effect.flatMap(Effect.tracer, (tracer) => Effect.withTracer(call, marking(tracer)))
    : call

/** The same of a call that answers as a stream. */
export const markStream = <A, E, R>({ generation }: Sent, call: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  generation > 0
    ? Stream.unwrap(Effect.map(Effect.tracer, (tracer) => Stream.provideService(call, Tracer.Tracer, marking(tracer))))
    : call
