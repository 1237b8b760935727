"""Linear programs, radii that grow, and MILP solvers."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Radii:
    """How boldly larger radii are proven; shares are of the radius that is needed unless said otherwise."""

    # The first radius, before anything is proven.
    first: float
    # The next step: the largest of a share of what is left, a share of what is proven, and the least step.
    of_the_rest: float
    of_the_proven: float
    least: float
    # From this share on the next step goes the whole way: it costs hardly more.
    nearly_there: float
    # Of the time left: for a radius short of the whole way, and for the whole way. Whatever a failed attempt
    # took is lost, but a smaller radius that is proven is not.
    share_of_time: float
    share_for_the_whole_way: float
    # And no longer than this share of the time that the search has taken before, but for so many seconds.
    share_of_past: float = math.inf
    least_seconds: float = 3.0
    # Each failure halves the steps, but not below this share of them.
    least_boldness: float = 1 / 64


@dataclass(frozen=True)
class LinearPrograms:
    """Branch and bound over linear programs (search/lp)."""

    # Units from which climbs from many places pay, and their share of the time left. `mnist-cnn`, L1: see
    # "Prove L1 radius by radius" in the history.
    units_for_climbs: int = 250
    share_for_climbs: float = 0.2
    # Of the time left, for what linear bounds alone prove: enough for all bisections on the networks of the
    # zoo, a limit for larger ones.
    share_for_first_bound: float = 0.4
    # Of the time left, for trees in L2 and L0 before batched bounds or the solver take over. Measured on
    # `mnist-dnn1` to `mnist-dnn3`: most take a second or two, the others would take 2,000 nodes a case.
    share_for_few_nodes: float = 0.35
    # What the linear programs of L2 are for: so many open units, and columns for what the network reads of
    # its pixels. `mnist-dnn1` to `mnist-dnn3` have up to 32 and 20, and 2,000 nodes close a case with 32; on
    # `mnist-50x2` they only took time from batched bounds.
    units_for_readings: int = 40
    most_readings: int = 150
    # Of its time, in which a tree over the whole distance must prove something new. On `mnist-cnn`, image 0,
    # such a tree stayed at 0.43 of 4.31 for 300 s, where smaller radii prove 1.77.
    patience: float = 0.3
    # Nodes of a tree before bounds are tightened by LPs: easy cases end sooner (`mnist-dnn1` to `mnist-dnn3`
    # have a median of less than 10 nodes in PERFORMANCE.md).
    small_tree: int = 500
    # Rounds of tightening, each worth another while the open width falls below this share. By trial on
    # `mnist-dnn5`; not measured alone.
    tightening_rounds: int = 4
    worth_another_round: float = 0.97
    # Of the open width, what tightening must leave at most for a tree to be begun anew with it. By trial.
    worth_a_new_tree: float = 0.9
    # A bound that some point comes this near to, as a share of its width, is left alone.
    bound_reached: float = 0.02
    # When the incumbent falls below this share of the radius that bounds were made for, they are made anew.
    start_anew: float = 0.95
    # The same for the boxes of L∞, whose trees go on in a box that shrinks less than this. Measured on eleven
    # hard training images and mnist-cnn-robust: 4.9 s in the geometric mean, with 0.95 7.8 s and two open.
    smaller_box: float = 0.998
    # Candidates tried out at a node, and the dual simplex steps of a trial.
    trials: int = 16
    trial_steps: int = 50
    # Trials after which a pseudo-cost is believed; with many choices each must do with fewer, since nine
    # tenths of the time went into trials with a few hundred choices ("Spend fewer trials" in the history).
    reliable_after: int = 8
    trials_of_all: int = 600
    # Seconds for an LP that is begun just before the end, so that it can begin at all. By trial.
    least_seconds: float = 0.01
    # Scores below the goal at which the folded network, whose thresholds are lowered by rounding alone, finds
    # a point worth a look with the whole one.
    worth_an_offer: float = 1e-4
    # Ties that a walk through linear regions tries one by one when all together lead nowhere.
    single_flips: int = 6
    # Rounds of cuts by envelopes, after which they gain next to nothing (`mnist-cnn-stable`, L∞), and the
    # share of what is lacking that a round must gain for another. By trial.
    cut_rounds: int = 15
    worth_another_cut: float = 0.02


@dataclass(frozen=True)
class Milp:
    """The methods that hand a model to a MILP solver. Shares are of the time left."""

    # For linear bounds; units not reached keep their intervals.
    share_for_bounds: float = 0.3
    # For boxes in L∞, which prove nothing before they are closed; the rest is for the distance itself, where
    # a solver's bound grows from the beginning. By choice.
    share_for_boxes: float = 0.6
    # For a first lower bound beside the solver's.
    share_for_first_bound: float = 0.1
    # Seconds for each MILP of `milp-improved`, which bounds one side of one unit, and the share of the time
    # left for all of them: bounds that leave no time for the model itself help nobody.
    seconds_for_a_unit: float = 1.0
    share_for_units: float = 0.5


@dataclass(frozen=True)
class Solvers:
    """What steers solvers beside their own parameters (solvers/)."""

    # Lazy columns of an LP that HiGHS is given at first, and at a time later: most shifts of pixels stay at 0
    # in L1. By trial on `mnist-dnn5`.
    first_lazy_columns: int = 256
    more_lazy_columns: int = 24
    # Outer approximation of convex objectives: cheap LPs that place tangents before the first MILP, the
    # relative growth of the bound that is worth another, the relative gap below which tangents are placed for
    # one choice of the integers, the gap of a linear model as a fraction of the gap that is left, and the
    # tangents of each column at first. By trial.
    rounds_without_integers: int = 12
    worth_another_round: float = 0.01
    near_the_end: float = 0.2
    sharpness: float = 0.1
    first_tangents: int = 5
