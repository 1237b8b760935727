"""Every number that steers a search: its unit, why it is as it is, and what it was found out by.

None of them decides what is true: other numbers only make a search slower, or leave its interval wider. What
proofs rest on, such as how far bounds are rounded outward, stands beside the proof instead.

"By trial" means that the number was chosen while the search was being written, and that what it alone brings
has not been measured. "Improvements" are the rows at the end of docs/PERFORMANCE.md. Speeds named here were
measured on one core of an EPYC, beside other work.
"""

from __future__ import annotations

from dataclasses import dataclass

from closecall.settings.attacking import Attack, Climbs, Smooth
from closecall.settings.batched import Crown, Pace, Sweeps
from closecall.settings.bounding import CapsuleForms, LinearBounds, Sizes
from closecall.settings.programs import LinearPrograms, Milp, Radii, Solvers
from closecall.settings.questions import (
    Auto,
    Cells,
    Confident,
    CurveSteps,
    Ideal,
    Patches,
    Properties,
    Rounding,
    Universal,
)

__all__ = [
    "DEFAULT",
    "Attack",
    "Auto",
    "CapsuleForms",
    "Cells",
    "Climbs",
    "Confident",
    "Crown",
    "CurveSteps",
    "Ideal",
    "LinearBounds",
    "LinearPrograms",
    "Milp",
    "Pace",
    "Patches",
    "Properties",
    "Radii",
    "Rounding",
    "Settings",
    "Sizes",
    "Smooth",
    "Solvers",
    "Sweeps",
    "Universal",
]


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
