"""How pages look: on paper, on a phone and in the dark."""

from __future__ import annotations

# The colours of series on light ground, in the order of their tones; told apart also by the colour-blind.
SERIES = ("#1560bd", "#a8390d", "#0f9f68", "#6a3280", "#938600", "#e0609f")

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fbfaf7; --sheet: #ffffff; --ink: #1d1f23; --faint: #666b73; --rule: #e3e0d8;
  --accent: #b3372f; --good: #2b7d4f; --doubt: #8a5a00;
  --one: #1560bd; --two: #a8390d; --three: #0f9f68; --four: #6a3280; --five: #938600; --six: #e0609f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #131519; --sheet: #1c1f25; --ink: #e9e7e2; --faint: #9aa0aa; --rule: #30353d;
    --accent: #ff8a7a; --good: #7ccc9c; --doubt: #e3b35c;
    --one: #4096ee; --two: #ee8259; --three: #74e6b4; --four: #d5ccff; --five: #efcc45; --six: #c5719d;
  }
}
.tone1 { --tone: var(--one); } .tone2 { --tone: var(--two); } .tone3 { --tone: var(--three); }
.tone4 { --tone: var(--four); } .tone5 { --tone: var(--five); } .tone6 { --tone: var(--six); }
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
main, header, footer { max-width: 68rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; padding-bottom: 0.5rem; }
h1 { font-size: clamp(1.9rem, 5vw, 2.9rem); line-height: 1.12; letter-spacing: -0.02em; margin: 0 0 0.6rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 0.3rem; letter-spacing: -0.01em; }
h3 { font-size: 1rem; margin: 1.8rem 0 0.6rem; color: var(--faint); font-weight: 600; }
p, li, figcaption, .model, .who, h1, h2, h3 { overflow-wrap: anywhere; }
p { max-width: 44rem; margin: 0.4rem 0 0.9rem; }
.lead { font-size: 1.12rem; color: var(--faint); }
.cards { display: grid; gap: 1rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
.card, .shot, .panel {
  background: var(--sheet); border: 1px solid var(--rule); border-radius: 14px;
}
.card { padding: 1.2rem 1.3rem; }
.card .name { color: var(--faint); font-weight: 600; }
.card .big { font-size: 2.6rem; line-height: 1.15; font-weight: 700; letter-spacing: -0.03em; }
.card .what { color: var(--faint); margin-bottom: 0.8rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0.15rem 1rem; margin: 0; font-size: 0.95rem; }
dt { color: var(--faint); }
dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.panels { display: grid; gap: 1rem; margin: 1rem 0 1.4rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
.panel { padding: 0.9rem 1rem; }
figure { margin: 0; }
figcaption { font-size: 0.9rem; margin-bottom: 0.3rem; }
.key { color: var(--faint); margin-right: 0.8rem; white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: 1.1em; height: 0; margin-right: 0.35em;
  vertical-align: middle; border-top: 0.2em solid var(--tone); }
.key.dashed::before { border-top-style: dotted; }
.legend { margin: 0.6rem 0; }
figcaption b { display: block; }
.chart { width: 100%; height: auto; display: block; max-width: 27rem; margin: 0 auto; }
.grid { stroke: var(--rule); stroke-width: 1; }
.edge { stroke: var(--faint); stroke-width: 1; }
.tick { fill: var(--faint); font-size: 11px; }
.line { fill: none; stroke: var(--tone); stroke-width: 2; stroke-linejoin: round; }
.line.dashed { stroke-dasharray: 5 3; }
.line.wide { stroke-width: 4.5; }
.band { fill: var(--tone); opacity: 0.22; }
.mark { fill: var(--tone); stroke: var(--sheet); stroke-width: 1; }
.gallery { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(17.5rem, 1fr)); }
.shot { padding: 0.9rem; }
.shot .trio { display: grid; grid-template-columns: repeat(3, 1fr); gap: 0.5rem; }
.shot figcaption { text-align: center; color: var(--faint); font-size: 0.8rem; margin: 0.25rem 0 0; }
.shot img {
  width: 100%; display: block; image-rendering: pixelated; border-radius: 6px;
  border: 1px solid var(--rule);
}
.shot .change { display: flex; align-items: baseline; gap: 0.5rem; margin: 0.6rem 0 0; font-weight: 650; }
.shot .change .from { color: var(--one); font-size: 1.25rem; }
.shot .change .to { color: var(--accent); font-size: 1.25rem; }
.shot .change .far { margin-left: auto; font-variant-numeric: tabular-nums; }
.proof { color: var(--faint); font-size: 0.86rem; margin: 0.1rem 0 0; }
.proof.closed::before { content: "✓ "; color: var(--good); font-weight: 700; }
.scroll { overflow-x: auto; margin: 1rem 0 1.4rem; }
table { border-collapse: collapse; font-size: 0.95rem; min-width: 100%; }
caption { text-align: left; color: var(--faint); font-size: 0.9rem; padding-bottom: 0.3rem; }
th, td { text-align: right; padding: 0.4rem 0.8rem; border-bottom: 1px solid var(--rule);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { color: var(--faint); font-weight: 600; }
code { font: 0.9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--sheet);
  border: 1px solid var(--rule); border-radius: 5px; padding: 0.05em 0.35em; overflow-wrap: anywhere; }
code { white-space: pre-wrap; }
pre { margin: 0.4rem 0 1rem; }
pre code { display: block; padding: 0.7rem 0.9rem; border-radius: 10px; }
nav { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 1.2rem 0 0; }
nav a { color: var(--ink); text-decoration: none; font-size: 0.9rem; background: var(--sheet);
  border: 1px solid var(--rule); border-radius: 99px; padding: 0.25rem 0.8rem; }
nav a:hover, nav a:focus-visible { border-color: var(--one); }
.note { color: var(--faint); font-size: 0.9rem; }
.swatch { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 3px; margin-right: 0.45em;
  background: var(--tone); }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--faint); font-weight: 600; padding: 0.3rem 0; }
