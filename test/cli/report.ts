import * as Schema from "effect/Schema"

const Count = Schema.Natural

/** What `replay --json` prints for one file; nothing more, nothing less. */
const Report = Schema.Struct({
  file: Schema.String,
  format: Schema.String,
  messages: Count,
  requests: Count,
  window: Schema.NullOr(Count),
  budget: Schema.Int,
  policy: Schema.String,
  rows: Schema.Array(Schema.Struct({
    request: Count,
    count: Count,
    kind: Schema.Literals(["usage", "estimated", "none"]),
    viewTokens: Count,
    viewMessages: Count,
    boundary: Schema.NullOr(Schema.Struct({
      level: Count,
      freed: Schema.Int,
      before: Count,
      after: Count,
      removed: Count,
      truncated: Count,
      stubbed: Count,
      absorbed: Count
    })),
    skipped: Schema.NullOr(Schema.Struct({ freed: Schema.Int, required: Count, level: Count, streak: Count })),
    infeasible: Schema.NullOr(
      Schema.Struct({ over: Count, holders: Schema.Array(Schema.Struct({ seq: Count, tokens: Count })) })
    ),
    prefixKept: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    prefixChanged: Schema.NullOr(Schema.Literals(["boundary", "repair", "system"])),
    violations: Count,
    estimate: Count,
    billed: Schema.NullOr(Count),
    error: Schema.optionalKey(Schema.Struct({ tag: Schema.String, message: Schema.String }))
  })),
  totals: Schema.Struct({
    boundaries: Count,
    skips: Count,
    infeasible: Count,
    freedTokens: Schema.Int,
    maxViewTokens: Count,
    overBudgetRequests: Count,
    violations: Count,
    truncated: Count,
    removed: Count,
    stubbed: Count,
    absorbed: Count,
    meters: Schema.Record(
      Schema.Literals(["estimate", "actual", "hybrid", "calibrated"]),
      Schema.NullOr(Schema.Struct({ requests: Count, mean: Schema.Finite, worst: Schema.Finite }))
    )
  }),
  unheld: Schema.optionalKey(Schema.Record(
    Schema.Literals(["openai-chat", "openai-responses", "anthropic-messages", "prompt"]),
    Schema.Array(
      Schema.Struct({ kind: Schema.String, what: Schema.String, count: Count, messages: Schema.Array(Count) })
    )
  ))
})

export const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Report), { onExcessProperty: "error" })
