"""Every number that steers a search: its unit, why it is as it is, and what it was measured on.

None of them changes what an answer means, only how soon it comes. Numbers that a proof rests on (how far
bounds are rounded outward, what counts as a change in L0) stand beside the proof.
"""

from __future__ import annotations

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
    # A bound that some point comes this near to, as a share of its width, is left alone.
    bound_reached: float = 0.02
    # When the incumbent falls below this share of the radius that bounds were made for, they are made anew.
    start_anew: float = 0.95
    # Candidates tried out at a node, and the dual simplex steps of a trial.
    trials: int = 16
    trial_steps: int = 50
    # Trials after which a pseudo-cost is believed; with many choices each must do with fewer, since nine
    # tenths of the time went into trials with a few hundred choices ("Spend fewer trials" in the history).
    reliable_after: int = 8
    trials_of_all: int = 600
    # Points with at most so many open choices are looked at as incumbents.
    nearly_made: int = 4
    # Ties that a walk through linear regions tries one by one when all together lead nowhere.
    single_flips: int = 6
    # Rounds of cuts by envelopes, after which they gain next to nothing (`mnist-cnn-stable`, L∞).
    cut_rounds: int = 15


@dataclass(frozen=True)
class Milp:
    """The methods that hand a model to a MILP solver. Shares are of the time left."""

    # For linear bounds; units not reached keep their intervals.
    share_for_bounds: float = 0.3
    # For a first lower bound beside the solver's.
    share_for_first_bound: float = 0.1
    # Seconds for each MILP of `milp-improved`, which bounds one side of one unit, and the share of the time
    # left for all of them: bounds that leave no time for the model itself help nobody.
    seconds_for_a_unit: float = 1.0
    share_for_units: float = 0.5


@dataclass(frozen=True)
class Auto:
    """Which engine is asked (search/auto.py). Shares are of the time left."""

    # For the attack by gradients.
    share_for_attack: float = 0.3
    # Networks of at most so many units and pixels are searched by LPs in every norm but L0.
    units_for_lps: int = 250
    pixels_for_lps: int = 100
    # Up to so many units LPs are faster than batched bounds in L1, and with cuts in L∞ (`mnist-cnn-stable`,
    # 1,408 units, in PERFORMANCE.md; nothing between that and 3,000 units was measured).
    units_for_cuts: int = 1500
    # Where LPs with cuts come next, batched bounds get this share of the limit, but no more seconds.
    share_for_batches: float = 0.07
    seconds_for_batches: float = 5.0
    # Of the limit, for batched bounds about a whole box, where linear programs with cuts come next. By trial.
    share_for_batches_of_a_box: float = 0.5
    # Of the time of batched bounds, for a first lower bound.
    share_for_first_bound: float = 0.3
    # Radii that linear bounds try on a network that is too large for batched bounds.
    coarse_trials: int = 20


@dataclass(frozen=True)
class Settings:
    """All of them."""

    lp: LinearPrograms = LinearPrograms()
    milp: Milp = Milp()
    auto: Auto = Auto()
    # L1 by LPs, case by case: LPs close in seconds at half of the distance that they never close in one go.
    lp_radii: Radii = Radii(
        first=0.15, of_the_rest=0.0, of_the_proven=1.0, least=0.15, nearly_there=0.9,
        share_of_time=0.5, share_for_the_whole_way=0.5,
    )  # fmt: skip
    # L∞ by boxes with cuts: what batched bounds have proven is near, one step in between.
    box_radii: Radii = Radii(
        first=0.6, of_the_rest=0.6, of_the_proven=0.0, least=0.1, nearly_there=0.9,
        share_of_time=1.0, share_for_the_whole_way=1.0,
    )  # fmt: skip


DEFAULT = Settings()
