"""Batched linear bounds in torch (search/crown/)."""

from __future__ import annotations

from dataclasses import dataclass

from closecall.settings.attacking import Climbs
from closecall.settings.programs import Radii


@dataclass(frozen=True)
class Pace:
    """How slopes, multipliers and weights are improved by gradient (Adam), for many bounds at once."""

    # Steps, each of which is one pass back and one forward through the network.
    steps: int

    # The length of the first step of slopes, which lie between 0 and 1. By trial.
    slope_step: float = 0.1

    # The same of the splits' multipliers and of the weights of a case's rows, which add up to 1. By trial.
    multiplier_step: float = 0.1
    weight_step: float = 0.1

    # The factor from each step's length to the next. By trial.
    decay: float = 0.97

    # What a step keeps of the mean of gradients and of the mean of their squares: the first is Adam's usual,
    # the second forgets sooner than its 0.999, as suits so few steps. By trial.
    memory_of_mean: float = 0.9
    memory_of_square: float = 0.99

    # After every so many steps, bounds that are negative by now are left out, if less than this share of all
    # is not: leaving them out takes a copy of the others. By trial.
    steps_between_thinnings: int = 4
    thinning_share: float = 0.75

    # The least weight of a row before they are made to add up to 1, so that none is lost for good.
    least_weight: float = 1e-6


@dataclass(frozen=True)
class Sweeps:
    """Intermediate bounds tightened by branching, layer by layer.

    What sweeps bring: Improvements, the bounds of cases on mnistfc 256x6 from about 500 to about 3. Their
    numbers are all by trial; none has been measured alone.
    """

    # Few steps: each of a layer's units has two sides, and each side many parts.
    pace: Pace = Pace(10, slope_step=0.15, multiplier_step=0.15, decay=0.9)

    # Units whose children are looked at before one is split.
    candidates: int = 4

    # Sides whose worst part is split at once.
    sides_at_once: int = 128

    # Multiplications for each layer and sweep: 2 s at 1.5e10 a second.
    work: float = 3e10

    # Passes over the network that a split costs, roughly: two children of each candidate and all steps.
    passes_for_a_split: int = 40

    # Splits of each side in one sweep, whatever the work.
    fewest_rounds: int = 3
    most_rounds: int = 24

    # The weight of each row of the case, before the first step.
    first_weight: float = 0.01

    # Searches begin anew when the open units before them are left with less than this share of their width:
    # what was split for wider bounds may be in vain then.
    stale_share: float = 0.95

    # Sweeps go on while they leave less than this share of the cases' values; the same for the first try to
    # tighten for one case, which is cheap, since it does not branch.
    worth_a_sweep: float = 0.93
    worth_a_try: float = 0.98

    # The share of the time left that all sweeps may take.
    share: float = 0.5


@dataclass(frozen=True)
class Crown:
    """Branch and bound with batched linear bounds in torch (α,β-CROWN)."""

    # Steps for each unit's two bounds, for each case, and for each part: many for a case, whose slopes all of
    # its parts inherit, few for a part. By trial.
    unit_pace: Pace = Pace(20, slope_step=0.3)
    case_pace: Pace = Pace(50, slope_step=0.2)
    part_pace: Pace = Pace(16, decay=0.93)

    climbs: Climbs = Climbs()
    sweeps: Sweeps = Sweeps()

    # Multiplications of one batch: about 0.1 s at the 1.5e10 to 2.8e10 a second of float32, so that a search
    # looks at its clock that often.
    multiplications_at_once: float = 2e9

    # Rows of a layer, two for each unit, that are bounded at once; parts that are bounded at once; parts that
    # are split at once, each into two: enough for products of matrices to pay. By trial.
    unit_rows_at_once: int = 512
    parts_at_once: int = 128
    splits_at_once: int = 64

    # Nodes before intermediate bounds are tightened: shallow networks rarely need more (it was 500 at first).
    # By trial.
    quick_nodes: int = 2000

    # Units whose children are looked at before one is split. By trial.
    candidates: int = 8

    # What the better child's bound counts beside the worse one's, and what the height of a unit's triangle
    # counts beside what the unit adds at the relaxed solution. By trial.
    better_child: float = 0.1
    triangle: float = 1e-3

    # Halvings for the radius that the duals of an open part still prove: to 0.006 % of the ball's.
    bisections: int = 14

    # Radii up to the nearest witness. By trial; what half of the time left for each brings: Improvements,
    # mnist-cnn, image 0, L∞, 300 s, from 0.0314 to 0.0360.
    radii: Radii = Radii(
        first=0.3, of_the_rest=0.35, of_the_proven=0.0, least=0.07, nearly_there=1.0,
        share_of_time=0.5, share_for_the_whole_way=1.0, least_boldness=0.0,
    )  # fmt: skip
