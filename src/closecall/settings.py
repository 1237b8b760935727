"""Every number that steers a search: its unit, why it is as it is, and what it was found out by.

None of them decides what is true: other numbers only make a search slower, or leave its interval wider. What
proofs rest on, such as how far bounds are rounded outward, stands beside the proof instead.

"By trial" means that the number was chosen while the search was being written, and that what it alone brings
has not been measured. "Improvements" are the rows at the end of docs/PERFORMANCE.md. Speeds named here were
measured on one core of an EPYC, beside other work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What steps cost in memory and time, known before they are begun, and what is refused for it."""

    # Gigabytes for the matrices of batched bounds, or for a solver's model: what a laptop can spare.
    # By choice; queries about the zoo's networks stay below one (tests/search/test_memory.py).
    most_gigabytes: float = 3.0

    # Bytes of a weight in the dense matrices of batched bounds, in float64 and float32: of the whole network,
    # of the same within a radius, and of that without its dead units. Counted, not measured.
    bytes_of_a_dense_entry: int = 3 * (8 + 4)

    # Bytes of a number in the rows of a solver's model, the solver's own copies and its presolve included.
    # By trial.
    bytes_of_a_model_entry: int = 300

    # Seconds to make a model, for each number in its rows. Measured on mnist-cnn: 1.1e-6.
    seconds_to_encode_an_entry: float = 1e-6

    # Seconds by which a solver overruns its limit, for each number in its rows. By trial.
    seconds_to_stop_for_an_entry: float = 5e-7

    # Seconds to lay out the dense matrices of batched bounds, for each of their entries. Measured: 6e-9 for a
    # convolution on 32 x 32 pixels, 8e-8 for dense layers of 2,000 units; this lies between.
    seconds_to_lay_out_an_entry: float = 3e-8

    # Seconds to fold away what is decided, for each open unit and each weight of the network. Measured: 1e-10
    # on a CNN of 4,804 units, 1,757 of them open, where most rows are sparse.
    seconds_to_fold_a_weight: float = 2e-10

    # Seconds for an LP that is begun just before the end, so that it can begin at all. By trial.
    least_lp_seconds: float = 0.01

    # Entries of a matrix that a layer is read as: 240 MB as a sparse one. Larger networks are refused.
    most_entries: int = 20_000_000

    # Numbers in the planes of the L1 search at once: 1.6 GB. Beyond that it does without them.
    most_plane_numbers: float = 2e8

    # Arrays as large as the planes of one layer that exist while they are carried through it. Counted.
    plane_arrays_at_work: int = 8

    # Slopes of all open parts of the batched search together: a gigabyte in float16. Then it ends.
    most_slopes: float = 5e8

    # A matrix is stored dense from this share of entries on that are not zero: a sparse product takes about
    # ten times as long for each of them (1.3e9 a second against 1.3e10), and sparse ones save memory besides.
    dense_share: float = 0.25

    # Entries up to which any matrix is stored dense: so small a one is multiplied sooner than the places of
    # its entries are read. By trial.
    dense_entries: int = 1024


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
class LinearBounds:
    """Linear bounds (CROWN) in numpy, which keep convolutions sparse; the scale of units; cuts."""

    # Rows are carried back as sparse ones up to this share of entries that are not zero: patches of the image
    # for early layers of a convolutional network. By trial on a CNN of 4,804 units.
    sparse_share: float = 0.1

    # Rows carried back at once, two for each unit: enough for products of matrices to pay. By trial.
    most_rows: int = 1024

    # Multiplications of one portion of rows: 0.15 s at the 1.3e9 a second of sparse products, so that a
    # search looks at its clock that often.
    multiplications_at_once: float = 2e8

    # Numbers in one array of a portion: 32 MB, a few of which exist at once.
    numbers_at_once: float = 4e6

    # Multiplications that take as long as sorting one pixel of one row, for the norms that need it. Measured:
    # 0.7e-7 (L0), 1.0e-7 (L1) and 1.7e-7 s (L2) a pixel, 0.8e-9 s a multiplication.
    multiplications_to_sort_a_pixel: float = 100

    # Radii tried for the first lower bound, each in the middle of what is left, by ratio. By trial.
    bisections: int = 6

    # The first radius as a share of the domain's, and the factor to the next while none is proven. By trial;
    # linear bounds alone prove 0.43 of 4.31 on mnist-cnn, image 0, L1.
    first_share: float = 1 / 8

    # The share of the domain's radius below which no radius is tried: too little to be of use.
    smallest_share: float = 1e-6

    # Doublings that the largest weight of a unit may be from 1 and stay as it is, so that trained networks
    # keep their numbers bit for bit. By trial; `closecall bench soundness` runs with it.
    ordinary_doublings: int = 8

    # How far a unit's value must lie above its envelope for a cut there, in its own scale. By trial; what
    # cuts bring: Improvements, from 21,825 nodes, unfinished, to 206.
    worth_a_cut: float = 1e-4
    # Layers behind the first get cuts, too, if they have so many values: fewer are sooner branched on than
    # cut (mnist-cnn-stable: 6 to 8 units and 10 classes, twice as slow with cuts; mnist-cnn-robust: 60 to 75
    # units, ten times fewer nodes with them). A layer gets none if its units times all that they may read
    # come to more than this, which takes about 0.1 s a round.
    deep_units_for_cuts: int = 30
    deep_cut_entries: int = 1_000_000


