/** What runners and clients share: the database, the cluster, and who answers. */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SessionStore from "effect-compaction/SessionStore"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

/** A database that is empty at first: everything makes its own tables. */
export const Database = PgClient.layer({
  url: Redacted.make(process.env["POSTGRES_URL"] ?? "postgres://effect@127.0.0.1:5432/sessions")
})

export const Sessions = SessionStore.layerSql()

/** How quickly the cluster notices that a runner is gone. The defaults are slower, and ask less of the database. */
const timing = {
  shardsPerGroup: 30,
  shardLockRefreshInterval: "1 seconds",
  shardLockExpiration: "4 seconds",
  refreshAssignmentsInterval: "500 millis",
  runnerHealthCheckInterval: "1 seconds",
  entityMessagePollInterval: "500 millis",
  entityReplyPollInterval: "100 millis"
} satisfies Partial<ShardingConfig.ShardingConfig["Service"]>

export const cluster = (config: Partial<ShardingConfig.ShardingConfig["Service"]>, clientOnly: boolean) =>
  NodeClusterSocket.layer({ storage: "sql", clientOnly, shardingConfig: { ...timing, ...config } })

const heard = ({ prompt }: LanguageModel.ProviderOptions) => {
  const last = prompt.content.findLast(({ role }) => role === "user")
  const [part] = last?.content ?? []
  return `I heard: ${typeof part === "object" && part.type === "text" ? part.text : "nothing"}`
}

const finish = {
  type: "finish",
  reason: "stop",
  usage: {
    inputTokens: { total: 100, uncached: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 10, text: undefined, reasoning: undefined }
  },
  response: undefined
} as const

/** A model without a provider, so that this runs anywhere; put the layer of yours in its place. */
export const Model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: (options) => Effect.succeed([{ type: "text", text: heard(options) }, finish]),
    streamText: (options) =>
      Stream.make(
        { type: "text-start", id: "0" } as const,
        { type: "text-delta", id: "0", delta: heard(options) } as const,
        { type: "text-end", id: "0" } as const,
        finish
      )
  })
)
