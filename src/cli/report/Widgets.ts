/**
 * What the scripts of the pages share: cells, and a list that makes only the rows that are seen.
 *
 * @since 0.1.0
 */

/** The functions, for a browser. */
export const script = `
const format = new Intl.NumberFormat("en-US")
const cell = (text, kind) => {
  const made = document.createElement("td")
  made.textContent = text
  if (kind) made.className = kind
  if (kind?.startsWith("text")) made.title = text
  return made
}
// Rows of one height in a box that scrolls: thousands of them cost what the thirty that are seen cost.
const listIn = (box, rowOf, onChoose) => {
  const body = box.querySelector("tbody")
  const height = 30
  let rows = []
  let chosen
  let shown = ""
  const space = (rows) => {
    const made = document.createElement("tr")
    made.className = "space"
    made.setAttribute("aria-hidden", "true")
    const held = document.createElement("td")
    held.colSpan = 9
    held.style.height = rows * height + "px"
    made.append(held)
    return made
  }
  const draw = () => {
    const from = Math.max(0, Math.floor(box.scrollTop / height) - 10)
    const to = Math.min(rows.length, from + Math.ceil(box.clientHeight / height) + 20)
    const now = from + "-" + to
    if (now === shown) return
    shown = now
    const made = rows.slice(from, to).map((each) => {
      const row = rowOf(each)
      if (onChoose) {
        row.tabIndex = 0
        row.classList.toggle("chosen-row", each === chosen)
        const choose = () => { chosen = each; shown = ""; draw(); onChoose(each) }
        row.addEventListener("click", choose)
        row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose() })
      }
      return row
    })
    body.replaceChildren(space(from), ...made, space(rows.length - to))
  }
  box.addEventListener("scroll", draw, { passive: true })
  return (next) => {
    rows = next
    chosen = undefined
    box.dataset.rows = rows.length
    shown = ""
    draw()
  }
}
// What each entry is at a request, from the changes in the order in which they happened.
const stateAt = (changes, request) => {
  const now = new Map()
  for (const change of changes) {
    if (change[1] > request) break
    now.set(change[0], change)
  }
  return now
}
const lineOf = (entries) => ([seq, , state, tokens, why]) => {
  const [, role, what, whole] = entries[seq]
  const line = document.createElement("tr")
  line.className = state === "whole" ? "whole" : tokens === 0 ? "gone" : "changed"
  line.append(cell(seq), cell(role, "text"), cell(what, "text what"), cell(format.format(whole)),
    cell(format.format(tokens)), cell(state, "text state"), cell(why, "text"))
  return line
}
`

/** A list of entries, for {@link script} to fill. */
export const list = (label: string): string =>
  `<div class="entries" tabindex="0" role="region" aria-label="${label}">`
  + `<table><thead><tr><th>entry</th><th class="text">role</th><th class="text">what</th><th>tokens whole</th>`
  + `<th>tokens now</th><th class="text">state</th><th class="text">why</th></tr></thead><tbody class="list"></tbody></table></div>`
