import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import * as Json from "../text/json.ts"
import * as Send from "./send.ts"

type Path = ReadonlyArray<string | number>

/** An object with some of its fields normalised: the same object where nothing changes. */
const withFields = <A extends object>(
  self: A,
  fields: ReadonlyArray<keyof A & string>,
  path: Path
): Result.Result<A, Json.Fault> => {
  let normal = self
  for (const field of fields) {
    if (!(field in self)) continue
    const value = Json.normalise(self[field], [...path, field])
    if (Result.isFailure(value)) return Result.fail(value.failure)
    if (!Object.is(value.success, self[field])) normal = { ...normal, [field]: value.success }
  }
  return Result.succeed(normal)
}

/** The list with each element normalised: the same list where nothing changes. */
const each = <A>(
  list: ReadonlyArray<A>,
  of: (element: A, at: number) => Result.Result<A, Json.Fault>
): Result.Result<ReadonlyArray<A>, Json.Fault> => {
  let normal: Array<A> | undefined
  for (let at = 0; at < list.length; at++) {
    const element = of(list[at]!, at)
    if (Result.isFailure(element)) return Result.fail(element.failure)
    if (element.success !== list[at]) (normal ??= list.slice())[at] = element.success
  }
  return Result.succeed(normal ?? list)
}

const ofPart = (part: Prompt.Part, path: Path): Result.Result<Prompt.Part, Json.Fault> => {
  if (part.type === "tool-call") return withFields(part, ["params", "options"], path)
  if (part.type !== "tool-result") return withFields(part, ["options"], path)
  return Result.flatMap(withFields(part, ["result", "options"], path), (normal) => {
    if (normal.modelOutput === undefined) return Result.succeed(normal)
    const output = each(normal.modelOutput, (block, at) => withFields(block, ["options"], [...path, "modelOutput", at]))
    return Result.map(output, (modelOutput) => modelOutput === normal.modelOutput ? normal : { ...normal, modelOutput })
  })
}

/**
 * A message whose parameters, results and options are the JSON that they are sent and saved as: the same object where
 * nothing changes, and the first value that is no JSON, with its place, where there is one. `path` is where the message
 * stands.
 */
export const normalMessage = (message: Prompt.Message, path: Path = []): Result.Result<Prompt.Message, Json.Fault> =>
  Result.flatMap(withFields(message, ["options"], path), (normal) => {
    if (normal.role === "system") return Result.succeed(normal)
    const parts: ReadonlyArray<Prompt.Part> = normal.content
    const content = each(parts, (part, at) => ofPart(part, [...path, "content", at]))
    return Result.map(content, (content) => content === parts ? normal : Send.withContent(normal, content))
  })
