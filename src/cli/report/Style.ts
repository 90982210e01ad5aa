/**
 * How the report looks, in light and in dark.
 *
 * @since 0.1.0
 */

/** The style sheet. */
export const css = `
:root {
  color-scheme: light dark;
  --page: #fcfcfa; --ink: #1d2126; --soft: #5b6570; --rule: #dcdfe3; --panel: #ffffff; --focus: #1f5fbf;
  --read: #3b78c4; --write: #e08a1e; --fresh: #b5484f; --line: #1d6f5c; --mark: #7a4fb5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --ink: #e6e8ea; --soft: #9aa4ae; --rule: #333a41; --panel: #1b1f23; --focus: #7db1ff;
    --read: #6aa3ea; --write: #f0a94e; --fresh: #e2777d; --line: #5fc4aa; --mark: #b793ef;
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
.wide { overflow-x: auto; }
table { border-collapse: collapse; background: var(--panel); }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; }
th[scope=row], .text { text-align: left; }
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
.entries td.text { white-space: normal; max-width: 26rem; }
.entries thead th { position: sticky; top: 0; background: var(--panel); }
.entries tr:not(.whole) .state { color: var(--mark); font-weight: 600; }
.entries tr.gone td { color: var(--soft); }
`
