/**
 * What moves in the page of stories: the strip, the chosen request, and the entry whose text is shown.
 *
 * @since 0.1.0
 */
import * as Chart from "./Chart.ts"

const { left, right, wide: width } = Chart.geometry

/** The script of the page, for a browser. */
export const script = `
const strips = []
for (const article of document.querySelectorAll("article.story")) {
  const { boundaries, changes, entries, moments } = JSON.parse(article.querySelector("script").textContent)
  const find = (selector) => article.querySelector(selector)
  const slider = find("input[type=range]")
  const all = find("input[type=checkbox]")
  const canvas = find("canvas")
  const list = listIn(find(".entries"), lineOf(entries), ([seq]) => choose(seq))
  const last = moments.length
  // Each entry as high as it costs whole; what the library wrote lies where it was written.
  const tops = [0]
  for (const [, , , tokens] of entries) tops.push(tops.at(-1) + Math.max(1, tokens))
  const total = tops.at(-1)
  const spans = entries.map(() => [])
  for (const change of changes) spans[change[0]].push(change)
  let request = Number(slider.value)
  let seq
  const kindOf = ([at, , state, tokens]) => {
    if (state === "whole") return entries[at][2] === "summary" ? "summary" : entries[at][1]
    if (state === "summarised") return "absorbed"
    if (state === "removed") return "removed"
    return tokens === 0 ? "" : "cut"
  }
  const share = (x) => (${left} + ${width - left - right} * x / last) / ${width}
  const picture = document.createElement("canvas")
  const height = 340
  const paint = () => {
    const ratio = window.devicePixelRatio || 1
    const wide = canvas.clientWidth
    canvas.width = picture.width = Math.max(1, Math.round(wide * ratio))
    canvas.height = picture.height = Math.round(height * ratio)
    const style = getComputedStyle(article)
    const colours = new Map()
    const colour = (kind) => {
      if (!colours.has(kind)) colours.set(kind, style.getPropertyValue("--k-" + kind).trim())
      return colours.get(kind)
    }
    const to = picture.getContext("2d")
    to.clearRect(0, 0, picture.width, picture.height)
    // Of several entries in one row of pixels the one in its middle stands for them: so every row is one entry.
    let at = 0
    for (let row = 0; row < picture.height; row++) {
      const middle = (row + 0.5) / picture.height * total
      while (at + 1 < entries.length && tops[at + 1] <= middle) at++
      const changed = spans[at]
      for (const [index, change] of changed.entries()) {
        const kind = kindOf(change)
        if (kind === "") continue
        const from = share(change[1] - 1) * picture.width
        const end = share(index + 1 < changed.length ? changed[index + 1][1] - 1 : last) * picture.width
        to.fillStyle = colour(kind)
        to.fillRect(from, row, Math.max(1, end - from), 1)
      }
    }
    to.fillStyle = style.getPropertyValue("--mark").trim()
    for (const at of boundaries) to.fillRect(Math.round(share(at - 1) * picture.width), 0, Math.max(1, ratio / 2), picture.height)
    draw()
  }
  const draw = () => {
    const to = canvas.getContext("2d")
    to.clearRect(0, 0, canvas.width, canvas.height)
    to.drawImage(picture, 0, 0)
    const style = getComputedStyle(article)
    to.strokeStyle = style.getPropertyValue("--ink").trim()
    to.lineWidth = Math.max(1, canvas.width / canvas.clientWidth)
    const x = share(request - 0.5) * canvas.width
    to.beginPath()
    to.moveTo(x, 0)
    to.lineTo(x, canvas.height)
    to.stroke()
    if (seq === undefined) return
    const y = tops[seq] / total * canvas.height
    const high = Math.max(3, (tops[seq + 1] - tops[seq]) / total * canvas.height)
    to.strokeRect(share(spans[seq][0][1] - 1) * canvas.width, y, (share(last) - share(spans[seq][0][1] - 1)) * canvas.width, high)
  }
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect()
    const x = ((event.clientX - box.left) / box.width * ${width} - ${left}) / ${width - left - right} * last
    const y = (event.clientY - box.top) / box.height * total
    let low = 0
    let high = entries.length
    while (low + 1 < high) {
      const middle = (low + high) >> 1
      if (tops[middle] <= y) low = middle
      else high = middle
    }
    return { request: Math.min(last, Math.max(1, Math.ceil(x))), seq: low }
  }
  const stateOf = (at, when) => spans[at].findLast((change) => change[1] <= when)
  const nameOf = (at) => "entry " + at + ", " + entries[at][1] + ", " + entries[at][2] + ", " + format.format(entries[at][3]) + " tokens whole"
  const show = (key, value) => {
    const shown = find("output [data-key=" + key + "]")
    shown.value = String(value)
    shown.textContent = format.format(value)
  }
  // The text as it was before the last change up to the chosen request, and as it is then.
  const read = () => {
    if (seq === undefined) return
    const upTo = spans[seq].filter((change) => change[1] <= request)
    const now = upTo.at(-1) ?? spans[seq][0]
    const before = upTo.at(-2)
    const [, at, state, tokens, why, text] = now
    const whole = entries[seq][4]
    const summary = /^in the summary that is entry (\\d+)$/.exec(why)
    find(".hint").hidden = true
    find(".who").textContent = nameOf(seq) + "; at request " + request + ": " + state + ", " + format.format(tokens) + " tokens"
      + (why === "" ? "" : "; " + why)
    find(".before").textContent = before?.[5] ?? whole
    find(".after").textContent = state === "whole" ? text ?? whole
      : summary !== null && entries[summary[1]] !== undefined ? entries[summary[1]][4]
      : text ?? "(not in the view)"
  }
  const choose = (next) => {
    seq = next
    read()
    draw()
  }
  const move = () => {
    request = Number(slider.value)
    slider.setAttribute("aria-valuetext", "request " + request + " of " + last)
    const [tokens, whole, said] = moments[request - 1]
    show("request", request)
    show("tokens", tokens)
    show("whole", whole)
    find("output b").textContent = said
    const x = ${left} + ${width - left - right} * (request - 0.5) / last
    for (const cursor of article.querySelectorAll(".cursor")) {
      cursor.setAttribute("x1", x)
      cursor.setAttribute("x2", x)
    }
    for (const row of article.querySelectorAll(".boundaries tr[data-request]")) {
      row.classList.toggle("chosen-row", Number(row.dataset.request) === request)
    }
    find(".which").textContent = all.checked ? "Every entry at request " + request : "What changed at request " + request
    const rows = all.checked ? [...stateAt(changes, request).values()]
      : changes.filter((change) => change[1] === request && (change[2] !== "whole" || spans[change[0]][0] !== change))
    list(rows)
    read()
    draw()
  }
  canvas.addEventListener("pointermove", (event) => {
    const place = placeOf(event)
    const state = stateOf(place.seq, place.request)
    find(".under").textContent = state === undefined ? "request " + place.request
      : "request " + place.request + ": " + nameOf(place.seq) + "; " + state[2] + (state[4] === "" ? "" : ", " + state[4])
  })
  canvas.addEventListener("click", (event) => {
    const place = placeOf(event)
    slider.value = place.request
    if (stateOf(place.seq, place.request) !== undefined) seq = place.seq
    move()
  })
  for (const svg of article.querySelectorAll("svg")) svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect()
    slider.value = Math.ceil(((event.clientX - box.left) / box.width * ${width} - ${left}) / ${
  width - left - right
} * last)
    move()
  })
  for (const row of article.querySelectorAll(".boundaries tr[data-request]")) row.addEventListener("click", () => {
    slider.value = row.dataset.request
    move()
  })
  slider.addEventListener("input", move)
  all.addEventListener("change", move)
  strips.push(paint)
  paint()
  move()
}
const repaint = () => { for (const paint of strips) paint() }
window.addEventListener("resize", repaint)
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint)
`
