"""Read a VNN-LIB property: boxes of inputs and linear constraints on outputs, joined by `and` and `or`.

Strict inequalities are read as their closure, so a point on the boundary counts as a violation.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from closecall.arrays import Vector
from closecall.errors import QueryError
from closecall.readers.brackets import Expression, forms, read_text, shown
from closecall.readers.formulas import (
    Constraint,
    Either,
    Every,
    Formula,
    alternatives,
    bounded,
    constraints,
    count,
    either,
    every,
    longest,
)
from closecall.settings import DEFAULT

Box = tuple[Vector, Vector]
MOST_CONSTRAINTS = 1_000_000
LARGEST_INPUT = 1e18  # networks compute in float32, and solvers take 1e20 for infinity

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
VARIABLE = re.compile(r"([XY])_(\d{1,9})")
IGNORED = {"set-logic", "set-info", "set-option", "check-sat", "exit", "get-model"}


@dataclass(frozen=True, eq=False)
class PropertyCase:
    """One way to violate the property: lower ≤ x ≤ upper and matrix · y ≤ bound."""

    lower: Vector
    upper: Vector
    matrix: Vector
    bound: Vector


@dataclass(frozen=True, eq=False)
class Property:
    """The property is violated, `sat`, where all of these hold, and one case of each of the choices."""

    always: tuple[Constraint, ...]
    choices: tuple[Either, ...]
    inputs: int
    outputs: int

    @property
    def count(self) -> float:
        """How many cases there are at most; infinity is possible."""
        return math.prod(map(count, self.choices), start=1.0)

    def cases(self) -> Iterator[PropertyCase | None]:
        """Every way to violate the property, one after the other; None for some that cannot happen."""
        box = (np.full(self.inputs, -np.inf), np.full(self.inputs, np.inf))
        rows: list[Constraint] = []
        narrowed = _narrowed(box, self.always, rows)
        if narrowed is None:
            return
        if not self.choices:
            yield self._case(narrowed, rows)
        boxes, lengths = [narrowed], [len(rows)]
        waiting = [alternatives(self.choices[0])] if self.choices else []
        while waiting:
            picked = next(waiting[-1], None)
            del rows[lengths[-1] :]
            if picked is None:
                waiting.pop(), boxes.pop(), lengths.pop()
                continue
            narrowed = _narrowed(boxes[-1], picked, rows)
            if narrowed is None:
                yield None
            elif len(waiting) == len(self.choices):
                yield self._case(narrowed, rows)
            else:
                waiting.append(alternatives(self.choices[len(waiting)]))
                boxes.append(narrowed)
                lengths.append(len(rows))

    def _case(self, box: Box, rows: list[Constraint]) -> PropertyCase:
        matrix = np.zeros((len(rows), self.outputs))
        for row, constraint in enumerate(rows):
            for (_, index), factor in constraint.coefficients:
                matrix[row, index] += factor
        return PropertyCase(*box, matrix, np.array([constraint.bound for constraint in rows]))


def read_property(path: str | Path, inputs: int, outputs: int) -> Property:
    """Read a file, plain or gzipped, for a network with so many inputs and outputs."""
    return parse_property(read_text(Path(path)), inputs, outputs)


def parse_property(text: str, inputs: int, outputs: int) -> Property:
    """Read a property from its text."""
    declared: set[tuple[str, int]] = set()
    asserted: list[Formula] = []
    total = 0
    for form in forms(text):
        command = form[0] if isinstance(form, list) and form else form
        if command == "declare-const" and len(form) == 3:
            declared.add(_variable(form[1]))
        elif command == "assert" and len(form) == 2:
            asserted.append(_formula(form[1]))
            total += sum(1 for _ in constraints(asserted[-1]))
            if total > MOST_CONSTRAINTS:
                raise QueryError(f"VNN-LIB: the property has more than {MOST_CONSTRAINTS:,} constraints.")
        elif not (isinstance(command, str) and command in IGNORED):
            raise QueryError(f"VNN-LIB: expected declare-const or assert, but found {shown(form)}.")
    _check_variables(declared, asserted, (inputs, outputs))
    _check_bounded(every(asserted), inputs)
    return _arranged(every(asserted), (inputs, outputs))


def _arranged(whole: Every, sizes: tuple[int, int]) -> Property:
    """Choices of inputs first: cases with the same box then come one after the other."""
    inputs, outputs = sizes
    always = tuple(part for part in whole.parts if isinstance(part, Constraint))
    choices = [part for part in whole.parts if isinstance(part, Either)]
    by_inputs = [any(c.kind == "X" for c in constraints(choice)) for choice in choices]
    first = [choice for choice, by_input in zip(choices, by_inputs, strict=True) if by_input]
    later = [choice for choice, by_input in zip(choices, by_inputs, strict=True) if not by_input]
    if max((len(first) + 1) * inputs, longest(whole) * outputs) > DEFAULT.sizes.most_entries:
        raise QueryError("VNN-LIB: the property has too many constraints for a network of this size.")
    return Property(always, (*first, *later), inputs, outputs)


def _check_variables(declared: set[tuple[str, int]], asserted: list[Formula], sizes: tuple[int, int]) -> None:
    inputs, outputs = sizes
    expected = {("X", index) for index in range(inputs)} | {("Y", index) for index in range(outputs)}
    if declared != expected:
        counts = [sum(kind == letter for letter, _ in declared) for kind in "XY"]
        raise QueryError(
            f"VNN-LIB: the property declares {counts[0]} inputs and {counts[1]} outputs, but the network has "
            f"X_0 … X_{inputs - 1} and Y_0 … Y_{outputs - 1}."
        )
    for constraint in itertools.chain.from_iterable(map(constraints, asserted)):
        for variable, _ in constraint.coefficients:
            if variable not in declared:
                raise QueryError(f"VNN-LIB: the variable {variable[0]}_{variable[1]} was not declared.")


def _formula(expression: Expression) -> Formula:
    if not isinstance(expression, list) or not expression:
        raise QueryError(f"VNN-LIB: expected and, or, <= or >=, but found {shown(expression)}.")
    operator, *operands = expression
    if operator == "or" and operands:
        return either([_formula(operand) for operand in operands])
    if operator == "and" and operands:
        return every([_formula(operand) for operand in operands])
    if operator in ("<=", "<", ">=", ">") and len(operands) == 2:
        small, large = operands if operator in ("<=", "<") else operands[::-1]
        return _at_most(small, large)
    raise QueryError(f"VNN-LIB: expected and, or, <= or >=, but found {shown(expression)}.")


def _at_most(small: Expression, large: Expression) -> Constraint:
    left, right = _linear(small), _linear(large)
    coefficients = dict(left[0])
    for variable, factor in right[0].items():
        coefficients[variable] = coefficients.get(variable, 0.0) - factor
    kept = tuple((variable, factor) for variable, factor in coefficients.items() if factor != 0.0)
    constraint = Constraint(kept, _finite(right[1] - left[1]))
    if len({kind for (kind, _), _ in kept}) > 1:
        raise QueryError("VNN-LIB: a constraint that mixes inputs and outputs cannot be read.")
    if constraint.kind == "X" and len(kept) > 1:
        raise QueryError("VNN-LIB: constraints on inputs must be bounds of single inputs: a box.")
    if constraint.kind == "X" and not abs(constraint.bound / kept[0][1]) <= LARGEST_INPUT:
        raise QueryError(
            f"VNN-LIB: X_{kept[0][0][1]} is bounded by {constraint.bound / kept[0][1]:.3g}, but no answer "
            f"beyond ±{LARGEST_INPUT:g} could be trusted, where float32 and solvers end: give smaller bounds."
        )
    return constraint


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


# Boxes.


def _narrowed(box: Box, constraints: Sequence[Constraint], rows: list[Constraint]) -> Box | None:
    """A box cut by bounds of inputs, None if nothing is left; constraints on outputs are put into `rows`."""
    lower, upper = (side.copy() for side in box) if any(c.kind == "X" for c in constraints) else box
    for constraint in constraints:
        if constraint.kind == "Y":
            rows.append(constraint)
        elif constraint.kind == "X":
            (((_, index), factor),) = constraint.coefficients
            limit = constraint.bound / factor + 0.0
            if factor > 0:
                upper[index] = min(upper[index], limit)
            else:
                lower[index] = max(lower[index], limit)
        elif constraint.bound < 0:
            return None
    return (lower, upper) if (lower <= upper).all() else None


def _check_bounded(formula: Formula, inputs: int) -> None:
    """Refuse a property with a case that leaves an input without a lower or an upper bound."""
    found = bounded(formula)
    for index in range(inputs):
        if not {(index, True), (index, False)} <= found:
            raise QueryError(f"VNN-LIB: the input X_{index} needs a lower and an upper bound.")
