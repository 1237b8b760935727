"""The MILP of a question, for solvers that closecall does not drive."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from closecall.ask.nearest import Target, pose
from closecall.bounds import interval_bounds, linear_bounds
from closecall.bounds.balance import balanced
from closecall.clock import Clock
from closecall.encoding.encode import Costs, Form, encode
from closecall.errors import QueryError
from closecall.milp import Milp


def export_milp(
    model: object,
    image: ArrayLike,
    label: int | None = None,
    *,
    form: Form = "tight",
    costs: Costs | None = None,
    target: Target = "any",
    radius: float | None = None,
    **asked: Any,
) -> Milp:
    """The MILP whose optimum is the distance (for L2: its square) of the nearest image that reaches the goal.

    `paper` has interval bounds and a binary for every unit; `tight` has linear bounds and a binary only where
    they leave a choice. `asked` is what `nearest` takes: norm, cap, margin, ratio, outputs, pixel_range.
    """
    if form not in ("tight", "paper"):
        raise QueryError(f"the form must be tight or paper, got {form!r}.")
    if costs is not None and form != "paper":
        raise QueryError("the paper's costs are on every unit, so they need the form paper, got tight.")
    classifier, query = pose(Clock(math.inf), model, image, label, target=target, radius=radius, **asked)
    network = classifier.network if query.outputs == "logits" else classifier.network.with_relu_outputs()
    domain = query.domain()
    if costs is None:
        network = balanced(network, domain)
    if form == "paper":
        bounds = interval_bounds(network, domain)
    else:
        network = network.simplified()
        bounds = linear_bounds(network, domain)
    return encode(network, domain, query.goal(), bounds, form, costs).milp
