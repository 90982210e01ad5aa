/**
 * How the report looks, in light and in dark.
 *
 * @since 0.1.0
 */

/** The colours of lines that lie over one another, in light and in dark: far apart in hue, and told apart in grey. */
const lineColours: ReadonlyArray<readonly [light: string, dark: string]> = [
  ["#1f6fb4", "#6db3f2"],
  ["#c2571a", "#f5935a"],
  ["#1d7a4f", "#5fd09b"],
  ["#a3276b", "#ee7ab8"],
  ["#6a4fc0", "#ab96f5"],
  ["#8a6d00", "#dcbf3d"],
  ["#0b7c86", "#4fd0da"],
  ["#b0322b", "#f5827b"],
  ["#56701a", "#b1cf62"],
  ["#5d6470", "#aab3bf"],
  ["#3d4aa8", "#8f9cf5"]
]

const lineVariables = (theme: 0 | 1): string => lineColours.map((colour, at) => `--p${at}: ${colour[theme]};`).join(" ")

const lineRules = lineColours.map((_, at) =>
  `.line.p${at}, .own.p${at} { stroke: var(--p${at}); } .key.p${at} { background: var(--p${at}); } circle.p${at} { fill: var(--p${at}); }`
).join("\n")

/** The style sheet. */
export const css = `
:root {
  color-scheme: light dark;
  --page: #fcfcfa; --ink: #1d2126; --soft: #5b6570; --rule: #dcdfe3; --panel: #ffffff; --focus: #1f5fbf;
  --read: #3b78c4; --write: #e08a1e; --fresh: #b5484f; --line: #1d6f5c; --mark: #7a4fb5;
  --k-system: #6b7682; --k-user: #1f6fb4; --k-assistant: #2c9a77; --k-tool: #9cc8e8; --k-summary: #7a4fb5;
  --k-cut: #e9a23b; --k-absorbed: #d9c8f0; --k-removed: #e6e3e0;
  ${lineVariables(0)}
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --ink: #e6e8ea; --soft: #9aa4ae; --rule: #333a41; --panel: #1b1f23; --focus: #7db1ff;
    --read: #6aa3ea; --write: #f0a94e; --fresh: #e2777d; --line: #5fc4aa; --mark: #b793ef;
    --k-system: #8a96a3; --k-user: #6db3f2; --k-assistant: #4fc39b; --k-tool: #35607f; --k-summary: #b793ef;
    --k-cut: #d98f2b; --k-absorbed: #4b3a66; --k-removed: #2a2f34;
    ${lineVariables(1)}
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 86rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums;
}
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.2rem; margin: 3rem 0 .75rem; padding-top: 1rem; border-top: 2px solid var(--rule); overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 2.25rem 0 .5rem; }
p, nav { color: var(--soft); margin: .35rem 0; }
nav a { margin-right: 1rem; }
a { color: var(--focus); }
table { border-collapse: collapse; background: var(--panel); }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; }
th[scope=row], .text { text-align: left; }
.totals, .readings { width: 100%; font-size: .87rem; margin: .8rem 0; }
.totals th, .totals td, .readings th, .readings td { padding: .25rem .45rem; }
.totals thead th, .readings thead th { white-space: normal; vertical-align: bottom; }
.totals th[scope=row] label { cursor: pointer; white-space: nowrap; }
.totals tr.off td, .totals tr.off label { color: var(--soft); } .totals tr.off .key { opacity: .35; }
.totals input { margin: 0 .45rem 0 0; vertical-align: -1px; accent-color: var(--focus); }
.readings td.said { white-space: normal; color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; }
figure { margin: 0; padding: .6rem .7rem .3rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; }
figcaption { display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: .87rem; color: var(--soft); }
figcaption b { color: var(--ink); }
svg { display: block; width: 100%; height: auto; cursor: pointer; }
.tick { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--rule); }
.area.read, .area.write, .area.fresh { stroke: none; }
.read { fill: var(--read); background: var(--read); } .write { fill: var(--write); background: var(--write); }
.fresh { fill: var(--fresh); background: var(--fresh); }
.line { fill: none; stroke: var(--line); stroke-width: 1.6; } .line-key { background: var(--line); }
.line { vector-effect: non-scaling-stroke; } .limit { vector-effect: non-scaling-stroke; }
${lineRules}
.line.broken { stroke-dasharray: 6 3; }
.own { fill: none; stroke-width: 1; stroke-opacity: .5; stroke-dasharray: 2 3; }
.line.soft-key { stroke: var(--soft); stroke-dasharray: 4 3; } .soft-key { background: var(--soft); }
.dot { cursor: pointer; } .dot.off circle { fill-opacity: .25; } .dot.off text { display: none; } .dot:hover text { display: inline; font-weight: 600; }
.mark { fill: var(--mark); stroke: var(--mark); stroke-width: 1; stroke-opacity: .45; }
.limit { stroke: var(--fresh); stroke-dasharray: 5 4; }
.cursor { stroke: var(--ink); stroke-width: 1.5; }
.key { display: inline-block; width: .75em; height: .75em; margin-right: .35em; border-radius: 2px; }
.limit-key { background: none; border-top: 2px dashed var(--fresh); height: 0; vertical-align: middle; }
.mark-key { width: 0; height: 0; border: .4em solid transparent; border-top-color: var(--mark); border-bottom: 0; border-radius: 0; }
.chosen { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem 1.2rem; margin: .9rem 0; }
.chosen input { flex: 1 1 20rem; accent-color: var(--focus); }
output { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; width: 100%; }
output span { color: var(--soft); } output data, output b { color: var(--ink); font-weight: 600; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
summary { cursor: pointer; padding: .3rem 0; }
.entries { max-height: 32rem; overflow: auto; border: 1px solid var(--rule); }
.entries table { width: 100%; }
.entries thead th { position: sticky; top: 0; background: var(--panel); }
.entries thead th { z-index: 1; }
.entries tbody tr { height: 30px; } .entries tbody td { height: 30px; padding: 0 .7rem; overflow: hidden; text-overflow: ellipsis; }
.entries tbody tr.space, .entries .space td { height: 0; padding: 0; border: 0; }
.entries td.text { white-space: nowrap; max-width: 20rem; }
h2 small { color: var(--soft); font-weight: 500; }
h4 { margin: .3rem 0; color: var(--soft); font-size: .87rem; }
.note, .hint, .under { font-size: .87rem; }
.strip { margin-top: 1rem; padding-left: 0; padding-right: 0; } .strip figcaption, .under { padding: 0 .7rem; }
.strip canvas { display: block; width: 100%; height: 340px; cursor: crosshair; }
.story > figure:first-of-type { padding-left: 0; padding-right: 0; } .story > figure:first-of-type figcaption { padding: 0 .7rem; }
${
  ["system", "user", "assistant", "tool", "summary", "cut", "absorbed", "removed"].map((kind) =>
    `.k-${kind} { background: var(--k-${kind}); }`
  ).join(" ")
}
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 1.5rem; font-size: .87rem; }
@media (min-width: 70rem) { .pair { grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); } }
.pair th, .pair td { padding-left: .4rem !important; padding-right: .4rem !important; }
.pair thead th { white-space: normal; vertical-align: bottom; }
.pair .entries { max-height: 18rem; } .pair .entries td.text { max-width: 9rem; } .pair .boundaries { max-height: 20rem; }
.pair h3 { margin-top: 1.2rem; }
.boundaries { max-height: 16rem; overflow: auto; border: 1px solid var(--rule); }
.boundaries table { width: 100%; } .boundaries thead th { position: sticky; top: 0; background: var(--panel); }
.boundaries tr[data-request], .story .entries tbody tr { cursor: pointer; }
.boundaries button { font: inherit; color: var(--focus); background: none; border: 0; padding: 0 .3rem; cursor: pointer; }
.chosen-row td, .chosen-row th { background: color-mix(in srgb, var(--focus) 16%, var(--panel)); }
.texts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
pre {
  margin: 0; padding: .6rem .7rem; min-height: 6rem; max-height: 24rem; overflow: auto; background: var(--panel);
  border: 1px solid var(--rule); border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.45 ui-monospace, monospace;
}
.entries tr:not(.whole) .state { color: var(--mark); font-weight: 600; }
.entries tr.gone td { color: var(--soft); }
`
