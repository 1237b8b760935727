"""A page as a title, a lead and sections of cards, charts, tables and galleries; texts are escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from closecall._version import __version__
from closecall.report.style import STYLE
from closecall.report.tables import SORTING

# A page may show what is inside it, and nothing else: no browser fetches anything for it.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class Card:
    """A headline: one large figure and the facts below it."""

    name: str
    figure: str
    what: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Shot:
    """One image before and after, what changed, and what is proven; images are data URIs."""

    original: str
    changed: str
    difference: str
    before: str
    after: str
    distance: str
    proof: str
    closed: bool


@dataclass(frozen=True)
class Section:
    """A heading and blocks of HTML made by the functions of this package.

    One with an `anchor` is listed in the contents.
    """

    title: str
    blocks: Sequence[str]
    anchor: str = ""


@dataclass(frozen=True)
class Page:
    """One HTML file that needs nothing else."""

    title: str
    lead: str
    sections: Sequence[Section]
    footer: str = ""

    def html(self) -> str:
        """The whole file."""
        sections = "\n".join(map(section, self.sections))
        script = f"<script>{SORTING}</script>\n" if '<table class="sortable"' in sections else ""
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(self.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{escape(self.title)}</h1><p class="lead">{escape(self.lead)}</p>{contents(self.sections)}</header>
<main>
{sections}
</main>
<footer>{escape(self.footer)} closecall {escape(__version__)}</footer>
{script}</body>
</html>
"""


def section(shown: Section) -> str:
    place = f' id="{escape(shown.anchor)}"' if shown.anchor else ""
    return f"<section{place}><h2>{escape(shown.title)}</h2>{''.join(shown.blocks)}</section>"


def contents(sections: Sequence[Section]) -> str:
    """Links to the sections that have an anchor."""
    links = "".join(
        f'<a href="#{escape(part.anchor)}">{escape(part.title)}</a>' for part in sections if part.anchor
    )
    return f'<nav aria-label="Contents">{links}</nav>' if links else ""


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def note(text: str) -> str:
    """A small remark beside what it is about."""
    return f'<p class="note">{escape(text)}</p>'


def bullets(texts: Sequence[str]) -> str:
    """A list; what stands between backticks is set as code."""
    coded = (re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)) for text in texts)
    return f"<ul>{''.join(f'<li>{text}</li>' for text in coded)}</ul>"


def command_line(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they are, one below the other."""
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{listed}</dl>'


def folded(summary: str, blocks: Sequence[str]) -> str:
    """Blocks that are opened by a click."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(blocks)}</details>"


def subheading(text: str) -> str:
    return f"<h3>{escape(text)}</h3>"


def cards(shown: Sequence[Card]) -> str:
    return f'<div class="cards">{"".join(map(card, shown))}</div>'


def card(shown: Card) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in shown.facts)
    return (
        f'<article class="card"><div class="name">{escape(shown.name)}</div>'
        f'<div class="big">{escape(shown.figure)}</div><div class="what">{escape(shown.what)}</div>'
        f"<dl>{facts}</dl></article>"
    )


def panels(shown: Sequence[str]) -> str:
    """Charts side by side, as many as fit."""
    boxes = "".join(f'<div class="panel">{chart}</div>' for chart in shown)
    return f'<div class="panels">{boxes}</div>'


def gallery(shown: Sequence[Shot]) -> str:
    return f'<div class="gallery">{"".join(map(shot, shown))}</div>'


def shot(shown: Shot) -> str:
    trio = "".join(
        f'<figure><img src="{source}" alt="{escape(spoken)}"><figcaption>{name}</figcaption></figure>'
        for source, spoken, name in (
            (shown.original, f"the original image, seen as {shown.before}", "original"),
            (shown.changed, f"the changed image, seen as {shown.after}", "adversarial"),
            (shown.difference, "the pixels that changed: red brighter, blue darker", "difference"),
        )
    )
    change = (
        f'<span class="from">{escape(shown.before)}</span><span role="img" aria-label="becomes">→</span>'
        f'<span class="to">{escape(shown.after)}</span><span class="far">{escape(shown.distance)}</span>'
    )
    kind = "proof closed" if shown.closed else "proof"
    return (
        f'<article class="shot"><div class="trio">{trio}</div><div class="change">{change}</div>'
        f'<p class="{kind}">{escape(shown.proof)}</p></article>'
    )
