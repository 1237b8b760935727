"""What cannot be asked about a capsule network: its scores are lengths, and it is not piecewise linear."""

from __future__ import annotations

from closecall.errors import QueryError
from closecall.network import Network
from closecall.question.question import Question


def check_piecewise_linear(network: Network, what: str) -> None:
    """Refuse what needs a MILP of the network."""
    if network.capsules is not None:
        raise QueryError(
            f"{what} needs a MILP, and routing between capsules is not piecewise linear: ask nearest or "
            "certify with method auto, which bound capsule networks by other means."
        )


def check_suits_capsules(network: Network, question: Question, method: str, *, costs: bool) -> None:
    """Refuse a question about a capsule network that has no meaning or no method."""
    if network.capsules is None:
        return
    if method != "auto" or costs:
        check_piecewise_linear(network, "the paper's cost" if costs else f"method {method}")
    if question.ratio is not None or question.confidence is not None:
        raise QueryError(
            "a ratio or a confidence is one of logits, but the scores of a capsule network are lengths below "
            "1: ask for a margin."
        )
