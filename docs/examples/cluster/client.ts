/** A client: it says something in three conversations, wherever they live, and prints what they answer. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as ClusterConversations from "effect-compaction/ClusterConversations"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { cluster, Database } from "./conversations.ts"

const Client = ClusterConversations.layer.pipe(
  Layer.provide(cluster({ runnerAddress: Option.none() }, true)),
  Layer.provide(Database)
)

const program = Effect.gen(function*() {
  const { chat } = yield* ClusterConversations.ClusterConversations
  for (const id of ["ada", "grace", "edsger"]) {
    yield* Console.log(`${id}: ${yield* chat(id).say("Find out why the build fails.")}`)
    const pieces = yield* Stream.runCollect(chat(id).stream("And now?"))
    yield* Console.log(`${id}: ${pieces.join("")}`)
    yield* Console.log(`${id}: ${(yield* chat(id).history).content.length} messages`)
  }
})

NodeRuntime.runMain(program.pipe(Effect.provide(Client)))
