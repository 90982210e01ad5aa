/** Writes what is generated into docs: `npm run schema`. A test says when it is out of date. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { policySchema } from "./policySchema.ts"

Effect.flatMap(FileSystem.FileSystem, (files) => files.writeFileString("docs/policy.schema.json", policySchema())).pipe(
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
