/**
 * Foreign text as it may be shown: what a terminal or a browser would obey is written out instead.
 *
 * Session files are written by others. A tool name may hold an escape sequence that renames the window, a file name a line
 * break that looks like a second message, a model name a mark that turns the reading direction.
 *
 * @since 0.1.0
 */

// Controls (C0, DEL, C1), what is invisible or turns the direction, the separators of lines and paragraphs, and lone
// surrogates. The two joiners stay: words of Persian, Hindi and many emoji are made with them.
const obeyed = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?![\u200c\u200d])\p{Cf}/gu

// The same, and the sequences that set a colour, which are ours.
const obeyedButColours = new RegExp(`\\u001b\\[[0-9;]*m|${obeyed.source}`, "gu")

const names: { readonly [character: string]: string } = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const written = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  const digits = code.toString(16)
  if (code <= 0xff) return names[character] ?? `\\x${digits.padStart(2, "0")}`
  return code <= 0xffff ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`
}

/** A text in one line: `\x1b` is shown as these four characters, a line break as `\n`. */
export const line = (text: string): string => text.replaceAll(obeyed, written)

const isLayout = (found: string): boolean => found === "\n" || found === "\t"

/** A text of several lines: like {@link line}, with its line breaks and tabulators left alone. */
export const lines = (text: string): string =>
  text.replaceAll(obeyed, (found) => isLayout(found) ? found : written(found))

/** What is about to be written on a terminal: like {@link lines}, with colours left alone. */
export const coloured = (text: string): string =>
  text.replaceAll(obeyedButColours, (found) => isLayout(found) || found.length > 2 ? found : written(found))

const units = (found: string): string => {
  let all = ""
  for (let at = 0; at < found.length; at++) all += `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`
  return all
}

/** A value as one line of JSON that means the same and that no terminal obeys. */
export const json = (value: unknown): string => JSON.stringify(value).replaceAll(obeyed, units)
