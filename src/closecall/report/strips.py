"""Pictures side by side: one image under several models, originals over reconstructions, rows of a sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Change:
    """What one model makes of an image, and what changes its mind; images are data URIs.

    `changed` and `difference` are empty where there is nothing to show, and `said` tells why. `state` is
    "closed" (proven to the end), "bounded" (an interval is proven) or "open" (nothing is proven).
    """

    model: str
    tone: int
    changed: str
    difference: str
    before: str
    after: str
    distance: str
    said: str
    state: str


@dataclass(frozen=True)
class Strip:
    """One image and what changes each model's mind about it."""

    original: str
    title: str
    changes: Sequence[Change]


@dataclass(frozen=True)
class Tile:
    """Pictures one above the other, each with what is read aloud for it, over a caption."""

    pictures: Sequence[tuple[str, str]]  # (data URI, alternative text)
    caption: str
    right: bool = True


def strips(shown: Sequence[Strip]) -> str:
    return f'<div class="strips">{"".join(map(strip, shown))}</div>'


def strip(shown: Strip) -> str:
    changes = "".join(change(shown, part) for part in shown.changes)
    return (
        f'<article class="strip"><figure class="first"><img src="{shown.original}" '
        f'alt="{escape(shown.title)}, the original"><figcaption>{escape(shown.title)}</figcaption></figure>'
        f'<div class="changes">{changes}</div></article>'
    )


def change(within: Strip, shown: Change) -> str:
    pair = ""
    if shown.changed:
        told = f"{shown.model}: {within.title}, changed so that it is read as {shown.after}"
        apart = f"{shown.model}: what changed, red brighter, blue darker"
        pair = (
            f'<div class="pair"><img src="{shown.changed}" alt="{escape(told)}">'
            f'<img src="{shown.difference}" alt="{escape(apart)}"></div>'
        )
    turned = f'<span class="from">{escape(shown.before)}</span>'
    if shown.after:
        turned += (
            f'<span role="img" aria-label="becomes">→</span><span class="to">{escape(shown.after)}</span>'
        )
    swatch = f'<i class="swatch tone{shown.tone}"></i>'
    return (
        f'<div class="one"><div class="model">{swatch}{escape(shown.model)}</div>'
        f'{pair}<div class="change">{turned}<span class="far">{escape(shown.distance)}</span></div>'
        f'<p class="proof {shown.state}">{escape(shown.said)}</p></div>'
    )


def tiles(shown: Sequence[Tile]) -> str:
    return f'<div class="tiles">{"".join(map(tile, shown))}</div>'


def tile(shown: Tile) -> str:
    pictures = "".join(f'<img src="{source}" alt="{escape(told)}">' for source, told in shown.pictures)
    kind = "" if shown.right else ' class="wrong"'
    return f"<figure>{pictures}<figcaption{kind}>{escape(shown.caption)}</figcaption></figure>"


def sheet(rows: Sequence[tuple[str, str, str]], foot: Sequence[str]) -> str:
    """Long pictures one below the other as (name, data URI, alternative text), and words along the foot."""
    lines = "".join(
        f'<span>{escape(name)}</span><img src="{source}" alt="{escape(told)}">' for name, source, told in rows
    )
    steps = "".join(f"<span>{escape(text)}</span>" for text in foot)
    return f'<div class="sheet">{lines}<span></span><div class="steps">{steps}</div></div>'
