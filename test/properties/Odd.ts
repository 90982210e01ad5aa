import * as Marks from "effect-compaction/Marks"
import type * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Random from "./Random.ts"
import type * as Script from "./Script.ts"

/** Ids as other servers and files have them: refused, repeated, missing, too long, and like those that are made here. */
const ids = (random: Random.Random): (id: string) => string => {
  const known = new Map<string, string>()
  return (id) => {
    const given = known.get(id) ?? random.pick([
      id,
      `functions.read:${known.size}`,
      `ls:${random.below(3)}`,
      "call_0",
      "",
      `${id}_${"x".repeat(40)}`,
      "call_0_ec01234567",
      "a|b"
    ])
    known.set(id, given)
    return given
  }
}

const withId = (part: Prompt.Part, rename: (id: string) => string): Prompt.Part =>
  part.type === "tool-call" || part.type === "tool-result"
    ? { ...part, id: rename(part.id) }
    : part.type === "tool-approval-request"
    ? { ...part, toolCallId: rename(part.toolCallId) }
    : part

/** An item that `Prompt` has no part for. */
const opaque = (random: Random.Random): Prompt.TextPart =>
  Marks.set(Prompt.makePart("text", { text: "" }), {
    raw: random.pick<Schema.Json>([{ type: "compaction", encrypted_content: "c2Vj".repeat(20) }, {
      type: "web_search_call"
    }, [
      "no",
      1
    ]])
  })

const screenshot = (random: Random.Random) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo".repeat(random.pick([1, 20, 200])) }
})

const nested = (levels: number): unknown => {
  let value: unknown = "end"
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

/** What a session has of it, each kind for itself. */
interface Kinds {
  readonly rename: ((id: string) => string) | undefined
  readonly opaque: boolean
  readonly media: boolean
  readonly deep: boolean
}

const oddPart = (random: Random.Random, kinds: Kinds) => (part: Prompt.Part): ReadonlyArray<Prompt.Part> => {
  const named = kinds.rename === undefined ? part : withId(part, kinds.rename)
  if (named.type === "text" && kinds.opaque && random.chance(0.1)) return [opaque(random), named]
  if (named.type === "tool-result" && typeof named.result === "string" && kinds.media && random.chance(0.4)) {
    return [{ ...named, result: [{ type: "text", text: named.result }, screenshot(random)] }]
  }
  if (named.type === "tool-call" && kinds.deep && random.chance(0.1)) return [{ ...named, params: nested(900) }]
  return [named]
}

const oddMessage = (random: Random.Random, kinds: Kinds) => (message: Prompt.Message): Prompt.Message => {
  if (message.role === "system") return message
  const parts: ReadonlyArray<Prompt.Part> = message.content
  // The parts are those of this message, or texts beside texts; the union of roles loses that.
  return { ...message, content: parts.flatMap(oddPart(random, kinds)) } as Prompt.Message
}

/** The same session with inputs of the kinds that come from other servers, files and tools. */
export const script = (self: Script.Script): Script.Script => {
  const random = Random.make(self.seed * 31 + 7)
  const kinds: Kinds = {
    rename: random.chance(0.6) ? ids(random) : undefined,
    opaque: random.chance(0.4),
    media: random.chance(0.4),
    deep: random.chance(0.05)
  }
  const limits: Settings.Input = {
    ...(kinds.media && random.chance(0.5) ? { maxImages: random.below(6) } : undefined),
    ...(kinds.media && random.chance(0.5) ? { maxRequestBytes: random.pick([500, 5_000, 20_000]) } : undefined)
  }
  const operations = self.operations.map((operation): Script.Operation =>
    operation._tag === "append"
      ? { ...operation, messages: operation.messages.map(oddMessage(random, kinds)) }
      : operation._tag === "edit"
      ? { ...operation, message: oddMessage(random, kinds)(operation.message) }
      : operation
  )
  return { ...self, settings: { ...self.settings, ...limits }, operations }
}
