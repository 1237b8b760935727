"""Answers as a notebook shows them: the pictures side by side, what is known below, on light and on dark."""

from __future__ import annotations

import base64
import io
import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from closecall.verdict.picture import as_picture, measured_in, strongest_channel

if TYPE_CHECKING:
    from closecall.verdict.verdict import Verdict

SIDE = 150  # of a picture on the screen, in pixels
ROSE, FELL = np.array([178.0, 24.0, 43.0]), np.array([33.0, 102.0, 172.0])
# Both colours can be told from white, from black and from each other.
PROVEN, OPEN = "#2a9d6f", "#e0a030"


def verdict_html(verdict: Verdict) -> str:
    """Original, witness, difference and the proven interval."""
    low, high = verdict.pixel_range
    panels = [panel(grey_or_colour(verdict.image, low, high), f"original: {verdict.predicted_before}")]
    if verdict.witness is not None:
        difference = verdict.witness.astype(np.float64) - verdict.image
        changed = int((difference != 0).sum())
        panels += [
            panel(grey_or_colour(verdict.witness, low, high), f"witness: {verdict.predicted_after}"),
            panel(red_and_blue(difference), f"difference: {changed} of {difference.size} values"),
        ]
    notes = "".join(f"<div>Note: {escape(note)}.</div>" for note in verdict.notes)
    return framed(verdict.summary(), "".join(panels), interval(verdict) + notes)


def image_html(image: NDArray[Any], summary: str, caption: str) -> str:
    """One image that is not of a verdict, with its own darkest and brightest pixels."""
    low, high = float(image.min(initial=0.0)), float(image.max(initial=1.0))
    return framed(summary, panel(grey_or_colour(image, low, high), caption), "")


def framed(summary: str, panels: str, below: str) -> str:
    return (
        '<div style="font-family:sans-serif;font-size:13px;line-height:1.5;max-width:560px">'
        f'<div style="font-weight:600">{escape(summary)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:16px;margin:8px 0">{panels}</div>{below}</div>'
    )


def panel(pixels: NDArray[np.uint8], caption: str) -> str:
    """A picture with square pixels, however few it has, over its caption."""
    content = io.BytesIO()
    Pillow.fromarray(pixels).save(content, format="PNG")
    encoded = base64.b64encode(content.getvalue()).decode()
    height, width = pixels.shape[:2]
    scale = SIDE / max(height, width)
    return (
        '<figure style="margin:0">'
        f'<img alt="{escape(caption)}" src="data:image/png;base64,{encoded}" '
        f'width="{max(1, round(scale * width))}" height="{max(1, round(scale * height))}" '
        'style="image-rendering:pixelated;border:1px solid #888;max-width:none">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def grey_or_colour(image: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    share = (as_picture(image) - low) / (high - low)
    return np.asarray(np.rint(255 * share.clip(0, 1)), dtype=np.uint8)


def red_and_blue(difference: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Red where pixels rose, blue where they fell, white where nothing changed."""
    shown = strongest_channel(as_picture(difference))
    share = (np.abs(shown) / (float(np.abs(shown).max(initial=0.0)) or 1.0))[:, :, None]
    colours = np.where(shown[:, :, None] > 0, ROSE, FELL)
    return np.rint(255 * (1 - share) + share * colours).astype(np.uint8)


def interval(verdict: Verdict) -> str:
    """A bar from 0 to the witness, or to the radius: how much of it is proven to be empty, and the rest."""
    end = verdict.distance if verdict.distance is not None else verdict.question.radius
    if end == 0 or math.isinf(end):
        return ""
    share = min(1.0, verdict.lower_bound / end)
    where = f"the witness, at {end:.6g}" if verdict.distance is not None else f"the radius, {end:.6g}"
    left = ", the rest is open" if verdict.outcome in ("adversarial", "unresolved") else ""
    proven = f"proven to be empty up to {min(verdict.lower_bound, end):.6g}{left}"
    said = f"{measured_in(verdict)} from 0 to {where}; {proven}"
    rest = "" if share == 1 else f'<div style="flex:1;background:{OPEN}"></div>'
    return (
        f'<div role="img" aria-label="{escape(said)}" '
        'style="display:flex;height:10px;border:1px solid #888">'
        f'<div style="width:{100 * share:.2f}%;background:{PROVEN}"></div>{rest}</div>'
        f"<div>{escape(said)}.</div>"
    )
