"""What is measured against what: the table of yardsticks, and the questions each of them asks."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from closecall.errors import InputError
from closecall.question.names import MethodName, NormName, Pixels, SolverName, Target

Run = Literal["quick", "full"]
FolderName = Literal["mnistfc", "oval21"]
Folders = Mapping[FolderName, Path | None]


@dataclass(frozen=True)
class Contender:
    """A way to search and its time limits in seconds; `pixels`: which images it searches among."""

    method: MethodName
    solver: SolverName
    full: float
    quick: float
    pixels: Pixels | None = None

    def limit(self, run: Run) -> float:
        return self.full if run == "full" else self.quick


@dataclass(frozen=True)
class Family:
    """One question about several networks; with a radius it is put to certify(), without to nearest()."""

    networks: tuple[str, ...]
    norm: NormName = "l1"
    target: Target = "any"
    cap: float | None = None
    radius: float | None = None
    dataset: str = "mnist"
    images: int | None = None  # of a full run; as many as the yardstick says unless given


@dataclass(frozen=True)
class Yardstick:
    """Families of questions about the first correctly classified test images, or a folder of VNN-LIB ones.

    The folder is the one that is given by the option of that name; a quick run takes every so many-th of its
    instances. The first contender is compared with the others.
    """

    name: str
    what: str
    contenders: tuple[Contender, ...]
    families: tuple[Family, ...] = ()
    images: int = 10
    quick_images: int = 2
    threads: int = 1
    folder: FolderName | None = None
    quick_every: int = 1


@dataclass(frozen=True)
class Instance:
    """A network and a VNN-LIB property by their names in a folder, and the answer if it is known."""

    network: str
    property_name: str
    expected: str | None


PAPER_NETWORKS = tuple(f"zoo:mnist-dnn{number}" for number in range(1, 6))
PAPER = (
    Family(PAPER_NETWORKS, target="paper"),
    Family(("zoo:mnist-dnn5",), target="paper", cap=0.2),
)
CNNS = ("zoo:mnist-cnn-stable", "zoo:mnist-cnn")
ROBUST = ("zoo:mnist-cnn-robust",)
GROWING = ("zoo:mnist-dnn1", "zoo:mnist-dnn3", "zoo:mnist-dnn5", "zoo:mnist-50x2", *CNNS)
DENSE = ("zoo:mnist-dnn1", "zoo:mnist-dnn5", "zoo:mnist-50x2")
RADII = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05)

HEADER, UNKNOWN = ("network", "property"), "unknown"  # of expected.csv

YARDSTICKS: dict[str, Yardstick] = {
    yardstick.name: yardstick
    for yardstick in (
        Yardstick(
            "paper",
            "The networks of the paper, L1, target (d + 5) mod 10: `auto` beside the paper's two models in "
            "HiGHS, basic and improved. The latter spends up to half of its time on bounds of units.",
            (
                Contender("auto", "highs", 300, 20),
                Contender("milp-basic", "highs", 100, 20),
                Contender("milp-improved", "highs", 100, 20),
            ),
            PAPER,
            quick_images=1,
        ),
        Yardstick(
            "gurobi",
            "The same questions: `auto`, whose LPs are solved by HiGHS, beside Gurobi's own search on the "
            "model of `milp`. Questions too large for Gurobi's free licence are left out of the mean.",
            (Contender("auto", "highs", 100, 30), Contender("milp", "gurobi", 100, 30)),
            PAPER,
        ),
        Yardstick(
            "highs",
            "The same questions: `auto` beside the free solvers' own search on the model of `milp`.",
            (
                Contender("auto", "highs", 100, 15),
                Contender("milp", "highs", 100, 15),
                Contender("milp", "scip", 100, 15),
            ),
            PAPER,
            quick_images=1,
        ),
        Yardstick(
            "norms",
            "The three smallest networks of the paper, the nearest image of any other class in L2 and L0: "
            "`auto` beside HiGHS's and Gurobi's own search on the model of `milp`. Gurobi's free licence "
            "takes no quadratic objective of this size, so L2 is left out for it.",
            (
                Contender("auto", "highs", 60, 20),
                Contender("milp", "highs", 10, 10),
                Contender("milp", "gurobi", 10, 10),
            ),
            (Family(PAPER_NETWORKS[:3], norm="l2"), Family(PAPER_NETWORKS[:3], norm="l0")),
            images=5,
            quick_images=1,
        ),
        Yardstick(
            "cnn",
            "Convolutional networks, the nearest image of any other class, two of them trained to be proven.",
            (Contender("auto", "highs", 300, 40),),
            (
                *(Family((network,), norm=norm) for network in CNNS for norm in ("linf", "l1")),
                Family(ROBUST, norm="l1"),
            ),
            quick_images=1,
        ),
        Yardstick(
            "robust",
            "A convolutional network of 4,804 units, trained to be proven within 0.1: is it proven, and what "
            "is the nearest image? L∞, `auto` beside Gurobi on the same folded boxes.",
            (Contender("auto", "highs", 60, 10), Contender("milp", "gurobi", 60, 10)),
            (Family(ROBUST, norm="linf", radius=0.1, images=100), Family(ROBUST, norm="linf", images=20)),
            quick_images=1,
        ),
        Yardstick(
            "wide",
            "The mnistfc benchmark of VNN-COMP: three networks with 256 units a layer, two threads.",
            (Contender("auto", "highs", 120, 20),),
            threads=2,
            folder="mnistfc",
            quick_every=15,
        ),
        Yardstick(
            "oval21",
            "The oval21 benchmark of VNN-COMP: three convolutional networks on CIFAR-10 with 3,172 to 6,756 "
            "units, at radii chosen to be hard, two threads.",
            (Contender("auto", "highs", 300, 20),),
            threads=2,
            folder="oval21",
            quick_every=15,
        ),
        Yardstick(
            "pixels",
            "The nearest image that a picture file can hold, `--pixels 8bit`, beside the nearest of all: in "
            "L∞ it is to take no longer, in L1 no more than three times as long.",
            (Contender("auto", "highs", 60, 20, pixels="8bit"), Contender("auto", "highs", 60, 20)),
            (Family((*DENSE, "zoo:mnist-cnn-stable"), norm="linf"), Family(DENSE, norm="l1")),
            images=5,
            quick_images=1,
        ),
        Yardstick(
            "growth",
            "How time grows with the radius and with the units that linear bounds leave undecided, L∞.",
            (Contender("auto", "highs", 60, 3),),
            tuple(Family(GROWING, norm="linf", radius=radius) for radius in (None, *RADII)),
            images=3,
            quick_images=1,
        ),
    )
}


def yardsticks_named(names: list[str]) -> list[Yardstick]:
    """The yardsticks of these names, or all of them."""
    unknown = [name for name in names if name not in YARDSTICKS]
    if unknown:
        raise InputError(
            f"There is no yardstick {unknown[0]!r}: choose from {', '.join(YARDSTICKS)}, or soundness alone."
        )
    return [yardstick for name, yardstick in YARDSTICKS.items() if not names or name in names]


def instances_in(folder: Path) -> list[Instance]:
    """The instances of a folder's `*instances.csv`, with the answers of its `expected.csv`, if any.

    Where only the answers are there, it is they that list the instances.
    """
    listed, answers = sorted(folder.glob("*instances.csv")), folder / "expected.csv"
    expected = {(row[0], row[1]): row[2] for row in _rows(answers, 3)} if answers.is_file() else {}
    expected.pop(HEADER, None)
    if len(listed) > 1 or not (listed or expected):
        raise InputError(
            f"The folder {folder} must hold one file *instances.csv with network, property and seconds in "
            f"each line, or expected.csv: there are {len(listed)}."
        )
    names = [(row[0], row[1]) for row in _rows(listed[0], 2)] if listed else list(expected)
    known = {name: answer for name, answer in expected.items() if answer != UNKNOWN}
    return [Instance(*name, known.get(name)) for name in names]


def _rows(path: Path, columns: int) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    for number, row in enumerate(rows, start=1):
        if len(row) < columns:
            raise InputError(f"{path}: row {number} has {len(row)} columns, at least {columns} are needed.")
    return rows
