"""The MILP of a question, for solvers that closecall does not drive."""

from __future__ import annotations

import math
from typing import Unpack

from numpy.typing import ArrayLike

from closecall.ask.capsules import check_piecewise_linear
from closecall.ask.posing import Asked, network_asked, pose
from closecall.bounds import interval_bounds, linear_bounds
from closecall.bounds.balance import balanced
from closecall.clock import Clock
from closecall.encoding.encode import Costs, Form, check_costs, encode
from closecall.errors import QueryError
from closecall.milp import Milp
from closecall.search.presolve import presolve


def export_milp(
    model: object,
    image: ArrayLike,
    label: int | None = None,
    *,
    form: Form = "tight",
    costs: Costs | None = None,
    **asked: Unpack[Asked],
) -> Milp:
    """The MILP whose optimum is the distance (for L2: its square) of the nearest image that reaches the goal.

    `paper` has interval bounds and a binary for every unit; `tight` has linear bounds and a binary only where
    they leave a choice, and what is decided within the radius is folded away. `asked` is what `nearest`
    takes: target, norm, radius, cap, margin, ratio, outputs, pixel_range. With a change, its numbers are
    what the MILP has in the place of pixels.
    """
    if form not in ("tight", "paper"):
        raise QueryError(f"the form must be tight or paper, got {form!r}.")
    check_costs(costs)
    if costs is not None and form != "paper":
        raise QueryError("the paper's costs are on every unit, so they need the form paper, got tight.")
    classifier, question = pose(Clock(math.inf), model, image, label, **asked)
    check_piecewise_linear(classifier.network, "an export")
    if question.patch is not None or question.confidence is not None:
        raise QueryError("a patch anywhere or a confidence takes more than one MILP: leave it out.")
    network, domain = network_asked(classifier, question), question.domain()
    if costs is None:
        network = balanced(network, domain)
    if form == "paper":
        return encode(network, domain, question.goal(), interval_bounds(network, domain), form, costs).milp
    network = network.simplified()
    local = presolve(network, domain, question.goal(), linear_bounds(network, domain))
    return encode(local.network, domain, local.goal, local.bounds, form).milp
