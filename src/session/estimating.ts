/** What is told of an estimator that cannot read a message: once in a session, and remembered with it. */
import type * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import type * as Estimator from "../Estimator.ts"
import * as Stage from "../Stage.ts"
import * as Text from "../text/text.ts"
import type * as Transcript from "../Transcript.ts"
import * as Turn from "./turn.ts"

const told = Stage.memory("Estimator/failed", Schema.Boolean, false)

/** The longest reason that is told, in code units. */
const longest = 300

/** The first fault of an estimator that was met since the session was opened here. */
export interface Met {
  fault: string | undefined
}

/** The prices of an estimator; a fault of it is noted on the way, so that no message is read twice. */
export const noting = ({ price, read }: Estimator.Service, met: Met): Transcript.PriceOf =>
  read === undefined ? price : (message: Prompt.Message) => {
    const priced = read(message)
    met.fault ??= priced.fault
    return priced.price
  }

/** Tells of a fault that was met and that the session has not told of yet. */
export const tell = (turn: Turn.Turn): void => {
  const { fault } = turn.runtime.met
  if (fault === undefined || Stage.recall(turn.state, told)) return
  const memory = Stage.written(turn.state.memory, told, true)
  Turn.take(turn, { _tag: "Remembered", memory, skipped: null, infeasible: null })
  // What a tokenizer throws may hold the whole text.
  const reason = fault.length > longest ? `${fault.slice(0, Text.safeCut(fault, longest))}…` : fault
  Turn.tell(turn, { _tag: "EstimatorFailed", reason })
}
