/**
 * Where the full text of a shortened tool result goes, so that the model can ask for it again.
 *
 * A store answers two questions. Where would a text lie ({@link Service.locate})? That is pure: the pointer in a shortened
 * result does not depend on the disk, so a failed write changes no byte that was sent. And: put it there, get it back.
 * Without a layer there is no store, and a shortened result names no place.
 *
 * **Gotchas**
 *
 * Nothing is ever deleted: an earlier request may hold the pointer still. The caller owns the life of the place; one
 * directory, or one prefix, for each session is advised.
 *
 * @since 0.1.0
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Sha256 from "./text/sha256.ts"
import { safeCut } from "./text/text.ts"
import * as Transcript from "./Transcript.ts"

/**
 * Fails when a text could not be written or read. A turn never fails because of it: the manager publishes `SpillFailed`
 * and tries again.
 *
 * @category errors
 * @since 0.1.0
 */
export class SpillError extends Schema.TaggedError<SpillError>("effect-compaction/SpillError")("SpillError", {
  key: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `The spill store cannot hold ${this.key}: ${this.reason}. Give SpillStore another place, or none.`
  }
}

/**
 * **Details**
 *
 * - `put`: writes a text under its key; putting it again is fine, the key follows from the text.
 * - `get`: the text of a key, `undefined` when there is none.
 * - `locate`: what a shortened result tells the model to read, `undefined` when nothing is stored; pure.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  readonly put: (key: string, text: string) => Effect.Effect<void, SpillError>
  readonly get: (key: string) => Effect.Effect<string | undefined, SpillError>
  readonly locate: (key: string) => string | undefined
}

/**
 * The store that holds nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: Service = {
  put: () => Effect.void,
  get: () => Effect.undefined,
  locate: () => undefined
}

/**
 * The store of a session: {@link none} unless another is provided.
 *
 * @category services
 * @since 0.1.0
 */
export const SpillStore = Context.Reference<Service>("effect-compaction/SpillStore", { defaultValue: () => none })

/**
 * Tells where the full text of a result would lie, `undefined` for nowhere.
 *
 * @category models
 * @since 0.1.0
 */
export interface Locate {
  (entry: Transcript.Entry): string | undefined
}

const pattern = /^tool-result-\d{6,}-[0-9a-f]{16}\.txt$/

/** The keys that were made; hashing a long text again at each pass would cost more than the pass. */
const keys = new WeakMap<Transcript.Entry, string>()

/**
 * The key of a tool result: its seq, and the start of the SHA-256 of its full text. Nothing of the conversation's words is
 * in it, so no path can be forged.
 *
 * @category getters
 * @since 0.1.0
 */
export const keyOf = (entry: Transcript.Entry): string => {
  let key = keys.get(entry)
  if (key === undefined) {
    const hash = Sha256.hex(Transcript.textOf(entry)).slice(0, 16)
    keys.set(entry, key = `tool-result-${String(entry.seq).padStart(6, "0")}-${hash}.txt`)
  }
  return key
}

/**
 * The name of {@link retrieveTool}. What it returned is a stored text already: it is not stored again, and not capped.
 *
 * @category constants
 * @since 0.1.0
 */
export const retrieveToolName = "read_spilled"

/**
 * Where a store would put the full text of a result.
 *
 * @category getters
 * @since 0.1.0
 */
export const locateIn = (service: Service): Locate => (entry) =>
  service === none || entry.tool === retrieveToolName ? undefined : service.locate(keyOf(entry))

