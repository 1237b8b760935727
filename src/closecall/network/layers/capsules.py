"""Class capsules behind dynamic routing, from the primary capsules before their squash to the lengths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from closecall.arrays import Matrix, Vector
from closecall.errors import QueryError
from closecall.milp.builder import Expression, ProgramBuilder


@dataclass(frozen=True, eq=False)
class Capsules:
    """y_j = ‖squash(s_j)‖ of the class capsules, for primary capsules x (children · dimensions of each).

        u_i = squash(x_i),  û_ij = W_ij u_i,  squash(s) = s · ‖s‖/(1 + ‖s‖²)
        V = 0;  repeat: c_i = softmax_j(û_ij · V_j),  s_j = Σ_i c_ij û_ij,  V_j += squash(s_j)

    Its proven bounds over a domain are in `closecall.bounds.capsules`. What it says of itself as a layer is
    only that a length lies between 0 and 1.
    """

    votes: Vector  # W: (children, classes, dimensions of a class capsule, dimensions of a child)
    iterations: int

    @property
    def size(self) -> int:
        return int(self.votes.shape[1])

    @property
    def child_shape(self) -> tuple[int, int]:
        """How many primary capsules there are, of how many dimensions."""
        return int(self.votes.shape[0]), int(self.votes.shape[3])

    @cached_property
    def _by_child(self) -> Vector:
        """W as one matrix for each child, (children, dimensions of it, classes · dimensions)."""
        children, classes, dimensions, own = self.votes.shape
        return np.ascontiguousarray(
            self.votes.reshape(children, classes * dimensions, own).transpose(0, 2, 1)
        )

    def forward(self, *inputs: Vector) -> Vector:
        _, _, trace = self._routed(inputs[0])
        squares = (trace[-1][1] ** 2).sum(-1)
        return np.asarray(squares / (1 + squares))

    def gradient(self, slopes: Vector, *inputs: Vector) -> list[Vector]:
        """Back through every iteration of the routing."""
        children, votes, trace = self._routed(inputs[0])
        to_votes = np.zeros_like(votes)
        to_agreed = np.zeros_like(trace[-1][1])  # of V in the iterations that come after
        for number in range(len(trace) - 1, -1, -1):
            couplings, sums, agreed = trace[number]
            if number == len(trace) - 1:
                squares = (sums**2).sum(-1, keepdims=True)
                to_sums = slopes[..., None] * 2 * sums / (1 + squares) ** 2
            else:
                to_sums = squash_backwards(sums, to_agreed)
            to_votes += couplings[..., None] * to_sums[:, None]
            if number == 0:  # the first couplings are all alike
                break
            to_couplings = (votes * to_sums[:, None]).sum(-1)
            mean = (couplings * to_couplings).sum(-1, keepdims=True)
            to_logits = couplings * (to_couplings - mean)
            to_votes += to_logits[..., None] * agreed[:, None]
            to_agreed += (to_logits[..., None] * votes).sum(1)
        flat = to_votes.reshape(len(to_votes), len(self.votes), -1)
        to_children = np.matmul(flat.transpose(1, 0, 2), self._by_child.transpose(0, 2, 1))
        back = squash_backwards(children, to_children.transpose(1, 0, 2))
        return [back.reshape(len(back), -1)]

    def _routed(self, points: Vector) -> tuple[Vector, Vector, list[tuple[Vector, Vector, Vector]]]:
        """The children, their votes and of every iteration c, s and the V that c was made from."""
        children = points.reshape(len(points), *self.child_shape)
        products = np.matmul(squash(children).transpose(1, 0, 2), self._by_child)
        votes = products.transpose(1, 0, 2).reshape(len(points), *self.votes.shape[:3])
        agreed, trace = np.zeros((len(points), *self.votes.shape[1:3])), []
        for _ in range(self.iterations):
            logits = np.einsum("bijk,bjk->bij", votes, agreed)
            couplings = np.exp(logits - logits.max(-1, keepdims=True))
            couplings /= couplings.sum(-1, keepdims=True)
            sums = np.einsum("bij,bijk->bjk", couplings, votes)
            trace.append((couplings, sums, agreed))
            agreed = agreed + squash(sums)
        return children, votes, trace

    def interval(self, lower: list[Vector], upper: list[Vector]) -> tuple[Vector, Vector]:
        return np.zeros(self.size), np.ones(self.size)

    def bound_above(
        self, rows: Matrix, lower: list[Vector], upper: list[Vector]
    ) -> tuple[list[Matrix], Vector]:
        """Σ_j r_j y_j ≤ Σ_j max(0, r_j)."""
        positive = rows.maximum(0) if hasattr(rows, "maximum") else np.maximum(rows, 0.0)
        none = np.zeros((rows.shape[0], int(np.prod(self.child_shape))))
        return [none], np.asarray(positive @ np.ones(self.size))

    def encode_tight(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> NoReturn:
        raise QueryError(
            'routing is not piecewise linear, so no MILP stands for it: leave method at "auto", '
            "which bounds capsule networks."
        )

    encode_choices = encode_tight
    encode_paper = encode_tight


def shrinkage(squares: Vector) -> Vector:
    """‖s‖/(1 + ‖s‖²), by which squash multiplies s, of ‖s‖²."""
    return np.asarray(np.sqrt(squares) / (1 + squares))


def squash(vectors: Vector) -> Vector:
    return np.asarray(vectors * shrinkage((vectors**2).sum(-1, keepdims=True)))


def squash_backwards(vectors: Vector, slopes: Vector) -> Vector:
    """Slopes carried back through squash: (φ(n) + φ′(n)/n · s sᵀ) g for φ(n) = n/(1 + n²), and 0 at s = 0."""
    squares = (vectors**2).sum(-1, keepdims=True)
    lengths = np.sqrt(squares)
    radial = (1 - squares) / (1 + squares) ** 2
    directions = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    along = (directions * slopes).sum(-1, keepdims=True)
    return np.asarray(shrinkage(squares) * slopes + radial * lengths * directions * along)
