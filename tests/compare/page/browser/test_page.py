"""The page of a comparison in a real browser: it needs nothing else, and can be read, sorted and heard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

OPEN_ALL = "document.querySelectorAll('details').forEach(part => part.open = true)"
TEXTS = """
(() => {
  const rgba = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = rgba(getComputedStyle(each).backgroundColor);
      if (colour[3] === 1) return colour;
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const holder = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || holder.closest("script, title")) continue;
    const style = getComputedStyle(holder), svg = holder.closest("svg");
    const ink = light(rgba(svg ? style.fill : style.color)), paper = light(behind(holder));
    const shrunk = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    found.push({
      text, contrast: (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05),
      size: parseFloat(style.fontSize) * shrunk,
    });
  }
  return found;
})()
"""
OUTSIDE = """
[...document.querySelectorAll("svg.chart")].flatMap(svg => {
  const edge = svg.querySelector(".edge").getBBox();
  const name = svg.getAttribute("aria-label");
  const lines = [...svg.querySelectorAll(".line")].flatMap(line => {
    const half = parseFloat(getComputedStyle(line).strokeWidth) / 2;
    return [...line.points].filter(point => point.y + half > edge.y || point.x - half < edge.x
      || point.x + half > edge.x + edge.width).map(point => [name, point.x, point.y]);
  });
  const boxes = [...svg.querySelectorAll("text")].map(text => text.getBBox());
  const overlaps = boxes.flatMap((one, k) => boxes.slice(k + 1).filter(other =>
    one.x < other.x + other.width && other.x < one.x + one.width
    && one.y + 2 < other.y + other.height && other.y + 2 < one.y + one.height).map(() => [name, "texts"]));
  const beyond = boxes.filter(box => box.x < 0 || box.x + box.width > svg.viewBox.baseVal.width)
    .map(() => [name, "cut off"]);
  return [...lines, ...overlaps, ...beyond];
})
"""
COLUMN = """
[...document.querySelector("{table}").tBodies[0].rows].map(row => row.cells[{column}].innerText)
"""
ANSWER = "#answer table"


def complaints(browser: Any) -> list[Any]:
    """Errors in the console, and exceptions that nobody caught."""
    said = [
        event for event in browser.seen("Runtime.consoleAPICalled") if event["type"] in ("error", "warning")
    ]
    return said + browser.seen("Runtime.exceptionThrown") + browser.seen("Log.entryAdded")


def fetched(browser: Any) -> list[str]:
    asked = [event["request"]["url"] for event in browser.seen("Network.requestWillBeSent")]
    return [url for url in asked if not url.startswith("data:")]


def test_it_opens_from_disk_and_asks_for_nothing_else(browser: Any, report: Path) -> None:
    browser.open(report)
    browser.run(OPEN_ALL)
    assert fetched(browser) == [report.resolve().as_uri()]
    assert complaints(browser) == []
    heads = browser.run("[...document.querySelectorAll('h2')].map(head => head.textContent)")
    assert heads == [
        "The answer",
        "The nearest adversarials",
        "Distances",
        "Moved images",
        "Few training images",
        "Inside the capsules",
        "Which MILP is the more suitable?",
        "How it was made",
    ]


def test_a_page_that_did_ask_or_fail_would_be_caught(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text('<img src="http://127.0.0.1:9/a.png"><script>nothing.there</script>', encoding="utf-8")
    browser.open(page)
    assert "http://127.0.0.1:9/a.png" in fetched(browser)
    assert complaints(browser)


def test_the_page_forbids_fetching(browser: Any, report: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = report.read_text(encoding="utf-8")
    page.write_text(text.replace("</main>", '<img src="http://127.0.0.1:9/a.png"></main>'), encoding="utf-8")
    browser.open(page)
    assert any(
        "Content Security Policy" in event["entry"]["text"] for event in browser.seen("Log.entryAdded")
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_every_image_is_visible_and_described(browser: Any, report: Path, width: int) -> None:
    browser.open(report, width=width)
    browser.run(OPEN_ALL)
    images = browser.run(
        "[...document.images].map(image => [image.complete && image.naturalWidth > 0,"
        " image.getBoundingClientRect().width, image.alt])"
    )
    # 10 originals; pairs for 4 models, less 4 without a witness; 8 restored; 4 overlaps; 2 sheets.
    assert len(images) == 10 + 2 * (40 - 4) + 16 + 12 + 32
    assert all(loaded and shown > 20 and told for loaded, shown, told in images)
    drawn = browser.run(
        "[...document.querySelectorAll('svg, .ranges')].map(figure => [figure.getAttribute('role'),"
        " figure.getAttribute('aria-label'), figure.getBoundingClientRect().height])"
    )
    assert len(drawn) == 1 + 4 + 4 + 1 + 3
    assert all(role == "img" and told and height > 80 for role, told, height in drawn)


def test_tables_sort_by_a_click(browser: Any, report: Path) -> None:
    browser.open(report)
    table = ANSWER
    assert browser.run(f"document.querySelector('{table}').caption.innerText") == "The answer for each model"

    def models() -> list[str]:
        rows = browser.run(COLUMN.format(table=ANSWER, column=0))
        return [text.split("\n")[0] for text in rows]

    def sort_by(column: int) -> str:
        browser.click(f"{table} th:nth-child({column}) button")
        state: str = browser.run(f"document.querySelector('{table} th:nth-child({column})').ariaSort")
        return state

    assert models() == ["DNN", "CNN", "CNN baseline", "CapsNet"]
    assert sort_by(1) == "ascending"
    assert models() == ["CapsNet", "CNN", "CNN baseline", "DNN"]
    assert sort_by(3) == "ascending"  # 1,210 before 7,210: by number, not by text
    assert models() == ["DNN", "CNN", "CNN baseline", "CapsNet"]
    assert sort_by(3) == "descending"
    assert models() == ["CapsNet", "CNN baseline", "CNN", "DNN"]
    assert sort_by(7) == "ascending"  # proven lower ends; what is not proven stays last both ways
    assert models() == ["CNN baseline", "CNN", "DNN", "CapsNet"]
    assert sort_by(7) == "descending"
    assert models() == ["DNN", "CNN", "CNN baseline", "CapsNet"]
    assert browser.run(f"document.querySelectorAll('{table} [aria-sort]').length") == 1
    assert complaints(browser) == []


def test_every_table_can_be_sorted_and_keeps_its_rows(browser: Any, report: Path) -> None:
    browser.open(report)
    browser.run(OPEN_ALL)
    rows = "[...document.querySelectorAll('table.sortable')].map(table => [...table.tBodies[0].rows].length)"
    before = browser.run(rows)
    assert len(before) == 8
    browser.run("document.querySelectorAll('table.sortable button').forEach(button => button.click())")
    assert browser.run(rows) == before
    assert browser.run("document.querySelectorAll('table.sortable [aria-sort=ascending]').length") == 8
    assert complaints(browser) == []


@pytest.mark.parametrize("name", ["report", "awkward_page"])
def test_it_fits_a_phone(browser: Any, name: str, request: pytest.FixtureRequest) -> None:
    browser.open(request.getfixturevalue(name), width=390, height=844)
    browser.run(OPEN_ALL)
    assert browser.run("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    sticking_out = browser.run(
        "[...document.body.querySelectorAll('*')].filter(each => each.getBoundingClientRect().right > 390.5)"
        ".map(each => each.outerHTML.slice(0, 80))"
    )
    assert sticking_out == []
    small = [text for text in browser.run(TEXTS) if text["size"] < 9]
    assert small == []


def test_tables_sort_on_a_phone_too(browser: Any, report: Path) -> None:
    browser.open(report, width=390, height=844)
    browser.click(f"{ANSWER} th:nth-child(2) button")
    browser.click(f"{ANSWER} th:nth-child(2) button")
    rows = browser.run(COLUMN.format(table=ANSWER, column=1))
    assert [row.split()[0] for row in rows] == ["98.6", "98.1", "97.2", "95.5"]


def test_it_is_readable_by_day_and_by_night(browser: Any, report: Path) -> None:
    paper, ink = [], []
    for dark in (False, True):
        browser.open(report, dark=dark)
        browser.run(OPEN_ALL)
        style = "getComputedStyle(document.body)"
        paper.append(browser.run(f"{style}.backgroundColor"))
        ink.append(browser.run(f"{style}.color"))
        texts = browser.run(TEXTS)
        assert len(texts) > 500
        assert [text for text in texts if text["contrast"] < 4.5] == []
    assert paper[0] != paper[1]
    assert ink[0] != ink[1]
    lines = "getComputedStyle(document.querySelector('.line')).stroke"
    assert browser.run(lines) == "rgb(64, 150, 238)"


def test_the_table_of_the_milps_is_folded_and_sorts(browser: Any, report: Path) -> None:
    browser.open(report)
    table, shown = "#milp details table", "document.querySelector('#milp table').checkVisibility()"
    assert browser.run(shown) is False
    assert browser.run("document.querySelector('#milp svg').checkVisibility()") is True
    browser.click("#milp summary")
    assert browser.run(shown) is True
    browser.click(f"{table} th:nth-child(3) button")
    rows = browser.run(COLUMN.format(table=table, column=2))
    shares = [float(row.split("\xa0")[0]) for row in rows]
    assert shares == sorted(shares)
    assert complaints(browser) == []


def test_everything_that_can_be_clicked_can_be_reached_by_keys(browser: Any, report: Path) -> None:
    browser.open(report)
    wanted = browser.run("document.querySelectorAll('a[href], summary').length")
    browser.run("document.activeElement.blur()")
    reached = []
    for _ in range(60):
        for kind in ("keyDown", "keyUp"):
            browser.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(browser.run("document.activeElement.tagName + document.activeElement.innerText"))
        if reached[-1].startswith("BODY"):
            break
    assert sum(name.startswith(("A", "SUMMARY")) for name in reached) == wanted
    assert sum(name.startswith("BUTTON") for name in reached) > 7


def test_curves_lie_within_the_plot(browser: Any, report: Path) -> None:
    """Strokes with their whole width, also along 0: between the edges, and no text on another."""
    browser.open(report)
    outside = browser.run(OUTSIDE)
    assert outside == []


def test_no_name_becomes_markup(browser: Any, report: Path) -> None:
    browser.open(report)
    assert browser.run("document.querySelectorAll('li b').length") == 0
    assert '<b>&</b> has "quotes"' in browser.run("document.body.innerText")
