"""The page for everyone: dark and light, on a phone, by keyboard, read aloud."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from .acting import choose
from .conftest import GALLERY_TWO, Open, Running


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_tab_fits_its_window(
    server: Running, open_page: Open, shots: Path, scheme: str, width: int
) -> None:
    page = open_page(server.address, width=width, height=800, scheme=scheme)
    choose(page)
    for tab in page.get_by_role("tab").all():
        tab.click()
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.get_by_role("tab", name="Scores").click()
    shown_as = {("dark", 1280): "serve-dark.png", ("light", 360): "serve-phone.png"}.get((scheme, width))
    if shown_as is not None:
        page.screenshot(path=shots / shown_as, full_page=True)
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(251, 250, 247)", "dark": "rgb(19, 21, 25)"}[scheme], (
        "as the reports have it"
    )


def test_the_keyboard_reaches_everything(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    page.locator("#gallery button").nth(GALLERY_TWO).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#seen")).to_have_text("DNN 2 · CNN 2 · CapsNet 2")
    page.get_by_role("tab", name="Scores").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Nearest")).to_be_focused()
    expect(page.locator("#panel-nearest")).to_be_visible()
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))
    assert reached[:6] == [
        "nearest-model", "nearest-target", "nearest-norm", "nearest-cap", "nearest-limit", "Find the nearest",
    ]  # fmt: skip
    page.get_by_role("button", name="Find the nearest").press("Enter")
    page.wait_for_selector("#nearest-result.over")


def test_everything_has_a_name_for_those_who_hear_it(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    choose(page)
    for tab in page.get_by_role("tab").all():
        tab.click()
    page.wait_for_selector("#capsules-sliders input", state="attached")
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('input, select, button, canvas[role=img], a')].filter((e) => "
        "!(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert nameless == []
