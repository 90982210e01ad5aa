import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Marks from "effect-compaction/Marks"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { existsSync, readFileSync } from "node:fs"
import { recorded } from "./recorded.ts"
import {
  anthropic,
  type Chance,
  chance,
  chat,
  equal,
  type Format as Wire,
  keeps,
  type Messages,
  mutated,
  parse,
  prompt,
  read,
  responses
} from "./wireBodies.ts"

const formats = { chat, responses, anthropic, prompt }
type Name = keyof typeof formats

// ---------------------------------------------------------------------------------------------------------------------
// Random transcripts
// ---------------------------------------------------------------------------------------------------------------------

/** What a target can hold, beside texts, images, calls and results. */
interface Target {
  /** Roles alternate, system messages stand first, and one tool message holds all results. */
  readonly turns: boolean
  /** A response has no border of its own: two assistant messages in a row would be one. */
  readonly joinsAnswers: boolean
  readonly system: (random: Chance, started: boolean) => Prompt.SystemMessage | Prompt.UserMessage
  readonly marks: boolean
  readonly files: ReadonlyArray<() => Prompt.FilePart>
  readonly opaque: ReadonlyArray<Schema.JsonObject>
  readonly opaqueInUser: ReadonlyArray<Schema.JsonObject>
  readonly reasoning: (random: Chance) => Prompt.ReasoningPart
  /** Whether reasoning comes first and calls last in an answer. */
  readonly ordered: boolean
  readonly params: (random: Chance) => { readonly params: Schema.Json; readonly options?: Prompt.ProviderOptions }
  readonly fails: boolean
  readonly structured: boolean
  readonly resultImages: boolean
  readonly serverTools: boolean
  readonly cacheControl: boolean
}

let made = 0
/** A text that occurs nowhere else, apart from the empty one. */
const words = (random: Chance): string =>
  random.pick(["", " ", "plain", "😀 emoji", "lone \ud83d", "\"quotes\" \\ \n\t\u0000", "é", "{\"json\": 1}", "]"]) +
  (random.maybe(0.1) ? "" : ` t${made++}`)

const text = (random: Chance, options: Prompt.ProviderOptions = {}) => Prompt.textPart({ text: words(random), options })
const png = () => Prompt.filePart({ mediaType: "image/png", data: `AAA${made++ % 10}` })
const jpegUrl = () => Prompt.filePart({ mediaType: "image/*", data: new URL(`https://x.test/${made++}.jpg`) })
const pdf = () => Prompt.filePart({ mediaType: "application/pdf", data: "AAAA", fileName: `${made++}.pdf` })
const opaque = (item: Schema.JsonObject) => Marks.set(Prompt.textPart({ text: "" }), { raw: item })

const json = (random: Chance, depth = 2): Schema.Json => {
  const kind = random.below(depth === 0 ? 5 : 7)
  if (kind === 0) return null
  if (kind === 1) return random.maybe(0.5)
  if (kind === 2) return random.pick([0, -1, 1.5, 1e21, 9007199254740991])
  if (kind < 5) return words(random)
  if (kind === 5) return Array.from({ length: random.below(3) }, () => json(random, depth - 1))
  return object(random, depth - 1)
}
const object = (random: Chance, depth = 1): Schema.JsonObject =>
  Object.fromEntries(
    Array.from({ length: random.below(4) }, () => [random.pick(["a", "b", "path", ""]), json(random, depth)])
  )

const anyParams = (random: Chance) => {
  if (random.maybe(0.1)) {
    const broken = `{"cut": "${made++}`
    return { params: broken, options: { [Marks.key]: { raw: broken } } }
  }
  if (random.maybe(0.1)) return { params: words(random), options: { openai: { custom: true } } }
  return { params: json(random) }
}

