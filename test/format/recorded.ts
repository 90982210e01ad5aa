/** Recorded sessions that stand beside the project where they are, and counts of what was read. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Marks from "effect-compaction/Marks"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

export const recorded = (name: string): string =>
  fileURLToPath(new URL(`../../../shared/transcripts/${name}`, import.meta.url))

/** A test of one recorded session; skipped, with the name of the file, where it is absent. */
export const itReads = (name: string, check: (session: Session.Session) => void) => {
  const path = recorded(name)
  if (!existsSync(path)) it.skip(`${name} (the recorded session is not on this machine)`, () => {})
  else {
    it.effect(name, () => Format.read(path).pipe(Effect.map(check), Effect.provide(NodeServices.layer)), 30_000)
  }
}

export interface Counts {
  readonly human: number
  readonly machine: number
  readonly assistant: number
  readonly calls: number
  readonly results: number
  readonly images: number
  readonly signatures: number
}

export const count = (session: Session.Session): Counts => {
  const counts = { human: 0, machine: 0, assistant: 0, calls: 0, results: 0, images: 0, signatures: 0 }
  for (const message of session.messages) {
    if (message.role === "system") continue
    if (message.role === "assistant") counts.assistant++
    if (message.role === "user") {
      if (Marks.machineSources.has(Marks.of(message).source ?? "")) counts.machine++
      else counts.human++
    }
    for (const part of message.content) {
      if (part.type === "tool-call") counts.calls++
      if (part.type === "file") counts.images++
      if (part.type === "reasoning" && JSON.stringify(part.options).includes("\"signature\"")) counts.signatures++
      if (part.type === "tool-result") {
        counts.results++
        const blocks: ReadonlyArray<unknown> = Array.isArray(part.result) ? part.result : []
        counts.images += blocks.filter((block) => JSON.stringify(block).startsWith("{\"type\":\"image\"")).length
      }
    }
  }
  return counts
}

/** The sums of all buckets over the session, of what is known. */
export const billed = (session: Session.Session) => {
  const sum = { responses: session.usage.size, fresh: 0, cacheRead: 0, cacheWrite: 0, output: 0 }
  for (const usage of session.usage.values()) {
    sum.fresh += usage.fresh ?? 0
    sum.cacheRead += usage.cacheRead ?? 0
    sum.cacheWrite += usage.cacheWrite ?? 0
    sum.output += usage.output ?? 0
  }
  return sum
}

/** One line for each message: role, source and parts, for tables of what was read. */
export const outline = (session: Session.Session): ReadonlyArray<string> =>
  session.messages.map((message) => {
    const source = Marks.of(message).source
    const head = source === undefined ? message.role : `${message.role}/${source}`
    if (message.role === "system") return `${head} ${message.content}`
    const parts: Array<string> = []
    for (const part of message.content) {
      if (part.type === "text") parts.push(part.text === "" ? "opaque" : part.text)
      if (part.type === "reasoning") parts.push(`reasoning(${part.text})`)
      if (part.type === "file") parts.push(`file(${part.mediaType})`)
      if (part.type === "tool-call") parts.push(`call(${part.id} ${part.name})`)
      if (part.type === "tool-result") {
        parts.push(`result(${part.id} ${part.name}${part.isFailure ? " failed" : ""}: ${JSON.stringify(part.result)})`)
      }
    }
    return `${head} ${parts.join(" + ")}`
  })

export const lines = (records: ReadonlyArray<unknown>): string =>
  records.map((record) => JSON.stringify(record)).join("\n")

export const kinds = (session: Session.Session): ReadonlyArray<string> =>
  session.findings.map(({ kind, line }) => `${line} ${kind}`)
