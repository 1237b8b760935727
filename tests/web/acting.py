"""What a person does on the page."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from .conftest import GALLERY_TWO

# A three in one stroke, in shares of the canvas.
THREE = [
    (0.3, 0.3), (0.38, 0.22), (0.5, 0.18), (0.62, 0.24), (0.64, 0.36), (0.56, 0.45), (0.45, 0.48),
    (0.58, 0.52), (0.67, 0.62), (0.65, 0.75), (0.52, 0.83), (0.38, 0.81), (0.29, 0.73),
]  # fmt: skip


def draw(page: Page, strokes: list[tuple[float, float]] = THREE) -> None:
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in strokes]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def choose(page: Page, number: int = GALLERY_TWO) -> None:
    page.locator("#gallery button").nth(number).click()
    expect(page.locator("#gallery button").nth(number)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#seen")).to_contain_text("CapsNet")


def canvas_is_empty(page: Page, selector: str) -> bool:
    empty: bool = page.evaluate(
        """([selector]) => {
          const canvas = document.querySelector(selector);
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return !data.some((value, place) => place % 4 < 3 && value);
        }""",
        [selector],
    )
    return empty


def find_nearest(page: Page) -> None:
    page.get_by_role("button", name="Find the nearest").click()
    page.wait_for_selector("#nearest-result.over")
