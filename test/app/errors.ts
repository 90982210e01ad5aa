/** How the adapters of providers make an `AiError` of a response that is no success. */
import * as AiError from "effect/ai/AiError"

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null

const textIn = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** An error as it is told from what the provider answered, by the provider's name. */
export const fromResponse = (provider: string, status: number, body: unknown): AiError.AiError => {
  const error = isRecord(body) && isRecord(body.error) ? body.error : body
  const message = isRecord(error) ? textIn(error.message) ?? textIn(error.error) : textIn(error)
  const code = isRecord(error) ? textIn(error.code) : undefined
  const type = isRecord(error) ? textIn(error.type) : undefined
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const description = AiError.buildErrorDescription({
    status,
    message,
    method: "POST",
    url: "https://api.example/v1",
    errorCode: code ?? null,
    errorType: type ?? null,
    body: text
  })
  const metadata = {
    [provider]: {
      ...(code === undefined ? undefined : { errorCode: code }),
      ...(type === undefined ? undefined : { errorType: type })
    }
  }
  // An error in the midst of a stream has no status of its own: nothing says what kind it is.
  const reason = status === 200
    ? new AiError.UnknownError({ description, metadata, http: { body: text } })
    : AiError.reasonFromHttpStatus({ status, body, http: { body: text }, metadata, description })
  return AiError.make({ module: provider, method: "generateText", reason })
}
