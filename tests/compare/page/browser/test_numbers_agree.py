"""What the browser shows is what results.json says, computed again from the file alone."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TABLES = """
Object.fromEntries([...document.querySelectorAll("table.sortable")].map(table => [
  table.caption.innerText,
  [...table.tBodies[0].rows].map(row => Object.fromEntries([...row.cells].map(cell => [
    cell.dataset.head,
    [cell.innerText.replaceAll("\u00a0", " "), cell.dataset.key === undefined ? null : cell.dataset.key],
  ]))),
]))
"""
GALLERY = """
[...document.querySelectorAll(".strip")].map(strip => [
  strip.querySelector("figcaption").innerText,
  [...strip.querySelectorAll(".one")].map(one => [
    one.querySelector(".model").innerText, one.querySelector(".change").innerText.split(/\\s+/),
    one.querySelector(".proof").className, one.querySelector(".proof").innerText,
  ]),
])
"""
TITLES = {"dnn": "DNN", "cnn": "CNN", "cnn-baseline": "CNN baseline", "capsnet": "CapsNet"}
CHARTS = """
[...document.querySelectorAll("#{section} svg")].map(svg => ({{
  name: svg.parentElement.querySelector("b").innerText,
  ticks: [...svg.querySelectorAll("text")].map(text => [
    text.innerHTML, Number(text.getAttribute("x")), Number(text.getAttribute("y")),
    text.getAttribute("text-anchor"),
  ]),
  lines: [...svg.querySelectorAll("polyline, polygon")].map(line => [
    line.getAttribute("class"), [...line.points].map(point => [point.x, point.y]),
  ]),
  marks: [...svg.querySelectorAll("circle title")].map(title => title.textContent),
}}))
"""


@pytest.fixture
def shown(browser: Any, report: Path) -> Any:
    browser.open(report)
    browser.run("document.querySelectorAll('details').forEach(part => part.open = true)")
    return browser


@pytest.fixture
def told(report: Path) -> Any:
    return json.loads((report.parent / "results.json").read_text(encoding="utf-8"))


def rows_of(told: Any, model: str) -> list[Any]:
    return [row for row in told["distances"] if row["model"] == model]


def far(row: Any, end: str) -> float:
    return math.inf if row[end] is None else row[end]


def number(text: str) -> float:
    return float(re.search(r"[\d.,]+", text).group().replace(",", ""))


def test_the_answer(shown: Any, told: Any) -> None:
    lines = shown.run(TABLES)["The answer for each model"]
    assert len(lines) == len(told["models"])
    for line, model in zip(lines, told["models"], strict=True):
        assert line["model"][1] == model["name"]
        mean = float(np.mean(model["accuracy"]))
        assert float(line["accuracy"][1]) == pytest.approx(mean)
        assert line["accuracy"][0].startswith(f"{100 * mean:.1f} %")
        assert (
            f"{100 * min(model['accuracy']):.1f} to {100 * max(model['accuracy']):.1f} %"
            in line["accuracy"][0]
        )
        assert number(line["parameters"][0]) == float(line["parameters"][1]) == model["parameters"]
        assert float(line["training time"][1]) == pytest.approx(np.mean(model["training_seconds"]))
        assert number(line["training time"][0]) == pytest.approx(np.mean(model["training_seconds"]), rel=0.01)
        assert number(line["time per image"][0]) == pytest.approx(model["milliseconds_single"], rel=0.01)
        lower, upper = (
            float(np.median([far(row, end) for row in rows_of(told, model["name"])]))
            for end in ("lower", "upper")
        )
        assert float(line["median L∞ distance"][1]) == upper
        assert upper <= number(line["median L∞ distance"][0]) < upper + 1.1e-4
        if not model["provable"]:
            assert line["proven interval"][0].startswith("not proven")
            assert line["median L∞ distance"][0].startswith("≤")
            continue
        ends = [float(end) for end in line["proven interval"][0].split("\n")[0].split(" to ")]
        assert lower - 1e-4 < ends[0] <= lower <= upper <= ends[1] < upper + 1e-4


def test_every_distance(shown: Any, told: Any) -> None:
    lines = {(line["model"][1], int(line["image"][1])): line for line in shown.run(TABLES)["Every distance"]}
    assert len(lines) == len(told["distances"])
    for row in told["distances"]:
        line = lines[row["model"], row["index"]]
        assert line["label"][0] == str(row["label"])
        assert line["became"][0] == ("nothing" if row["became"] is None else str(row["became"]))
        for head, end, way in (
            ("at least", "lower", -1),
            ("at most", "upper", 1),
            ("attack alone", "attack", 0),
        ):
            if row[end] is None:
                assert line[head] == ["none", None]
            elif end == "lower" and row["outcome"] == "attacked":
                assert line[head] == ["not proven", None]
            else:
                assert float(line[head][1]) == row[end]
                assert abs(number(line[head][0]) - row[end]) < 1e-4
                assert way * (number(line[head][0]) - row[end]) >= 0
        assert number(line["time"][0]) == pytest.approx(row["seconds"], rel=0.01)
        assert number(line["nodes"][0]) == row["nodes"]


def test_the_gallery(shown: Any, told: Any) -> None:
    strips = shown.run(GALLERY)
    assert [title for title, _ in strips] == [
        f"test image {index}: {rows[0]['label']}"
        for index in told["distance_images"]
        if (rows := [row for row in told["distances"] if row["index"] == index])
    ]
    for (_, changes), index in zip(strips, told["distance_images"], strict=True):
        for (name, change, state, proof), model in zip(changes, told["models"], strict=True):
            row = next(row for row in rows_of(told, model["name"]) if row["index"] == index)
            assert name == TITLES[model["name"]]
            if row["upper"] is None:
                assert change == [str(row["label"])]
            else:
                assert change[:3] == [str(row["label"]), "→", str(row["became"])]
                assert row["upper"] <= float(change[3]) < row["upper"] + 1e-4
            assert ("closed" in state) == (row["proven"] and row["outcome"] != "misclassified")
            assert ("not proven" in proof) == (row["outcome"] == "attacked") == ("open" in state)


def values_of(chart: Any, line: list[list[float]]) -> np.ndarray:
    """A line's points in the units of the ticks, which are where their labels stand."""
    at_left = [(number(text), y - 3.5) for text, x, y, anchor in chart["ticks"] if anchor == "end"]
    below = [
        (number(text), x)
        for text, x, y, anchor in chart["ticks"]
        if anchor == "middle" and re.search(r"\d", text)
    ]
    up = np.polyfit([place for _, place in at_left], [value / 100 for value, _ in at_left], 1)
    across = np.polyfit([place for _, place in below], [value for value, _ in below], 1)
    points = np.array(line)
    return np.stack([np.polyval(across, points[:, 0]), np.polyval(up, points[:, 1])], axis=1)


