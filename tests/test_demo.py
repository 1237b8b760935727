"""The demo, made short: two networks, one image, a page whose figures are those of the saved verdicts."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from closecall import data
from closecall.cli.progress import showing_interval
from closecall.demo import CONTENDERS, PLAN, choose_images, run_demo
from closecall.demo_page import Shown, Trained, headline, rounded_down, rounded_up
from closecall.readers import read
from closecall.saved import check_verdict, load_verdict


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder, said = tmp_path_factory.mktemp("demo"), io.StringIO()
    plan = replace(PLAN, epochs=4, batch=128, threads=1)
    page = run_demo(folder, Console(file=said, width=200), showing_interval, images=1, plan=plan)
    assert page == folder / "report.html"
    return folder, said.getvalue()


def test_every_answer_is_saved_and_holds(demo: tuple[Path, str]) -> None:
    folder, said = demo
    saved = sorted((folder / "verdicts").iterdir())
    assert [path.name.split("-")[0] for path in saved] == ["cnn", "dnn"]
    for path in saved:
        verdict = load_verdict(path)
        assert all(check.holds for check in check_verdict(verdict, read(verdict.model)))
        assert f"test image {verdict.record['origin']['index']}" in said


def test_the_page_shows_what_was_saved(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    page = (folder / "report.html").read_text()
    for contender in CONTENDERS:
        described = json.loads((folder / contender.name / "model.json").read_text())
        assert contender.title in page
        assert f"<dt>test accuracy</dt><dd>{described['accuracy']:.1%}</dd>" in page
        assert f"<dt>parameters</dt><dd>{described['parameters']:,}</dd>" in page
    for path in (folder / "verdicts").iterdir():
        record = load_verdict(path).record
        assert f'<span class="far">{rounded_up(record["distance"])}</span>' in page
    assert page.count('class="line tone1"') == 2 * len(CONTENDERS)
    assert len(page) < 300_000


def test_images_are_right_under_every_network(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    classifiers = [read(folder / contender.name) for contender in CONTENDERS]
    test = data.load("digits", "test")
    chosen = choose_images(test, classifiers, 10)
    assert len({int(test.labels[index]) for index in chosen}) == len(chosen)
    for index in chosen:
        assert {c.predict(test.image(index)) for c in classifiers} == {int(test.labels[index])}


def test_rounding_never_claims_more_than_was_proven() -> None:
    assert (rounded_down(0.12399), rounded_up(0.12301)) == ("0.123", "0.124")
    assert rounded_down(math.inf) == rounded_up(math.inf) == "∞"


def test_a_search_without_a_witness_leaves_the_median_open(demo: tuple[Path, str]) -> None:
    from types import SimpleNamespace

    found = SimpleNamespace(distance=0.5, lower_bound=0.25, outcome="adversarial", seconds=1.0)
    lost = SimpleNamespace(distance=None, lower_bound=0.125, outcome="unresolved", seconds=1.0)
    trained = Trained("net", {"accuracy": 0.5, "parameters": 1, "units": 1, "seconds": 1.0}, [])
    card = headline(Shown(trained, [found, lost, lost]))  # type: ignore[list-item]
    assert card.figure == "unknown"
    assert headline(Shown(trained, [found])).figure == "≤ 0.50"  # type: ignore[list-item]
    proven = SimpleNamespace(distance=0.5, lower_bound=0.4999, outcome="nearest", seconds=1.0)
    assert headline(Shown(trained, [proven])).figure == "0.50"  # type: ignore[list-item]
    assert card.facts[0] == ("median lies in", "[0.125, ∞]")
