"""A search that is cut off, by Ctrl-C, by time or by memory, keeps what it has found and proven."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closecall.ask.nearest import answer, certify, nearest
from closecall.attacks.gradient import widest
from closecall.clock import Clock, holding_interrupts_back, usable_threads
from closecall.errors import QueryError
from closecall.models import DNN
from closecall.question.effort import Effort
from closecall.question.norms import CHANGED
from closecall.question.question import Question
from closecall.readers import Classifier, read
from closecall.search.auto import ENGINES
from closecall.search.first_bound import fewest_pixels
from closecall.search.problem import Problem
from closecall.verdict.verdict import Verdict

torch.set_num_threads(1)

NORMS = ("l1", "l2", "linf", "l0")


class Residual(nn.Module):
    """Two blocks on colour images: 40,960 units, far beyond what can be searched."""

    input_shape = (3, 32, 32)

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.inner = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(4))
        self.last = nn.Linear(16 * channels, 10)

    def forward(self, images: Tensor) -> Tensor:
        values = torch.relu(self.first(images))
        for one, two in (self.inner[:2], self.inner[2:]):
            values = torch.relu(values + two(torch.relu(one(values))))
        return self.last(nn.functional.avg_pool2d(values, 8).flatten(1))


@pytest.fixture(scope="module")
def residual() -> Classifier:
    torch.manual_seed(0)
    classifier = read(Residual(8).eval())
    classifier.prepare()
    return classifier


def strong_dnn(widths: list[int]) -> Classifier:
    torch.manual_seed(0)
    model = DNN(widths, (1, 20, 20), 10).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.0
    classifier = read(model)
    classifier.prepare()
    return classifier


@pytest.fixture(scope="module")
def deep() -> Classifier:
    """Far too deep to be settled within any of these tests: after 20 s, less than half is proven."""
    return strong_dnn([300] * 8)


def image_for(classifier: Classifier) -> np.ndarray:
    return np.random.default_rng(0).random(classifier.network.input_shape).astype(np.float32)


@pytest.mark.parametrize(("norm", "method"), [*((norm, "auto") for norm in NORMS), ("l1", "milp")])
def test_a_large_network_keeps_to_a_second(residual: Classifier, norm: str, method: str) -> None:
    began = time.perf_counter()
    verdict = nearest(residual, image_for(residual), norm=norm, method=method, time_limit=1.0)
    assert time.perf_counter() - began < 1.1 + 1.0 + 2.0  # the last two for a busy machine
    assert verdict.outcome in ("adversarial", "unresolved")


def test_a_large_network_gets_an_interval(residual: Classifier) -> None:
    verdict = nearest(residual, image_for(residual), norm="linf", time_limit=5.0)
    assert verdict.outcome == "adversarial"
    assert verdict.distance is not None
    assert 0 < verdict.lower_bound < verdict.distance


def test_a_radius_that_stays_open_still_gets_a_smaller_one_that_is_proven() -> None:
    open_in_linf = strong_dnn([200] * 6)
    image = image_for(open_in_linf)
    found = nearest(open_in_linf, image, norm="linf", time_limit=3.0)
    assert found.distance is not None
    radius = 0.5 * (found.lower_bound + found.distance)
    verdict = certify(open_in_linf, image, norm="linf", radius=radius, time_limit=2.0)
    assert verdict.outcome == "unresolved"
    assert 0 < verdict.lower_bound < radius


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("delay", [0.2, 0.5, 1.0, 1.7])
def test_the_first_ctrl_c_ends_the_search(deep: Classifier, norm: str, delay: float) -> None:
    """So long after the first witness, however busy the machine is."""
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    begun: list[float] = []

    def begin(lower: float, upper: float, nodes: int, seconds: float) -> None:
        if math.isfinite(upper) and not begun:
            begun.append(seconds)
            timer.start()

    verdict = nearest(deep, image_for(deep), norm=norm, time_limit=60.0, on_progress=begin)
    timer.cancel()
    assert verdict.seconds < begun[0] + delay + 3.0
    assert any("interrupted" in note for note in verdict.notes)
    assert verdict.witness is not None


@pytest.mark.parametrize(("norm", "method"), [*((norm, "auto") for norm in NORMS[:3]), ("linf", "milp")])
def test_what_was_shown_is_still_there_after_ctrl_c(deep: Classifier, norm: str, method: str) -> None:
    shown: list[tuple[float, float]] = []

    def press(lower: float, upper: float, nodes: int, seconds: float) -> None:
        if lower > 0 and math.isfinite(upper):
            shown.append((lower, upper))
            signal.raise_signal(signal.SIGINT)

    verdict = nearest(deep, image_for(deep), norm=norm, method=method, time_limit=30.0, on_progress=press)
    assert_keeps(verdict, *shown[0])


def test_a_ctrl_c_that_a_library_swallows_ends_the_search(deep: Classifier) -> None:
    calls: list[float] = []

    def press(lower: float, upper: float, nodes: int, seconds: float) -> None:
        calls.append(upper)
        with suppress(KeyboardInterrupt):  # as it happens to exceptions in destructors
            signal.raise_signal(signal.SIGINT)

    verdict = nearest(deep, image_for(deep), norm="linf", time_limit=30.0, on_progress=press)
    assert len(calls) == 1
    assert verdict.seconds < 10
    assert_keeps(verdict, 0.0, calls[0])


def assert_keeps(verdict: Verdict, lower: float, upper: float) -> None:
    assert any("interrupted" in note for note in verdict.notes)
    assert verdict.lower_bound >= lower
    assert verdict.distance is not None
    assert verdict.distance <= upper * (1 + 1e-5)


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("zeros", [np.zeros, torch.zeros])
def test_the_end_of_memory_is_a_sentence(
    deep: Classifier, monkeypatch: pytest.MonkeyPatch, knows: bool, zeros: Callable[[int], object]
) -> None:
    def fill_the_memory(problem: Problem) -> None:
        if knows:
            problem.incumbent.prove(0.001)
        zeros(2**50)

    monkeypatch.setitem(ENGINES, "attack", fill_the_memory)
    query = Question(image_for(deep).ravel(), deep.predict(image_for(deep)), 10, norm="linf")
    if knows:
        verdict = answer(deep, query, Effort(), Clock(10.0), nearest=True)
        assert verdict.lower_bound == 0.001
        assert any("memory" in note for note in verdict.notes)
    else:
        with pytest.raises(QueryError, match="memory ran out"):
            answer(deep, query, Effort(), Clock(10.0), nearest=True)


def test_no_more_threads_than_the_machine_has() -> None:
    assert usable_threads(100_000) <= (os.cpu_count() or 1)
    assert usable_threads(1) == 1


def test_a_radius_in_l1_counts_pixels() -> None:
    """Two of the rooms 0.9, 0.8, 0.7, 0.6 come to 1.7: less than 1.75, so at least three must change."""
    domain = Question(np.array([0.1, 0.8, 0.3, 0.4]), 0, 3, norm="l0").domain()
    assert [fewest_pixels(domain, radius) for radius in (0.0, 0.5, 1.65, 1.75, 2.9)] == [0, 1, 2, 3, 4]
    assert fewest_pixels(domain, 0.9 + 2 * CHANGED) == 1  # the other pixels may have moved a little
    assert widest(domain) == 4


def test_a_held_back_ctrl_c_is_told_to_who_counts() -> None:
    counted: list[int] = []

    def count(number: int, frame: object) -> None:
        counted.append(number)
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGINT, count)
    try:
        with holding_interrupts_back():
            signal.raise_signal(signal.SIGINT)
            assert not counted
        assert counted == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, old)
