import * as Context from "effect/Context"

/**
 * What is known of the process that opens sessions, and what it can tell of others.
 *
 * **Details**
 *
 * - `pid`, `host`: what the lock of a session names. An empty `host` is one that is not known.
 * - `boot`, `machine`, `space`: which start of which machine this is, and within what the numbers of processes count (a
 *   container has its own); `null` where the system does not tell.
 * - `isAlive`: whether a process of this number runs here. `begunAt`: when it began, in the words of the system; `null`
 *   where that is not told.
 * - `nonces`: the locks that this process made and has not given back.
 *
 * @category models
 * @since 0.1.0
 */
export interface Holder {
  readonly pid: number
  readonly host: string
  readonly boot: string | null
  readonly machine: string | null
  readonly space: string | null
  readonly isAlive: (pid: number) => boolean
  readonly begunAt: (pid: number) => string | null
  readonly nonces: Set<string>
}

/** What a lock says of who took it. */
export interface Taken {
  readonly pid: number
  readonly host: string
  readonly boot?: string | null
  readonly machine?: string | null
  readonly space?: string | null
  readonly begun?: string | null
  readonly nonce: string
}

/** Whether both are known, and how they compare. */
const compared = (a: string | null | undefined, b: string | null | undefined): "same" | "other" | "unknown" =>
  a === null || b === null || a === undefined || b === undefined ? "unknown" : a === b ? "same" : "other"

/**
 * What has become of who took a lock: it runs, it is gone, or nothing here can tell. A lock is taken over only from one
 * that is gone for certain.
 */
export const judge = (self: Holder, taken: Taken): "runs" | "gone" | "unknown" => {
  if (self.nonces.has(taken.nonce)) return "runs"
  const boot = compared(taken.boot, self.boot)
  const space = compared(taken.space, self.space)
  if (self.host === "" || taken.host !== self.host) {
    // A machine may change its name while it runs; another one, or a container of its own, cannot be looked into.
    if (boot !== "same" || space !== "same") return "unknown"
  } else if (boot === "other") {
    // It was started anew since, or it is another one of the same name.
    return compared(taken.machine, self.machine) === "same" ? "gone" : "unknown"
  }
  const begun = compared(taken.begun, self.begunAt(taken.pid))
  if (taken.pid === self.pid) {
    // This very process (another thread of it, another copy of this library) began when the lock says; any other that had
    // its number is gone, be it an earlier one or the one of this container before it was started again.
    return boot === "same" && begun === "same" ? "runs" : "gone"
  }
  if (space === "other") return "unknown"
  if (!self.isAlive(taken.pid)) return "gone"
  // The number may have been given to another process since.
  return begun === "other" ? "gone" : "runs"
}

/** What of `process` is used; Bun and Deno have it too. */
interface ProcessLike {
  readonly pid: number
  readonly kill: (pid: number, signal: 0) => unknown
  readonly getBuiltinModule?: (name: string) => unknown
}

interface FilesLike {
  readonly readFileSync: (file: string, encoding: "utf8") => string
  readonly readlinkSync: (file: string) => string
}

/** What the global object has, of which its type says nothing. */
interface Global {
  readonly process?: ProcessLike
  [nonces]?: Set<string>
}

const nonces = Symbol.for("effect-compaction/SessionStore/nonces")

/** What a system may tell or not. */
const told = <A extends string>(look: () => A | undefined): A | null => {
  try {
    const found = look()
    return found === undefined || found === "" ? null : found
  } catch {
    return null
  }
}

/** The process that this runs in, as far as the runtime tells. */
const current = (): Holder => {
  // The type of the global object says nothing of what runtimes and this module add to it.
  const global = globalThis as Global
  const { process } = global
  // There may be several copies of this library in a process: they share what they hold.
  const own = global[nonces] ??= new Set()
  // The modules are those of Node, of whose functions three are used.
  const os = process?.getBuiltinModule?.("node:os") as { readonly hostname: () => string } | undefined
  const files = process?.getBuiltinModule?.("node:fs") as FilesLike | undefined // As above.
  const line = (file: string) => told(() => files?.readFileSync(file, "utf8").trim())
  return {
    pid: process?.pid ?? 0,
    host: told(() => os?.hostname()) ?? "",
    boot: line("/proc/sys/kernel/random/boot_id"),
    machine: line("/etc/machine-id"),
    space: told(() => files?.readlinkSync("/proc/self/ns/pid")),
    isAlive: (pid) => {
      if (process === undefined) return true
      try {
        process.kill(pid, 0)
        return true
      } catch (error) {
        // ESRCH: there is none. EPERM: it runs, as somebody else's. What `kill` throws is an error of the system.
        return (error as { readonly code?: string }).code !== "ESRCH"
      }
    },
    // The 22nd field; the second one is a name in brackets that may hold anything.
    begunAt: (pid) => told(() => line(`/proc/${pid}/stat`)?.replace(/^.*\)\s/s, "").split(" ")[19]),
    nonces: own
  }
}

/**
 * The process that opens sessions; by default the one that this runs in.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentHolder = Context.Reference<Holder>("effect-compaction/SessionStore/CurrentHolder", {
  defaultValue: current
})
