import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** An option with its default. */
export const key = <S extends Schema.Constraint>(schema: S, value: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema)

/** A whole number from 0; the example is what a person is told to write. */
export const count = (example: number) =>
  Schema.Int.check(
    Schema.isGreaterThanOrEqualTo(0, { message: `write a whole number, 0 or more, for example ${example}` })
  )

/** A duration above 0; the example is what a person is told to write. */
export const duration = (example: string) =>
  Schema.Union([Schema.DurationFromString, Schema.DurationFromMillis]).check(
    Schema.makeFilter((each) =>
      Duration.toMillis(each) > 0 ? undefined : `write a duration above 0, for example "${example}"`
    )
  )

const ratio = (message: string) => Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }, { message }))

/** A share of the budget. */
export const budgetShare = (example: number) =>
  ratio(`write a share of the budget as a ratio from 0 to 1, for example ${example}`)

/** How much of `protectedRecent` still holds. */
export const relax = ratio("write how much of protectedRecent still holds, a ratio from 0 to 1, for example 0.6").pipe(
  Schema.annotateKey({
    description: "How much of protectedRecent still holds: 1 all of it, 0 none",
    messageMissingKey: "is missing: write how much of protectedRecent still holds, a ratio from 0 to 1, for example 1"
  })
)
