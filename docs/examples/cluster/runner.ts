/** A runner: `runner.ts PORT`. Start as many as you like; conversations are spread over them. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as ClusterConversations from "effect-compaction/ClusterConversations"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { cluster, Database, Model, Sessions } from "./conversations.ts"

const runnerAddress = Option.some(RunnerAddress.make("127.0.0.1", Number(process.argv[2] ?? 34_431)))

const Runner = ClusterConversations.layerRunner({
  answer: ClusterConversations.fromModel,
  policy: { settings: { window: 20_000 } }
}).pipe(
  Layer.provide([cluster({ runnerAddress }, false), Sessions, Model]),
  Layer.provide(Database)
)

NodeRuntime.runMain(Layer.launch(Runner))
