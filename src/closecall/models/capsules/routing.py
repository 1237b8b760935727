"""How capsules agree: squash, routing by agreement and routing by self-attention.

Votes û_{j|i} of child i for parent j have the shape (batch, parents, children, dimensions): each parent finds
the votes for it side by side in memory.
"""

from __future__ import annotations

import torch
from torch import Tensor


def lengths_of(vectors: Tensor) -> Tensor:
    """Give ‖v‖ over the last axis; its gradient at v = 0 is 0, not NaN as that of a plain square root."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return lengths


def squash(vectors: Tensor) -> Tensor:
    """Shorten vectors to a length below 1 and keep their direction.

        squash(s) = ‖s‖²/(1 + ‖s‖²) · s/‖s‖ = s · ‖s‖/(1 + ‖s‖²)

    The second form needs no division by ‖s‖, so the value and the gradient at s = 0 are exactly 0.
    """
    length = lengths_of(vectors).unsqueeze(-1)
    return vectors * (length / (1 + length.square()))


def steep_squash(vectors: Tensor) -> Tensor:
    """Shorten vectors to a length below 1, more sensitively near 0: (1 − exp(−‖s‖)) · s/‖s‖."""
    length = lengths_of(vectors).unsqueeze(-1)
    # 1 − exp(−x) = 2t/(1 + t) with t = tanh(x/2) is exact for short vectors too; at 0 the quotient is 0/tiny.
    tangent = torch.tanh(length / 2)
    return vectors * (2 * tangent / ((1 + tangent) * length.clamp_min(1e-12)))


def dynamic_routing(
    votes: Tensor, iterations: int = 3, *, all_gradients: bool = False, trace: list[Tensor] | None = None
) -> Tensor:
    """Route by agreement: give the parents v (batch, parents, dimensions).

        b = 0;  repeat: c_i = softmax_j(b_i); s_j = Σ_i c_ij û_{j|i}; v_j = squash(s_j); b_ij += û_{j|i}·v_j

    The softmax is over parents, Σ_j c_ij = 1, so the first c is 1/parents without computing it. Gradients
    flow through the last iteration only, unless `all_gradients`. `trace` receives c of every iteration.
    """
    share = 1 / votes.shape[1]
    logits: Tensor | None = None
    for iteration in range(iterations):
        last = iteration == iterations - 1
        seen = votes if last or all_gradients else votes.detach()
        if logits is None:
            sums = seen.sum(2) * share
        else:
            couplings = logits.softmax(1)
            sums = torch.einsum("bji,bjid->bjd", couplings, seen)
        if trace is not None:
            trace.append(torch.full_like(votes[..., 0], share) if logits is None else couplings)
        parents = squash(sums)
        if not last:
            agreement = torch.einsum("bjid,bjd->bji", seen, parents)
            logits = agreement if logits is None else logits + agreement
    return parents


def attention_routing(votes: Tensor, prior: Tensor) -> Tensor:
    """Route by self-attention without iterations: give the parents (batch, parents, dimensions).

        c_ij = softmax_j(Σ_k û_{j|i}·û_{j|k} / √d) + prior_ij,   v_j = steep_squash(Σ_i c_ij û_{j|i})

    Σ_k û_{j|i}·û_{j|k} = û_{j|i}·(Σ_k û_{j|k}): no product of all pairs is needed.
    """
    agreement = torch.einsum("bjid,bjd->bji", votes, votes.sum(2)) * votes.shape[-1] ** -0.5
    couplings = agreement.softmax(1) + prior
    return steep_squash(torch.einsum("bji,bjid->bjd", couplings, votes))
