import type * as Effect from "effect/Effect"

/** What came of one case: no failure when it passed; `skipped` says why it was not run. */
export interface Outcome {
  readonly name: string
  readonly failures: ReadonlyArray<Failure>
  readonly skipped?: string
}

export interface Failure {
  readonly where: string
  readonly expected: unknown
  readonly actual: unknown
}

/** One kind of case file, known by its shape. */
export interface Kind {
  readonly name: string
  readonly recognises: (file: unknown) => boolean
  readonly run: (file: unknown) => Effect.Effect<ReadonlyArray<Outcome>>
}

export const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The fields of `expected` that differ in `actual`, compared as JSON. */
export const differences = (
  where: string,
  expected: { readonly [key: string]: unknown },
  actual: { readonly [key: string]: unknown }
): ReadonlyArray<Failure> =>
  Object.keys(expected)
    .filter((key) => JSON.stringify(expected[key]) !== JSON.stringify(actual[key]))
    .map((key) => ({ where: `${where}.${key}`, expected: expected[key], actual: actual[key] }))
