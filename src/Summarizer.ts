/**
 * Writes summaries. Which span is summarised, when, and whether the result is accepted is not decided here.
 *
 * A summariser is given a prompt that is ready to be sent, and the same span as text for one that reads no prompts. It
 * must be interruptible: it is given up after its timeout, and the session goes on without it either way.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Overflow from "./Overflow.ts"
import * as Errors from "./session/summaryErrors.ts"
import * as Extract from "./text/extract.ts"
import { reasonOf } from "./text/reason.ts"
import type * as TokenMeter from "./TokenMeter.ts"

/**
 * How the span is put before a model.
 *
 * **Details**
 *
 * - `suffix`: the messages as they were last sent, up to the end of the span, and a directive behind them. The provider
 *   has them in its prompt cache.
 * - `standalone`: the span as text in one message.
 * - `conversation`: the messages up to the end of the span and nothing behind them, for a provider's own compaction.
 *
 * @category models
 * @since 0.1.0
 */
export const Layout = Schema.Literals(["suffix", "standalone", "conversation"])

/**
 * @category models
 * @since 0.1.0
 */
export type Layout = typeof Layout.Type

/**
 * Why a span is put as text where the messages would have been cached.
 *
 * **Details**
 *
 * - `notSent`: a part of it has never been sent. `prefixChanged`: what was sent is not the prefix any more.
 * - `pruned`: a part of it was shortened since it was sent. `otherModel`: the summariser's cache is another one.
 * - `noTools`: the messages hold calls, and nobody knows the tools that go with them; providers refuse one without the other.
 * - `overflow`: the messages with the directive did not fit its own window.
 *
 * @category models
 * @since 0.1.0
 */
export const Fallback = Schema.Literals(["notSent", "prefixChanged", "pruned", "otherModel", "noTools", "overflow"])

/**
 * @category models
 * @since 0.1.0
 */
export type Fallback = typeof Fallback.Type

/**
 * The tools of a conversation, by name.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolSet = Readonly<Record<string, Tool.Any>>

/**
 * The tools that the conversation was last sent with. Their definitions stand at the front of what a provider caches, and
 * some providers refuse calls in the messages without them, so a summary goes out with the same ones.
 *
 * **When to use**
 *
 * A decorated model provides them by itself. An app that calls `ContextManager.request` and the model provides them around
 * the request.
 *
 * @category services
 * @since 0.1.0
 */
export const Tools = Context.Reference<ToolSet | undefined>("effect-compaction/Summarizer/Tools", {
  defaultValue: () => undefined
})

/**
 * What is to be summarised.
 *
 * **Details**
 *
 * - `prompt`: ready for a model. `messages`: of the span, as they stand in the view. `text`: the same as text.
 * - `layout`, `fallback`: how the prompt is laid out, and why not as a suffix, if so.
 * - `focus`: what a person asked the summary to keep an eye on. `maxTokens`: how long it may be, in tokens.
 * - `tools`: those of the conversation, to be sent along with a `suffix` and not to be called; absent where nobody knows.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly prompt: Prompt.Prompt
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly text: string
  readonly layout: Layout
  readonly fallback: Fallback | null
  readonly focus: string | undefined
  readonly maxTokens: number
  readonly tools?: ToolSet
}

/**
 * What a summariser answers.
 *
 * **Details**
 *
 * - `text`: the summary as it was written; reasoning in it is taken out later. `isTruncated`: whether it was cut at the
 *   output limit.
 * - `model`, `provider`: who wrote it, as the answer itself says where it does; `null` or absent where no model did.
 * - `usage`: what that was billed, in tokens; `null` where nothing says.
 * - `native`: what the provider's own compaction made of the prompt: items that go to the routes that fit `owner` (in which `*`
 *   stands for any text) in place of all messages of the prompt. Every other route is sent the checkpoint with `text`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reply {
  readonly text: string
  readonly model: string | null
  readonly provider?: string | null
  readonly usage: { readonly inputTokens: TokenMeter.Usage; readonly outputTokens: number | undefined } | null
  readonly isTruncated: boolean
  readonly native?: { readonly owner: string; readonly items: ReadonlyArray<Schema.Json> }
}

/**
 * What is known of the call behind a summary, beside the summary itself.
 *
 * **Details**
 *
 * - `purpose`: always `compaction`. `provider`, `model`: who wrote it, `null` where no model did or nothing says.
 * - `layout`, `fallback`: how the span was put, and why so. `outputLimit`: how long the summary might be, in tokens.
 * - `input`: all that was read, `cacheRead` and `cacheWrite`: of it, from and into the provider's cache; `output`: what was
 *   written. In tokens as billed, `null` where nothing says.
 * - `milliseconds`: how long it took, calls that were too long and were asked again included.
 *
 * @category models
 * @since 0.1.0
 */
