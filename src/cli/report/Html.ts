/**
 * Text as it may stand in a page.
 *
 * @since 0.1.0
 */
import * as Shown from "../Shown.ts"

const entities: { readonly [character: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "\"": "&quot;",
  "'": "&#39;"
}

/** A text that is shown as it is, between tags or in the quotes of an attribute. */
export const text = (value: string): string =>
  Shown.line(value).replaceAll(/[&<>"']/g, (character) => entities[character] ?? "")

/** A value as JSON that no script element ends early. */
export const json = (value: unknown): string => Shown.json(value).replaceAll("<", "\\u003c")

/** A number as it is read and, for whoever takes it from the page, as it is. */
export const data = (key: string, value: number, shown: string): string =>
  `<data data-key="${key}" value="${value}">${text(shown)}</data>`
