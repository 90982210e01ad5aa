import * as Marks from "effect-compaction/Marks"
import type * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import * as Odd from "./Odd.ts"
import * as Random from "./Random.ts"

/**
 * One thing that happens to a session.
 *
 * In a session that owns its history `append` goes to the manager; in one that the caller owns it goes to the caller's
 * prompt, which `request` then passes whole. `edit`, `rewind`, `reparse` and `annotate` change the caller's prompt, and
 * occur in such sessions only.
 */
export type Operation =
  | { readonly _tag: "append"; readonly messages: ReadonlyArray<Prompt.Message> }
  | { readonly _tag: "request"; readonly budget?: number }
  /** What the last request was billed, as a ratio of what it was counted at; `NaN` when the provider does not say. */
  | { readonly _tag: "observe"; readonly ratio: number }
  /** Export, JSON text, restore in a new manager. */
  | { readonly _tag: "restore" }
  | { readonly _tag: "reset" }
  | { readonly _tag: "edit"; readonly at: number; readonly message: Prompt.Message }
  | { readonly _tag: "rewind"; readonly at: number }
  /** The same prompt in which no object is the one seen before, as when it was read again. */
  | { readonly _tag: "reparse" }
  /** Options are added to a message, as a chat does for cache control. */
  | { readonly _tag: "annotate"; readonly at: number }

/** A session as data. The same seed gives the same script. */
export interface Script {
  readonly seed: number
  readonly settings: Settings.Input
  readonly estimator: "chars" | "quarter" | "one"
  readonly rules: "all" | "anthropic" | "openaiChat" | "openaiResponses" | "gemini"
  readonly ladder: "progressive" | "withOwnRung" | "withCarelessRung"
  readonly owner: "manager" | "caller"
  readonly operations: ReadonlyArray<Operation>
}

// ---------------------------------------------------------------------------------------------------------------------
// Texts
// ---------------------------------------------------------------------------------------------------------------------

const words = [
  "build",
  "failed",
  "src/index.ts:12",
  "expected",
  "Grüße",
  "日本語",
  "👩‍👩‍👧",
  "=>",
  "null",
  "$&",
  "\n",
  "  "
] as const

/** What a generator remembers, so that most of what it makes belongs together. */
interface Memory {
  readonly random: Random.Random
  /** How much is broken, 0 to 1. */
  readonly chaos: number
  /** How long texts are, in characters, about. */
  readonly scale: number
  next: number
  open: Array<{ readonly id: string; readonly name: string }>
  answered: Array<{ readonly id: string; readonly name: string }>
  requested: Array<string>
}

/** A text that is unlike every other of its script, unless it is empty. */
const text = (memory: Memory): string => {
  const { random } = memory
  if (random.chance(0.04 + 0.06 * memory.chaos)) return random.pick(["", "", " ", "\n\t", "ok", "\ud83d", "\udc4d!"])
  const length = random.pick([3, 30, 79, 81, 120, memory.scale, memory.scale, 3 * memory.scale])
  let out = `${memory.next++}: `
  while (out.length < length) out += random.pick(words) + " "
  const at = random.below(length + 1)
  if (random.chance(0.1)) {
    out = `${out.slice(0, at)}${random.pick(["😀😀😀😀", "\ud83d", "\udc4d", "\u0000"])}${out.slice(at)}`
  }
  if (random.chance(0.05)) out = `<system-reminder source="hook">${out}</system-reminder>`
  return out
}

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const image = (memory: Memory) =>
  Prompt.makePart("file", {
    mediaType: memory.random.pick(["image/png", "application/pdf"]),
    data: memory.random.pick<string | Uint8Array | URL>([
      png,
      new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]),
      new URL("https://example.com/a.png")
    ])
  })

const textPart = (memory: Memory, options: Prompt.ProviderOptions = {}) =>
  Prompt.makePart("text", { text: text(memory), options })

// ---------------------------------------------------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------------------------------------------------

const pin: Prompt.ProviderOptions = { [Marks.key]: { pinned: true } }

const human = (memory: Memory): Prompt.Message => {
  const { random } = memory
  const content: Array<Prompt.UserMessagePart> = random.chance(0.03) ? [] : [textPart(memory)]
  if (random.chance(0.1)) content.push(textPart(memory, random.chance(0.3) ? pin : {}))
  if (random.chance(0.05)) content.push(image(memory))
  const options = random.chance(0.05)
    ? pin
    : random.chance(0.1)
    ? { [Marks.key]: { source: "cli" }, openai: { imageDetail: "low" } }
    : {}
  return Prompt.makeMessage("user", { content, options })
}