export const Evidence = Schema.Struct({
  purpose: Schema.Literal("compaction"),
  provider: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  layout: Layout,
  fallback: Schema.NullOr(Fallback),
  outputLimit: Schema.Natural,
  input: Schema.NullOr(Schema.Finite),
  cacheRead: Schema.NullOr(Schema.Finite),
  cacheWrite: Schema.NullOr(Schema.Finite),
  output: Schema.NullOr(Schema.Finite),
  milliseconds: Schema.Finite
})

/**
 * @category models
 * @since 0.1.0
 */
export type Evidence = typeof Evidence.Type

export * from "./session/summaryErrors.ts"

/**
 * A summariser.
 *
 * **Details**
 *
 * - `cache`: whether it reads the prompt cache of the conversation: only the same model on the same route does.
 * - `needsTools`: whether it can send messages that hold calls only together with the tools; where those are not known it is
 *   given the span as text. `false` when left out.
 * - `headings`: those it writes, one of which a summary must have; those of the directive when left out, `[]` for one that
 *   writes in a form of its own.
 * - `reads`: `conversation` for a provider's own compaction, which is given the messages up to the end of the span without a
 *   directive; an ordinary summariser is given what the settings say.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  readonly cache: "shared" | "other"
  readonly reads?: "directive" | "conversation"
  readonly needsTools?: boolean
  readonly headings?: ReadonlyArray<string>
  readonly summarize: (
    request: Request
  ) => Effect.Effect<
    Reply,
    Errors.SummarizerFailed | Errors.SummaryTruncated | Errors.SummaryEmpty | Errors.NotASummary
  >
}

/**
 * What a model is asked for. The words are ours; a `Summarizer` of your own may ask for something else.
 *
 * @category constants
 * @since 0.1.0
 */
export const directive =
  `The conversation above is going to be replaced by a summary. Write that summary, so that the work can be continued from it without the original. Output only these sections, in Markdown, each as short bullet points; write "none" under a section that has nothing:

## Request
What the user asked for and how it changed, word for word where the wording matters.
## Constraints
What must, must not or should be, as the user or the system said it. Add no rule of your own.
## Decisions
What was decided, and why.
## Files and code
Exact paths, what was changed or learned there, names and signatures that matter.
## Errors
What went wrong, with exact messages, and what fixed it.
## State
What is done, what is in progress.
## Open
Questions without an answer, work that was asked for and not begun.
## Next
The one next step.

Keep exact identifiers, paths, commands, numbers and quoted text. If the conversation holds an earlier summary, merge what is still true into yours and do not quote it. Do not mention this request. Call no tool.`

const failed = (error: unknown): Errors.SummarizerFailed =>
  new Errors.SummarizerFailed({
    reason: reasonOf(error),
    isOverflow: Overflow.isContextOverflow(error),
    cause: error
  })

/**
 * How a language model is used for summaries.
 *
 * **Details**
 *
 * - `name`, `provider`: of the model, for the record, where its answer does not say. `cache`: `shared` when it is the model
 *   of the conversation on the same route.
 * - `generate`: how it is called. When left out, it is called with the prompt and the tools of the conversation, none of
 *   which may run. One of your own does the same: give the tools, with `toolChoice: "none"` and
 *   `disableToolCallResolution: true`.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelOptions {
  readonly name?: string
  readonly provider?: string
  readonly cache?: Service["cache"]
  readonly generate?: (
    model: LanguageModel.LanguageModel,
    prompt: Prompt.Prompt,
    tools: ToolSet | undefined
  ) => Effect.Effect<Answer, unknown>
}

/**
 * What is read of the answer of a language model; a `GenerateTextResponse` of any toolkit is one. `content` holds the calls
 * it made and the name of the model that answered.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer {
  readonly text: string
  readonly finishReason: Response.FinishReason
  readonly usage: Response.Usage
  readonly content?: ReadonlyArray<{ readonly type: string; readonly modelId?: string | undefined }>
}

/** The tools as a toolkit that runs none of them: what a provider must be told of, and nothing else. */
const idle = (tools: ToolSet): Toolkit.WithHandler<Record<string, Tool.Any>> => ({
  tools,
  handle: (name) => Effect.die(`a summary calls no tool, and called ${name}`)
})

/** How a model is called with tools that nobody may run: nothing is decoded, so what their handlers need is not needed. */
type Idle = (options: {
  readonly prompt: Prompt.Prompt
  readonly toolkit: Toolkit.WithHandler<Record<string, Tool.Any>>
  readonly toolChoice: "none"
  readonly disableToolCallResolution: true
}) => Effect.Effect<Answer, unknown>

const generateWith: NonNullable<ModelOptions["generate"]> = (model, prompt, tools) => {
  if (tools === undefined) return model.generateText({ prompt })
  // The overload of the method for such options, with tools whose types are not known here.
  const generate = model.generateText as Idle
  return generate({ prompt, toolkit: idle(tools), toolChoice: "none", disableToolCallResolution: true })
}

