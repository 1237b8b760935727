"""VNN-LIB properties against a plain evaluation of the same text."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closecall.errors import QueryError
from closecall.readers import vnnlib
from closecall.readers.brackets import DEEPEST
from closecall.readers.vnnlib import Property, PropertyCase, parse_property, read_property

DECLARED = "".join(f"(declare-const {name} Real)\n" for name in ("X_0", "X_1", "Y_0", "Y_1", "Y_2"))
BOX = "(assert (>= X_0 -1)) (assert (<= X_0 2.5)) (assert (and (>= X_1 0) (<= X_1 1e0)))\n"


def parse(text: str, *, box: str = BOX) -> Property:
    return parse_property(DECLARED + box + text, 2, 3)


def cases(found: Property) -> list[PropertyCase]:
    return [case for case in found.cases() if case is not None]


def violated(found: Property, x: np.ndarray, y: np.ndarray) -> bool:
    return any(
        bool((case.lower <= x).all() and (x <= case.upper).all() and (case.matrix @ y <= case.bound).all())
        for case in cases(found)
    )


def test_a_disjunction_of_outputs() -> None:
    found = parse("(assert (or (and (>= Y_0 Y_1)) (and (<= Y_2 -0.5) (> Y_1 Y_2))))")
    assert len(cases(found)) == 2
    first, second = cases(found)
    np.testing.assert_array_equal(first.lower, [-1, 0])
    np.testing.assert_array_equal(first.upper, [2.5, 1])
    np.testing.assert_array_equal(first.matrix, [[-1, 1, 0]])
    np.testing.assert_array_equal(first.bound, [0])
    np.testing.assert_array_equal(second.matrix, [[0, 0, 1], [0, -1, 1]])
    np.testing.assert_array_equal(second.bound, [-0.5, 0])


def test_separate_asserts_are_a_conjunction() -> None:
    found = parse("(assert (<= Y_0 Y_1))(assert (<= Y_0 3))")
    assert len(cases(found)) == 1
    np.testing.assert_array_equal(cases(found)[0].matrix, [[1, -1, 0], [1, 0, 0]])


def test_two_disjunctions_multiply() -> None:
    found = parse("(assert (or (<= Y_0 1) (<= Y_1 1)))(assert (or (<= Y_2 1) (<= Y_2 2) (<= Y_2 3)))")
    assert len(cases(found)) == 6
    assert all(len(case.matrix) == 2 for case in cases(found))


def test_boxes_inside_a_disjunction() -> None:
    unit = "(>= X_1 0) (<= X_1 1)"
    boxes = f"(and (>= X_0 0) (<= X_0 1) {unit} (<= Y_0 0)) (and (>= X_0 2) (<= X_0 3) {unit})"
    found = parse(f"(assert (or {boxes}))", box="")
    assert [case.lower[0] for case in cases(found)] == [0, 2]
    assert [len(case.matrix) for case in cases(found)] == [1, 0]


def test_a_bound_of_one_case_does_not_leak_into_the_next() -> None:
    found = parse("(assert (or (and (<= X_0 0) (<= Y_0 0)) (<= Y_1 0)))")
    assert [case.upper[0] for case in cases(found)] == [0, 2.5]


@pytest.mark.parametrize(
    ("text", "matrix", "bound"),
    [
        ("(<= 1.5 Y_0)", [-1, 0, 0], -1.5),
        ("(>= (+ Y_0 Y_1 1) (* 2 Y_2))", [-1, -1, 2], 1),
        ("(<= (- Y_0) (- Y_1 Y_2 0.5))", [-1, -1, 1], -0.5),
        ("(<= (* 2 (+ Y_0 1) 3) (* Y_1 -1))", [6, 1, 0], -6),
        ("(< (- (- 4)) (+ Y_0 Y_0))", [-2, 0, 0], -4),
        ("(>= Y_0 .5e-1)", [-1, 0, 0], -0.05),
    ],
)
def test_linear_terms(text: str, matrix: list[float], bound: float) -> None:
    (case,) = cases(parse(f"(assert {text})"))
    np.testing.assert_allclose(case.matrix, [matrix])
    np.testing.assert_allclose(case.bound, [bound])


def test_cases_that_cannot_happen_are_left_out() -> None:
    found = parse("(assert (or (and (<= X_0 -2) (<= Y_0 0)) (and (<= 1 0) (<= Y_1 0)) (<= (- Y_2 Y_2) 1)))")
    assert len(cases(found)) == 1  # the one that is always true
    assert cases(found)[0].matrix.shape == (0, 3)


Formula = tuple[str, Callable[[np.ndarray, np.ndarray], bool]]

ATOMS: list[Formula] = [
    ("(<= X_0 0.5)", lambda x, y: x[0] <= 0.5),
    ("(>= X_1 0.25)", lambda x, y: x[1] >= 0.25),
    ("(<= Y_0 Y_1)", lambda x, y: y[0] <= y[1]),
    ("(>= (* 2 Y_2) Y_0)", lambda x, y: 2 * y[2] >= y[0]),
    ("(>= Y_1 0.25)", lambda x, y: y[1] >= 0.25),
    ("(<= (+ Y_0 Y_2) 1)", lambda x, y: y[0] + y[2] <= 1),
]


def joined(pair: tuple[str, list[Formula]]) -> Formula:
    operator, parts = pair
    test = all if operator == "and" else any
    return f"({operator} {' '.join(text for text, _ in parts)})", lambda x, y: test(f(x, y) for _, f in parts)


FORMULAS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)).map(
        joined
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FORMULAS, min_size=1, max_size=3), st.integers(0, 2**32))
def test_a_property_is_violated_exactly_where_its_formulas_hold(formulas: list[Formula], seed: int) -> None:
    found = parse("".join(f"(assert {text})" for text, _ in formulas))
    random = np.random.default_rng(seed)
    for _ in range(20):
        x, y = random.uniform([-1, 0], [2.5, 1]), random.uniform(-1, 1, 3)
        assert violated(found, x, y) == all(holds(x, y) for _, holds in formulas)


def test_plain_and_gzipped_files_are_the_same(tmp_path: Path) -> None:
    text = DECLARED + BOX + "; a comment (\n(assert (<= Y_0 Y_1))"
    (tmp_path / "plain.vnnlib").write_text(text)
    (tmp_path / "packed.vnnlib.gz").write_bytes(gzip.compress(text.encode()))
    plain, packed = (read_property(path, 2, 3) for path in sorted(tmp_path.iterdir(), reverse=True))
    np.testing.assert_array_equal(cases(plain)[0].matrix, cases(packed)[0].matrix)
    np.testing.assert_array_equal(cases(plain)[0].upper, cases(packed)[0].upper)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(assert (<= X_0 (+ X_1 1)))", "bounds of single inputs"),
        ("(assert (<= X_0 Y_1))", "mixes inputs and outputs"),
        ("(assert (<= (* Y_0 Y_1) 1))", "product of two variables"),
        ("(assert (<= Y_0 1e999))", "too large"),
        ("(assert (<= (* 1e300 1e300 Y_0) 1))", "too large"),
        ("(assert (<= Y_0 nan))", "expected a variable"),
        ("(assert (<= Y_0 1_0))", "expected a variable"),
        ("(assert (<= Y_7 1))", "Y_7 was not declared"),
        ("(assert (<= Y_0))", "expected and, or"),
        ("(assert (not (<= Y_0 1)))", "expected and, or"),
        ("(assert Y_0)", "expected and, or"),
        ("(assert (or))", "expected and, or"),
        ("(assert ())", "expected and, or"),
        ("(assert (<= () 1))", "linear term"),
        ("(assert (<= (/ Y_0 2) 1))", "linear term"),
        ("(assert (<= Y_0 1)", "bracket is missing"),
        ("(assert (<= Y_0 1)))", "no opening"),
        ("assert", "opening bracket"),
        ("()", "declare-const or assert"),
        ("((assert))", "declare-const or assert"),
        ("(declare-network f)", "declare-const or assert"),
        ("(declare-const Z_0 Real)", "variable such as X_0"),
        ("(declare-const X_2 Real)", "declares 3 inputs"),
    ],
)
def test_what_cannot_be_read_is_one_clear_sentence(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_every_input_needs_both_bounds() -> None:
    with pytest.raises(QueryError, match="X_1 needs a lower and an upper bound"):
        parse("", box="(assert (>= X_0 0)) (assert (<= X_0 1)) (assert (<= X_1 1))")


@pytest.mark.parametrize("bracket", ["(", "(and ", "(+ "])
def test_deep_brackets_are_refused(bracket: str) -> None:
    with pytest.raises(QueryError, match="nested more than"):
        parse("(assert " + bracket * 1_000_000)
    assert cases(parse("(assert " + "(and " * (DEEPEST - 2) + "(<= Y_0 1)" + ")" * (DEEPEST - 1)))


def test_bombs_are_refused(tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(b" " * 1_000_000) for _ in range(101)) + packer.flush()
    path = tmp_path / "bomb.vnnlib.gz"
    path.write_bytes(bomb)
    with pytest.raises(QueryError, match="larger than"):
        read_property(path, 2, 3)
    path.write_bytes(gzip.compress(b"(assert)")[:-9])
    with pytest.raises(QueryError, match="Cannot read"):
        read_property(path, 2, 3)
    with pytest.raises(QueryError, match="Cannot read"):
        read_property(tmp_path / "missing.vnnlib", 2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "(assert (or (<= Y_0 1) (<= Y_1 2)))" * 2000,
        "(assert (and " + "(or (<= Y_0 1) (<= Y_1 2))" * 2000 + "))",
        "(assert (or (and " + "(or (<= Y_0 1) (<= Y_1 2))" * 2000 + ") (<= Y_2 3)))",
    ],
)
def test_cases_that_multiply_without_end_are_made_one_by_one(text: str) -> None:
    found = parse(text)
    assert found.count > 1e300
    first = next(found.cases())
    assert first is not None
    np.testing.assert_array_equal(first.matrix, [[1, 0, 0]] * 2000)
    np.testing.assert_array_equal(first.bound, [1] * 2000)


def test_cases_with_the_same_box_come_one_after_the_other() -> None:
    found = parse("(assert (or (<= Y_0 1) (<= Y_1 1))) (assert (or (<= X_0 0) (<= X_0 1) (<= X_0 2)))")
    assert [case.upper[0] for case in cases(found)] == [0, 0, 1, 1, 2, 2]
    assert found.count == 6


def test_a_choice_of_inputs_that_leaves_nothing_ends_all_cases_below_it() -> None:
    text = "(assert (or (<= X_0 -2) (>= X_0 3)))" + "(assert (or (<= Y_0 1) (<= Y_1 2)))" * 100
    assert list(parse(text).cases()) == [None, None]


@pytest.mark.parametrize("bound", ["1e39", "1e19", "(* 1e30 1e30)"])
@pytest.mark.parametrize("operator", ["<=", ">="])
def test_bounds_of_inputs_beyond_all_trust_are_refused(bound: str, operator: str) -> None:
    with pytest.raises(QueryError, match=r"X_0 is bounded by .* no answer beyond ±1e\+18"):
        parse(f"(assert ({operator} X_0 {bound}))")
    with pytest.raises(QueryError, match="X_1 is bounded by"):
        parse("(assert (<= (* 1e-30 X_1) 1e30))")


def test_too_many_constraints_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnnlib, "MOST_CONSTRAINTS", 10)
    assert parse("(assert (<= Y_0 1))" * 6)
    with pytest.raises(QueryError, match="more than 10 constraints"):
        parse("(assert (<= Y_0 1))" * 7)