const machine = (memory: Memory): Prompt.Message => {
  const source = memory.random.pick(["hook", "context-summary", "runtime-context", "context-replay"])
  const marks = memory.random.pick<Marks.Marks>([{ source }, { source, pinned: true }, { ephemeral: true }, { source }])
  return Marks.set(Prompt.makeMessage("user", { content: [textPart(memory)] }), marks)
}

const system = (memory: Memory): Prompt.Message =>
  Prompt.makeMessage("system", {
    content: text(memory),
    options: memory.random.chance(0.2) ? { anthropic: { cacheControl: { type: "ephemeral" } } } : {}
  })

const states = [
  {},
  { anthropic: { signature: "c2ln" } },
  { openai: { itemId: "rs_1" } },
  { [Marks.key]: { pinned: true }, anthropic: { signature: "c2ln" } }
] as const

const callIds = ["call_0", "call_1", "call_2"] as const
const names = ["read", "bash", "grep", "skill"] as const

const assistant = (memory: Memory, calls: number): Prompt.Message => {
  const { random } = memory
  const content: Array<Prompt.AssistantMessagePart> = []
  if (random.chance(0.2)) {
    content.push(Prompt.makePart("reasoning", { text: text(memory), options: random.pick(states) }))
  }
  if (calls === 0 || random.chance(0.4)) content.push(textPart(memory, random.chance(0.05) ? pin : {}))
  if (random.chance(0.04)) {
    const id = random.chance(0.5) ? `srv_${memory.next++}` : "srv"
    content.push(Prompt.makePart("tool-call", { id, name: "web_search", params: { q: "x" }, providerExecuted: true }))
    if (random.chance(1 - 0.3 * memory.chaos)) content.push(providerResult(memory, id))
  } else if (random.chance(0.05 * memory.chaos)) content.push(providerResult(memory, "srv"))
  for (let at = 0; at < calls; at++) {
    const id = random.chance(0.3) ? random.pick(callIds) : `id_${memory.next++}`
    const name = random.pick(names)
    const params = random.pick<unknown>([{ path: "a.ts" }, { command: text(memory) }, {}, "not json {"])
    content.push(Prompt.makePart("tool-call", { id, name, params, providerExecuted: false }))
    memory.open.push({ id, name })
    if (random.chance(0.06)) {
      const approvalId = random.chance(0.9) ? `ask_${memory.next++}` : "ask"
      content.push(Prompt.makePart("tool-approval-request", { approvalId, toolCallId: id }))
      memory.requested.push(approvalId)
    }
  }
  if (random.chance(0.05 * memory.chaos)) {
    content.push(Prompt.makePart("tool-approval-request", { approvalId: "ask", toolCallId: random.pick(callIds) }))
  }
  if (random.chance(0.1 * memory.chaos)) {
    content.push(Prompt.makePart("reasoning", { text: text(memory), options: random.pick(states) }))
  }
  return Prompt.makeMessage("assistant", { content, options: random.chance(0.02) ? pin : {} })
}

const providerResult = (memory: Memory, id: string) =>
  Prompt.makePart("tool-result", {
    id,
    name: "web_search",
    isFailure: false,
    result: text(memory),
    providerExecuted: true
  })

const resultOf = (memory: Memory, call: { readonly id: string; readonly name: string }): Prompt.ToolResultPart => {
  const { random } = memory
  const kind = random.below(20)
  const base = {
    id: call.id,
    name: random.chance(0.2) ? "" : call.name,
    isFailure: random.chance(0.1),
    providerExecuted: false,
    options: random.pick<Prompt.ProviderOptions>([{}, {}, {}, {}, {}, {}, pin, { openai: { itemId: "fc_1", x: 1 } }])
  }
  if (kind < 12) return Prompt.makePart("tool-result", { ...base, result: text(memory) })
  if (kind < 14) {
    const blocks = [
      { type: "text", text: text(memory) },
      ...(random.chance(0.5) ? [{ type: "image", source: { data: png, mediaType: "image/png" } }] : []),
      ...(random.chance(0.5) ? [{ type: "text", text: text(memory) }] : [])
    ]
    return Prompt.makePart("tool-result", { ...base, result: blocks })
  }
  if (kind < 16) {
    const result = random.pick<unknown>([
      { out: text(memory), code: 0, none: undefined },
      [text(memory), undefined],
      null,
      undefined,
      42,
      []
    ])
    return Prompt.makePart("tool-result", { ...base, result })
  }
  if (kind < 18) {
    const modelOutput = random.pick<ReadonlyArray<Prompt.ToolModelOutputPart>>([
      [textPart(memory)],
      [textPart(memory), image(memory), textPart(memory)],
      [],
      [Prompt.makePart("text", { text: " " })]
    ])
    return Prompt.makePart("tool-result", { ...base, result: { raw: text(memory) }, modelOutput })
  }
  if (kind === 18) return Prompt.makePart("tool-result", { ...base, result: "" })
  const huge = `${text(memory)}${"0123456789".repeat(20 * memory.scale / 10)}`
  return Prompt.makePart("tool-result", { ...base, result: huge })
}