@dataclass(frozen=True)
class CapsuleForms:
    """Affine forms of capsule networks, and the radii that they are asked about."""

    # Gigabytes for the columns of forms: what a laptop can spare. By choice; zoo:mnist-caps takes 0.1.
    most_gigabytes: float = 2.0

    # The first radius as a share of the witness's distance (or the domain's radius), the factor by which
    # radii grow while they are proven, and that by which they shrink until one is: in L∞ the first mostly is,
    # in L1 and L2 about a twentieth of the distance. By trial on mnist-caps.
    first_share: float = 1 / 8
    growth: float = 1.5
    shrinkage: float = 3.0

    # The share of that distance below which no radius is tried: too little to be of use.
    smallest_share: float = 1e-5

    # The ratio of a radius that is not proven to one that is, at which the search ends. By choice.
    close_enough: float = 1.02

    # A longer attack after that, where there is time: steps of a climb, the next ball's radius as a share of
    # the last witness's distance, and climbs in a row that may fail. Measured on four images of mnist-caps,
    # L∞: 0 to 7 % nearer than the first attack in two to three times its seconds.
    steps: int = 150
    next_radius_share: float = 0.97
    failed_climbs: int = 2


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


@dataclass(frozen=True)
class Settings:
    """All numbers that steer, by stage."""

    sizes: Sizes = Sizes()
    attack: Attack = Attack()
    linear_bounds: LinearBounds = LinearBounds()
    capsules: CapsuleForms = CapsuleForms()
    crown: Crown = Crown()
    lp: LinearPrograms = LinearPrograms()
    milp: Milp = Milp()
    auto: Auto = Auto()
    ideal: Ideal = Ideal()
    smooth: Smooth = Smooth()
    properties: Properties = Properties()
    solvers: Solvers = Solvers()
    confident: Confident = Confident()
    patches: Patches = Patches()
    universal: Universal = Universal()
    cells: Cells = Cells()
    rounding: Rounding = Rounding()
    curve: CurveSteps = CurveSteps()
    # L1 by LPs, case by case: LPs close in seconds at half of the distance that they never close in one go.
    lp_radii: Radii = Radii(
        first=0.15, of_the_rest=0.0, of_the_proven=1.0, least=0.15, nearly_there=0.9,
        share_of_time=0.5, share_for_the_whole_way=0.5,
    )  # fmt: skip
    # L∞ by boxes with cuts. A box that holds a nearer image may take forever where a smaller one is closed at
    # once: measured on eleven hard training images and mnist-cnn-robust, one was left open after 60 s without
    # a share of the past, and none with it.
    box_radii: Radii = Radii(
        first=0.6, of_the_rest=0.6, of_the_proven=0.0, least=0.1, nearly_there=0.9,
        share_of_time=1.0, share_for_the_whole_way=1.0, share_of_past=0.5,
    )  # fmt: skip


DEFAULT = Settings()
