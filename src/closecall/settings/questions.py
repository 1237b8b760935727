"""What each kind of question takes of the time and in which steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Auto:
    """Which engine is asked (search/auto.py). Shares are of the time left."""

    # For the attack by gradients.
    share_for_attack: float = 0.3
    # Networks of at most so many units and pixels are searched by LPs in every norm but L0.
    units_for_lps: int = 250
    pixels_for_lps: int = 100
    # Up to so many units that are open nearer than the incumbent, LPs are faster than batched bounds in L1,
    # and with cuts in L∞. Found for all units of a network, when nothing was folded away; nothing between
    # 1,408 and 3,000 was measured.
    units_for_cuts: int = 1500
    # Up to so many open units, boxes in L∞ need neither climbs nor batched bounds before them. Measured on
    # mnist-cnn-stable, where 37 to 122 are open: 2.4 times as fast without batched bounds; on
    # mnist-cnn-robust: 4.4 instead of 4.9 s in the geometric mean of eleven hard training images.
    units_for_boxes: int = 600
    # Where LPs with cuts come next, batched bounds get this share of the limit, but no more seconds.
    share_for_batches: float = 0.07
    seconds_for_batches: float = 5.0
    # For linear bounds over the domain as it is, before anything else; all but the largest networks take far
    # less.
    share_for_bounds: float = 0.3
    # Of the limit, for batched bounds about a whole box, where linear programs with cuts come next. By trial.
    share_for_batches_of_a_box: float = 0.5
    # Of the time of batched bounds, for a first lower bound.
    share_for_first_bound: float = 0.3
    # On a network that is too large for batched bounds: the share of the time left in which linear bounds and
    # an attack look for a first witness, and the radii that linear bounds try after it. By trial.
    share_to_refute_coarsely: float = 0.5
    coarse_trials: int = 20


@dataclass(frozen=True)
class Ideal:
    """The best image of a class (ask/ideal.py). Shares are of the time left."""

    # For a first climb, for linear bounds, and for climbs that smooth, where more units than these are open:
    # the tree finds the image itself where there are few. On the zoo all end long before, in 60 s.
    share_for_first_climb: float = 0.1
    share_for_bounds: float = 0.3
    share_for_climbs: float = 0.3
    units_for_climbs: int = 12


@dataclass(frozen=True)
class Properties:
    """VNN-LIB properties (ask/vnncomp.py)."""

    # Cases that are made and searched at once: batched bounds see all of a box together. By trial.
    most_together: int = 1000
    # Seconds for a box, however many there are: less would not get beyond a first climb on a busy core.
    least_seconds: float = 0.5


@dataclass(frozen=True)
class Confident:
    """Images of at least some softmax probability (search/confident.py)."""

    # Searches, each with one tangent more. Measured on mnist-50x2 in L1 at 0.9: two or three close the gap.
    most_tangents: int = 20
    # Of the time that is left, for one of them. By trial.
    share_of_time: float = 0.6
    # How far beyond an image it is looked for confidence, as shares of its shift, and in how many steps: the
    # least is what float32 can tell, the largest takes a pixel through its whole range. By trial.
    least_step: float = 1e-7
    largest_step: float = 10.0
    steps: int = 160


@dataclass(frozen=True)
class Patches:
    """One of many sets of pixels, such as a square anywhere (search/patches.py)."""

    # Of the time that is left: for bounds over the whole image, and for each attack on a set. By trial.
    share_for_first_bound: float = 0.1
    share_for_attack: float = 0.01
    # Sets that are attacked before any is searched, the most promising ones. By trial.
    attacked_first: int = 12
    # Of the time that is left, for one set: again with more for those that are left open. By trial.
    shares_of_time: tuple[float, ...] = (0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Cells:
    """Boxes of one or two numbers (search/cells.py)."""

    # Points of the first grid in each direction, for one number and for two: enough to hit the classes that a
    # change leads through. By trial.
    grid: tuple[int, int] = (513, 49)
    # Values of the network that are kept at once while the grid is tried.
    values_at_once: int = 1_000_000


@dataclass(frozen=True)
class Rounding:
    """From images to images of levels (search/rounding.py)."""

    # Pixels between two levels of which all ways to round are tried, in one pass of the network: an LP's
    # point has few of them. By trial.
    tried_in_all_ways: int = 7
    # Images in one pass of the network, so that those of large networks fit into memory. By trial.
    trials_at_once: int = 32
    # How many steps beyond the first distance that could do it is looked for an image. By trial.
    steps_beyond: tuple[int, ...] = (1, 2, 4, 8)
    # Climbs from grid point to grid point at one distance, steps that are taken from some pixels and given to
    # others in one of them, and to how many pixels at most. By trial.
    climbs: int = 12
    steps_traded: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 64)
    pixels_given_to: int = 64


@dataclass(frozen=True)
class CurveSteps:
    """The worst margin by radius (ask/curve.py)."""

    # Of the time that is left: for the attack that says how far the curve goes, for linear bounds at all
    # radii, for climbs, and for the nearest image. By trial.
    share_for_first_attack: float = 0.05
    share_for_bounds: float = 0.3
    share_for_climbs: float = 0.1
    share_for_nearest: float = 0.25
    # How far the curve goes beyond the distance of the image that the attack finds. By choice.
    beyond: float = 2.0
    # Steps of a climb at each radius, and by how many those from a good image are shortened. By trial.
    steps: int = 20
    delay: int = 8
    # Of the time that is left, for one question about a radius: again with more for gaps that stay. By trial.
    # And seconds that each has at least.
    shares_of_time: tuple[float, ...] = (0.03, 0.1, 0.4)
    least_seconds: float = 1.0


@dataclass(frozen=True)
class Universal:
    """One perturbation for many images (ask/universal.py, attacks/joint.py). All by trial on the zoo."""

    # Of the time left: for joint climbs before anything is asked, for the nearest images one by one, and for
    # joint climbs from these.
    share_for_first_climbs: float = 0.1
    share_for_singles: float = 0.3
    share_for_climbs: float = 0.3
    # Steps of a climb. An image within `near` of its goal counts no more than one at that distance, and one
    # that is beyond its goal by `spare` is left alone.
    steps: int = 150
    near: float = 0.3
    spare: float = 0.3
    # Radii of climbs: each a share of the last success, and how many failures in a row end it.
    next_radius: float = 0.9
    failures: int = 3
