import * as Policy from "effect-compaction/Policy"

/** docs/policy.schema.json as it has to be. */
export const policySchema = (): string => `${JSON.stringify(Policy.jsonSchema(), null, 2)}\n`
