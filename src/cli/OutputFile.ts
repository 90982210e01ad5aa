/**
 * A file that a command writes: it is there whole, or what was there before still is.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/**
 * Fails when something could not be written: a file, or standard output.
 */
export class NotWritten extends Schema.TaggedError<NotWritten>("effect-compaction/cli/NotWritten")("NotWritten", {
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.file}: it could not be written: ${this.reason}`
  }
}

const reasons: { readonly [code: string]: string } = {
  EACCES: "permission denied",
  EDQUOT: "the disk quota is used up",
  EEXIST: "it is there already",
  EFBIG: "a file may not be so large here",
  EISDIR: "it is a directory",
  ENOENT: "there is no such directory",
  ENOSPC: "no space is left on the device",
  ENOTDIR: "a part of its path is no directory",
  EPERM: "it is not permitted",
  EROFS: "the file system is read-only"
}

/** Why the system refused, in words where it is one of the usual reasons. */
export const reasonOf = (cause: unknown): string => {
  if (typeof cause !== "object" || cause === null) return String(cause)
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : ""
  return reasons[code] ?? ("message" in cause ? String(cause.message) : code)
}

const failedFor = (file: string) => (error: PlatformError) =>
  new NotWritten({ file, reason: reasonOf(error.reason.cause ?? error) })

/** Devices and pipes take what they are given; nothing can be put in their place. */
const isInDevices = (path: string): boolean => /^\/(?:dev|proc)\//.test(path)

/** Puts a text at a place in one step: it is written beside it first. */
const replace = Effect.fnUntraced(function*(place: string, text: string, mode: number | undefined) {
  const files = yield* FileSystem.FileSystem
  const beside = `${place}.${(yield* Random.nextInt).toString(36).replace("-", "n")}.tmp`
  const write = Effect.scoped(Effect.flatMap(
    files.open(beside, { flag: "wx", ...(mode === undefined ? undefined : { mode }) }),
    (file) => Effect.andThen(file.writeAll(new TextEncoder().encode(text)), file.sync)
  ))
  yield* Effect.andThen(write, files.rename(beside, place)).pipe(
    Effect.onError(() => Effect.ignore(files.remove(beside)))
  )
})

/**
 * Writes a text into a file, in place of one that was there. With `isNew` the file must not be there. `mode` counts for a new
 * file, and is else that of the old one. Nothing half-written stays behind, also when the process is told to end.
 */
export const write = Effect.fnUntraced(function*(
  file: string,
  text: string,
  options: { readonly isNew?: boolean; readonly mode?: number } = {}
): Effect.fn.Return<void, NotWritten, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const write = Effect.gen(function*() {
    if (options.isNew === true) {
      // The empty file holds the name: whoever comes second fails.
      yield* files.writeFile(file, new Uint8Array(), { flag: "wx", ...options })
      return yield* Effect.onError(replace(file, text, options.mode), () => Effect.ignore(files.remove(file)))
    }
    const found = yield* Effect.result(files.stat(file))
    if (Result.isFailure(found)) return yield* replace(file, text, options.mode)
    const isPlain = found.success.type === "File" && !isInDevices(path.resolve(file))
    return yield* isPlain
      ? replace(yield* files.realPath(file), text, found.success.mode & 0o777)
      : files.writeFileString(file, text)
  })
  yield* Effect.mapError(write, failedFor(file))
})
