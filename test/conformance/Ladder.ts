import * as ContextManager from "effect-compaction/ContextManager"
import * as Gate from "effect-compaction/Gate"
import * as Guard from "effect-compaction/Guard"
import * as Ladder from "effect-compaction/Ladder"
import * as Marks from "effect-compaction/Marks"
import * as Policy from "effect-compaction/Policy"
import * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import type * as View from "effect-compaction/View"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import { e4 } from "../core/conversation.ts"
import { seed, seeded } from "../seed.ts"
import { differences, isObject, type Kind, type Outcome } from "./Case.ts"

interface Repeat {
  readonly repeat: string
  readonly count: number
}

interface Message {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: string | Repeat
  readonly name?: string
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<{
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }>
  readonly metadata?: Marks.Marks
}

interface Scenario {
  readonly name: string
  readonly mayRefuse?: string
  readonly config: Settings.Input & { readonly budget: number }
  readonly steps: ReadonlyArray<
    | { readonly append: ReadonlyArray<Message> }
    | { readonly request: { readonly budget?: number }; readonly expect: { readonly [key: string]: unknown } }
  >
}

const text = (content: string | Repeat): string =>
  typeof content === "string" ? content : content.repeat.repeat(content.count)

const toPrompt = (message: Message): Prompt.Message => {
  const options = message.metadata === undefined ? {} : { [Marks.key]: { ...message.metadata } }
  const content = text(message.content)
  switch (message.role) {
    case "system":
      return Prompt.makeMessage("system", { content, options })
    case "user":
      return Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: content })], options })
    case "assistant":
      return Prompt.makeMessage("assistant", {
        content: [
          ...(content === "" ? [] : [Prompt.makePart("text", { text: content })]),
          ...(message.tool_calls ?? []).map((call) =>
            Prompt.makePart("tool-call", {
              id: call.id,
              name: call.function.name,
              params: JSON.parse(call.function.arguments),
              providerExecuted: false
            })
          )
        ],
        options
      })
    case "tool":
      return Prompt.makeMessage("tool", {
        content: [
          Prompt.makePart("tool-result", {
            id: message.tool_call_id ?? "",
            name: message.name ?? "",
            isFailure: false,
            result: content,
            providerExecuted: false
          })
        ],
        options
      })
  }
}

const stateOf = (item: View.Item): string => item.state === "kept" ? "k" : item.state === "truncated" ? "t" : "s"

const itemText = (item: View.Item): string => {
  const message = item.message
  if (message.role === "system") return message.content
  return message.content
    .map((part) => part.type === "text" ? part.text : part.type === "tool-result" ? String(part.result) : "")
    .join("")
}

const digest = (items: ReadonlyArray<View.Item>): string => {
  const hash = createHash("sha256")
  for (const item of items) hash.update(`${item.seq}:${itemText(item)}\n`, "utf8")
  return hash.digest("hex").slice(0, 16)
}

const texts = (items: ReadonlyArray<View.Item>, asked: unknown): unknown =>
  isObject(asked)
    ? Object.fromEntries(
      Object.keys(asked).map((seq) => {
        const item = items.find((each) => each.seq === Number(seq))
        return [seq, item === undefined ? undefined : itemText(item)]
      })
    )
    : undefined

/** Every request under the rules of no provider: what the wire needs beyond the repair is not part of these answers. */
const noRules: Wire.Rules = { ...Wire.openaiChat, name: "none" }

type Result = Effect.Effect<ContextManager.Request, Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied>

const outcomeOf = (failed: boolean, infeasible: boolean, compacted: boolean, skipped: boolean): string =>
  failed ? "failed" : infeasible ? "infeasible" : compacted ? "compacted" : skipped ? "skipped" : "as_is"

