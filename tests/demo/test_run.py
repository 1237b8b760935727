"""The demo, made short: two networks, one image, a page whose figures are those of the saved verdicts."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from closecall import data
from closecall.cli.progress import showing_interval
from closecall.demo.page import Shown, Trained, hardest_to_fool, headline, verdict_words
from closecall.demo.run import CONTENDERS, PLAN, choose_images, run_demo
from closecall.readers import read
from closecall.report.numbers import percent, rounded_down, rounded_up
from closecall.report.words import changed_pixels
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder, said = tmp_path_factory.mktemp("demo"), io.StringIO()
    plan = replace(PLAN, epochs=4, batch=128, threads=1)
    page = run_demo(folder, Console(file=said, width=200), showing_interval, images=1, plan=plan)
    assert page == folder / "report.html"
    return folder, said.getvalue()


def changed_in(folder: Path) -> int:
    return changed_pixels(np.load(folder / "witness.npy").astype(float) - np.load(folder / "original.npy"))


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
        assert f"<dt>test accuracy</dt><dd>{percent(described['accuracy'])}</dd>" in page
        assert f"<dt>parameters</dt><dd>{described['parameters']:,}</dd>" in page
    for path in (folder / "verdicts").iterdir():
        record = load_verdict(path).record
        assert f'<span class="far">L1 {rounded_up(record["distance"])}</span>' in page
        assert f"pixel{'s' * (changed_in(path) != 1)} by {rounded_up(record['distance'])} in all" in page
        assert f"nothing below {rounded_down(record['lower_bound'])} does" in page
    assert page.count('class="line tone1"') == 2 * len(CONTENDERS)
    assert len(page) < 300_000


def test_images_are_right_under_every_network(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    classifiers = [read(folder / contender.name) for contender in CONTENDERS]
    test = data.load_dataset("digits", "test")
    chosen = choose_images(test, classifiers, 10)
    assert len({int(test.labels[index]) for index in chosen}) == len(chosen)
    for index in chosen:
        assert {c.predict(test.image(index)) for c in classifiers} == {int(test.labels[index])}


def test_the_answer_is_said_with_its_unit(demo: tuple[Path, str]) -> None:
    page = (demo[0] / "report.html").read_text()
    answer = page[page.index("<h2>The answer") : page.index('<div class="cards">')]
    assert (
        "(L1: the sum of the changes of all pixels, where 1 is one pixel from black to white) turns" in answer
    )
    assert re.search(
        r"Changing \d+ pixels? by [\d.]+ in all \(L1: .* below, as the DNN sees it, into an? \d", answer
    )


@pytest.mark.parametrize(
    ("norm", "change"), [("l1", " by 0.5000 in all"), ("linf", ", none by more than 0.5000,"), ("l0", "")]
)
@pytest.mark.parametrize(
    ("outcome", "proof"),
    [
        ("nearest", ", and nothing below 0.4999 does."),
        ("adversarial", "; nothing below 0.4999 does, and what lies between is open."),
    ],
)
def test_a_verdict_in_words(norm: str, change: str, outcome: str, proof: str) -> None:
    image = np.zeros((1, 2, 2), dtype=np.float32)
    witness = image.copy()
    witness[0, 0] = 0.25
    verdict = SimpleNamespace(
        image=image, witness=witness, norm=norm, outcome=outcome, distance=0.5, lower_bound=0.49999,
        predicted_before=2, predicted_after=8,
    )  # fmt: skip
    said = verdict_words(verdict)  # type: ignore[arg-type]
    assert said == f"Changing 2 pixels{change} turns this 2 into an 8{proof}"


def test_the_harder_network_is_named_only_when_proven() -> None:
    def part(name: str, lower: float, upper: float | None) -> Shown:
        verdict = SimpleNamespace(lower_bound=lower, distance=upper)
        return Shown(Trained(name, name, {}, []), [verdict])  # type: ignore[list-item]

    words = hardest_to_fool([part("DNN", 1.3, 1.4), part("CNN", 0.8, 0.9)])
    assert words.startswith(
        "The DNN is the harder to fool on these digits: half of them need a change of 1.300 or"
    )
    assert "half of the CNN's need no more than 0.9000" in words
    assert hardest_to_fool([part("DNN", 1.3, 1.4), part("CNN", 0.8, 1.3)]) == ""
    assert hardest_to_fool([part("DNN", 1.3, 1.4), part("CNN", 0.8, None)]) == ""


def test_a_search_without_a_witness_leaves_the_median_open(demo: tuple[Path, str]) -> None:
    found = SimpleNamespace(norm="l1", distance=0.5, lower_bound=0.25, outcome="adversarial", seconds=1.0)
    lost = SimpleNamespace(norm="l1", distance=None, lower_bound=0.125, outcome="unresolved", seconds=1.0)
    trained = Trained("NET", "net", {"accuracy": 0.5, "parameters": 1, "units": 1, "seconds": 1.0}, [])
    card = headline(Shown(trained, [found, lost, lost]))  # type: ignore[list-item]
    assert card.figure == "unknown"
    assert headline(Shown(trained, [found])).figure == "≤ 0.5000"  # type: ignore[list-item]
    proven = SimpleNamespace(norm="l1", distance=0.5, lower_bound=0.4999, outcome="nearest", seconds=1.0)
    assert headline(Shown(trained, [proven])).figure == "0.5000"  # type: ignore[list-item]
    assert card.facts[0] == ("proven interval", "0.1250 or more")
