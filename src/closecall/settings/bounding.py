"""Networks as arrays and matrices, and bounds on their units."""

from __future__ import annotations

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