/**
 * Provides no store.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerNone: Layer.Layer<never> = Layer.succeed(SpillStore, none)

/**
 * Keeps the texts in memory, as long as the layer lives; a result names its key. For agents that have
 * {@link retrieveTool}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<never> = Layer.effect(
  SpillStore,
  Effect.sync(() => {
    const texts = new Map<string, string>()
    return {
      put: (key, text) =>
        Effect.sync(() => {
          texts.set(key, text)
        }),
      get: (key) => Effect.sync(() => texts.get(key)),
      locate: (key) => key
    }
  })
)

/**
 * Keeps the texts in a `KeyValueStore`, under keys that begin with `prefix`; a result names its key without it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerKeyValueStore = (options?: {
  readonly prefix?: string
}): Layer.Layer<never, never, KeyValueStore.KeyValueStore> =>
  Layer.effect(
    SpillStore,
    Effect.map(KeyValueStore.KeyValueStore, (store) => {
      const { get, set } = KeyValueStore.prefix(store, options?.prefix ?? "")
      const failed = (key: string) => (error: KeyValueStore.KeyValueStoreError) =>
        new SpillError({ key, reason: error.message })
      return {
        put: (key, text) => Effect.mapError(set(key, text), failed(key)),
        get: (key) => Effect.mapError(get(key), failed(key)),
        locate: (key) => key
      }
    })
  )

/** The bits of a mode that let anybody but the owner in. */
const others = 0o077

/** What is wrong with a directory, or `undefined`. */
const faultOfDirectory = (info: FileSystem.File.Info, hasModes: boolean): string | undefined => {
  if (info.type === "SymbolicLink") return "the directory is a symbolic link"
  if (info.type !== "Directory") return "the path is no directory"
  if (hasModes && (info.mode & others) !== 0) return "the directory is open to other users (chmod 700 it)"
  return undefined
}

const isOtherOwner = (a: FileSystem.File.Info, b: FileSystem.File.Info): boolean =>
  Option.isSome(a.uid) && Option.isSome(b.uid) && a.uid.value !== b.uid.value

/**
 * Keeps each text in a file of `directory`; a result names the whole path, so an agent that can read files can read it.
 *
 * **Details**
 *
 * The directory is made when the first text is written, for its owner alone (0700), the files too (0600). A text is
 * written to a new file beside its place and then moved there, so a file is whole or not there. A file that is there
 * already is the right one: its name holds the hash of its text.
 *
 * Refused, with `SpillError`: a directory that is a symbolic link, belongs to somebody else, or is open to others; and
 * anything but a file where a text should lie.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFileSystem = (
  directory: string
): Layer.Layer<never, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    SpillStore,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const root = path.resolve(directory)
      // Windows knows no such bits: there a directory seems open to everybody.
      const hasModes = path.sep === "/"

      const refused = (key: string, reason: string) => new SpillError({ key, reason: `${reason}: ${root}` })
      const failed = (key: string) => (error: PlatformError) =>
        Effect.fail(new SpillError({ key, reason: error.message }))

      /** What is at a path, links not followed; `undefined` for nothing. */
      const at = (file: string) =>
        Effect.catchReason(fs.lstat(file), "PlatformError", "NotFound", () => Effect.undefined)

      const openDirectory = Effect.fnUntraced(function*(key: string) {
        if ((yield* at(root)) === undefined) yield* fs.makeDirectory(root, { recursive: true, mode: 0o700 })
        const info = yield* fs.lstat(root)
        const fault = faultOfDirectory(info, hasModes)
        if (fault !== undefined) return yield* refused(key, fault)
        return info
      })

      /** What lies where a text belongs; only a file may. */
      const stored = Effect.fnUntraced(function*(key: string) {
        const info = yield* at(path.join(root, key))
        if (info === undefined || info.type === "File") return info !== undefined
        return yield* refused(key, "something that is no file lies in its place")
      })

      const write = Effect.fnUntraced(function*(
        key: string,
        file: string,
        text: string,
        info: FileSystem.File.Info
      ): Effect.fn.Return<void, SpillError | PlatformError, Scope.Scope> {
        const handle = yield* fs.open(file, { flag: "wx", mode: 0o600 })
        // Nothing says who we are but the owner of what we make: a text is written only where that is the directory's.
        if (isOtherOwner(yield* handle.stat, info)) return yield* refused(key, "the directory belongs to somebody else")
        yield* handle.writeAll(new TextEncoder().encode(text))
      })

      const put = Effect.fnUntraced(function*(key: string, text: string) {
        if (!pattern.test(key)) return yield* refused(key, "the key is none of this library's")
        const info = yield* openDirectory(key)
        if (yield* stored(key)) return
        const unique = (yield* Random.nextIntBetween(0, 0x7fff_ffff)).toString(36)
        const temporary = path.join(root, `${key}.${unique}.tmp`)
        yield* Effect.andThen(
          Effect.scoped(write(key, temporary, text, info)),
          fs.rename(temporary, path.join(root, key))
        ).pipe(Effect.onError(() => Effect.ignore(fs.remove(temporary))))
      })

      const get = Effect.fnUntraced(function*(key: string) {
        if (!pattern.test(key) || (yield* at(root)) === undefined) return undefined
        const fault = faultOfDirectory(yield* fs.lstat(root), hasModes)
        if (fault !== undefined) return yield* refused(key, fault)
        return (yield* stored(key)) ? yield* fs.readFileString(path.join(root, key)) : undefined
      })

      return {
        put: (key, text) => Effect.catchTag(put(key, text), "PlatformError", failed(key)),
        get: (key) => Effect.catchTag(get(key), "PlatformError", failed(key)),
        locate: (key) => path.join(root, key)
      }
    })
  )

