/** Brings the usage records of the formats to four disjoint buckets. */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Session from "../Session.ts"
import * as Json from "./json.ts"

/**
 * Where a format keeps its counts. A name with a dot is that of a member of a member; of several names the first that
 * is there counts.
 */
export interface Convention {
  readonly input: ReadonlyArray<string>
  /** Which of the cached counts the input holds. */
  readonly inside: ReadonlyArray<"cacheRead" | "cacheWrite">
  readonly cacheRead?: ReadonlyArray<string>
  readonly cacheWrite?: ReadonlyArray<string>
  readonly output: ReadonlyArray<string>
  /** Counts that the output leaves out though they are billed as output. */
  readonly besideOutput?: ReadonlyArray<string>
  /** Counts that the input leaves out though they are billed as input. */
  readonly besideInput?: ReadonlyArray<string>
}

/** OpenAI's chat completions; DeepSeek's API and LiteLLM give the cached part under names of their own. */
export const chat: Convention = {
  input: ["prompt_tokens"],
  inside: ["cacheRead"],
  cacheRead: ["prompt_cache_hit_tokens", "prompt_tokens_details.cached_tokens", "cache_read_tokens"],
  output: ["completion_tokens"]
}

/** The usage of one response; empty where all counts are zero, since then nothing was answered. */
export const read = (value: Schema.JsonObject, place: Json.Place, convention: Convention): Json.Read<Session.Usage> =>
  Result.gen(function*() {
    const first = (names: ReadonlyArray<string> = []): Json.Read<number | undefined> =>
      Result.gen(function*() {
        for (const name of names) {
          const count = yield* countAt(value, name, place)
          if (count !== undefined) return count
        }
        return undefined
      })
    const sum = (names: ReadonlyArray<string> = []): Json.Read<number> =>
      Result.gen(function*() {
        let total = 0
        for (const name of names) total += (yield* countAt(value, name, place)) ?? 0
        return total
      })
    const input = yield* first(convention.input)
    const cacheRead = yield* first(convention.cacheRead)
    const cacheWrite = yield* first(convention.cacheWrite)
    const output = yield* first(convention.output)
    const moreInput = yield* sum(convention.besideInput)
    const moreOutput = yield* sum(convention.besideOutput)
    if ([input, cacheRead, cacheWrite, output].every((count) => (count ?? 0) === 0) && moreInput + moreOutput === 0) {
      return {}
    }
    const cached = { cacheRead: cacheRead ?? 0, cacheWrite: cacheWrite ?? 0 }
    const inside = convention.inside.reduce((sum, bucket) => sum + cached[bucket], 0)
    return {
      ...(input === undefined ? undefined : { fresh: Math.max(0, input - inside) + moreInput }),
      ...(cacheRead === undefined ? undefined : { cacheRead }),
      ...(cacheWrite === undefined ? undefined : { cacheWrite }),
      ...(output === undefined ? undefined : { output: output + moreOutput })
    }
  })

const countAt = (value: Schema.JsonObject, name: string, place: Json.Place): Json.Read<number | undefined> => {
  const dot = name.indexOf(".")
  if (dot < 0) return Json.optionalCountAt(value, name, place)
  const inner = value[name.slice(0, dot)]
  return Json.isObject(inner)
    ? Json.optionalCountAt(inner, name.slice(dot + 1), Json.at(place, name.slice(0, dot)))
    : Result.succeed(undefined)
}
