import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"

/**
 * Fails the decoding of a policy, with all that is wrong with it: the path of each bad key, what to write there instead,
 * what was found, and of a policy that was read from a file the file.
 *
 * @category errors
 * @since 0.1.0
 */
export class PolicyError extends Schema.TaggedError<PolicyError>("effect-compaction/PolicyError")("PolicyError", {
  problems: Schema.Array(Schema.Struct({
    file: Schema.optionalKey(Schema.String),
    path: Schema.String,
    expected: Schema.String,
    found: Schema.optionalKey(Schema.String)
  }))
}) {
  /** The problems, each in words. */
  get lines(): ReadonlyArray<string> {
    return this.problems.map(({ expected, file, found, path }) => {
      const where = [file ?? "", path].filter((each) => each !== "").map((each) => `${each}: `).join("")
      return `${where}${expected}${found === undefined ? "" : ` (found ${found})`}`
    })
  }
  override get message() {
    return this.lines.join("\n")
  }
}

type Path = ReadonlyArray<PropertyKey>

/** One thing that is wrong with a policy: where, what to write there instead, and what was found. */
export interface Problem {
  readonly path: string
  readonly expected: string
  readonly found?: string
}

/** The same, with the path as it is walked. */
interface Located {
  readonly path: Path
  readonly expected: string
}

const isRecord = (value: unknown): value is { readonly [key: PropertyKey]: unknown } =>
  typeof value === "object" && value !== null

export const valueAt = (input: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) => isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined,
    input
  )

/** `ladder[3].fraction`; a key that is no plain name stands in quotes. */
const pathOf = (path: Path): string =>
  path.map((key, at) => {
    if (typeof key === "number") return `[${key}]`
    const name = String(key)
    if (!/^[A-Za-z_$][\w$]*$/.test(name)) return `[${JSON.stringify(name)}]`
    return at === 0 ? name : `.${name}`
  }).join("")

const shownLength = 60

const foundOf = (value: unknown): string | undefined => {
  // A number may be none, and what JSON has no words for is shown by its type.
  if (value === undefined) return undefined
  const text = typeof value === "number" ? String(value) : JSON.stringify(value) ?? typeof value
  return text.length > shownLength ? `${text.slice(0, shownLength)}…` : text
}

/** What a key of that type is written like. */
const wordsOf = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "String":
      return "a text in quotes"
    case "Number":
      return "a number"
    case "Boolean":
      return "true or false"
    case "Null":
      return "null"
    case "Literal":
      return typeof ast.literal === "bigint" ? String(ast.literal) : JSON.stringify(ast.literal)
    case "Arrays":
      return "a list in brackets, [ … ]"
    case "Objects":
      return "an object in braces, { … }"
    case "Union":
      return oneOf(ast.types.map(wordsOf))
    default:
      return ast._tag
  }
}

