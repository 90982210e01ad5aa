/** How a pass has its view counted by the provider: within a deadline, and never in the way of the pass. */
import * as Effect from "effect/Effect"
import * as Budget from "../Budget.ts"
import * as CompactionEvent from "../CompactionEvent.ts"
import type * as Stage from "../Stage.ts"
import { reasonOf } from "../text/reason.ts"
import * as TokenMeter from "../TokenMeter.ts"
import * as View from "../View.ts"
import * as Wire from "../Wire.ts"
import type * as Turn from "./turn.ts"

const notCounted = (reason: string) => Effect.as(CompactionEvent.publish({ _tag: "CountFailed", reason }), null)

/** The counter of a pass under a budget, where the app gave one. */
export const of = ({ runtime, state }: Turn.Turn, { overhead }: Budget.Budget): Stage.Pass["counter"] => {
  const { counter, rules, settings } = runtime
  if (counter === undefined) return null
  const window = Budget.windowOf(settings, state.call)
  return (view) =>
    Effect.suspend(() => counter.count(Wire.repair(View.toPrompt(view), rules))).pipe(
      Effect.timeoutOrElse({ duration: counter.timeout, orElse: () => Effect.fail("it did not answer in time") }),
      Effect.flatMap((total) => {
        // A number that cannot be decides nothing.
        const tokens = TokenMeter.plausibleOf({ total }, view.price, window)
        return tokens === undefined
          ? Effect.fail(`${total} tokens cannot be those of a view that is priced at ${view.price}`)
          : Effect.succeed(Math.max(0, tokens - overhead))
      }),
      Effect.catch((error) => notCounted(reasonOf(error))),
      Effect.catchDefect((defect) => notCounted(reasonOf(defect)))
    )
}