/** Runs one request and tells everything an `expect` may ask for. */
const observe = Effect.fnUntraced(function*(
  manager: ContextManager.ContextManager<Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied>,
  request: Result,
  reportOf: () => Stage.Report,
  settings: Settings.Settings
) {
  const earlier = yield* manager.status
  const before = (yield* manager.view).price
  const result = yield* Effect.result(request)
  const status = yield* manager.status
  const view = yield* manager.view
  const report = reportOf()
  const items = view.items.filter((item) => item.seq >= 0)
  const failed = result._tag === "Failure" ? result.failure : undefined
  const skipped = status.lastSkip === earlier.lastSkip ? null : status.lastSkip
  const boundary = status.lastBoundary === earlier.lastBoundary ? null : status.lastBoundary
  const infeasible = failed?._tag === "BudgetInfeasible" ? failed : report.infeasible
  const required = Guard.requiredOf(settings, status.budget?.limit ?? 0)
  const judged = failed?._tag === "ClearFloorUnsatisfied"
    ? failed
    : skipped ?? (boundary === null ? null : { freed: boundary.freed, required, level: boundary.level, streak: 0 })
  return {
    items,
    answer: {
      outcome: outcomeOf(failed !== undefined, infeasible !== null, boundary !== null, skipped !== null),
      error: failed?._tag,
      level: status.level,
      before,
      after: view.price,
      view: items.map((item) => [item.seq, stateOf(item)]),
      digest: digest(items),
      counts: {
        removed: status.counts.removed,
        truncated: status.counts.truncated,
        stubbed: status.counts.stubbed
      },
      judged: judged === null ? undefined : {
        freed: judged.freed,
        required: judged.required,
        reached: judged.level,
        streak: judged.streak,
        overrides: status.overrides
      },
      holders: infeasible?.holders.map((holder) => [holder.seq, holder.tokens]),
      published: status.lastInfeasible !== earlier.lastInfeasible
    }
  }
})

const scenario = Effect.fnUntraced(function*(self: Scenario): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const { budget, ...input } = self.config
  const decoded = yield* Effect.result(Settings.decode(seed(input)))
  if (decoded._tag === "Failure") {
    const refused = { where: "config", expected: "decodes", actual: decoded.failure.message }
    return { name: self.name, failures: self.mayRefuse === undefined ? [refused] : [] }
  }
  // The standard pass, with an eye on what the ladder reports.
  let report = Stage.noReport
  const ladder: Stage.Stage<Ladder.BudgetInfeasible> = (pass) =>
    Effect.tap(Ladder.progressive(pass), (after) =>
      Effect.sync(() => {
        report = after.report
      }))
  const manager = yield* ContextManager.make(seeded({
    // The reference counts a refusal each time that the pass is tried again.
    settings: { countSkips: "every", ...input },
    wire: noRules,
    pass: Policy.passFrom(Stage.when(Stage.guard(ladder, Guard.clearAtLeast), Gate.threshold))
  })).pipe(Effect.provide(e4), Effect.orDie)
  const failures: Array<Outcome["failures"][number]> = []
  for (const [at, step] of self.steps.entries()) {
    if ("append" in step) {
      yield* Effect.orDie(manager.append(Prompt.fromMessages(step.append.map(toPrompt))))
      continue
    }
    report = Stage.noReport
    const request = manager.requestWith({ budget: step.request.budget ?? budget })
    const { answer, items } = yield* observe(manager, request, () => report, decoded.success)
    const { info: _, ...expected } = step.expect
    failures.push(...differences(`steps[${at}]`, expected, { ...answer, texts: texts(items, expected.texts) }))
  }
  return { name: self.name, failures }
}, Effect.scoped)

/** `ladder/1`: scenarios of requests, each with the view that is the right answer. */
export const kind: Kind = {
  name: "ladder",
  recognises: (file) => isObject(file) && file.schema === "ladder/1",
  // The shape was recognised by its name; a file that lies about it fails its cases.
  run: (file) => Effect.forEach((file as { readonly scenarios: ReadonlyArray<Scenario> }).scenarios, scenario)
}