const toolMessage = (content: ReadonlyArray<Prompt.ToolMessagePart>, options: Prompt.ProviderOptions = {}) =>
  Prompt.makeMessage("tool", { content, options })

/** Takes some of `from`, in any order or in theirs. */
const draw = <A>(random: Random.Random, from: Array<A>, share: number): Array<A> => {
  const drawn: Array<A> = []
  for (let at = 0; at < from.length;) {
    if (random.chance(share)) drawn.push(...from.splice(at, 1))
    else at++
  }
  if (random.chance(0.4)) drawn.reverse()
  return drawn
}

const answers = (memory: Memory): Array<Prompt.Message> => {
  const { chaos, random } = memory
  const parts: Array<Prompt.ToolMessagePart> = []
  for (const approvalId of draw(random, memory.requested, 0.6)) {
    parts.push(Prompt.makePart("tool-approval-response", { approvalId, approved: random.chance(0.5) }))
    if (random.chance(0.2 * chaos)) memory.requested.push(approvalId)
  }
  for (const call of draw(random, memory.open, 1 - 0.5 * chaos)) {
    parts.push(resultOf(memory, call))
    memory.answered.push(call)
  }
  if (random.chance(0.3 * chaos)) parts.push(resultOf(memory, { id: random.pick(callIds), name: "read" }))
  if (random.chance(0.2 * chaos)) parts.push(resultOf(memory, { id: `orphan_${memory.next++}`, name: "read" }))
  if (random.chance(0.3 * chaos) && memory.answered.length > 0) {
    parts.push(resultOf(memory, memory.answered[random.below(memory.answered.length)]!))
  }
  if (random.chance(0.05 * chaos)) {
    parts.push(Prompt.makePart("tool-approval-response", { approvalId: "ask", approved: true }))
  }
  if (parts.length === 0) return random.chance(0.1 * chaos) ? [toolMessage([])] : []
  if (random.chance(0.5)) return [toolMessage(parts, random.chance(0.03) ? pin : {})]
  return parts.map((part) => toolMessage([part]))
}

/** The next few messages of a session. */
const step = (memory: Memory): Array<Prompt.Message> => {
  const { chaos, random } = memory
  const out: Array<Prompt.Message> = []
  const isAnswering = memory.open.length > 0 || memory.requested.length > 0
  const kind = random.below(20)
  if (isAnswering && !random.chance(0.3 * chaos)) {
    if (random.chance(0.15)) out.push(machine(memory))
    const messages = answers(memory)
    for (const message of messages) {
      out.push(message)
      if (random.chance(0.2 * chaos)) out.push(random.pick([human, machine, system])(memory))
    }
  } else if (kind < 6) out.push(human(memory))
  else if (kind < 8) out.push(machine(memory))
  else if (kind < 11) out.push(assistant(memory, 0))
  else if (kind < 18) out.push(assistant(memory, 1 + random.below(random.chance(0.3) ? 5 : 2)))
  else if (kind === 18 && random.chance(0.2 + chaos)) out.push(system(memory))
  else out.push(...answers(memory))
  if (random.chance(0.02)) memory.open = []
  return out
}

// ---------------------------------------------------------------------------------------------------------------------
// Scripts
// ---------------------------------------------------------------------------------------------------------------------