/** Why an answer that ended so is no summary. */
const endings: { readonly [reason in Response.FinishReason]?: string } = {
  error: "the model ended with an error",
  "content-filter": "a content filter ended the answer"
}

/**
 * Makes a summariser of a language model. It must be the undecorated one: a model that compacts its own prompts would
 * compact the request for the summary.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromModel = (
  model: LanguageModel.LanguageModel,
  options?: ModelOptions
): Service => ({
  cache: options?.cache ?? "shared",
  needsTools: options?.generate === undefined,
  summarize: Effect.fnUntraced(function*({ layout, maxTokens, prompt, tools }) {
    const generate = options?.generate ?? generateWith
    const sent = layout === "suffix" ? tools : undefined
    const response = yield* Effect.mapError(generate(model, prompt, sent), failed)
    const { content = [], finishReason } = response
    if (finishReason === "length") return yield* new Errors.SummaryTruncated({ maxTokens })
    const ending = endings[finishReason]
    if (ending !== undefined) return yield* failed(ending)
    if (finishReason === "tool-calls" || content.some(({ type }) => type === "tool-call")) {
      return yield* new Errors.NotASummary({ reason: "it calls a tool" })
    }
    if (finishReason === "pause") {
      return yield* new Errors.NotASummary({ reason: "the model paused in the midst of it" })
    }
    if (response.text.trim() === "") return yield* new Errors.SummaryEmpty()
    return {
      text: response.text,
      model: content.find(({ type }) => type === "response-metadata")?.modelId ?? options?.name ?? null,
      provider: options?.provider ?? null,
      usage: { inputTokens: response.usage.inputTokens, outputTokens: response.usage.outputTokens.total },
      isTruncated: false
    }
  })
})

/**
 * A summariser that needs no model and always says the same of the same span: human messages in their own words,
 * decisions, paths, commands, errors and the last results.
 *
 * @category constructors
 * @since 0.1.0
 */
export const extractive: Service = {
  cache: "other",
  headings: [],
  summarize: (request) => {
    const text = Extract.summary(request.messages, request.maxTokens)
    return text === ""
      ? Effect.fail(new Errors.SummaryEmpty())
      : Effect.succeed({ text, model: null, usage: null, isTruncated: false })
  }
}

/**
 * How a provider's own compaction is asked for; see `format/AnthropicMessages` and `format/OpenAiResponses`.
 *
 * **Details**
 *
 * - `model`: the one that compacts: that of the conversation. `owner`: the routes that are sent what it made, in which `*` stands
 *   for any text; the provider and the model when left out, such as `openai/gpt-5.5`.
 * - `method`: `demand` (the default) asks for a compaction and nothing else; `threshold` has an ordinary request compacted, where
 *   a server knows no other way.
 * - `apiKey`: sent as the provider takes it; when left out the client adds it. `url`: where the API is, with its version.
 *
 * @category models
 * @since 0.1.0
 */
export interface NativeOptions {
  readonly model: string
  readonly owner?: string
  readonly method?: "demand" | "threshold"
  readonly apiKey?: Redacted.Redacted<string>
  readonly url?: string
}

/**
 * The summariser of a session: {@link extractive} unless another is provided, since it costs nothing and is ready at once.
 * With `undefined` a policy with summaries goes on without.
 *
 * @category services
 * @since 0.1.0
 */
export const Summarizer = Context.Reference<Service | undefined>("effect-compaction/Summarizer", {
  defaultValue: () => extractive
})

/**
 * Summarises with the language model that is provided to this layer; see {@link fromModel}. The names of provider and model
 * are those of the layer, where it provides them.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerModel = (options?: ModelOptions): Layer.Layer<never, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Summarizer,
    Effect.gen(function*() {
      const model = yield* LanguageModel.LanguageModel
      const name = yield* Effect.serviceOption(Model.ModelName)
      const provider = yield* Effect.serviceOption(Model.ProviderName)
      return fromModel(model, {
        ...(Option.isSome(name) ? { name: name.value } : undefined),
        ...(Option.isSome(provider) ? { provider: provider.value } : undefined),
        ...options
      })
    })
  )

/**
 * Summarises without a model; see {@link extractive}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerExtractive: Layer.Layer<never> = Layer.succeed(Summarizer, extractive)

/**
 * Summarises with a function from the text of a span to a summary.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromFunction = <E>(
  summarize: (text: string, request: Request) => Effect.Effect<string, E>
): Layer.Layer<never> =>
  Layer.succeed(Summarizer, {
    cache: "other",
    headings: [],
    summarize: (request) =>
      Effect.map(Effect.mapError(summarize(request.text, request), failed), (text) => ({
        text,
        model: null,
        usage: null,
        isTruncated: false
      }))
  })
