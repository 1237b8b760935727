"""Choices by a comparison, such as where(x > 0, x, 0), that are kinks and not jumps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, hstack

from closecall.arrays import Matrix
from closecall.errors import UnsupportedLayerError
from closecall.network.layers import Affine
from closecall.network.windows import Shape, check_entries
from closecall.readers import arithmetic
from closecall.readers.arithmetic import Operand
from closecall.readers.graph import GraphBuilder
from closecall.readers.tensor import Array, Tensor, broadcast, chosen

# Sums of float64 that are the same number, computed in two ways.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Comparison:
    """True where `lead` is positive; where it is zero, either will do for what can be read."""

    lead: Tensor

    @property
    def shape(self) -> Shape:
        return self.lead.shape

    @property
    def size(self) -> int:
        return self.lead.size


def greater(builder: GraphBuilder, left: Operand, right: Operand) -> Comparison:
    return Comparison(arithmetic.subtract(builder, left, right))


def less(builder: GraphBuilder, left: Operand, right: Operand) -> Comparison:
    return greater(builder, right, left)


def opposite(builder: GraphBuilder, comparison: Comparison) -> Comparison:
    return Comparison(builder.scaled([(comparison.lead, -1.0)]))


def choose(builder: GraphBuilder, comparison: Comparison, yes: Operand, no: Operand) -> Tensor:
    """where(d > 0, a, b) = b + k·max(0, d) if a − b = k·d, entry by entry."""
    shape = broadcast(comparison.shape, _shape(yes), _shape(no))
    lead = comparison.lead.moved(lambda places: np.broadcast_to(places, shape))
    difference = _minus(_rows(builder, yes, shape), _rows(builder, no, shape))
    direction = _rows(builder, lead, shape)
    factor = _factor(difference, direction)
    while factor is None:
        node = _latest_affine(builder, difference, direction)
        if node is None:
            raise UnsupportedLayerError(
                "a choice by a comparison jumps unless both sides meet where it changes, "
                "as in where(x > 0, x, 0)."
            )
        difference, direction = _opened(builder, difference, node), _opened(builder, direction, node)
        factor = _factor(difference, direction)
    kink = builder.scaled([(builder.relu(lead), factor.reshape(shape))])
    return arithmetic.add(builder, no, kink)


def _shape(operand: Operand) -> Shape:
    return operand.shape if isinstance(operand, Tensor) else np.shape(operand)


@dataclass(frozen=True, eq=False)
class Rows:
    """Entries as Σ matrix · node + constant."""

    matrices: dict[int, Matrix]
    constant: Array


def _rows(builder: GraphBuilder, operand: Operand, shape: Shape) -> Rows:
    if not isinstance(operand, Tensor):
        return Rows({}, np.broadcast_to(np.asarray(operand, dtype=np.float64), shape).ravel())
    if operand.peeled:
        raise UnsupportedLayerError(f"a {operand.peeled} in the middle of a network is not piecewise linear.")
    places = np.broadcast_to(operand.places, shape).ravel()
    return Rows({operand.node: chosen(places, builder.sizes[operand.node])}, np.zeros(len(places)))


def _minus(left: Rows, right: Rows) -> Rows:
    matrices = dict(left.matrices)
    for node, matrix in right.matrices.items():
        matrices[node] = matrices[node] - matrix if node in matrices else -matrix
    return Rows(matrices, left.constant - right.constant)


def _latest_affine(builder: GraphBuilder, *both: Rows) -> int | None:
    """The last affine node that either is written in."""
    nodes = {node for rows in both for node in rows.matrices if node > 0}
    return max((node for node in nodes if isinstance(builder.nodes[node - 1].layer, Affine)), default=None)


def _opened(builder: GraphBuilder, rows: Rows, node: int) -> Rows:
    """The same, written in what an affine node reads."""
    layer, inputs = builder.nodes[node - 1].layer, builder.nodes[node - 1].inputs
    if node not in rows.matrices or not isinstance(layer, Affine):
        return rows
    outer = csr_array(rows.matrices[node])
    opened = replace(
        rows,
        matrices={source: matrix for source, matrix in rows.matrices.items() if source != node},
        constant=rows.constant + outer @ layer.bias,
    )
    for weight, source in zip(layer.weights, inputs, strict=True):
        inner = csr_array(weight)
        check_entries(outer.nnz * int(np.diff(inner.indptr).max(initial=0)), "a choice by a comparison")
        opened = _minus(opened, Rows({source: -(outer @ inner)}, np.zeros(len(rows.constant))))
    return opened


def _factor(difference: Rows, direction: Rows) -> Array | None:
    """k with difference = k · direction in every entry, if there is one."""
    count = len(difference.constant)
    nodes = sorted(difference.matrices.keys() | direction.matrices.keys())
    widths = {node: m.shape[1] for rows in (difference, direction) for node, m in rows.matrices.items()}
    wide, along = (
        csr_array(
            hstack(
                [
                    *(rows.matrices.get(node, csr_array((count, widths[node]))) for node in nodes),
                    csr_array(rows.constant[:, None]),
                ],
                format="csr",
            )
        )
        for rows in (difference, direction)
    )
    each = np.arange(count)
    largest = np.asarray(abs(along).argmax(axis=1)).ravel()
    below = np.asarray(along[each, largest]).ravel()
    factor = np.asarray(wide[each, largest]).ravel() / np.where(below == 0, 1.0, below)
    scaled = csr_array((factor, each, np.arange(count + 1)), shape=(count, count)) @ along
    error = abs(wide - scaled) - ROUNDING * (abs(wide) + abs(scaled))
    return factor if error.nnz == 0 or error.max() <= 0 else None