ul { max-width: 44rem; padding-left: 1.2rem; }
li { margin: 0.25rem 0; }
dl.facts { grid-template-columns: minmax(7rem, auto) 1fr; max-width: 52rem; gap: 0.35rem 1.2rem; }
dl.facts dd { text-align: left; overflow-wrap: anywhere; }
.ranges { display: grid; grid-template-columns: minmax(4rem, auto) minmax(10rem, 1fr) auto;
  gap: 0.55rem 1rem; align-items: center; background: var(--sheet); border: 1px solid var(--rule);
  border-radius: 14px; padding: 1.1rem 1.3rem 2rem; margin: 1rem 0 0.3rem; }
.ranges .who { font-weight: 600; }
.ranges .far { font-variant-numeric: tabular-nums; white-space: nowrap; }
.ranges .track { position: relative; height: 1.1rem; background: var(--ground); border-radius: 5px; }
.ranges .track i { position: absolute; top: 0; bottom: 0; min-width: 5px; border-radius: 4px;
  background: var(--tone); }
.ranges .track i.open { background: none; border: 2px dashed var(--tone); border-left: none;
  border-radius: 0 4px 4px 0; }
.ranges .track i.bounded { opacity: 0.75; }
.ranges .scale { position: relative; height: 1em; color: var(--faint); font-size: 0.82rem; }
.ranges .scale span { position: absolute; transform: translateX(-50%); }
.scale-name { margin-top: 0; }
.strips { display: grid; gap: 1rem; margin: 1rem 0; }
.strip { display: grid; grid-template-columns: 8.5rem 1fr; gap: 1.3rem; background: var(--sheet);
  border: 1px solid var(--rule); border-radius: 14px; padding: 1rem; }
.strip img, .tiles img { width: 100%; display: block; image-rendering: pixelated; border-radius: 6px;
  border: 1px solid var(--rule); }
.strip figcaption, .tiles figcaption { text-align: center; color: var(--faint); font-size: 0.85rem;
  margin: 0.3rem 0 0; }
