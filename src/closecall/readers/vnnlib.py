"""Read a VNN-LIB property: boxes of inputs and linear constraints on outputs, joined by `and` and `or`.

Strict inequalities are read as their closure, so a point on the boundary counts as a violation.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closecall.errors import QueryError
from closecall.layers.maps import MOST_ENTRIES
from closecall.readers.brackets import Expression, forms, read_text, shown

Vector = NDArray[np.float64]
MOST_CASES = 20_000
MOST_CONSTRAINTS = 1_000_000

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
VARIABLE = re.compile(r"([XY])_(\d{1,9})")
IGNORED = {"set-logic", "set-info", "set-option", "check-sat", "exit", "get-model"}


@dataclass(frozen=True, eq=False)
class Case:
    """One way to violate the property: lower ≤ x ≤ upper and matrix · y ≤ bound."""

    lower: Vector
    upper: Vector
    matrix: Vector
    bound: Vector


@dataclass(frozen=True, eq=False)
class Property:
    """A disjunction: the property is violated, `sat`, if the network meets any of the cases."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """Σ coefficient · variable ≤ bound, over variables such as ("X", 3)."""

    coefficients: tuple[tuple[tuple[str, int], float], ...]
    bound: float


Cases = list[list[Constraint]]


def read_property(path: str | Path, inputs: int, outputs: int) -> Property:
    """Read a file, plain or gzipped, for a network with so many inputs and outputs."""
    return parse_property(read_text(Path(path)), inputs, outputs)


def parse_property(text: str, inputs: int, outputs: int) -> Property:
    """Read a property from its text."""
    declared: set[tuple[str, int]] = set()
    always: list[Constraint] = []
    choices: list[Cases] = []
    for form in forms(text):
        command = form[0] if isinstance(form, list) and form else form
        if command == "declare-const" and len(form) == 3:
            declared.add(_variable(form[1]))
        elif command == "assert" and len(form) == 2:
            cases = _cases(form[1])
            if len(cases) == 1:
                always += cases[0]
                _bounded([always])
            else:
                choices.append(cases)
        elif not (isinstance(command, str) and command in IGNORED):
            raise QueryError(f"VNN-LIB: expected declare-const or assert, but found {shown(form)}.")
    expected = {("X", index) for index in range(inputs)} | {("Y", index) for index in range(outputs)}
    if declared != expected:
        counts = [sum(kind == letter for letter, _ in declared) for kind in "XY"]
        raise QueryError(
            f"VNN-LIB: the property declares {counts[0]} inputs and {counts[1]} outputs, but the network has "
            f"X_0 … X_{inputs - 1} and Y_0 … Y_{outputs - 1}."
        )
    used = {
        variable
        for case in [always, *itertools.chain(*choices)]
        for c in case
        for variable, _ in c.coefficients
    }
    if not used <= declared:
        kind, index = min(used - declared)
        raise QueryError(f"VNN-LIB: the variable {kind}_{index} was not declared.")
    return _boxed(always, _product(choices), (inputs, outputs))


# Nested lists to cases of linear constraints. The depth of recursion is bounded by that of the brackets.


def _cases(expression: Expression) -> Cases:
    """A formula as a disjunction of conjunctions."""
    if not isinstance(expression, list) or not expression:
        raise QueryError(f"VNN-LIB: expected and, or, <= or >=, but found {shown(expression)}.")
    operator, *operands = expression
    if operator == "or" and operands:
        return _bounded([case for operand in operands for case in _cases(operand)])
    if operator == "and" and operands:
        return _product([_cases(operand) for operand in operands])
    if operator in ("<=", "<", ">=", ">") and len(operands) == 2:
        small, large = operands if operator in ("<=", "<") else operands[::-1]
        return [[_at_most(small, large)]]
    raise QueryError(f"VNN-LIB: expected and, or, <= or >=, but found {shown(expression)}.")


def _product(choices: list[Cases]) -> Cases:
    """The disjunction that is true when one case of every choice is."""
    common = [constraint for cases in choices if len(cases) == 1 for constraint in cases[0]]
    open_choices = [cases for cases in choices if len(cases) != 1]
    if math.prod(len(cases) for cases in open_choices) > MOST_CASES:
        raise QueryError(f"VNN-LIB: the property has more than {MOST_CASES:,} cases.")
    combined = [[*common, *itertools.chain(*parts)] for parts in itertools.product(*open_choices)]
    return _bounded(combined)


def _bounded(cases: Cases) -> Cases:
    if len(cases) > MOST_CASES or sum(map(len, cases)) > MOST_CONSTRAINTS:
        raise QueryError(f"VNN-LIB: the property has more than {MOST_CASES:,} cases or too many constraints.")
    return cases


def _at_most(small: Expression, large: Expression) -> Constraint:
    left, right = _linear(small), _linear(large)
    coefficients = dict(left[0])
    for variable, factor in right[0].items():
        coefficients[variable] = coefficients.get(variable, 0.0) - factor
    kept = tuple((variable, factor) for variable, factor in coefficients.items() if factor != 0.0)
    return Constraint(kept, _finite(right[1] - left[1]))


Linear = tuple[dict[tuple[str, int], float], float]


def _linear(expression: Expression) -> Linear:
    """A term as factors of variables and a constant."""
    if isinstance(expression, str):
        if NUMBER.fullmatch(expression):
            return {}, _finite(float(expression))
        return {_variable(expression): 1.0}, 0.0
    operator, *operands = expression or [""]
    if operator in ("+", "-", "*") and operands:
        terms = [_linear(operand) for operand in operands]
        if operator == "*":
            return _multiplied(terms)
        first = terms[0] if operator == "+" or len(terms) > 1 else _scaled(terms[0], -1.0)
        return _added([first, *(_scaled(term, 1.0 if operator == "+" else -1.0) for term in terms[1:])])
    raise QueryError(
        f"VNN-LIB: expected a number, a variable or a linear term, but found {shown(expression)}."
    )


def _scaled(term: Linear, factor: float) -> Linear:
    return {variable: _finite(factor * value) for variable, value in term[0].items()}, _finite(
        factor * term[1]
    )


def _added(terms: Sequence[Linear]) -> Linear:
    total: dict[tuple[str, int], float] = {}
    for coefficients, _ in terms:
        for variable, factor in coefficients.items():
            total[variable] = _finite(total.get(variable, 0.0) + factor)
    return total, _finite(sum(constant for _, constant in terms))


def _multiplied(terms: Sequence[Linear]) -> Linear:
    product = terms[0]
    for term in terms[1:]:
        if product[0] and term[0]:
            raise QueryError("VNN-LIB: a product of two variables is not linear.")
        product = _scaled(term, product[1]) if term[0] else _scaled(product, term[1])
    return product


def _variable(expression: Expression) -> tuple[str, int]:
    match = VARIABLE.fullmatch(expression) if isinstance(expression, str) else None
    if match is None:
        raise QueryError(f"VNN-LIB: expected a variable such as X_0 or Y_0, but found {shown(expression)}.")
    return match[1], int(match[2])


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise QueryError("VNN-LIB: a number is too large for a computer's floating point.")
    return number


# Constraints to boxes and matrices.


def _boxed(always: list[Constraint], cases: Cases, sizes: tuple[int, int]) -> Property:
    inputs, outputs = sizes
    box = (np.full(inputs, -np.inf), np.full(inputs, np.inf))
    possible = _narrow(box, always)
    rows = [constraint for constraint in always if _kind(constraint) == "Y"]
    if len(cases) * (inputs + (len(rows) + 1) * outputs) > MOST_ENTRIES:
        raise QueryError("VNN-LIB: the property has too many cases for a network of this size.")
    found: list[Case] = []
    for case in cases if possible else []:
        narrowed = (box[0].copy(), box[1].copy()) if any(_kind(c) == "X" for c in case) else box
        if not _narrow(narrowed, case):
            continue
        if not (np.isfinite(narrowed[0]).all() and np.isfinite(narrowed[1]).all()):
            index = int(np.flatnonzero(~(np.isfinite(narrowed[0]) & np.isfinite(narrowed[1])))[0])
            raise QueryError(f"VNN-LIB: the input X_{index} needs a lower and an upper bound.")
        if (narrowed[0] <= narrowed[1]).all():
            found.append(Case(*narrowed, *_matrix([*rows, *(c for c in case if _kind(c) == "Y")], outputs)))
    return Property(tuple(found))


def _narrow(box: tuple[Vector, Vector], constraints: list[Constraint]) -> bool:
    """Cut a box by the bounds of single inputs; False if a constraint without variables is never true."""
    for constraint in constraints:
        kind = _kind(constraint)
        if kind == "" and constraint.bound < 0:
            return False
        if kind == "X":
            ((_, index), factor), *others = constraint.coefficients
            limit = constraint.bound / factor + 0.0
            if others or not math.isfinite(limit):
                raise QueryError("VNN-LIB: constraints on inputs must be bounds of single inputs: a box.")
            if factor > 0:
                box[1][index] = min(box[1][index], limit)
            else:
                box[0][index] = max(box[0][index], limit)
    return True


def _kind(constraint: Constraint) -> str:
    """Whether a constraint is about inputs "X", outputs "Y", or nothing at all."""
    kinds = {kind for (kind, _), _ in constraint.coefficients}
    if len(kinds) > 1:
        raise QueryError("VNN-LIB: a constraint that mixes inputs and outputs cannot be read.")
    return kinds.pop() if kinds else ""


def _matrix(rows: list[Constraint], outputs: int) -> tuple[Vector, Vector]:
    matrix = np.zeros((len(rows), outputs))
    for row, constraint in enumerate(rows):
        for (_, index), factor in constraint.coefficients:
            matrix[row, index] += factor
    return matrix, np.array([constraint.bound for constraint in rows])