const targets: { readonly [name in Name]: Target } = {
  chat: {
    turns: false,
    joinsAnswers: false,
    system: (random) =>
      Prompt.systemMessage({
        content: words(random),
        options: random.maybe(0.3) ? { openai: { role: "developer" } } : {}
      }),
    marks: true,
    files: [png, jpegUrl, pdf, () => Prompt.filePart({ mediaType: "audio/mp3", data: "AAAA" })],
    opaque: [{ type: "odd", a: [1] }],
    opaqueInUser: [{ type: "file", file: { file_id: "f" } }, { type: "odd", a: [1] }],
    reasoning: (random) => Prompt.reasoningPart({ text: words(random) }),
    ordered: true,
    params: anyParams,
    fails: false,
    structured: false,
    resultImages: false,
    serverTools: false,
    cacheControl: false
  },
  responses: {
    turns: false,
    joinsAnswers: true,
    system: (random, started) => {
      if (!random.maybe(0.5)) return Prompt.systemMessage({ content: words(random) })
      const options = { openai: { role: "developer" } }
      return started
        ? Marks.set(Prompt.userMessage({ content: [text(random)], options }), { source: "runtime-context" })
        : Prompt.systemMessage({ content: words(random), options })
    },
    marks: false,
    files: [png, jpegUrl, pdf],
    opaque: [
      { type: "web_search_call", id: "ws", action: { query: "q" } },
      { type: "compaction", encrypted_content: "e" },
      { type: "item_reference", id: "x" }
    ],
    opaqueInUser: [{ type: "input_file", file_id: "f" }],
    reasoning: (random) =>
      Prompt.reasoningPart({
        text: words(random),
        options: random.maybe(0.5) ? {} : { openai: { itemId: `rs_${made++}`, encryptedContent: "e" } }
      }),
    ordered: false,
    params: anyParams,
    fails: false,
    structured: false,
    resultImages: true,
    serverTools: false,
    cacheControl: false
  },
  anthropic: {
    turns: true,
    joinsAnswers: true,
    system: (random) => Prompt.systemMessage({ content: words(random) }),
    marks: false,
    files: [png, jpegUrl, pdf],
    opaque: [{ type: "compaction", content: "c" }, { type: "odd", a: [1] }],
    opaqueInUser: [{ type: "container_upload", file_id: "f" }],
    reasoning: (random) => {
      const info = random.maybe(0.3)
        ? { type: "redacted_thinking", redactedData: "r" }
        : { type: "thinking", signature: `s${made++}` }
      return Prompt.reasoningPart({
        text: "redactedData" in info ? "" : words(random),
        options: { anthropic: { info } }
      })
    },
    ordered: false,
    params: (random) => ({ params: object(random) }),
    fails: true,
    structured: false,
    resultImages: true,
    serverTools: true,
    cacheControl: true
  },
  prompt: {
    turns: false,
    joinsAnswers: false,
    system: (random) => Prompt.systemMessage({ content: words(random) }),
    marks: true,
    files: [png, jpegUrl, pdf, () => Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1, 2]) })],
    opaque: [{ type: "odd", a: [1] }],
    opaqueInUser: [{ type: "odd", a: [1] }],
    reasoning: (random) => Prompt.reasoningPart({ text: words(random), options: { x: { signature: "s" } } }),
    ordered: false,
    params: anyParams,
    fails: true,
    structured: true,
    resultImages: true,
    serverTools: true,
    cacheControl: true
  }
}

