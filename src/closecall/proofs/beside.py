"""Proof files in the folder of a saved verdict: whether they hold, and are about the same question."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from closecall.network import Network
from closecall.proofs.checking import check_proof
from closecall.proofs.closecheck import Refused, Report
from closecall.proofs.lines import UNPROVABLE
from closecall.verdict.checking import Check
from closecall.verdict.saved import SavedVerdict


def check_beside(saved: SavedVerdict, network: Network) -> list[Check]:
    """A sentence for each proof that lies in the folder."""
    return [check_one(path, saved, network) for path in sorted(saved.folder.glob("*.ccp"))]


def check_one(path: Path, saved: SavedVerdict, network: Network) -> Check:
    try:
        report = check_proof(path, network)
    except Refused as reason:
        return Check(False, f"{path.name} is refused: {reason}.")
    other = difference(report, saved)
    if other:
        return Check(False, f"{path.name} answers another question: {other} is another one.")
    radius = report.asked["radius"]
    within = "in the box" if radius is None else f"within {radius:.6g}"
    return Check(True, f"{path.name} proves, in whole numbers alone, that there is no such image {within}.")


def difference(report: Report, saved: SavedVerdict) -> str:
    """What a proof and a verdict do not have in common, if anything."""
    asked, record = report.asked, saved.record
    target, group = record["target"], record.get("group")
    targets = group if target is None else [target]
    same = {
        "the image": np.array_equal(np.array(report.image, dtype=np.float32), saved.original.ravel()),
        "the norm": asked["norm"] == record["norm"],
        "the label": asked["label"] == record["label"],
        "the target": asked["targets"] == targets,
        "the pixel range": asked["pixel_range"] == record["pixel_range"],
        "the mask": asked["mask"] == record.get("mask"),
        "the cap": asked["cap"] == record["cap"] or record.get("also") is not None,
        "what is asked beside that": all(record.get(name) is None for name in UNPROVABLE),
        "what is asked of the label": asked["out_of_top"] == record.get("out_of_top"),
    }
    return next((name for name, holds in same.items() if not holds), "")
