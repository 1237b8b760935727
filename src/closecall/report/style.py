"""How pages look: on paper, on a phone and in the dark."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fbfaf7; --sheet: #ffffff; --ink: #1d1f23; --faint: #666b73; --rule: #e3e0d8;
  --accent: #b3372f; --one: #2f6fad; --two: #d2623d; --good: #2b7d4f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #131519; --sheet: #1c1f25; --ink: #e9e7e2; --faint: #9aa0aa; --rule: #30353d;
    --accent: #ff8a7a; --one: #79b0e6; --two: #f19a76; --good: #7ccc9c;
  }
}
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
.panels { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); }
.panel { padding: 0.9rem 1rem; }
figure { margin: 0; }
figcaption { font-size: 0.9rem; margin-bottom: 0.3rem; }
.key { color: var(--faint); margin-left: 0.7rem; white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: 0.9em; height: 0.2em; margin-right: 0.35em;
  vertical-align: middle; border-radius: 2px; background: var(--one); }
.key.tone2::before { background: var(--two); }
.chart { width: 100%; height: auto; display: block; }
.grid { stroke: var(--rule); stroke-width: 1; }
.tick { fill: var(--faint); font-size: 11px; }
.line { fill: none; stroke: var(--one); stroke-width: 2; stroke-linejoin: round; }
.line.tone2 { stroke: var(--two); }
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
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.95rem; min-width: 100%; }
th, td { text-align: right; padding: 0.4rem 0.8rem; border-bottom: 1px solid var(--rule);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { color: var(--faint); font-weight: 600; }
code { font: 0.9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--sheet);
  border: 1px solid var(--rule); border-radius: 5px; padding: 0.05em 0.35em; overflow-wrap: anywhere; }
footer { color: var(--faint); font-size: 0.88rem; padding: 2.5rem 1.25rem 3rem; }
@media print { .shot, .card, .panel { break-inside: avoid; } }
"""