const oneOf = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`

/** How many letters two words differ in. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}

/** How many letters a name may differ in and still be meant. */
const nearness = 3

const meant = (name: string, names: ReadonlyArray<string>): string | undefined => {
  // Other systems write these keys with underscores or hyphens.
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "")
  const [nearest] = names
    .map((each) => ({ each, letters: distance(plain(name), plain(each)) }))
    .filter(({ each, letters }) => letters <= Math.min(nearness, Math.ceil(each.length / 3)))
    .sort((a, b) => a.letters - b.letters)
  return nearest?.each
}

/** What to write in place of a name that does not exist. */
const insteadOf = (name: unknown, names: ReadonlyArray<string>): string => {
  const nearest = typeof name === "string" ? meant(name, names) : undefined
  return nearest === undefined ? oneOf(names.map((each) => JSON.stringify(each))) : JSON.stringify(nearest)
}

/**
 * What may stand where: the keys of the object at a path, and the tags of a list by the key of the list. `insteadOf` is what to do with a
 * key that does not exist there, where that is known better than from its spelling.
 */
export interface Names {
  readonly keysAt: (path: Path) => ReadonlyArray<string>
  readonly tags: { readonly [list: string]: ReadonlyArray<string> }
  readonly insteadOf?: (path: Path, key: string) => string | undefined
}

const locate = (issue: SchemaIssue.Issue, path: Path, input: unknown, names: Names): ReadonlyArray<Located> => {
  switch (issue._tag) {
    case "Pointer":
      return locate(issue.issue, [...path, ...issue.path], input, names)
    case "Encoding":
      return locate(issue.issue, path, input, names)
    case "Composite":
      return issue.issues.flatMap((each) => locate(each, path, input, names))
    case "Filter": {
      const message = SchemaIssue.defaultCheckHook(issue)
      if (message !== undefined) return [{ path, expected: message }]
      // A check that names the place and the advice itself, in place of a message for the whole value.
      if (issue.issue._tag !== "InvalidValue" || issue.issue.annotations !== undefined) {
        return locate(issue.issue, path, input, names)
      }
      return [{ path, expected: `write ${issue.filter.annotations?.expected ?? "another value"}` }]
    }
    case "AnyOf": {
      if (issue.issues.length > 0) return issue.issues.flatMap((each) => locate(each, path, input, names))
      const list = listAt(path, input, names)
      return [
        list === undefined
          ? { path, expected: `write ${wordsOf(issue.ast)}` }
          : kindTag(list, path, input, names)
      ]
    }
    case "InvalidType":
      return [{ path, expected: `write ${wordsOf(issue.ast)}` }]
    case "MissingKey":
      return [{ path, expected: issue.annotations?.messageMissingKey ?? "is missing: write it" }]
    case "UnexpectedKey":
      return [{ path, expected: unexpected(path, names) }]
    default:
      return [{ path, expected: SchemaIssue.defaultLeafHook(issue).replace(/^Expected /, "write ") }]
  }
}

/** The list of kinds that a path names an element of. */
const listAt = (path: Path, input: unknown, { tags }: Names): string | undefined => {
  const list = path.at(-2)
  return typeof list === "string" && typeof path.at(-1) === "number" && Object.hasOwn(tags, list)
      && isRecord(valueAt(input, path))
    ? list
    : undefined
}

const kindTag = (list: string, path: Path, input: unknown, { tags }: Names): Located => {
  const at = [...path, "_tag"]
  const tag = valueAt(input, at)
  const missing = tag === undefined ? "is missing: " : ""
  const what = list === "ladder" ? "rung" : "stage"
  return { path: at, expected: `${missing}write the kind of the ${what}, ${insteadOf(tag, tags[list] ?? [])}` }
}

const unexpected = (path: Path, { insteadOf: known, keysAt }: Names): string => {
  const keys = keysAt(path.slice(0, -1))
  if (keys.length === 0) return "there is no such key: take it out"
  const name = String(path.at(-1))
  const advice = known?.(path.slice(0, -1), name)
  if (advice !== undefined) return `there is no such key: ${advice}`
  const nearest = meant(name, keys)
  return nearest === undefined
    ? `there is no such key: take it out, or write ${insteadOf(name, keys)}`
    : `there is no such key: write ${JSON.stringify(nearest)}`
}

/** One problem in words, as those of an error are. */
export const lineOf = (
  { expected, found, path }: { readonly path: Path; readonly expected: string; readonly found: unknown }
): string => {
  const shown = foundOf(found)
  return `${pathOf(path)}: ${expected}${shown === undefined ? "" : ` (found ${shown})`}`
}

/** Fails with one problem. */
export const one = (
  problem: { readonly path: Path; readonly expected: string; readonly found: unknown }
): Effect.Effect<never, PolicyError> => {
  const found = foundOf(problem.found)
  return Effect.fail(
    new PolicyError({
      problems: [{
        path: pathOf(problem.path),
        expected: problem.expected,
        ...(found === undefined ? {} : { found })
      }]
    })
  )
}

/** What is wrong, under the path at which it stands. */
export const under =
  (path: Path) => <A, R>(effect: Effect.Effect<A, PolicyError, R>): Effect.Effect<A, PolicyError, R> =>
    Effect.mapError(effect, ({ problems }) =>
      new PolicyError({
        problems: problems.map((problem) => ({ ...problem, path: joined(pathOf(path), problem.path) }))
      }))

const joined = (path: string, rest: string): string =>
  rest === "" || rest.startsWith("[") ? `${path}${rest}` : `${path}.${rest}`

/** A value that fails one check may fail others too, and the first says enough: what is no number is in no range. */
const firstOfEach = (problems: ReadonlyArray<Located>): ReadonlyArray<Located> => {
  const byPath = new Map<string, Located>()
  for (const problem of problems) if (!byPath.has(pathOf(problem.path))) byPath.set(pathOf(problem.path), problem)
  return Array.from(byPath.values())
}

/** The first problem of every bad key, in the order of the Schema, with the first segment of its path. */
const fromIssue = (
  issue: SchemaIssue.Issue,
  input: unknown,
  names: Names
): ReadonlyArray<Problem & { readonly key: string }> =>
  firstOfEach(locate(issue, [], input, names)).map(({ expected, path }) => {
    const found = foundOf(path.length === 0 ? input : valueAt(input, path))
    return {
      key: path.length === 0 ? "" : String(path[0]),
      path: pathOf(path),
      expected: path.length === 0 ? `${expected}, the policy as a whole` : expected,
      ...(found === undefined ? {} : { found })
    }
  })

const parseOptions = { errors: "all", onExcessProperty: "error" } as const

/** All problems of a value that does not decode. */
const problemsOf = (
  schema: Schema.Codec<unknown, unknown>,
  names: Names,
  issue: SchemaIssue.Issue,
  input: unknown
): ReadonlyArray<Problem> => {
  const problems = fromIssue(issue, input, names)
  const bad = new Set(problems.map(({ key }) => key))
  if (typeof input !== "object" || input === null || bad.has("")) return problems
  // The checks over several keys ran only if each key is right by itself; they are made again without the bad ones.
  const rest = Object.fromEntries(Object.entries(input).filter(([key]) => !bad.has(key)))
  const again = Schema.decodeResult(schema)(rest, parseOptions)
  if (again._tag === "Success") return problems
  const more = fromIssue(again.failure.issue, rest, names).filter(({ expected, key }) =>
    !bad.has(key) && !Array.from(bad).some((each) => new RegExp(`\\b${each}\\b`).test(expected))
  )
  return [...problems, ...more]
}

/** Decodes a policy, or a part of one. Fails with every problem at once; a key that does not exist is one. */
export const decode = <A, I>(
  schema: Schema.Codec<A, I>,
  input: unknown,
  names: Names
): Effect.Effect<A, PolicyError> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(input, parseOptions),
    ({ issue }) => new PolicyError({ problems: problemsOf(schema, names, issue, input) })
  )
