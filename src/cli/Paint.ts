/**
 * Colours for a terminal, or none.
 *
 * @since 0.1.0
 */
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"

/** Marks a text so that a terminal shows it in some way. */
export interface Paint {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly yellow: (text: string) => string
}

const escape = (code: number) => (text: string): string => text === "" ? "" : `\u001b[${code}m${text}\u001b[0m`

const plain = (text: string): string => text

/** Leaves a text as it is. */
export const none: Paint = { bold: plain, dim: plain, red: plain, yellow: plain }

/** Colours a text by escape sequences. */
export const ansi: Paint = { bold: escape(1), dim: escape(2), red: escape(31), yellow: escape(33) }

/** Colours where standard output is a terminal that has them and `NO_COLOR` is not set, or `FORCE_COLOR` asks for them. */
export const detect: Effect.Effect<Paint> = Effect.map(
  TerminalCapabilities.TerminalCapabilities,
  ({ canColor }) => canColor ? ansi : none
)
