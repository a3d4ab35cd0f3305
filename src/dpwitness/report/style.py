"""The look of a page and of a block in a notebook. Colours are few: one for violated, one for not refuted."""

from typing import Final

#: Of both; a block has the text colour of the notebook around it, and colours that show on light and dark.
COMMON: Final = """
.dpw { --accent: #6b7280; --violated: #d4484c; --not-refuted: #2a8c7c; --line: rgba(128, 128, 128, .35);
  --soft: rgba(128, 128, 128, .12); line-height: 1.5; overflow-wrap: anywhere; }
.dpw .violated { --accent: var(--violated); }
.dpw .not-refuted { --accent: var(--not-refuted); }
.dpw .headline { border-left: 4px solid var(--accent); padding: .1em 0 .1em .8em; margin: .6em 0; }
.dpw span strong { color: var(--accent); }
.dpw .headline strong { text-transform: uppercase; letter-spacing: .04em; }
.dpw table { border-collapse: collapse; table-layout: fixed; width: 100%; margin: .4em 0 1em; }
.dpw caption { text-align: left; opacity: .75; font-size: .9em; padding-bottom: .2em; }
.dpw th, .dpw td { text-align: left; vertical-align: top; padding: .3em .8em .3em 0;
  border-top: 1px solid var(--line); }
.dpw th { font-weight: 600; }
.dpw tbody th { font-weight: 500; }
.dpw tr :first-child { width: 30%; }
.dpw table.numbers { font-variant-numeric: tabular-nums; }
.dpw table.numbers tr :first-child { width: auto; }
.dpw figure { margin: .6em 0 1em; max-width: 34rem; }
.dpw figcaption { opacity: .75; font-size: .9em; }
.dpw svg { display: block; width: 100%; height: auto; color: inherit; }
.dpw svg text { fill: currentColor; font: 11.5px system-ui, sans-serif; }
.dpw svg .own { fill: var(--accent); }
.dpw svg .other { fill: currentColor; fill-opacity: .4; }
.dpw svg .inside { fill: var(--soft); }
.dpw svg .axis, .dpw svg .interval { stroke: currentColor; stroke-width: 1; fill: none; }
.dpw svg .line { stroke: var(--accent); stroke-width: 2; fill: none; }
.dpw svg .mark { stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 4 3; fill: none; }
.dpw mark { background: none; color: inherit; font-weight: 700; text-decoration: underline 2px var(--accent);
  text-underline-offset: .2em; }
.dpw code { font: .92em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; white-space: pre-wrap; }
"""

#: Of a page of its own.
PAGE: Final = """
:root { color-scheme: light dark; }
body { margin: 0; background: #fff; color: #1a1c1f; font: 1rem/1.5 system-ui, sans-serif; }
.dpw { max-width: 48rem; margin: 0 auto; padding: 2rem 1rem 4rem; --violated: #b3261e; --not-refuted: #17695d; }
h1 { font-size: .95rem; font-weight: 600; opacity: .75; margin: 0 0 1rem; }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .8rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
p, ul { margin: .4em 0; }
ul { padding-left: 1.2rem; }
li + li { margin-top: .25em; }
article + article { border-top: 2px solid var(--line); margin-top: 3rem; padding-top: 2rem; }
.headline { font-size: 1.15rem; }
.warnings { background: var(--soft); padding: .6rem 1rem; margin: 0 0 1rem; }
.warnings h3 { margin-top: 0; }
a { color: inherit; text-underline-offset: .2em; }
a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .92rem; }
nav li + li { margin-top: 0; }
@media (prefers-color-scheme: dark) {
  body { background: #16181b; color: #e6e7e9; }
  .dpw { --accent: #a7adb8; --violated: #ff8a84; --not-refuted: #6fd0bf; }
}
@media (max-width: 30rem) {
  table:not(.numbers) :is(thead, th, td, tr, tbody) { display: block; width: auto; }
  table:not(.numbers) thead { position: absolute; clip-path: inset(50%); }
  table:not(.numbers) td { border-top: 0; padding-top: 0; }
  .dpw table:not(.numbers) tbody th { width: auto; font-weight: 600; padding-bottom: 0; }
}
@media print {
  :root { color-scheme: light; }
  body { background: #fff; color: #000; font-size: 10.5pt; }
  .dpw { max-width: none; padding: 0; --accent: #6b7280; --violated: #b3261e; --not-refuted: #17695d; }
  .dpw * { print-color-adjust: exact; }
  nav { display: none; }
  figure, tr, .headline, .warnings { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  @page { margin: 18mm; }
}
"""
