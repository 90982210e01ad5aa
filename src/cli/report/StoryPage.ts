/**
 * Stories of conversations as one page that needs nothing else: no network, no file beside it.
 *
 * Each story is a strip: requests from left to right, the conversation from top to bottom, every entry as high as it costs
 * whole. Its colour says what it is in each request, so that one sees when it was cut, summarised or left out. The
 * boundaries are listed with what they cost and saved, and what is clicked is shown with its text before and after.
 *
 * @since 0.1.0
 */
import * as CompareText from "../CompareText.ts"
import * as Shown from "../Shown.ts"
import * as Story from "../Story.ts"
import * as Table from "../Table.ts"
import * as Chart from "./Chart.ts"
import * as Html from "./Html.ts"
import * as StoryScript from "./StoryScript.ts"
import * as Style from "./Style.ts"
import * as Widgets from "./Widgets.ts"

const short = (value: number): string => value >= 1_000 ? `${Table.number(value / 1_000)}k` : Table.number(value)

/** A number of tokens in a narrow column. */
const compact = (value: number): string => {
  if (value >= 1_000_000) return `${(value / 1_000_000).toFixed(1)}M`
  return value >= 10_000 ? `${(value / 1_000).toFixed(1)}k` : Table.number(value)
}

/** What the script reads. Texts of others are written out here; it only shows them. */
const dataOf = ({ boundaries, moments, trace }: Story.Story): string =>
  Html.json({
    moments: moments.map(({ said, tokens, whole }) => [tokens, whole, Shown.line(said)]),
    boundaries: boundaries.map(({ request }) => request),
    entries: trace.entries.map((
      { role, seq, text, tokens, what }
    ) => [seq, role, Shown.line(what), tokens, Shown.lines(text)]),
    changes: trace.changes.map(({ request, seq, state, text, tokens, why }) => [
      seq,
      request,
      state,
      tokens,
      Shown.line(why),
      text === null ? null : Shown.lines(text)
    ])
  })

const kinds: ReadonlyArray<readonly [kind: string, name: string]> = [
  ["system", "system"],
  ["user", "person"],
  ["assistant", "model"],
  ["tool", "tool result"],
  ["summary", "summary"],
  ["cut", "shortened"],
  ["absorbed", "summarised"],
  ["removed", "left out"]
]

const sizes = ({ boundaries, limit, moments }: Story.Story): string =>
  Chart.render({
    title: "Occupied tokens",
    kind: "lines",
    isWide: true,
    series: [
      { name: "the whole conversation", colour: "soft-key", values: moments.map(({ whole }) => whole) },
      { name: "what is sent", colour: "line-key", values: moments.map(({ tokens }) => tokens) }
    ],
    limit: { name: "budget", value: limit },
    marks: boundaries.map(({ request }) => request),
    text: short
  })

const boundaryTable = ({ boundaries }: Story.Story): string => {
  if (boundaries.length === 0) return "<p>No boundary: everything was sent as it is.</p>"
  const rows = boundaries.map((each) =>
    `<tr data-request="${each.request}"><th scope="row"><button type="button">${each.request}</button></th>`
    + `<td class="text">${Html.text(each.rung)}</td>`
    + `<td>${Html.data("before", each.before, compact(each.before))} → ${
      Html.data("after", each.after, compact(each.after))
    }</td>`
    + `<td>${Html.data("rewritten", each.rewritten, compact(each.rewritten))}</td>`
    + `<td>${Html.data("cost", each.cost, CompareText.dollars(each.cost))}</td>`
    + `<td>${Html.data("saved", each.saved, compact(each.saved))}</td>`
    + `<td>${Html.data("spared", each.spared, CompareText.dollars(each.spared))}</td></tr>`
  )
  return `<div class="boundaries" tabindex="0" role="region" aria-label="Boundaries"><table><thead><tr><th>request</th>`
    + `<th class="text">rung</th><th>view</th><th>rewritten</th><th>cost</th><th title="up to the next boundary">not sent after</th><th>saved</th>`
    + `</tr></thead><tbody>${rows.join("")}</tbody></table></div><p class="note">Tokens. ${Html.text(Story.basis)}</p>`
}

const article = (story: Story.Story, at: number): string => {
  const { boundaries, file, limit, moments, policy, trace } = story
  const id = `s${at}`
  const facts = [
    Table.count(moments.length, "request"),
    Table.count(trace.entries.length, "entry", "entries"),
    `budget ${Table.number(limit)} tokens`,
    Table.count(boundaries.length, "boundary", "boundaries")
  ].join(", ")
  const title = `<h2 title="${Html.text(file)}">${Html.text(Html.nameOf(file))} <small>${
    Html.text(policy)
  }</small></h2>`
  if (moments.length === 0) return `<article id="${id}">${title}<p>No request was made.</p></article>`
  return `<article id="${id}" class="story" data-file="${Html.text(file)}" data-policy="${Html.text(policy)}">${title}`
    + `<p>${facts}</p>${sizes(story)}`
    + `<figure class="strip"><figcaption><b>The conversation, entry by entry</b>${
      kinds.map(([kind, name]) => `<span><i class="key k-${kind}"></i>${name}</span>`).join("")
    }</figcaption><canvas role="img" aria-label="What each entry is in each request"></canvas>`
    + `<p class="under" aria-live="polite">&nbsp;</p></figure>`
    + `<div class="chosen"><label for="${id}-request">Request</label>`
    + `<input type="range" id="${id}-request" min="1" max="${moments.length}" value="${
      boundaries[0]?.request ?? moments.length
    }"><output for="${id}-request"><span>request <data data-key="request" value=""></data></span>`
    + `<span>sent <data data-key="tokens" value=""></data></span><span>whole <data data-key="whole" value=""></data></span>`
    + `<b></b></output></div>`
    + `<div class="pair"><section><h3>Boundaries</h3>${boundaryTable(story)}</section>`
    + `<section><h3><span class="which">What changed at this request</span></h3>`
    + `<p><label><input type="checkbox"> every entry at this request</label></p>${
      Widgets.list("Entries")
    }</section></div>`
    + `<section class="detail" aria-live="polite"><h3>Text</h3><p class="hint">Click an entry in the strip or in the list.</p>`
    + `<p class="who"></p><div class="texts"><div><h4>before</h4><pre class="before" tabindex="0"></pre></div>`
    + `<div><h4>after</h4><pre class="after" tabindex="0"></pre></div></div></section>`
    + `<script type="application/json">${dataOf(story)}</script></article>`
}

/** Renders the page. */
export const render = (stories: ReadonlyArray<Story.Story>): string =>
  Html.page({
    title: "What became of the conversation",
    intro:
      "Requests from left to right, the conversation from top to bottom, each entry as high as it costs whole. Nothing was "
      + "sent anywhere.",
    links: stories.length < 2 ? [] : stories.map(({ file, policy }, at) => ({
      to: `#s${at}`,
      text: `${Html.nameOf(file)}, ${policy}`
    })),
    body: stories.map(article).join("\n"),
    css: Style.css,
    script: `${Widgets.script}${StoryScript.script}`
  })
