import * as AiError from "effect/ai/AiError"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Json from "../text/json.ts"
import { isRecord } from "./tools.ts"

/** An error that a policy, a session or its recovery fails with. */
export interface Tagged {
  readonly _tag: string
  readonly message: string
}

export const taggedOf = (error: unknown): Tagged => {
  if (isRecord(error) && typeof error._tag === "string" && typeof error.message === "string") {
    return { ...error, _tag: error._tag, message: error.message }
  }
  return { _tag: "unknown", message: String(error) }
}

/** The errors that a call failed with, by the error of the model that carries them. */
const causes = new WeakMap<AiError.AiError, unknown>()

export const causeOf = (error: unknown): unknown => AiError.isAiError(error) ? causes.get(error) : undefined

/** The fields of an error as metadata holds them: all that is JSON, lists and objects too. */
const plain = (error: object): { readonly [key: string]: Schema.Json } => {
  const fields: { [key: string]: Schema.Json } = {}
  for (const [key, value] of Object.entries(error)) {
    if (value === undefined || key === "cause" || key === "stack") continue
    const json = Json.normalise(value)
    if (Result.isSuccess(json)) fields[key] = json.success
  }
  return fields
}

/**
 * The failure as the error channel of a model has it. The error itself is its cause, and all that the error says is in its
 * metadata; beside it stands what the provider said, where the provider refused the request.
 */
export const refuse = (error: unknown, original?: AiError.AiError): AiError.AiError => {
  const { reason } = original ?? {}
  const known = reason !== undefined && "metadata" in reason ? reason.metadata : {}
  const http = reason !== undefined && "http" in reason ? reason.http : undefined
  const tagged = taggedOf(error)
  const invalid = new AiError.InvalidRequestError({
    description: tagged.message,
    metadata: {
      ...known,
      "effect-compaction": {
        ...plain(tagged),
        ...(original === undefined ? undefined : { refused: original.message })
      }
    },
    ...(http === undefined ? undefined : { http })
  })
  const made = AiError.make({
    module: "CompactedModel",
    method: original?.method ?? "request",
    // No field of a reason holds what it came from, so it is set as JavaScript has it.
    reason: Object.assign(invalid, { cause: original ?? error })
  })
  causes.set(made, error)
  return made
}
