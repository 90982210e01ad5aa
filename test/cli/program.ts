/** The command line as a process: bundled as the build does it, and run by this Node. */
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

// The programs of `test` are bundled elsewhere: the place of this file is not theirs.
const root = process.cwd()

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Options {
  readonly stdin?: string
  readonly signal?: NodeJS.Signals
  readonly env?: Record<string, string>
}

export interface Program {
  /** A folder of its own, in which it runs. */
  readonly folder: string
  readonly bundle: string
  readonly write: (name: string, text: string) => void
  readonly run: (args: ReadonlyArray<string>, options?: Options) => Promise<Ended>
  /** Runs a script of the shell in which `"$@"` is the program with its arguments. */
  readonly shell: (script: string, args: ReadonlyArray<string>) => Promise<Ended>
  /** Runs it with standard input left open, and sends it a signal as soon as it has written something. */
  readonly signal: (name: NodeJS.Signals, args: ReadonlyArray<string>) => Promise<Ended>
  readonly remove: () => void
}

export const make = async (): Promise<Program> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-compaction-"))
  const bundle = join(folder, "main.mjs")
  await build({
    absWorkingDir: root,
    entryPoints: ["src/cli/main.ts"],
    outfile: bundle,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    minifySyntax: true,
    legalComments: "none",
    logLevel: "error"
  })
  const spawned = (command: string, args: ReadonlyArray<string>, options: Options = {}): Promise<Ended> =>
    new Promise((resolve, reject) => {
      const { FORCE_COLOR: _, NO_COLOR: __, ...inherited } = process.env
      const child = spawn(command, args, { cwd: folder, env: { ...inherited, ...options.env }, stdio: "pipe" })
      let stdout = ""
      let stderr = ""
      child.stdout.on("data", (chunk) => {
        if (options.signal !== undefined && stdout === "") child.kill(options.signal)
        stdout += String(chunk)
      })
      child.stderr.on("data", (chunk) => stderr += String(chunk))
      child.on("error", reject)
      child.on("close", (code) => resolve({ code, stdout, stderr }))
      if (options.signal === undefined) child.stdin.end(options.stdin ?? "")
    })
  return {
    folder,
    bundle,
    write: (name, text) => {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    },
    run: (args, options) => spawned(process.execPath, [bundle, ...args], options),
    shell: (script, args) => spawned("sh", ["-c", script, "sh", process.execPath, bundle, ...args]),
    signal: (signal, args) => spawned(process.execPath, [bundle, ...args], { signal }),
    remove: () => rmSync(folder, { recursive: true, force: true })
  }
}
