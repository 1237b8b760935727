"""A page needs nothing but itself, and no text can break out of it."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from closecall.report import (
    Card,
    Cell,
    Change,
    Line,
    Page,
    Range,
    Section,
    Shot,
    Strip,
    Tile,
    bullets,
    cards,
    command_line,
    difference_uri,
    facts,
    folded,
    gallery,
    image_uri,
    line_chart,
    note,
    panels,
    paragraph,
    plain_axis,
    ranges,
    sheet,
    sortable_table,
    strips,
    subheading,
    tiles,
)

EVIL = '<script>alert("1")</script>&\'"'


class Outline(HTMLParser):
    """The tags and attributes of a page, checked to be closed in order."""

    EMPTY = ("meta", "img", "line", "polyline", "link", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pixels_of(uri: str) -> np.ndarray:
    kind, content = uri.split(",", 1)
    assert kind == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        return np.asarray(image)


@pytest.fixture
def page() -> str:
    uri = image_uri(np.zeros((1, 2, 2)))
    blocks = [
        paragraph(EVIL),
        subheading(EVIL),
        cards([Card(EVIL, EVIL, EVIL, [(EVIL, EVIL)])]),
        gallery([Shot(uri, uri, uri, EVIL, EVIL, EVIL, EVIL, closed=True)]),
        panels([line_chart(EVIL, [Line(EVIL, [0.5, 0.25])], plain_axis([0.5], EVIL))]),
        note(EVIL),
        bullets([EVIL]),
        command_line(EVIL),
        facts([(EVIL, EVIL)]),
        folded(EVIL, [paragraph(EVIL)]),
        ranges([Range(EVIL, 0.0, None, EVIL, "open", 1)], plain_axis([1.0], EVIL), EVIL),
        strips([Strip(uri, EVIL, [Change(EVIL, 1, uri, uri, EVIL, EVIL, EVIL, EVIL, "open")])]),
        tiles([Tile([(uri, EVIL)], EVIL)]),
        sheet([(EVIL, uri, EVIL)], [EVIL]),
    ]
    return Page(EVIL, EVIL, [Section(EVIL, blocks, EVIL)], EVIL).html()


def test_no_text_becomes_markup(page: str) -> None:
    assert "<script" not in page
    assert not [tag for tag, _ in Outline(page).tags if tag == "script"]


def test_only_a_page_with_something_to_sort_has_a_script(page: str) -> None:
    sortable = sortable_table(EVIL, [EVIL], [[Cell(EVIL, EVIL, EVIL, 1)]])
    tags = Outline(Page(EVIL, EVIL, [Section(EVIL, [sortable])]).html()).tags
    assert [tag for tag, _ in tags].count("script") == 1
    plain = Page("t", "l", [Section("s", [paragraph('<table class="sortable"')])]).html()
    assert "<script" not in plain


def test_cells_carry_the_value_they_are_sorted_by() -> None:
    drawn = sortable_table(
        "t", ["n", "m"], [[Cell("1.2 k", 1234.5), Cell("x", "y")], [Cell("none"), Cell("z", "z")]]
    )
    cells = [attributes for tag, attributes in Outline(drawn).tags if tag == "td"]
    assert [cell.get("data-key") for cell in cells] == ["1234.5", "y", None, "z"]
    assert [cell["data-head"] for cell in cells] == ["n", "m", "n", "m"]
    assert [cell.get("class") for cell in cells] == [None, "text", None, "text"]


def test_a_table_has_a_caption() -> None:
    drawn = sortable_table("<All>", ["n"], [[Cell("1", 1)]])
    assert "<caption>&lt;All&gt;</caption><thead>" in drawn


def test_lists_set_code_apart() -> None:
    assert bullets(["run `a <b>` now", "a ` alone"]) == (
        "<ul><li>run <code>a &lt;b&gt;</code> now</li><li>a ` alone</li></ul>"
    )


def test_intervals_lie_on_the_scale() -> None:
    axis = plain_axis([0.0, 0.4])
    shown = [Range("a", 0.1, 0.3, "", "bounded", 1), Range("b", 0.2, None, "", "open", 2)]
    drawn = ranges(shown, axis, "spoken")
    assert re.findall(r'<i class="\w+ tone\d" style="left:([\d.]+)%;width:([\d.]+)%">', drawn) == [
        ("25.00", "50.00"),
        ("50.00", "50.00"),
    ]
    assert 'role="img" aria-label="spoken"' in drawn


def test_nothing_is_fetched_and_every_image_is_described(page: str) -> None:
    for tag, attributes in Outline(page).tags:
        assert tag not in ("link", "script", "iframe", "object")
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))
        if tag == "img":
            assert attributes["alt"]
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
    assert "url(" not in page
    assert "@import" not in page


def test_a_page_fits_a_phone_and_the_dark(page: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "@media (prefers-color-scheme: dark)" in page
    assert '<html lang="en">' in page


def test_a_chart_draws_its_values_to_scale() -> None:
    lines = [Line("training", [3.0, 1.0, 0.0]), Line("held out", [2.0, 1.5, 1.0], 2)]
    drawn = line_chart("Loss", lines, plain_axis([3.0], "mean cross-entropy"))
    drawn_lines = [
        np.array([[float(number) for number in point.split(",")] for point in points.split()])
        for points in re.findall(r'points="([^"]+)"', drawn)
    ]
    # The highest value is 3 and the lowest 0: heights are a falling straight line in the value.
    values = np.array([3.0, 1.0, 0.0, 2.0, 1.5, 1.0])
    heights = np.concatenate([line[:, 1] for line in drawn_lines])
    slope, offset = np.polyfit(values, heights, 1)
    assert slope < 0
    np.testing.assert_allclose(slope * values + offset, heights, atol=0.1)
    np.testing.assert_allclose(np.diff(drawn_lines[0][:, 0]), np.diff(drawn_lines[0][:, 0])[0], atol=0.1)
    assert 'aria-label="Loss by epoch: training ends at 0; held out ends at 1"' in drawn
    assert ">mean cross-entropy</text>" in drawn
    assert ">epoch</text>" in drawn


def test_an_image_keeps_its_pixels() -> None:
    grey = np.array([[[0.0, 1.0], [0.2, 0.4]]])
    np.testing.assert_array_equal(pixels_of(image_uri(grey)), [[0, 255], [51, 102]])
    colour = np.random.default_rng(0).integers(0, 256, (3, 4, 5))
    np.testing.assert_array_equal(pixels_of(image_uri(colour / 255)), colour.transpose(1, 2, 0))
    np.testing.assert_array_equal(pixels_of(image_uri(grey * 4 - 2, -2, 2)), [[0, 255], [51, 102]])


def test_a_difference_is_clear_where_nothing_changed() -> None:
    drawn = pixels_of(difference_uri(np.array([[[0.5, -0.5], [0.0, 0.125]]])))
    np.testing.assert_array_equal(drawn[..., 3], [[255, 255], [0, 128]])
    red, blue = drawn[0, 0], drawn[0, 1]
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert not pixels_of(difference_uri(np.zeros((1, 2, 2))))[..., 3].any()
