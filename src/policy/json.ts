import * as Duration from "effect/Duration"
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import type * as Kind from "../Kind.ts"
import * as Settings from "../Settings.ts"
import * as Problems from "./problems.ts"
import { descriptions } from "./text.ts"

const writtenSummary = ({ timeout, ...rest }: Settings.Summary): typeof Settings.Summary.Encoded =>
  timeout === undefined ? rest : { ...rest, timeout: Duration.toMillis(timeout) }

/** Settings as they are written, which is what a manager takes: durations are the values that are decoded. */
export const written = ({ cacheLife, summary, ...rest }: Settings.Settings): Settings.Input => {
  const settings = cacheLife === undefined ? rest : { ...rest, cacheLife: Duration.toMillis(cacheLife) }
  if (summary === undefined) return settings
  return { ...settings, summary: writtenSummary(summary) }
}

/** The presets as files would write them. */
export const writtenPresets = (
  presets: { readonly [name: string]: Settings.Settings & { readonly ladder: unknown } }
): { readonly [name: string]: { readonly [key: string]: unknown } } =>
  Object.fromEntries(
    Object.entries(presets).map(([name, { ladder, ...settings }]) => [name, { ...written(settings), ladder }])
  )

/** What may stand where in a policy that is written in these kinds. */
export const names = (
  kinds: ReadonlyArray<Kind.Any>,
  keys: ReadonlyArray<string>,
  input: unknown
): Problems.Names => {
  const byTag = new Map(kinds.map((kind) => [kind.tag, kind]))
  return {
    tags: {
      ladder: kinds.filter(({ role }) => role === "rung").map(({ tag }) => tag),
      pass: kinds.filter(({ role }) => role !== "rung").map(({ tag }) => tag)
    },
    keysAt: (path) => {
      const inRoute = path[0] === "byRoute" && path.length > 1
      const rest = inRoute ? path.slice(2) : path
      if (rest.length === 0) return [...keys.filter((key) => !inRoute || key !== "byRoute"), "$schema", "extends"]
      if (rest.length === 1 && rest[0] === "summary") return Object.keys(Settings.Summary.fields)
      const tag = rest.length === 2 ? Problems.valueAt(input, [...path, "_tag"]) : undefined
      return Object.keys(byTag.get(String(tag))?.schema.fields ?? {}).filter((key) => key !== "_tag")
    }
  }
}

/** Where editors find the JSON Schema of this library's own policies. */
const id = "https://unpkg.com/effect-compaction/docs/policy.schema.json"

const isKey = (key: string): key is keyof typeof descriptions => Object.hasOwn(descriptions, key)

type Properties = { readonly [key: string]: JsonSchema.JsonSchema }

/** What editors show beside a key: what it means, and its default. What has none may be taken out with null. */
const annotated = (properties: Properties, defaults: { readonly [key: string]: unknown }): Properties =>
  Object.fromEntries(
    Object.entries(properties).map(([key, value]) => {
      if (!isKey(key)) return [key, value]
      const description = descriptions[key]
      return [
        key,
        Object.hasOwn(defaults, key)
          ? { description, ...value, default: defaults[key] }
          : { description, anyOf: [value, { type: "null" }] }
      ]
    })
  )

const own: Properties = {
  $schema: { description: "Where an editor finds this JSON Schema", type: "string" },
  extends: {
    description:
      "A preset by name, or a file, from where this one lies: what is written here comes before what is there",
    type: "string"
  }
}

/** A summary whose directive may be the text, or the file that holds it. */
const withDirective = (summary: JsonSchema.JsonSchema): JsonSchema.JsonSchema => {
  // The properties of a struct are schemas.
  const properties = (summary["properties"] ?? {}) as Properties
  const { directive } = properties
  if (directive === undefined) return summary
  const file = {
    type: "object",
    additionalProperties: false,
    required: ["file"],
    properties: { file: { type: "string" } }
  }
  return { ...summary, properties: { ...properties, directive: { anyOf: [directive, file] } } }
}

/**
 * The JSON Schema of a policy as it is written, from the Schema of one without routes. `id` is for the kinds of this
 * library alone: with others it is another schema.
 */
export const schemaOf = (
  one: Schema.Constraint,
  defaults: { readonly [key: string]: unknown },
  isBuiltIn: boolean
): JsonSchema.JsonSchema => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(one, { onExcessProperty: "error" })
  // The properties of a struct are schemas.
  const { summary, ...keys } = schema["properties"] as Properties
  const properties = {
    ...own,
    ...annotated({ ...keys, ...(summary === undefined ? {} : { summary: withDirective(summary) }) }, defaults)
  }
  const inRoute = Object.fromEntries(Object.keys(properties).map((key) => [key, { $ref: `#/properties/${key}` }]))
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...(isBuiltIn ? { $id: id } : {}),
    title: "A policy of effect-compaction",
    ...schema,
    properties: {
      ...properties,
      byRoute: {
        description: "Policies by the pattern of the provider and the model, over this one; default is for all others",
        type: "object",
        additionalProperties: { type: "object", additionalProperties: false, properties: inRoute }
      }
    },
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
}