/** A transcript with parallel calls, ids used again, orphans, images, signatures and empty texts. */
const transcript = (target: Target, random: Chance): Messages => {
  const messages: Array<Prompt.Message> = []
  const calls: Array<{ readonly id: string; readonly name: string; readonly at: number; open: boolean }> = []
  const cached = (): Prompt.ProviderOptions =>
    target.cacheControl && random.maybe(0.2) ? { anthropic: { cacheControl: { type: "ephemeral" } } } : {}
  const marked = <A extends Prompt.Message>(message: A): A =>
    target.marks && random.maybe(0.3)
      ? Marks.set(message, random.pick([{ source: "hook" }, { source: "cli" }, { ephemeral: true }, { pinned: true }]))
      : message
  const name = (id: string): string => {
    // Of the nearest message with an unanswered call the first, as on the wire.
    const open = calls.filter((call) => call.id === id && call.open)
    const call = open.find(({ at }) => at === open.at(-1)?.at)
    if (call !== undefined) call.open = false
    return (call ?? calls.findLast((call) => call.id === id))?.name ?? ""
  }
  const value = (): unknown => {
    if (target.structured && random.maybe(0.2)) return json(random)
    if (random.maybe(0.7)) return words(random)
    const block = () => ({ type: "text", text: words(random), ...(random.maybe(0.2) ? { extra: [1] } : {}) })
    const image = { type: "image", mediaType: "image/png", data: "AAAA" }
    return [
      { type: "text", text: words(random) },
      block(),
      ...(target.resultImages && random.maybe(0.5) ? [image] : [])
    ]
  }
  const result = (): Prompt.ToolResultPart => {
    const open = calls.filter((call) => call.open)
    const id = open.length > 0 && random.maybe(0.8)
      ? random.pick(open).id
      : random.pick([...new Set(calls.map(({ id }) => id)), "gone"])
    return Prompt.toolResultPart({
      id,
      name: name(id),
      isFailure: target.fails && random.maybe(0.2),
      result: value(),
      providerExecuted: false,
      options: cached()
    })
  }
  const userPart = (): Prompt.UserMessagePart => {
    if (random.maybe(0.7)) return text(random, cached())
    return random.maybe(0.7) ? random.pick(target.files)() : opaque(random.pick(target.opaqueInUser))
  }
  const user = (least: number) =>
    marked(Prompt.userMessage({ content: Array.from({ length: least + random.below(3) }, userPart) }))
  const answer = (): Prompt.AssistantMessage => {
    const thoughts = Array.from({ length: random.below(2) }, () => target.reasoning(random))
    const said = Array.from(
      { length: random.below(3) },
      () => random.maybe(0.85) ? text(random, cached()) : opaque(random.pick(target.opaque))
    )
    const made: Array<Prompt.AssistantMessagePart> = []
    for (let n = random.below(4); n > 0; n--) {
      const call = { id: random.pick(["a", "b", "c", `call_${n}`]), name: random.pick(["ls", "grep"]) }
      const { options, params } = target.params(random)
      made.push(
        Prompt.toolCallPart({ ...call, params, providerExecuted: false, options: { ...options, ...cached() } })
      )
      calls.push({ ...call, open: true, at: messages.length })
    }
    if (target.serverTools && random.maybe(0.2)) {
      const server = { id: "srv", name: "web_search", providerExecuted: true }
      made.push(
        Prompt.toolCallPart({ ...server, params: object(random) }),
        Prompt.toolResultPart({
          ...server,
          isFailure: false,
          result: [{ type: "web_search_result", url: words(random) }]
        })
      )
    }
    if (thoughts.length + said.length + made.length === 0) said.push(text(random))
    const content = target.ordered || random.maybe(0.5)
      ? [...thoughts, ...said, ...made]
      : [...made, ...said, ...thoughts]
    return marked(Prompt.assistantMessage({ content }))
  }
  for (let n = random.below(3); n > 0; n--) messages.push(marked(target.system(random, false)))
  for (let n = 1 + random.below(8); n > 0; n--) {
    if (target.turns) {
      if (random.maybe(0.7)) {
        messages.push(Prompt.toolMessage({ content: Array.from({ length: 1 + random.below(3) }, result) }))
        if (random.maybe(0.5)) messages.push(user(1))
      } else messages.push(user(1))
      messages.push(answer())
      continue
    }
    const kind = random.below(10)
    const previous = messages.at(-1)
    const started = messages.some(({ role }) => role !== "system")
    if (kind < 3) messages.push(user(0))
    else if (kind < 6 && !(target.joinsAnswers && previous?.role === "assistant")) messages.push(answer())
    else if (kind < 9) messages.push(marked(Prompt.toolMessage({ content: [result()] })))
    else messages.push(marked(target.system(random, started)))
  }
  return messages
}