/**
 * Lets the model read a stored text, part by part; for agents that have no tool that reads files.
 *
 * **Details**
 *
 * `key` is what the shortened result names, or a path that ends in it; nothing else of the path is used. `offset` and
 * `limit` are in characters (UTF-16 code units): from the start and 20,000 where they are left out. What was not found is
 * a failed result, no error.
 *
 * @category tools
 * @since 0.1.0
 */
export const retrieveTool = Tool.make(retrieveToolName, {
  description: "Reads the full text of a tool result that was shortened to save room. Give the name that the shortened "
    + "result mentions (tool-result-….txt). Read on with a larger offset.",
  parameters: Schema.Struct({
    key: Schema.String.annotate({ description: "the name that the shortened result mentions" }),
    offset: Schema.optionalKey(Schema.Natural.annotate({ description: "the first character to read, from 0" })),
    limit: Schema.optionalKey(Schema.Natural.annotate({ description: "how many characters to read, 20000 by default" }))
  }),
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return"
}).annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)

const defaultLimit = 20_000

const read = (text: string, offset: number, limit: number): string => {
  const from = safeCut(text, Math.min(offset, text.length))
  const to = safeCut(text, Math.min(from + limit, text.length))
  const part = text.slice(from, to)
  return to < text.length || from > 0 ? `${part}\n[characters ${from} to ${to} of ${text.length}]` : part
}

/**
 * The toolkit that holds {@link retrieveTool} alone; merge it with an agent's own.
 *
 * @category tools
 * @since 0.1.0
 */
export const retrieveToolkit = Toolkit.make(retrieveTool)

/**
 * Handles {@link retrieveTool} over the store that is provided.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRetrieve: Layer.Layer<Tool.HandlersFor<typeof retrieveToolkit.tools>> = retrieveToolkit.toLayer(
  Effect.map(SpillStore, (store) => ({
    read_spilled: ({ key, limit, offset }) => {
      const name = key.slice(Math.max(key.lastIndexOf("/"), key.lastIndexOf("\\")) + 1)
      const unknown = Effect.fail(`No stored result has this name: it is the tool-result-….txt of a shortened result.`)
      if (!pattern.test(name)) return unknown
      return Effect.matchEffect(store.get(name), {
        onFailure: (error) => Effect.fail(error.message),
        onSuccess: (text) =>
          text === undefined ? unknown : Effect.succeed(read(text, offset ?? 0, limit ?? defaultLimit))
      })
    }
  }))
)