def height(points: np.ndarray, radius: float) -> float:
    """A staircase's height at a radius where it does not step."""
    return float(points[np.searchsorted(points[:, 0], radius, side="right") - 1, 1])


def test_the_curves_of_distances(shown: Any, told: Any) -> None:
    charts = shown.run(CHARTS.format(section="distances"))
    assert len(charts) == len(told["models"])
    for chart, model in zip(charts, told["models"], strict=True):
        rows = rows_of(told, model["name"])
        *lines, attack = [values_of(chart, points) for kind, points in chart["lines"] if "line" in kind]
        steps = sorted({far(row, end) for row in rows for end in ("lower", "upper", "attack")} - {math.inf})
        middles = [(one + other) / 2 for one, other in pairwise(steps) if other - one > 2e-3]
        assert len(middles) > 5
        for radius in middles:
            share = {
                end: np.mean([far(row, end) > radius for row in rows]) for end in ("lower", "upper", "attack")
            }
            assert height(attack, radius) == pytest.approx(share["attack"], abs=0.01)
            if model["provable"]:
                assert height(lines[0], radius) == pytest.approx(share["upper"], abs=0.01)
                band = values_of(chart, next(points for kind, points in chart["lines"] if "band" in kind))
                lower = band[len(band) // 2 :][::-1]
                assert height(lower, radius) == pytest.approx(share["lower"], abs=0.01)
        assert bool(lines) == model["provable"]


def test_the_curves_of_moved_and_few_images(shown: Any, told: Any) -> None:
    marks = {}
    for section in ("moved", "few"):
        for chart in shown.run(CHARTS.format(section=section)):
            for said in chart["marks"]:
                name, amount, share = re.fullmatch(r"(.+), ([−\d.]+): ([\d.]+)\xa0%", said).groups()
                marks[chart["name"].lower(), name, float(amount.replace("−", "-"))] = float(share) / 100
    expected = {}
    for row in told["transformed"]:
        expected[row["kind"], TITLES[row["model"]], row["amount"]] = row["accuracy"]
    for row in told["few"]:
        place = ("accuracy by training images", TITLES[row["model"]], float(row["images_per_class"]))
        expected.setdefault(place, []).append(row["accuracy"])
    assert marks.keys() == expected.keys()
    for place, values in expected.items():
        assert marks[place] == pytest.approx(np.mean(values), abs=6e-4)


def test_the_tables_below_the_curves(shown: Any, told: Any) -> None:
    tables = shown.run(TABLES)
    for line in tables["Accuracy on moved images where it is lowest"]:
        for kind in ("shift", "rotation", "scale", "shear"):
            means = [
                np.mean(row["accuracy"])
                for row in told["transformed"]
                if (row["model"], row["kind"]) == (line["model"][1], kind)
            ]
            assert float(line[f"{kind}, at worst"][1]) == pytest.approx(min(means))
    moved = tables["Accuracy on moved images"]
    for line, row in zip(moved, told["transformed"], strict=True):
        assert (line["model"][1], line["movement"][0]) == (row["model"], row["kind"])
        assert float(line["amount"][1]) == row["amount"]
        assert line["accuracy"][0].startswith(f"{100 * np.mean(row['accuracy']):.1f} %")
    for line in tables["Accuracy after training on few images"]:
        for images in (1, 3, 10, 30, 100):
            values = [
                row["accuracy"]
                for row in told["few"]
                if (row["model"], row["images_per_class"]) == (line["model"][1], images)
            ]
            assert float(line[f"{images} a class"][1]) == pytest.approx(np.mean(values))
            assert f"{100 * min(values):.1f} to {100 * max(values):.1f} %" in line[f"{images} a class"][0]
    for line, row in zip(tables["Overlapping digits"], told["overlapping"], strict=True):
        assert line["both right"][0] == f"{100 * row['accuracy']:.1f} %"
        assert number(line["parameters"][0]) == row["parameters"]


def test_the_milps(shown: Any, told: Any) -> None:
    for line, row in zip(shown.run(TABLES)["The MILPs"], told["encodings"], strict=True):
        assert line["network"][1] == row["model"]
        for head in ("units", "variables", "binaries", "nodes"):
            assert number(line[head][0]) == row[head]
        assert f"{row['rows']:,.0f} rows" in line["variables"][0]
        solved = sum(answer["solved"] for answer in row["answers"])
        assert line["solved"][0].startswith(f"{solved} of {len(row['answers'])}")
        assert number(line["time"][0]) == pytest.approx(row["seconds"], rel=0.01)
        gap = np.median([answer["gap"] for answer in row["answers"]])
        assert f"{100 * gap:.1f} % gap left" in line["solved"][0]


def test_how_it_was_made(shown: Any, told: Any) -> None:
    text = shown.run("document.querySelector('#how').innerText")
    how = told["how"]
    for said in (
        how["command"],
        how["machine"],
        how["started"],
        *(said.replace("cnn-baseline", "The CNN baseline") for said in how["narrowed"]),
        *how["training"].values(),
    ):
        assert said in text
    for name, version in how["packages"].items():
        assert f"{name} {version}" in text
