/**
 * What moves in the page of comparisons: which policies are drawn, the chosen request, and the entries of one policy.
 *
 * @since 0.1.0
 */
import * as Chart from "./Chart.ts"

const { bottom, height, left, right, top, width } = Chart.geometry

/** The script of the page, for a browser. */
export const script = `
const money = (value) => "$" + (value < 10 ? value.toFixed(2) : format.format(Math.round(value)))
const texts = {
  tokens: (value) => value >= 1000 ? format.format(value / 1000) + "k" : format.format(value),
  dollars: money,
  share: (value) => Math.round(100 * value) + "%"
}
const roundUp = (value) => {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return power * [1, 2, 2.5, 5, 10].find((step) => step * power >= value * (1 - 1e-9))
}
const floor = ${height - bottom}
// Draws the chosen lines over one another, on a scale that fits them.
const redraw = (svg, chosen) => {
  let most = Number(svg.dataset.limit)
  const marks = []
  for (const path of svg.querySelectorAll("path[data-tag]")) {
    const isShown = chosen.has(path.dataset.tag)
    path.style.display = isShown ? "" : "none"
    if (!isShown) continue
    most = Math.max(most, Number(path.dataset.most))
    for (const at of path.dataset.marks.split(" ")) if (at !== "") marks.push([at, path.getAttribute("class").replace("line ", "")])
  }
  const max = svg.dataset.unit === "share" ? 1 : roundUp(most)
  svg.querySelector(".plot").setAttribute("transform", "translate(0 " + floor + ") scale(1 " + Number(svg.dataset.max) / max + ") translate(0 " + -floor + ")")
  const ticks = [...svg.querySelectorAll(".tick.level")]
  for (const [at, tick] of ticks.entries()) tick.textContent = texts[svg.dataset.unit](max * at / (ticks.length - 1))
  svg.dataset.top = max
  return marks
}
for (const article of document.querySelectorAll("article.comparison")) {
  const data = article.querySelector("script[type]")
  if (data === null) continue
  const policies = JSON.parse(data.textContent)
  const find = (selector) => article.querySelector(selector)
  const slider = find("input[type=range]")
  const details = find("details")
  const only = find(".only")
  const under = find("select")
  const rows = [...article.querySelectorAll(".totals tbody tr")]
  const requests = policies[0].rows.length
  const list = listIn(find(".entries"), (change) => lineOf(policies[under.value].entries)(change))
  const chosenRows = () => rows.filter((row) => row.querySelector("input").checked)
  const fill = () => {
    if (!details.open) return
    const { changes } = policies[under.value]
    const now = [...stateAt(changes, Number(slider.value)).values()].sort((a, b) => a[0] - b[0])
    list(only.checked ? now.filter((change) => change[2] !== "whole") : now)
  }
  const move = () => {
    const request = Number(slider.value)
    slider.setAttribute("aria-valuetext", "request " + request + " of " + requests)
    const shown = find("output data")
    shown.value = String(request)
    shown.textContent = request + " of " + requests
    const x = ${left} + ${width - left - right} * (request - 0.5) / requests
    for (const cursor of article.querySelectorAll(".cursor")) {
      cursor.setAttribute("x1", x)
      cursor.setAttribute("x2", x)
    }
    find(".readings tbody").replaceChildren(...chosenRows().map(({ dataset: { policy, tag } }) => {
      const line = document.createElement("tr")
      line.dataset.policy = policy
      const { name, rows } = policies[tag]
      const values = rows[request - 1]
      line.append(cell(name, "text"))
      for (const [at, key] of ["viewTokens", "cached", "written", "fresh", "output", "waste", "cost", "costSoFar", "retained"].entries()) {
        const value = values[at]
        const held = cell("", "")
        if (value !== null) {
          const made = document.createElement("data")
          made.dataset.key = key
          made.value = String(value)
          made.textContent = key.startsWith("cost") ? "$" + value.toFixed(4) : key === "retained" ? (100 * value).toFixed(1) + "%" : format.format(value)
          held.append(made)
        }
        line.append(held)
      }
      line.append(cell(values[9], "text said"))
      return line
    }))
    fill()
  }
  const choose = () => {
    const chosen = new Set(chosenRows().map((row) => row.dataset.tag))
    for (const row of rows) row.classList.toggle("off", !chosen.has(row.dataset.tag))
    for (const svg of article.querySelectorAll("svg[data-unit]")) {
      const marks = redraw(svg, chosen)
      // Of many the boundaries would be a fence.
      svg.querySelector(".own-marks").innerHTML = chosen.size > 2 ? "" : marks.map(([at, colour]) =>
        '<path class="own ' + colour + '" d="M' + (${left} + ${width - left - right} * (at - 1) / requests) + " ${
  top - 6
}V" + floor + '"/>').join("")
    }
    for (const dot of article.querySelectorAll(".dot")) dot.classList.toggle("off", !chosen.has(dot.dataset.tag))
    move()
  }
  for (const row of rows) row.querySelector("input").addEventListener("change", choose)
  for (const dot of article.querySelectorAll(".dot")) dot.addEventListener("click", () => {
    const box = rows.find((row) => row.dataset.tag === dot.dataset.tag).querySelector("input")
    box.checked = !box.checked
    choose()
  })
  slider.addEventListener("input", move)
  details.addEventListener("toggle", fill)
  only.addEventListener("change", fill)
  under.addEventListener("change", fill)
  for (const svg of article.querySelectorAll("svg[data-unit]")) svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect()
    const x = (event.clientX - box.left) / box.width * ${width}
    slider.value = Math.ceil((x - ${left}) / ${width - left - right} * requests)
    slider.focus()
    move()
  })
  choose()
}
`
