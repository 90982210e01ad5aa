/** Feeds the records of a file to a reader: each conversation of a pool to one of its own, as it comes, all else to one. */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Reader from "../Reader.ts"
import type * as Session from "../Session.ts"
import type * as Detect from "./detect.ts"
import * as Json from "./json.ts"

/** What a file holds: its sessions, one at least, and how many conversations there were in all. */
export interface Contents {
  readonly file: string
  readonly sessions: ReadonlyArray<Session.Session>
  readonly conversations: number
}

/** Which reader a file is for, and which of its conversations is wanted; all where none is named. */
export interface Wanted {
  readonly file: string
  readonly format?: Session.FormatName
  readonly conversation?: number
}

/** A reader at work. `pooled` is how many conversations came so far, `single` reads what is no pool. */
export interface Feed {
  readonly detected: Detect.Detected
  readonly wanted: Wanted
  readonly pool: Array<Session.Session>
  pooled: number | undefined
  single: Reader.Parse | undefined
}

export const make = (detected: Detect.Detected, wanted: Wanted): Feed => ({
  detected,
  wanted,
  pool: [],
  pooled: undefined,
  single: undefined
})

const start = ({ detected: { reader, why } }: Feed, file: string): Reader.Parse => reader.start(file, why)

const one = (self: Feed, value: Schema.Json, line: number): Json.Read<void> => {
  const { conversation, file } = self.wanted
  const number = self.pooled ?? 0
  self.pooled = number + 1
  if (conversation !== undefined && conversation !== number) return Result.void
  const parse = start(self, `${file}#${number}`)
  return Result.map(Result.flatMap(parse.record(value, line), parse.end), (session) => {
    if (session.messages.length > 0) self.pool.push(session)
  })
}

export const record = (self: Feed, value: Schema.Json, line: number): Json.Read<void> => {
  const { file } = self.wanted
  const conversations = self.detected.reader.split?.(value)
  if (conversations === undefined || self.single !== undefined) {
    if (self.pooled !== undefined) return Json.fail({ file, line, field: "" }, "expected a conversation, as before")
    self.single ??= start(self, file)
    return self.single.record(value, line)
  }
  self.pooled ??= 0
  for (const value of conversations) {
    const read = one(self, value, line)
    if (Result.isFailure(read)) return read
  }
  return Result.void
}

const noMessage = ({ detected: { reader } }: Feed, file: string): Json.Read<never> =>
  Json.fail({ file, line: 0, field: "" }, `no message of the format ${reader.format} in the file`)

export const end = (self: Feed): Json.Read<Contents> =>
  Result.gen(function*() {
    const { pool, pooled, wanted: { conversation, file } } = self
    const count = Math.max(1, pooled ?? 1)
    if (conversation !== undefined && conversation >= count) {
      return yield* Json.fail(
        { file, line: 0, field: "" },
        `no conversation ${conversation}; the file holds ${count}, from ${file}#0`
      )
    }
    if (pooled === undefined) {
      const session = yield* (self.single ?? start(self, file)).end()
      if (session.messages.length === 0) return yield* noMessage(self, session.file)
      return { file, sessions: [session], conversations: 1 }
    }
    if (pool.length === 0) return yield* noMessage(self, conversation === undefined ? file : `${file}#${conversation}`)
    return { file, sessions: pool, conversations: pooled }
  })
