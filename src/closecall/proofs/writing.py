"""From a question and what was proven about it to a proof file."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

from closecall.arrays import Image
from closecall.clock import out_of_time
from closecall.network import Network
from closecall.network.layers import Affine
from closecall.proofs.closecheck import Checker, Refused
from closecall.proofs.lines import Line, ProofFile, exact_form, header, node_line, question_line, writing
from closecall.proofs.program import lay_out
from closecall.proofs.tree import NotProvenError, TreeOfCase
from closecall.question.question import Question


@dataclass(frozen=True)
class Claim:
    """What a proof is to show: no image within the radius, and the witness beyond it."""

    question: Question
    radius: float
    witness: Image | None
    deployed: bool = False


class Writer:
    """Gives every line to a checker of its own before it goes to the file."""

    def __init__(self, network: Network, claim: Claim, file: ProofFile, until: float) -> None:
        self.network, self.claim, self.file, self.until = exact_form(network), claim, file, until

    def write(self) -> Checker:
        checker = self.begin()
        for index in range(1, len(self.network.nodes) + 1):
            if out_of_time(self.until):
                raise NotProvenError("the time was over before the proof was whole")
            ranges: Line = {"tighten": "open" if self.pays_to_tighten(index) else []}
            checker.add_ranges(ranges)
            self.file.add(ranges)
        if self.claim.deployed:
            checker.lower_thresholds()
        for case in range(len(checker.cases)):
            self.file.add({"case": case})
            self.prove(checker, case)
        self.file.add({"end": checker.leaves})
        return checker

    def begin(self) -> Checker:
        """The network and the question."""
        claim, first = self.claim, header(self.network)
        self.file.add(first)
        checker = Checker(first, None if math.isinf(self.until) else self.until - time.perf_counter())
        for node in self.network.nodes:
            line = node_line(node)
            checker.add_node(line)
            self.file.add(line)
        asked = question_line(claim.question, claim.radius, claim.witness, deployed=claim.deployed)
        checker.ask(asked)
        self.file.add(asked)
        return checker

    def pays_to_tighten(self, index: int) -> bool:
        """Only what is chosen from, and of that only what intervals do not bound exactly."""
        node = self.network.nodes[index - 1]
        read = any(
            index in other.inputs and not isinstance(other.layer, Affine) for other in self.network.nodes
        )
        exact = node.inputs == (0,) and self.claim.question.norm == "linf"
        return read and isinstance(node.layer, Affine) and not exact

    def prove(self, checker: Checker, case: int) -> None:
        """By rules alone where they do, else by a tree."""
        for rule in ("plane", "lead") if checker.has_leads else ("plane",):
            rows = len(checker.cases[case])
            for row in range(rows):
                leaf: Line = {"leaf": [int(k == row) for k in range(rows)], "rule": rule}
                try:
                    checker.leaf(leaf, checker.cases[case], [])
                except Refused:
                    continue
                self.file.add(leaf)
                return
        TreeOfCase(checker, case, lay_out(checker, self.network, case), self.file.add, self.until).prove()


def write_proof(network: Network, claim: Claim, path: Path, until: float = math.inf) -> Checker:
    """Write a proof; NotProvenError if none is found, and no file is left."""
    with writing(path) as file:
        return Writer(network, claim, file, until).write()
