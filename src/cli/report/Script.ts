/**
 * What moves in the report: the chosen request of each policy. Without it the charts and the totals still stand.
 *
 * @since 0.1.0
 */
import * as Chart from "./Chart.ts"

const { left, right, width } = Chart.geometry

/** The script of the page, for a browser. */
export const script = `"use strict"
const format = new Intl.NumberFormat("en-US")
const cell = (text, kind) => {
  const made = document.createElement("td")
  made.textContent = text
  if (kind !== "") made.className = kind
  return made
}
for (const section of document.querySelectorAll("section[data-policy]")) {
  const { changes, entries, rows } = JSON.parse(section.querySelector("script").textContent)
  const slider = section.querySelector("input[type=range]")
  const details = section.querySelector("details")
  const only = section.querySelector("input[type=checkbox]")
  const body = section.querySelector("tbody.list")
  const show = (key, value, text) => {
    const data = section.querySelector("output [data-key=" + key + "]")
    if (data === null) return
    data.value = value === null ? "" : value
    data.textContent = text
  }
  const list = () => {
    const request = Number(slider.value)
    const now = new Map()
    for (const change of changes) if (change[1] <= request) now.set(change[0], change)
    const lines = document.createDocumentFragment()
    for (const [seq, role, what, tokens] of entries) {
      const change = now.get(seq)
      if (change === undefined || (only.checked && change[2] === "whole")) continue
      const line = document.createElement("tr")
      line.dataset.seq = seq
      line.className = change[2] === "whole" ? "whole" : change[3] === 0 ? "gone" : "changed"
      line.append(
        cell(seq, ""), cell(role, "text"), cell(what, "text"), cell(format.format(tokens), ""),
        cell(format.format(change[3]), ""), cell(change[2], "text state"), cell(change[4], "text")
      )
      lines.append(line)
    }
    body.replaceChildren(lines)
  }
  const choose = () => {
    const request = Number(slider.value)
    const row = rows[request - 1]
    slider.setAttribute("aria-valuetext", "request " + request + " of " + rows.length)
    show("request", request, request + " of " + rows.length)
    for (const key of ["viewTokens", "cached", "written", "fresh", "output", "waste"]) show(key, row[key], format.format(row[key]))
    show("cost", row.cost, "$" + row.cost.toFixed(4))
    show("costSoFar", row.costSoFar, "$" + row.costSoFar.toFixed(4))
    if (row.retained !== null) show("retained", row.retained, (100 * row.retained).toFixed(1) + "%")
    section.querySelector("output b").textContent = row.what
    const x = ${left} + ${width - left - right} * (request - 0.5) / rows.length
    for (const cursor of section.querySelectorAll(".cursor")) {
      cursor.setAttribute("x1", x)
      cursor.setAttribute("x2", x)
    }
    if (details.open) list()
  }
  slider.addEventListener("input", choose)
  details.addEventListener("toggle", () => { if (details.open) list() })
  only.addEventListener("change", list)
  for (const svg of section.querySelectorAll("svg")) svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect()
    const x = (event.clientX - box.left) / box.width * ${width}
    slider.value = Math.ceil((x - ${left}) / ${width - left - right} * rows.length)
    slider.focus()
    choose()
  })
  choose()
}
`