describe("round trips", () => {
  for (const name of Object.keys(formats) as ReadonlyArray<Name>) {
    it(`${name} holds 500 random transcripts whole`, () => {
      let parts = 0
      for (let seed = 1; seed <= 500; seed++) {
        const messages = transcript(targets[name], chance(seed))
        keeps(formats[name], messages)
        parts += messages.reduce((sum, message) => sum + message.content.length, 0)
      }
      assert.isAbove(parts, 2000)
    })
  }

  /** The texts of a part or message that no other has. */
  const tokens = (value: unknown): ReadonlyArray<string> =>
    (JSON.stringify(value, (key, inner) => key === "options" || key === "name" || key === "id" ? undefined : inner)
      .match(/ t\d+|s\d+(?=")/g)) ?? []

  // What one format can hold, written in another: whatever is not written is listed with its place.
  for (const source of Object.keys(formats) as ReadonlyArray<Name>) {
    for (const target of Object.keys(formats) as ReadonlyArray<Name>) {
      if (source === target) continue
      it(`${source} written as ${target} loses nothing silently`, () => {
        const { write } = formats[target]
        let lossy = 0
        for (let seed = 1; seed <= 100; seed++) {
          const messages = transcript(targets[source], chance(seed))
          const { losses, value } = write(messages)
          const written = JSON.stringify(value)
          if (losses.length > 0) lossy++
          for (const [i, message] of messages.entries()) {
            const parts = message.role === "system" ? [message] : message.content
            for (const [j, part] of parts.entries()) {
              for (const token of tokens(part)) {
                const place = `messages[${i}].content[${j}]`
                assert(
                  written.includes(token) || losses.some(({ detail }) => detail.startsWith(place)),
                  `seed ${seed}, ${place}: ${token} is neither written nor listed`
                )
              }
            }
          }
          // What was written is a body of the format, and stays as it is from then on.
          const again = parse(formats[target], [JSON.parse(written), 0])
          if (Result.isSuccess(again)) {
            const twice = write(again.success.messages)
            equal(JSON.parse(JSON.stringify(twice.value)), JSON.parse(written), `seed ${seed}`)
            assert.deepStrictEqual(twice.losses, [], `seed ${seed}`)
          } else assert.strictEqual(again.failure.expected, "expected at least one message")
        }
        if (target === "prompt") assert.strictEqual(lossy, 0)
        else assert.isAbove(lossy, 0)
      })
    }
  }
})

describe("recorded sessions", () => {
  // The formats that a recorded session was sent in, and that hold it without a loss.
  const home: { readonly [format: string]: Name } = {
    "amplifier": "anthropic",
    "claude-code": "anthropic",
    "codex": "responses",
    "anthropic-messages": "anthropic",
    "openai-chat": "chat",
    "openai-responses": "responses"
  }
  const list = recorded("REPLAY.txt")
  const files = existsSync(list)
    ? readFileSync(list, "utf8").split("\n").filter((line) => line !== "" && !line.startsWith("#"))
    : []
  if (files.length === 0) it.skip("the recorded sessions are not on this machine", () => {})
  for (const file of files) {
    it(`${file} is written in every format, and stays as it was written`, () => {
      const session = Result.getOrThrow(Format.fromString(readFileSync(recorded(file), "utf8"), { file }))
      for (const [name, wire] of Object.entries(formats)) {
        const { losses, value } = wire.write(session.messages)
        if (name === "prompt" || name === home[session.format]) assert.deepStrictEqual(losses, [])
        const written: unknown = JSON.parse(JSON.stringify(value))
        const twice = wire.write(read(wire, written).messages)
        equal(twice.value, written)
        assert.deepStrictEqual(twice.losses, [])
      }
    })
  }
})

describe("broken documents", () => {
  const samples: ReadonlyArray<readonly [name: Name, file: string]> = [
    ["chat", "openai-chat/derived-tau-airline-task33-trial0.json"],
    ["responses", "openai-responses/derived-codex-input-gpt55-image.json"],
    ["anthropic", "anthropic-messages/derived-claude-trace-longest-body.json"]
  ]

  const survives = (wire: Wire, document: unknown): "read" | "failed" => {
    // What is mutated is JSON again.
    const result = parse(wire, [document, 0])
    // Detection sees it too.
    Format.fromString(JSON.stringify(document), { file: "x.json" })
    if (Result.isFailure(result)) {
      const { expected, file, line } = result.failure
      assert.deepStrictEqual([file, line], ["file.json", 0])
      assert.notStrictEqual(expected, "")
      return "failed"
    }
    for (const { write } of Object.values(formats)) JSON.stringify(write(result.success.messages).value)
    return "read"
  }

  for (const name of Object.keys(formats) as ReadonlyArray<Name>) {
    it(`${name}: 500 mutated documents are read or fail with their place`, () => {
      const seen = { read: 0, failed: 0 }
      for (let seed = 1; seed <= 500; seed++) {
        const random = chance(seed)
        const { value } = formats[name].write(transcript(targets[name], random))
        seen[survives(formats[name], mutated(value, random))]++
      }
      assert.isAbove(seen.read, 50)
      assert.isAbove(seen.failed, 50)
    })
  }

  for (const [name, file] of samples) {
    const path = recorded(file)
    if (!existsSync(path)) it.skip(`${file} is not on this machine`, () => {})
    else {
      it(`${file}: 100 mutated copies`, () => {
        const document: unknown = JSON.parse(readFileSync(path, "utf8"))
        read(formats[name], document)
        const seen = { read: 0, failed: 0 }
        for (let seed = 1; seed <= 100; seed++) seen[survives(formats[name], mutated(document, chance(seed)))]++
        assert.isAbove(seen.read, 0)
        assert.isAbove(seen.failed, 0)
      }, 60_000)
    }
  }
})
