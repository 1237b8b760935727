"""Looking for images by gradient, with no proof that none is nearer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """The first search for a witness, by Frank-Wolfe steps in numpy."""

    # Steps of a climb. By trial.
    steps: int = 24

    # Climbs in a row that may fail before the nearest witness so far is taken. By trial.
    failed_climbs: int = 3

    # The next ball's radius as a share of the last witness's distance: a much smaller ball may hold none.
    # By trial.
    next_radius_share: float = 0.93

    # The first radius, in those at which the linear model at the original reaches the goal: a quarter more,
    # since networks bend away from it. By trial.
    first_radius_margin: float = 1.25

    # The least share of the way to the farthest corner for that, however steep the linear model is.
    # By trial.
    least_first_share: float = 0.01

    # The factor by which the ball grows until a first witness is found. By trial.
    growth: float = 2.0

    # Points looked at between the original and a witness, to pull it back, and rounds of this, each between
    # the last two points: three passes of the network for the 4096th part of the way.
    pull_back_points: int = 16
    pull_back_rounds: int = 3

    # Images with fewer changed pixels (L0) in one pass of the network. By trial.
    trials_at_once: int = 32

    # Steps of the climb towards an ideal image, which no radius holds. By trial.
    ideal_steps: int = 200


@dataclass(frozen=True)
class Climbs:
    """The search for witnesses beside batched bounds: climbs by gradient, then LPs within linear regions."""

    # Starts for each case, the original and random places, and the steps of each. By trial; what such climbs
    # bring: Improvements, a distance on mnist-cnn in L1 from 4.31 to 3.76.
    restarts: int = 16
    steps: int = 40

    # Rounds of them in a row that may fail: the same as in the attack.
    failed_rounds: int = Attack.failed_climbs

    # Climbs from the points where the bounds of a batch of parts are attained, and the steps of each: few,
    # since the next batch brings more. By trial.
    from_bounds: int = 8
    steps_from_bounds: int = 10

    # In L∞: what is kept of the last direction, the first step as a share of the ball's width, and how often
    # it is halved on the way. By trial.
    momentum: float = 0.75
    first_step: float = 0.25
    halvings: float = 6.0

    # Scores below the goal at which the end of a climb in float32 is worth a check in float64. By trial.
    worth_a_check: float = 1e-4

    # The next linear region is gone to while the distance falls to less than this share: 1e-4 is the gap that
    # is asked for by default.
    worth_a_region: float = 1 - 1e-4

    # Of the time left, for the LPs of one incumbent's linear regions. Where they take longer, nearer images
    # are looked for by climbs alone. By trial on a network trained by intervals, where one region has
    # hundreds of borders and takes ten seconds, a round of climbs 0.2.
    share_for_regions: float = 0.04

    # By how much nearer, as a share of the distance, climbs look for an image at first, what is left of such
    # a step after a failure, and the share below which LPs go the rest of the way. By trial: steps as small
    # as the gap took forty rounds from 0.48 to 0.39, each of them a success.
    first_shrinking: float = 0.1
    shorter_after_failure: float = 1 / 8
    last_shrinking: float = 0.02

    # The share of the distance at which the network was folded below which it is folded anew for further
    # climbs. By trial on networks trained like mnist-cnn-robust.
    worth_folding_anew: float = 0.8

    # Scores by which a second LP must pass the goal where none of these is a witness. By trial.
    firmer_by: float = 1e-6

    # Broken phases that enter the LP of a linear region at once, and rounds of this: 3,840 phases in all.
    # By trial.
    phases_at_once: int = 64
    rounds: int = 60

    # What a phase may be broken by: the tolerance of the LP solver.
    broken_by: float = 1e-9

    # Multiplications a second in float64 by which the time for a region's affine maps is estimated: those of
    # a slow core; measured 1.3e10.
    multiplications_per_second: float = 3e9


@dataclass(frozen=True)
class Smooth:
    """Climbs towards an ideal image of little total variation (attacks/smooth.py). By trial on the zoo."""

    # Steps of a climb, those in the dual for each, and the first step's longest move of a pixel as a share of
    # its range.
    steps: int = 300
    dual_steps: int = 8
    first_step: float = 0.5
    # Shares of the weight, each climb going on from the last: measured on mnist-cnn at a weight of 0.2, the
    # best image of 6 classes of 10; of the other 4 it is found from the lower end, never from the middle.
    growing_weights: tuple[float, ...] = (0.25, 0.5, 1.0)
