/** What stands in a transcript where messages were left out of it. */
import * as Prompt from "effect/ai/Prompt"
import type * as Transcript from "../Transcript.ts"

export const message = Prompt.makeMessage("user", { content: [] })

/**
 * One for all of them: a long session must not cost by what nobody sees of it. As a checkpoint that is nowhere placed, it is
 * in no view.
 */
export const entry: Transcript.Entry = {
  seq: -1,
  ordinal: -1,
  role: "user",
  kind: "message",
  message,
  carrier: message,
  part: 0,
  origin: "library",
  price: 0,
  length: 0,
  calls: [],
  group: -1,
  answers: undefined,
  supersedes: -1,
  tool: "",
  human: false,
  pinned: false
}

export const item: Transcript.Item = {
  seq: -1,
  entry,
  group: -1,
  message,
  price: 0,
  state: "kept",
  alterations: []
}
