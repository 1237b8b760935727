"""A proof file of what a verdict says."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

from closecall.errors import QueryError
from closecall.network import Network
from closecall.proofs.closecheck import Refused
from closecall.proofs.lines import UNPROVABLE, cap_of
from closecall.proofs.tree import NotProvenError
from closecall.proofs.writing import Claim, write_proof
from closecall.question.question import Question
from closecall.verdict.verdict import Verdict

# A solver's or a rounded bound is a hair too large now and then; a proof claims so much less.
SHORT_OF = 1e-6


def check_provable(question: Question) -> None:
    """Refuse, before any search, what no proof can be written for."""
    if question.norm not in ("l1", "linf"):
        raise QueryError(f"no proof can be written in {question.norm}: only in l1 and linf.")
    asked = [name for name in UNPROVABLE if getattr(question, name) is not None]
    if asked:
        raise QueryError(f"no proof can be written with {asked[0]}: leave the proof or {asked[0]} out.")
    cap_of(question)


def prove(network: Network, verdict: Verdict, path: str | Path, *, deployed: bool = False) -> Verdict:
    """Write a proof of a verdict's lower bound, for no longer than its time limit; a note says how it went.

    `network` is the one asked about. Of a radius that was proven as a whole all is claimed.
    """
    question = verdict.question
    if not verdict.lower_bound > 0:
        return noted(verdict, "no proof was written: nothing is proven")
    whole = verdict.lower_bound >= question.radius
    radius = question.radius if whole else verdict.lower_bound * (1 - SHORT_OF)
    radius = math.inf if math.isinf(verdict.lower_bound) and math.isinf(question.radius) else radius
    claim = Claim(question, radius, verdict.witness, deployed)
    begun = time.perf_counter()
    try:
        checker = write_proof(network, claim, Path(path), begun + verdict.effort.time_limit)
    except (NotProvenError, Refused) as why:
        return noted(verdict, f"no proof was written: {why}")
    seconds = time.perf_counter() - begun
    plural = "leaf" if checker.leaves == 1 else "leaves"
    return noted(verdict, f"{path} proves it: {checker.leaves:,} {plural}, {seconds:.1f} s")


def noted(verdict: Verdict, note: str) -> Verdict:
    return replace(verdict, notes=(*verdict.notes, note))
