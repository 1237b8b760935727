"""What is said about the two MILPs is what the numbers show: no more, and ties and doubts are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from scipy.stats import binomtest

from closecall.compare.page.duel import Duel, conclusion, duels_of, sign_test, suitable_words, verdict_words
from closecall.compare.results import EncodingRow, MilpAnswer, Results

ANSWER = MilpAnswer(0, 0.1, 9, 3, 20, 3, 5, 1.0, 0.1, 0.1, 0.0, True)


@pytest.fixture(scope="session")
def duel(results: Results) -> Callable[..., Duel]:
    """A pair whose solving times are given; None was not solved."""
    row = results.encodings[0]

    def make(dnn: list[float | None], cnn: list[float | None], pairing: str = "accuracy") -> Duel:
        return Duel(pairing, timed(row, "dnn", pairing, dnn), timed(row, "cnn", pairing, cnn))

    return make


def timed(row: EncodingRow, family: str, pairing: str, times: list[float | None]) -> EncodingRow:
    answers = [
        replace(ANSWER, index=index, seconds=10.0 if time is None else time, solved=time is not None)
        for index, time in enumerate(times)
    ]
    return replace(row, family=family, pairing=pairing, answers=answers)


@pytest.mark.parametrize("one", range(9))
@pytest.mark.parametrize("other", range(9))
def test_the_sign_test_is_the_binomial_one(one: int, other: int) -> None:
    expected = binomtest(one, one + other).pvalue if one + other else 1.0
    assert sign_test(one, other) == pytest.approx(expected)


def test_a_clear_difference_is_called_one(duel: Callable[..., Duel]) -> None:
    clear = duel([1.0] * 8, [2.0] * 7 + [None])
    assert clear.wins() == (8, 0)
    assert clear.sure
    assert verdict_words(clear).startswith("The DNN's is the more suitable here: of 8 shared images")
    assert verdict_words(duel([None] * 6, [5.0] * 6)).startswith("The CNN's is the more suitable here")


def test_few_images_only_lean(duel: Callable[..., Duel]) -> None:
    leaning = duel([1.0] * 4, [2.0] * 4)
    assert leaning.lean == "dnn"
    assert not leaning.sure
    assert "leans to the DNN's" in verdict_words(leaning)
    assert "too few to rule out chance" in verdict_words(leaning)


def test_close_times_and_unsolved_pairs_are_ties(duel: Callable[..., Duel]) -> None:
    tied = duel([1.0, 1.0, None, 3.0], [1.05, 0.95, None, 1.0])
    assert tied.wins() == (0, 1)
    even = duel([1.0, 2.0, 1.0], [2.0, 1.0, 1.0])
    assert verdict_words(even).startswith("It is a tie")
    assert "1 tied" in verdict_words(even)


def test_nothing_is_said_when_almost_nothing_was_solved(duel: Callable[..., Duel]) -> None:
    hopeless = duel([1.0, None, None, None], [None, 2.0, None, None])
    assert verdict_words(hopeless) == "Too few were solved to tell which is the more suitable."
    assert hopeless.lean == ""
    assert "do not tell the two MILPs apart" in conclusion([hopeless])


def test_only_images_that_both_were_asked_about_count(duel: Callable[..., Duel]) -> None:
    assert len(duel([1.0] * 5, [2.0] * 3).shared) == 3


def test_the_conclusion_says_what_the_pairings_agree_on(duel: Callable[..., Duel]) -> None:
    dnn, cnn = [1.0] * 8, [9.0] * 8
    agreed = conclusion([duel(dnn, cnn), duel(dnn, cnn, "size")])
    assert agreed == (
        "In all: at matched accuracy and at matched size, the DNN's MILP is the more suitable for these "
        "networks and images."
    )
    unsure = conclusion([duel(dnn, cnn), duel(dnn[:3], cnn[:3], "size")])
    assert "looks the more suitable, though at matched size on too few images to be sure" in unsure
    split = conclusion([duel(dnn, cnn), duel(cnn, dnn, "size")])
    assert split == (
        "In all, it depends on what is held equal: the DNN's at matched accuracy and the CNN's at matched "
        "size."
    )
    half = conclusion([duel(dnn, cnn), duel(dnn, dnn, "size")])
    assert half.startswith("In all: only at matched accuracy do the numbers tell the two MILPs apart")
    slight = conclusion([duel(dnn[:3], cnn[:3]), duel(dnn, dnn, "size")])
    assert (
        slight
        == "In all: only at matched accuracy do the numbers lean to a side, without being sure: the DNN's."
    )
    # What was trained for the comparison was not matched, so it decides only where there is nothing else.
    assert conclusion([duel(dnn, dnn), duel(dnn, cnn, "as trained")]).endswith(
        "do not tell the two MILPs apart."
    )
    assert conclusion([duel(dnn, cnn, "as trained")]).startswith("In all: as trained, the DNN's MILP is")


def test_pairs_need_both_families(results: Results) -> None:
    assert [pair.pairing for pair in duels_of(results)] == ["accuracy", "size", "as trained"]
    alone = replace(results, encodings=[row for row in results.encodings if row.family == "dnn"])
    assert suitable_words(duels_of(alone)) == ["There is no pair of a DNN and a CNN to compare."]


def test_the_words_hold_the_numbers(results: Results) -> None:
    _, accuracy, size, trained = suitable_words(duels_of(results))
    assert "the DNN's MILP has 303.5 variables, 40 of them binary, and 700 rows" in accuracy
    assert "the CNN's has 411, 40 and 700" in accuracy
    assert "8 of 8 were solved" in accuracy
    assert "6 of 8 were solved" in accuracy
    assert "by units (48 and 48 units, 2,410 and 1,812 parameters" in size
    assert "It is a tie: of 8 shared images" in size
    assert "It leans to the DNN's" in trained
