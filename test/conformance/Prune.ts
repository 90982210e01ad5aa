import * as ToolResult from "effect-compaction/ToolResult"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { differences, isObject, type Kind, type Outcome } from "./Case.ts"

interface Config {
  readonly threshold?: unknown
  readonly head?: unknown
  readonly tail?: unknown
}

interface Case {
  readonly name: string
  readonly config: Config
  readonly content: ReadonlyArray<ToolResult.Block>
  readonly size: number
  readonly pruned: unknown
  readonly sizeAfter: number | null
}

interface File {
  readonly cases: ReadonlyArray<Case>
  readonly configs: ReadonlyArray<{ readonly name: string; readonly config: Config; readonly valid: boolean }>
}

const keys: { readonly [key: string]: string } = { threshold: "thresholdChars", head: "headChars", tail: "tailChars" }

const decode = (config: Config) => {
  const given: unknown = Object.fromEntries(Object.entries(config).map(([key, value]) => [keys[key] ?? key, value]))
  return Effect.result(Schema.decodeUnknownEffect(ToolResult.PruneOptions, { onExcessProperty: "error" })(given))
}

const pruneCase = Effect.fnUntraced(function*(self: Case): Effect.fn.Return<Outcome> {
  const options = yield* decode(self.config)
  if (options._tag === "Failure") {
    return { name: self.name, failures: [{ where: "config", expected: "valid", actual: options.failure.message }] }
  }
  const pruned = ToolResult.prune(self.content, options.success)
  const expected = { pruned: self.pruned, size: self.size, sizeAfter: self.sizeAfter, again: null }
  return {
    name: self.name,
    failures: differences("prune", expected, {
      pruned: pruned ?? null,
      size: ToolResult.sizeOf(self.content),
      sizeAfter: pruned === undefined ? null : ToolResult.sizeOf(pruned),
      again: pruned === undefined ? null : ToolResult.prune(pruned, options.success) ?? null
    })
  }
})

const configCase = (self: File["configs"][number]): Effect.Effect<Outcome> =>
  Effect.map(decode(self.config), (result) => ({
    name: self.name,
    failures: differences("config", { valid: self.valid }, { valid: result._tag === "Success" })
  }))

/** The pruning of one tool result, and the configurations that are refused. */
export const kind: Kind = {
  name: "prune",
  recognises: (file) => isObject(file) && "marker" in file && "configs" in file,
  run: (file) => {
    // The shape was recognised by its keys; a file that lies about it fails its cases.
    const { cases, configs } = file as File
    return Effect.map(
      Effect.all([Effect.forEach(cases, pruneCase), Effect.forEach(configs, configCase)]),
      (outcomes) => outcomes.flat()
    )
  }
}
