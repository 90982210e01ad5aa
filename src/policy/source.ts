import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Settings from "../Settings.ts"
import { errorAt } from "../text/syntax.ts"
import * as Problems from "./problems.ts"

/** A policy as it was written, with nothing decoded. */
export type Written = { readonly [key: string]: unknown }

type At = ReadonlyArray<PropertyKey>

/** Where a policy stands finds what it names: the policy that it extends, and texts in files. */
interface Place<R> {
  readonly extended: (name: string, at: At) => Effect.Effect<Written, Problems.PolicyError, R>
  readonly text: (file: string, at: At) => Effect.Effect<string, Problems.PolicyError, R>
}

const isWritten = (value: unknown): value is Written =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Keys that have no default: `null` takes out what an extended policy says there. */
const isOptional = (key: string): boolean =>
  key === "pass" || (Object.hasOwn(Settings.Settings.fields, key) && !Object.hasOwn(Settings.defaults, key))

/** A policy with what another one says over it; of its summary, key by key. */
const merge = (base: Written, over: Written): Written => {
  const merged: { [key: string]: unknown } = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const before = merged[key]
    if (value === null && isOptional(key)) delete merged[key]
    else merged[key] = key === "summary" && isWritten(before) && isWritten(value) ? { ...before, ...value } : value
  }
  return merged
}

/** A policy in full with settings over it, in its routes too. */
export const over = (input: unknown, settings: Written): unknown => {
  if (!isWritten(input)) return input
  const { byRoute, ...policy } = input
  const merged = merge(policy, settings)
  if (byRoute === undefined) return merged
  const routes = isWritten(byRoute)
    ? Object.fromEntries(Object.entries(byRoute).map(([pattern, each]) => [pattern, over(each, settings)]))
    : byRoute
  return { ...merged, byRoute: routes }
}

/** The summary with the text of its directive in place of the file that holds it. */
const withDirective = <R>(own: Written, at: At, place: Place<R>): Effect.Effect<Written, Problems.PolicyError, R> => {
  const { summary } = own
  if (!isWritten(summary) || !isWritten(summary["directive"])) return Effect.succeed(own)
  const { file } = summary["directive"]
  if (typeof file !== "string") return Effect.succeed(own)
  return Effect.map(place.text(file, [...at, "summary", "directive"]), (directive) => ({
    ...own,
    summary: { ...summary, directive }
  }))
}

/**
 * A policy in full: with what it extends under it, and in each route with what stands outside of the routes under it. What
 * is no object is left to the Schema, which says so.
 */
const inFull = Effect.fnUntraced(function*<R>(
  input: unknown,
  inherited: Written,
  at: At,
  place: Place<R>
): Effect.fn.Return<unknown, Problems.PolicyError, R> {
  if (!isWritten(input)) return input
  const { $schema, extends: name, byRoute, ...rest } = input
  for (const [key, value] of [["$schema", $schema], ["extends", name]] as const) {
    if (value === undefined || typeof value === "string") continue
    return yield* Problems.one({ path: [...at, key], expected: "write a text in quotes", found: value })
  }
  const base = typeof name === "string" ? yield* place.extended(name, [...at, "extends"]) : inherited
  const merged = merge(base, yield* withDirective(rest, at, place))
  if (byRoute === undefined) return merged
  if (!isWritten(byRoute) || at.length > 0) return { ...merged, byRoute }
  const { byRoute: known, ...whole } = merged
  const routes: { [pattern: string]: unknown } = isWritten(known) ? { ...known } : {}
  for (const [pattern, each] of Object.entries(byRoute)) {
    routes[pattern] = yield* inFull(each, whole, ["byRoute", pattern], place)
  }
  const { default: standard = whole, ...others } = routes
  return isWritten(standard) ? { ...standard, byRoute: others } : { ...whole, byRoute: routes }
})

const presetNamed = (presets: { readonly [name: string]: Written }, name: string): Written | undefined =>
  Object.hasOwn(presets, name) ? presets[name] : undefined

const namesOf = (presets: object): string => Object.keys(presets).join(", ")

/** The policy in full, where there are no files: it may extend presets alone. */
export const expand = (
  input: unknown,
  presets: { readonly [name: string]: Written }
): Effect.Effect<unknown, Problems.PolicyError> =>
  inFull(input, {}, [], {
    extended: (name, path) => {
      const preset = presetNamed(presets, name)
      return preset !== undefined ? Effect.succeed(preset) : Problems.one({
        path,
        expected: `write one of ${namesOf(presets)}; a file is read by Policy.load`,
        found: name
      })
    },
    text: (file, path) =>
      Problems.one({ path, expected: "write the text itself; a file is read by Policy.load", found: { file } })
  })

/** What is wrong, in the file where it is. */
export const inFile = (file: string) => <A, R>(effect: Effect.Effect<A, Problems.PolicyError, R>) =>
  Effect.mapError(
    effect,
    ({ problems }) =>
      new Problems.PolicyError({ problems: problems.map((problem) => ({ ...problem, file: problem.file ?? file })) })
  )

const parse = (file: string, text: string): Effect.Effect<unknown, Problems.PolicyError> =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: () =>
      new Problems.PolicyError({
        problems: [{
          file: `${file}:${text.slice(0, errorAt(text)).split("\n").length}`,
          path: "",
          expected: "expected the JSON of a policy"
        }]
      })
  })

/**
 * Reads the policy of a file in full. What it extends, a preset or a file, is found from where the file lies. `check` says
 * what is wrong with an extended file by itself.
 */
export const read = Effect.fnUntraced(function*(
  file: string,
  presets: { readonly [name: string]: Written },
  check: (input: unknown) => Effect.Effect<unknown, Problems.PolicyError>
): Effect.fn.Return<unknown, Problems.PolicyError, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  const textOf = (name: string, from: string, at: At, advice: string) =>
    files.readFileString(path.resolve(path.dirname(from), name)).pipe(
      Effect.catch((error) =>
        Problems.one({
          path: at,
          expected: `${advice}: ${error.reason._tag === "NotFound" ? "there is no such file" : "it cannot be read"}`,
          // The file that is read itself is named before the advice.
          found: at.length === 0 ? undefined : name
        })
      )
    )

  const of = Effect.fnUntraced(function*(
    text: string,
    shown: string,
    chain: ReadonlyArray<string>
  ): Effect.fn.Return<unknown, Problems.PolicyError> {
    const here = chain.at(-1)!
    return yield* inFull(yield* parse(shown, text), {}, [], {
      extended: Effect.fnUntraced(function*(name, at): Effect.fn.Return<Written, Problems.PolicyError> {
        const preset = presetNamed(presets, name)
        if (preset !== undefined) return preset
        const target = path.resolve(path.dirname(here), name)
        const isCircle = chain.includes(target)
        if (isCircle) {
          const names = [...chain.slice(chain.indexOf(target)), target].map((each) => path.basename(each))
          return yield* Problems.one({
            path: at,
            expected: `extend another policy: this is a circle, ${names.join(" extends ")}`,
            found: name
          })
        }
        const other = yield* textOf(name, here, at, `write one of ${namesOf(presets)}, or a JSON file`)
        const full = yield* of(other, name, [...chain, target])
        yield* inFile(name)(check(full))
        // What is no object was refused by the check.
        return full as Written
      }),
      text: (name, at) => textOf(name, here, at, "write the text itself, or { \"file\": … }")
    }).pipe(inFile(shown))
  })

  const text = yield* textOf(file, path.resolve("x"), [], `write one of ${namesOf(presets)}, or a JSON file`).pipe(
    inFile(file)
  )
  return yield* of(text, file, [path.resolve(file)])
})