/** Settings, any that decode, for a session of about `size` tokens. */
export const settings = (random: Random.Random, size = 1_000): Settings.Input => {
  const share = random.pick([0, 0.02, 0.2, 0.4, 0.6, 0.6, 0.8, 0.8])
  const compactThreshold = random.pick([undefined, undefined, 0.5, 0.75, 1, 0.05])
  const some = <A>(probability: number, value: A): A | undefined => random.chance(probability) ? value : undefined
  const input: { [Key in keyof Settings.Input]?: Settings.Input[Key] | undefined } = {
    maxTokens: some(0.95, 1 + Math.floor(size * share) + random.below(1 + Math.floor(size * 0.2))),
    notice: some(0.8, false),
    noticeReserve: some(0.5, random.below(200)),
    compactThreshold,
    targetUsage: random.pick([0, 0.5, 0.9]) * (compactThreshold ?? 0.92),
    protectedRecent: some(0.7, random.pick([0, 0.1, 0.3, 0.9])),
    protectedToolResults: some(0.8, random.below(7) - 1),
    truncateChars: some(0.8, random.pick([0, 1, 7, 40, 41, 120])),
    shape: some(0.4, "headTail"),
    budgetTokens: some(0.2, random.below(40)),
    budgetByTool: some(0.2, { read: random.below(30), bash: random.below(3) }),
    exemptTools: some(0.3, random.pick([["skill"], ["read", "grep"], [""]])),
    clearAtLeast: some(0.5, random.pick([0.05, 0.3, 0.9, 1, 50, 400])),
    maxConsecutiveSkips: some(0.5, random.below(5)),
    clearFloorWhenOverBudget: some(0.3, "override"),
    whenInfeasible: some(0.15, "fail"),
    maxMessages: some(0.1, 1 + random.below(30)),
    noticeVerbosity: some(0.2, "minimal"),
    noticeMinLevel: some(0.2, random.below(9)),
    replayLastUser: some(0.3, true),
    strict: some(0.05, true),
    ...random.pick<Settings.Input>([
      {},
      {},
      {},
      { meter: "hybrid" },
      { meter: "hybrid", provenanceGate: false },
      { meter: "actual", provenanceGate: true },
      { meter: "calibrated" }
    ]),
    // Of numbers of its own, so that the sessions found once stay what they are.
    countSkips: Random.make(size).chance(0.3) ? "every" : undefined
  }
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
}

const sizeOf = (operations: ReadonlyArray<Operation>): number => {
  let size = 0
  for (const operation of operations) if (operation._tag === "append") size += JSON.stringify(operation.messages).length
  return Math.ceil(size / 5)
}

/** A script, from a few messages to about a hundred. */
export const make = (seed: number): Script => {
  const random = Random.make(seed)
  const owner = random.chance(0.25) ? "caller" : "manager"
  const memory: Memory = {
    random,
    chaos: random.pick([0, 0, 0.2, 0.6, 1]),
    scale: random.pick([40, 100, 400, 1_000]),
    next: 0,
    open: [],
    answered: [],
    requested: []
  }
  const operations: Array<Operation> = []
  if (random.chance(0.6)) operations.push({ _tag: "append", messages: [system(memory)] })
  if (random.chance(0.9)) operations.push({ _tag: "append", messages: [human(memory)] })
  const steps = random.pick([1, 2, 3, 4, 6, 8, 8, 12, 16, 40])
  const requests = random.pick([0.3, 0.6, 1])
  for (let at = 0; at < steps; at++) {
    const messages = step(memory)
    if (messages.length > 0) operations.push({ _tag: "append", messages })
    if (random.chance(requests)) {
      const request: Operation = owner === "manager" && random.chance(0.15)
        ? { _tag: "request", budget: random.pick([0, -1, 1, 30, 200, 1_000, 5_000, 100_000]) }
        : { _tag: "request" }
      operations.push(request)
      if (random.chance(0.1)) operations.push({ _tag: "restore" }, request)
    }
    if (random.chance(0.4)) operations.push({ _tag: "observe", ratio: random.pick([1, 1, 1.3, 2, 0.5, 0, NaN]) })
    if (random.chance(0.01)) operations.push({ _tag: "reset" })
    if (owner === "caller") {
      const place = random.below(2 * steps)
      if (random.chance(0.06)) operations.push({ _tag: "edit", at: place, message: human(memory) })
      if (random.chance(0.04)) operations.push({ _tag: "rewind", at: place })
      if (random.chance(0.1)) operations.push({ _tag: "reparse" })
      if (random.chance(0.1)) operations.push({ _tag: "annotate", at: place })
    }
  }
  operations.push({ _tag: "request" })
  const script: Script = {
    seed,
    settings: settings(random, sizeOf(operations)),
    estimator: random.pick(["chars", "chars", "chars", "quarter", "one"]),
    rules: random.chance(0.7) ? "all" : random.pick(["anthropic", "openaiChat", "openaiResponses", "gemini"]),
    ladder: random.chance(0.8) ? "progressive" : random.pick(["withOwnRung", "withOwnRung", "withCarelessRung"]),
    owner,
    operations
  }
  // Of numbers of its own, so that the sessions found once stay what they are.
  return Random.make(seed * 31 + 5).chance(0.35) ? Odd.script(script) : script
}