.changes { display: grid; gap: 1.1rem; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); }
.one .model { font-size: 0.9rem; font-weight: 600; margin-bottom: 0.35rem; }
.one .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0.4rem; max-width: 16rem; }
.one .change { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 0.4rem; margin-top: 0.4rem;
  font-weight: 650; max-width: 16rem; }
.one .from { color: var(--one); font-size: 1.15rem; }
.one .to { color: var(--accent); font-size: 1.15rem; }
.one .far { margin-left: auto; font-variant-numeric: tabular-nums; }
.proof.open { color: var(--doubt); }
.tiles { display: grid; gap: 0.8rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fill, minmax(5rem, 1fr)); }
.tiles img + img { margin-top: 0.3rem; }
.tiles .wrong { color: var(--accent); }
.sheet { display: grid; grid-template-columns: max-content minmax(0, 34rem); gap: 2px 0.7rem;
  align-items: center; justify-content: start; margin: 1rem 0; color: var(--faint); font-size: 0.8rem;
  font-variant-numeric: tabular-nums; }
.sheet img { width: 100%; display: block; image-rendering: pixelated; }
.sheet .steps { display: flex; }
.sheet .steps span { flex: 1; text-align: center; }
.sortable button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; }
.sortable button::after { content: "\N{NO-BREAK SPACE}↕"; opacity: 0.4; }
.sortable [aria-sort="ascending"] button::after { content: "\N{NO-BREAK SPACE}↑"; opacity: 1; }
.sortable [aria-sort="descending"] button::after { content: "\N{NO-BREAK SPACE}↓"; opacity: 1; }
.sortable td { vertical-align: top; }
.sortable .text { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 6rem;
  max-width: 14rem; }
.sortable td > span { display: inline-block; text-align: inherit; }
.sortable small { display: block; color: var(--faint); font-size: 0.82rem; }
.sortable th, .sortable td { padding: 0.4rem 0.55rem; }
.sortable th { white-space: normal; vertical-align: bottom; }
.sortable td:first-child { min-width: 9rem; }
.sortable th:first-child, .sortable td:first-child { padding-left: 0; }
@media (max-width: 40rem) {
  .sortable, .sortable caption, .sortable tbody, .sortable tr, .sortable td, .sortable thead {
    display: block; }
  .sortable thead tr { display: flex; flex-wrap: wrap; gap: 0.2rem 0.9rem; }
  .sortable thead th { display: block; padding: 0.1rem 0; border: 0; }
  .sortable tbody tr { background: var(--sheet); border: 1px solid var(--rule); border-radius: 12px;
    padding: 0.5rem 0.9rem; margin: 0.7rem 0; }
  .sortable td, .sortable td:first-child { display: flex; justify-content: space-between; gap: 1rem;
    max-width: none; padding: 0.2rem 0; border: 0; white-space: normal; }
  .sortable td::before { content: attr(data-head); color: var(--faint); }
  .sortable td:first-child { font-weight: 650; }
  .sortable td > span, .sortable .text, .sortable td:first-child { min-width: 0; }
  .sortable td > span, .sortable .text { text-align: right; max-width: none; }
  .sortable th.text { text-align: left; }
  .ranges { grid-template-columns: minmax(0, 1fr) auto; grid-auto-flow: dense; padding: 1rem 1rem 1.8rem; }
  .ranges .track { grid-column: 1 / -1; grid-row: auto; }
  .ranges .far { text-align: right; }
  .ranges .scale { grid-column: 1 / -1; }
  .ranges > span:empty { display: none; }
  .strip { grid-template-columns: 1fr; }
  .strip .first { display: flex; align-items: center; gap: 1rem; }
  .strip .first img { width: 6rem; }
  .changes { grid-template-columns: 1fr 1fr; }
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd { margin-bottom: 0.5rem; }
}
footer { color: var(--faint); font-size: 0.88rem; padding: 2.5rem 1.25rem 3rem; }
@media print { .shot, .card, .panel, .strip { break-inside: avoid; } }
"""
