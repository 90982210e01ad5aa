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

/** The name of a file without its folders, with as many of them as tell it from the others. */
export const nameOf = (file: string, among: ReadonlyArray<string> = []): string => {
  const parts = file.split(/[/\\]/)
  for (let count = 1; count < parts.length; count++) {
    const name = parts.slice(-count).join("/")
    if (name !== "" && among.every((other) => other === file || !`/${other}`.endsWith(`/${name}`))) return name
  }
  return file
}

/** A page of its own: what it needs stands in it, and nothing can be loaded into it. */
export const page = (
  { body, css, intro, links, script, title }: {
    readonly title: string
    readonly intro: string
    readonly links: ReadonlyArray<{ readonly to: string; readonly text: string }>
    readonly body: string
    readonly css: string
    readonly script: string
  }
): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>${text(title)}</title><link rel="icon" href="data:,"><style>${css}</style></head><body>
<h1>${text(title)}</h1>
<p>${text(intro)}</p>
<nav aria-label="Sessions">${links.map((link) => `<a href="${link.to}">${text(link.text)}</a>`).join("")}</nav>
${body}
<script>"use strict"
${script}</script></body></html>
`
