"""Dynamic routing over affine forms: from the primary capsules after their squash to the sums s_j."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.bounds.capsules.coupling import Couplings, coupled
from closecall.bounds.capsules.forms import (
    UNSEEN,
    UP,
    Form,
    column_weights,
    largest_eigenvalue,
    length,
    scattered,
    widened,
)
from closecall.bounds.capsules.squashing import squashed
from closecall.clock import OutOfTimeError
from closecall.network.layers.capsules import Capsules


@dataclass(frozen=True, eq=False)
class Votes:
    """û_ij = W_ij u_i, of which only centres and sizes are kept: their columns would fill the memory.

    `sizes` is what the terms of each add up to without their signs.
    """

    layer: Capsules
    children: Form  # (children, dimensions)

    @cached_property
    def centre(self) -> Vector:
        return np.asarray(np.matmul(self._matrices, self.children.centre[..., None])[..., 0]).reshape(
            self._shape
        )

    @cached_property
    def reach(self) -> Vector:
        """How long û_ij − û°_ij can be, (children, classes)."""
        form, votes = self.children, self.layer.votes
        # What all classes read of a child decides what its columns weigh.
        whole = np.einsum("ijkd,ijke->ide", votes, votes)
        whole += 1e-9 * np.trace(whole, axis1=1, axis2=2)[:, None, None] * np.eye(whole.shape[-1])
        squares = np.maximum((form.shared * (whole @ form.shared)).sum(-2), 0.0)
        weights = column_weights(form.ball, squares, form.blocks)
        scatter, mass, ends = scattered(form.ball, form.shared, form.blocks, weights)
        carried = votes @ scatter[:, None] @ votes.swapaxes(-1, -2)
        norms = np.sqrt(largest_eigenvalue(votes @ votes.swapaxes(-1, -2))) * UP
        found = np.sqrt(largest_eigenvalue(carried) * mass[:, None]) + norms * ends[:, None]
        return np.asarray((found + np.sqrt((self.slack**2).sum(-1)) + UNSEEN) * UP)

    @cached_property
    def sizes(self) -> Vector:
        return self._carried(self.children.size())

    @cached_property
    def slack(self) -> Vector:
        return np.asarray(self._carried(self.children.slack) + OUTWARD * self.sizes)

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.layer.votes.shape[:3]

    @cached_property
    def _matrices(self) -> Vector:
        children, classes, dimensions, own = self.layer.votes.shape
        return self.layer.votes.reshape(children, classes * dimensions, own)

    def _carried(self, sizes: Vector) -> Vector:
        found = np.matmul(np.abs(self._matrices), sizes[..., None])[..., 0] * UP
        return np.asarray(found).reshape(self._shape)


def routed(layer: Capsules, children: Form, until: float) -> Form:
    """The sums s_j (classes, dimensions) of the last iteration; left where time is over."""
    votes = Votes(layer, children)
    sums = evenly_summed(votes)
    agreed: Form | None = None
    for _ in range(layer.iterations - 1):
        if time.perf_counter() >= until:
            raise OutOfTimeError
        parents = squashed(sums)
        agreed = parents if agreed is None else added(agreed, parents)
        sums = summed(votes, coupled(agreement(votes, agreed)))
    return sums


def evenly_summed(votes: Votes) -> Form:
    """s_j = 1/classes · Σ_i û_ij: the first couplings are all alike, so this is linear."""
    children, share = votes.children, 1 / votes.layer.size
    centre = votes.centre.sum(0) * share
    shared = np.tensordot(votes.layer.votes * share, children.shared, axes=([0, 3], [0, 1]))
    slack = (votes.slack + OUTWARD * votes.sizes).sum(0) * share * UP
    return Form(children.ball, centre, shared, slack, children.blocks)


def added(left: Form, right: Form) -> Form:
    shared = widened(left.ball, left.shared, right.blocks) + right.shared
    slack = left.slack + right.slack + OUTWARD * (left.size() + right.size())
    return Form(left.ball, left.centre + right.centre, shared, slack, right.blocks)


def agreement(votes: Votes, agreed: Form) -> Form:
    """The logits b_ij = û_ij · V_j.

    With û = û° + δ and V = V° + ε, b = û°·V° + V°·δ + û°·ε + δ·ε, and |δ·ε| ≤ ‖δ‖‖ε‖.
    """
    children, weights = votes.children, votes.layer.votes
    centre = np.einsum("ijk,jk->ij", votes.centre, agreed.centre)
    backward = np.einsum("ijkd,jk->ijd", weights, agreed.centre)  # W_ijᵀ V°_j
    shared = widened(children.ball, np.matmul(backward, children.shared), agreed.blocks)
    shared += np.matmul(votes.centre.transpose(1, 0, 2), agreed.shared).transpose(1, 0, 2)
    both = votes.reach * length(agreed)
    slack = np.einsum("ijk,jk->ij", votes.slack, np.abs(agreed.centre))
    slack += np.einsum("ijk,jk->ij", np.abs(votes.centre), agreed.slack)
    slack += 4 * OUTWARD * np.einsum("ijk,jk->ij", votes.sizes, agreed.size())
    return Form(children.ball, centre, shared, (both + slack) * UP, agreed.blocks)


def summed(votes: Votes, couplings: Couplings) -> Form:
    """s_j = Σ_i c_ij û_ij, with one new error for each coupling and one vector for each s_j.

    With c = c° + γ and û = û° + δ, c û = c° û° + c° δ + γ û° + γ δ, where γ has its own error f times û°, and
    ‖Σ_i γ_ij δ_ij‖ ≤ Σ_i |γ_ij|‖δ_ij‖.
    """
    children, weights = votes.children, votes.layer.votes
    centre = np.einsum("ij,ijk->jk", couplings.centre, votes.centre)
    scaled = weights * couplings.centre[:, :, None, None]
    linear = np.tensordot(scaled, children.shared, axes=([0, 3], [0, 1]))
    shared = widened(children.ball, linear, couplings.blocks)
    shared += np.matmul(votes.centre.transpose(1, 2, 0), couplings.shared.transpose(1, 0, 2))
    errors = votes.centre * couplings.error[..., None]  # (children, classes, dimensions)
    count, classes, dimensions = errors.shape
    columns = np.zeros((classes, dimensions, classes, count))
    columns[np.arange(classes), :, np.arange(classes)] = errors.transpose(1, 2, 0)
    both = (couplings.reach * votes.reach).sum(0) * UP
    crossed = np.zeros((classes, dimensions, classes, dimensions))
    crossed[np.arange(classes), :, np.arange(classes)] = both[:, None, None] * np.eye(dimensions)
    rest = (columns.reshape(classes, dimensions, -1), crossed.reshape(classes, dimensions, -1))
    shared = np.concatenate([shared, *rest], axis=-1)
    blocks = (*couplings.blocks, (classes * count, 1), (classes, dimensions))
    sizes = np.abs(couplings.centre) + couplings.reach
    slack = np.einsum("ij,ijk->jk", np.abs(couplings.centre), votes.slack)
    slack += 4 * OUTWARD * np.einsum("ij,ijk->jk", sizes, votes.sizes)
    return Form(children.ball, centre, shared, slack * UP, blocks)
