/**
 * Standard output and standard error of the process: everything is written, or the program ends and says so.
 *
 * The console of Node drops what cannot be written, and its stream to a file takes the beginning of a text for all of it.
 * Here each text is written to its end. The first one that cannot be written ends the program: with a line on standard
 * error, or, when the reader of a pipe has gone, without a word.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { fstatSync, writeSync } from "node:fs"
import process from "node:process"
import * as Failed from "./Failed.ts"
import * as OutputFile from "./OutputFile.ts"
import * as Shown from "./Shown.ts"

/** The two streams, with what is to be known about them. */
export interface Output {
  readonly console: Console.Console
  /** Never succeeds; fails as soon as standard output takes no more. */
  readonly refused: Effect.Effect<never, Failed.Failed>
  /** Waits until everything is written; fails where that cannot be. */
  readonly end: Effect.Effect<void, Failed.Failed>
}

type Standard = NodeJS.WriteStream & { readonly fd: number }

const isPipeGone = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "code" in cause
  && (cause.code === "EPIPE" || cause.code === "ERR_STREAM_DESTROYED")

/** A file or a device, which is written to at once; of a pipe the system says when it takes more. */
const isAtOnce = (stream: Standard): boolean => {
  const found = fstatSync(stream.fd)
  return stream.isTTY !== true && !found.isFIFO() && !found.isSocket()
}

interface Writer {
  readonly write: (text: string) => void
  /** Waits until everything is written, or refused. */
  readonly flush: Effect.Effect<void>
}

const writerOf = (stream: Standard, refuse: (cause: unknown) => void): Writer => {
  stream.on("error", refuse)
  if (!isAtOnce(stream)) {
    return {
      write: (text) => void stream.write(text),
      flush: Effect.callback((resume) =>
        void stream.write("", (cause) => {
          // The event of the stream comes later than this.
          if (cause instanceof Error) refuse(cause)
          resume(Effect.void)
        })
      )
    }
  }
  const writeAll = (text: string) => {
    const bytes = new TextEncoder().encode(text)
    for (let at = 0; at < bytes.length;) at += writeSync(stream.fd, bytes, at)
  }
  return {
    write: (text) => {
      const written = Result.try(() => writeAll(text))
      if (Result.isFailure(written)) refuse(written.failure)
    },
    flush: Effect.void
  }
}

const textOf = (values: ReadonlyArray<unknown>): string => `${values.map(String).join(" ")}\n`

/** Takes over the two streams of this process. */
export const make: Effect.Effect<Output> = Effect.map(Console.Console, (console) => {
  const refusal = Deferred.makeUnsafe<never, Failed.Failed>()
  // Nobody can be told that nobody can be told.
  const stderr = writerOf(process.stderr, () => {})
  const stdout = writerOf(process.stdout, (cause) => {
    const code = isPipeGone(cause) ? Failed.pipeGone : Failed.badInput
    const isFirst = Deferred.doneUnsafe(refusal, Effect.fail(new Failed.Failed({ code })))
    if (!isFirst || code === Failed.pipeGone) return
    const { message } = new OutputFile.NotWritten({ file: "standard output", reason: OutputFile.reasonOf(cause) })
    stderr.write(`${Shown.line(message)}\n`)
  })
  const log = (...values: ReadonlyArray<unknown>) => {
    if (!Deferred.isDoneUnsafe(refusal)) stdout.write(textOf(values))
  }
  const error = (...values: ReadonlyArray<unknown>) => stderr.write(textOf(values))
  return {
    console: { ...console, log, info: log, debug: log, error, warn: error },
    refused: Deferred.await(refusal),
    end: Effect.andThen(
      Effect.andThen(stdout.flush, stderr.flush),
      Effect.suspend(() => Deferred.isDoneUnsafe(refusal) ? Deferred.await(refusal) : Effect.void)
    )
  }
})
