"""What a notebook shows of an answer: the very pixels, and a bar that ends where the proof does."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import closecall
from closecall.models import build


class Shown(HTMLParser):
    """The pictures, the widths of the bar's parts, the words, and whether every tag that opens closes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pictures: dict[str, np.ndarray] = {}
        self.widths: list[str] = []
        self.words, self.open = "", 0
        self.feed(html)
        assert self.open == 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "img":
            content = base64.b64decode(given["src"].removeprefix("data:image/png;base64,"), validate=True)
            self.pictures[given["alt"]] = np.asarray(Image.open(io.BytesIO(content)))
            assert max(int(given["width"]), int(given["height"])) == 150
            return
        self.open += 1
        style = given.get("style", "")
        if style.startswith("width:"):
            self.widths.append(style.split("%")[0].removeprefix("width:"))

    def handle_endtag(self, tag: str) -> None:
        self.open -= 1

    def handle_data(self, data: str) -> None:
        self.words += data


def asked(shape: tuple[int, ...], **wishes: object) -> closecall.Verdict:
    model = build("dnn", {"sizes": [6], "input_shape": shape, "classes": 3}, seed=1).eval()
    return closecall.nearest(model, np.random.default_rng(0).random(shape), **wishes)


@pytest.mark.parametrize("shape", [(1, 4, 6), (3, 4, 4)])
def test_the_pictures_hold_the_pixels(shape: tuple[int, int, int]) -> None:
    verdict = asked(shape)
    assert verdict.witness is not None
    shown = Shown(verdict._repr_html_())
    changed = int((verdict.witness != verdict.image).sum())
    original, witness, difference = shown.pictures.values()
    assert [*shown.pictures] == [
        f"original: {verdict.predicted_before}",
        f"witness: {verdict.predicted_after}",
        f"difference: {changed} of {math.prod(shape)} values",
    ]
    for picture, image in ((original, verdict.image), (witness, verdict.witness)):
        expected = image[0] if shape[0] == 1 else np.moveaxis(image, 0, 2)
        np.testing.assert_allclose(picture / 255, expected, atol=0.51 / 255)
    same = (verdict.witness == verdict.image).all(axis=0)
    assert (difference[same] == 255).all()
    moved = (verdict.witness - verdict.image).sum(axis=0)
    red, blue = difference[:, :, 0].astype(int), difference[:, :, 2].astype(int)
    if shape[0] == 1:
        assert (red > blue)[moved > 0.01].all()
        assert (blue > red)[moved < -0.01].all()


def test_the_bar_ends_where_the_proof_does() -> None:
    verdict = asked((1, 3, 3))
    open_gap = replace(verdict, outcome="adversarial", distance=0.5, lower_bound=0.125)
    shown = Shown(open_gap._repr_html_())
    assert shown.widths == ["25.00"]
    assert "L1 distance from 0 to the witness, at 0.5; proven to be empty up to 0.125, the rest is open." in (
        shown.words
    )
    robust = asked((1, 3, 3), radius=1e-5)
    assert robust.outcome == "robust"
    shown = Shown(robust._repr_html_())
    assert (shown.widths, len(shown.pictures)) == (["100.00"], 1)
    assert "to the radius, 1e-05; proven to be empty up to 1e-05." in shown.words
    for nothing_to_draw in (replace(verdict, distance=0.0), replace(robust, question=verdict.question)):
        assert Shown(nothing_to_draw._repr_html_()).widths == []


def test_notes_are_shown_as_text() -> None:
    noted = replace(asked((1, 3, 3)), notes=("5 < 6 & <b>bold</b>",))
    assert "Note: 5 < 6 & <b>bold</b>." in Shown(noted._repr_html_()).words


def test_any_image_can_be_shown() -> None:
    for shape in ((4, 3, 3), (1, 1, 7)):
        assert len(Shown(asked(shape)._repr_html_()).pictures) == 3
    shifted = asked((1, 3, 3), pixel_range=(-1.0, 3.0))
    original = next(iter(Shown(shifted._repr_html_()).pictures.values()))
    np.testing.assert_allclose(original / 255, (shifted.image[0] + 1) / 4, atol=0.51 / 255)


def test_print_is_one_sentence() -> None:
    verdict = asked((1, 3, 3))
    assert str(verdict) == f"{verdict}" == verdict.summary()
    assert "\n" not in str(verdict)
    assert "norm='l1'" in repr(verdict)
    assert len(repr(verdict)) < 2000


def test_an_ideal_image_shows_itself() -> None:
    model = build("dnn", {"sizes": [6], "input_shape": (1, 3, 3), "classes": 3}, seed=1).eval()
    found = closecall.ideal(model, 1)
    shown = Shown(found._repr_html_())
    assert str(found) == found.summary()
    assert found.summary() in shown.words
    np.testing.assert_allclose(shown.pictures["seen as 1"] / 255, found.image[0], atol=0.51 / 255)
