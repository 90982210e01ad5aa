/** The compiler is the test: what a decorated layer provides, fails with and needs is what it was, and nothing more. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Conversations from "effect-compaction/Conversations"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as Stage from "effect-compaction/Stage"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Model from "effect/ai/Model"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
const ok = <_T extends true>() => {}

class Down extends Schema.TaggedError<Down>("app/Down")("Down", {}) {}
class Key extends Context.Service<Key, { readonly key: string }>()("app/Key") {}
class CodeIndex extends Context.Service<CodeIndex, {
  readonly shorten: (pass: Stage.Pass) => Effect.Effect<Stage.Pass, Down>
}>()("app/CodeIndex") {}

declare const plain: Layer.Layer<LanguageModel.LanguageModel>
declare const keyed: Layer.Layer<LanguageModel.LanguageModel, Down, Key>
declare const named: Model.Model<"house", LanguageModel.LanguageModel, Key>

const decorated = () => ({
  plain: CompactedModel.withCompaction(plain),
  keyed: CompactedModel.withCompaction(keyed),
  named: CompactedModel.withCompaction(named)
})
type Decorated = ReturnType<typeof decorated>
ok<Equal<Decorated["plain"], Layer.Layer<LanguageModel.LanguageModel>>>()
ok<Equal<Decorated["keyed"], Layer.Layer<LanguageModel.LanguageModel, Down, Key>>>()
ok<Equal<Layer.Success<Decorated["named"]>, LanguageModel.LanguageModel | Model.ProviderName | Model.ModelName>>()
ok<Equal<Layer.Services<Decorated["named"]>, Key>>()
ok<Equal<Layer.Error<Decorated["named"]>, never>>()

// A manager needs what the stages of its pass need, and nothing when they need nothing.
class Plain extends ContextManager.Service<Plain>()("app/Plain", { settings: { window: 200_000 } }) {}
ok<Equal<typeof Plain.layer, Layer.Layer<Plain, ContextManager.OpenError>>>()

const index = Rung.make("index", (pass) => Effect.flatMap(CodeIndex, (service) => service.shorten(pass)))
const indexed = Policy.passOf(Ladder.progressive.pipe(Ladder.insertBefore("remove", index)))
class Indexed extends ContextManager.Service<Indexed>()("app/Indexed", { pass: indexed }) {}
ok<Equal<typeof Indexed.layer, Layer.Layer<Indexed, ContextManager.OpenError, CodeIndex>>>()

class Chats extends Conversations.Service<Chats>()("app/Chats", { pass: indexed }) {}
ok<Equal<typeof Chats.layer, Layer.Layer<Chats, never, CodeIndex>>>()
class PlainChats extends Conversations.Service<PlainChats>()("app/PlainChats", {}) {}
ok<Equal<typeof PlainChats.layer, Layer.Layer<PlainChats>>>()

describe("types", () => {
  it("the declarations above compile", () => {
    assert.isFunction(decorated)
  })
})
