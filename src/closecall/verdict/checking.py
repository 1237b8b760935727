"""The check of a saved verdict without any solver.

It repeats everything but the search: the network is the one that was asked about, the witness lies in the box
at the distance that was claimed, and every engine classifies it, and its PNG, as claimed in float32. The
lower bound was proven by the search and is not proven again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import Image
from closecall.data.pictures import read_picture
from closecall.errors import DataError
from closecall.question.change import Change
from closecall.question.images import channels_first, fitted
from closecall.question.levels import levels_of, on_levels
from closecall.question.names import CHANGE_LIMITS, CHANGE_NAMES
from closecall.question.norms import Norm, norm_named
from closecall.question.where import budget_from, budget_of, mask_from
from closecall.readers.classifier import Classifier
from closecall.verdict.eight_bit import enlarge, from_steps, judge, to_steps, why_no_png
from closecall.verdict.replay import Wanted
from closecall.verdict.saved import CHECKED, ENLARGED, ORIGINAL, PNG, WITNESS, SavedVerdict, sha256

# An original given in float64 is saved in float32: each pixel may be off by this much.
ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and how it came out."""

    holds: bool
    sentence: str


def check_verdict(saved: SavedVerdict, classifier: Classifier) -> list[Check]:
    """Check all that can be checked without a solver, the files included."""
    return [*check_files(saved), *check_claims(saved, classifier, files=True)]


def check_claims(saved: SavedVerdict, classifier: Classifier, *, files: bool = False) -> list[Check]:
    """Check what is claimed about the images; with `files` also the pictures that were saved of them."""
    shape = classifier.network.input_shape
    checks = [check_network(saved, classifier)]
    for name, image in ((ORIGINAL, saved.original), (WITNESS, saved.witness)):
        if image is not None and image.size != math.prod(shape):
            return [*checks, Check(False, f"{name} has shape {image.shape}, the model takes {shape}.")]
    checks += check_predictions(saved, classifier)
    if saved.witness is not None:
        checks += [*check_box(saved, saved.witness), *check_where(saved, saved.witness, shape)]
        checks += check_levels(saved, saved.witness)
        checks += [*check_change(saved, saved.witness), check_distance(saved, saved.witness)]
        checks += check_png(saved, saved.witness, classifier) if files else []
    return [*checks, check_outcome(saved)]


def check_files(saved: SavedVerdict) -> list[Check]:
    needed = [ORIGINAL] if saved.witness is None else [ORIGINAL, WITNESS]
    listed = saved.record["sha256"]
    checks = []
    for name in CHECKED:
        if name in listed or name in needed:
            path = saved.folder / name
            same = path.is_file() and sha256(path.read_bytes()) == listed.get(name)
            checks.append(Check(same, f"{name} is {'' if same else 'not '}the file that was saved."))
    return checks


def check_network(saved: SavedVerdict, classifier: Classifier) -> Check:
    claimed, found = saved.record["network_sha256"], classifier.network.fingerprint
    if claimed == found:
        return Check(True, f"the network is the one that was asked about (sha256 {found[:12]}…).")
    return Check(
        False, f"the network is another one: sha256 {found[:12]}…, but {claimed[:12]}… was asked about."
    )


def check_predictions(saved: SavedVerdict, classifier: Classifier) -> list[Check]:
    record, shape = saved.record, (1, *classifier.network.input_shape)
    wanted, checks = wanted_by(record), []
    for name, engine in classifier.engines.items():
        before = int(engine(saved.original.reshape(shape))[0].argmax())
        checks.append(seen(name, "original", before, record["predicted_before"]))
        if saved.witness is not None:
            after = int(engine(saved.witness.reshape(shape))[0].argmax())
            checks.append(seen(name, "witness", after, record["predicted_after"]))
    if saved.witness is not None:
        claimed = record["predicted_after"]
        holds = claimed is not None and wanted.accepts(claimed)
        checks.append(Check(holds, f"class {claimed} was claimed, {meant_by(wanted)} was asked for."))
        checks += check_strength(wanted, saved.witness.reshape(shape), classifier)
    return checks


def wanted_by(record: Mapping[str, Any]) -> Wanted:
    """What a record says that was asked for; those of earlier versions know of less."""
    target, group = record["target"], record.get("group")
    targets = (target,) if target is not None else None if group is None else tuple(group)
    return Wanted(record["label"], targets, record.get("out_of_top"), record.get("confidence"))


def meant_by(wanted: Wanted) -> str:
    if wanted.targets is None:
        return f"anything but class {wanted.label}"
    if len(wanted.targets) == 1:
        return f"the target class {wanted.targets[0]}"
    return f"one of the classes {', '.join(map(str, wanted.targets))}"


def check_strength(wanted: Wanted, witness: Image, classifier: Classifier) -> list[Check]:
    """What was asked of a witness beyond its class: the place of the label, or a confidence."""
    checks = []
    if wanted.out_of_top is not None:
        for name, engine in classifier.engines.items():
            scores = engine(witness)[0]
            place = 1 + int((scores > scores[wanted.label]).sum())
            asked = f"beyond the top {wanted.out_of_top} was asked for"
            checks.append(
                Check(wanted.won(scores), f"{name} puts class {wanted.label} at place {place}, {asked}.")
            )
    if wanted.confidence is not None:
        exact = classifier.network.forward(witness.astype(np.float64))[0]
        found, holds = wanted.confidence_of(exact), wanted.is_confident(exact)
        checks.append(Check(holds, f"the confidence is {found:.6g}, {wanted.confidence:g} was asked for."))
    return checks


def seen(engine: str, what: str, found: int, claimed: int | None) -> Check:
    if found == claimed:
        return Check(True, f"{engine} sees class {found} in the {what}, as claimed.")
    return Check(False, f"{engine} sees class {found} in the {what}, but class {claimed} was claimed.")


def check_box(saved: SavedVerdict, witness: Image) -> list[Check]:
    """Every pixel in its range, and within the cap of the original if one was asked for."""
    low, high = saved.record["pixel_range"]
    inside = bool((witness >= low).all() and (witness <= high).all())
    ends = f"the witness's pixels run from {witness.min():g} to {witness.max():g}"
    checks = [Check(inside, f"{ends}, the box from {low:g} to {high:g}.")]
    cap = saved.record["cap"]
    if cap is not None:
        largest = float(np.abs(shift(saved, witness)).max(initial=0.0))
        sentence = f"no pixel changes by more than {largest:.6g}, the cap is {cap:g}."
        allowed = 2 * ROUNDING * max(1.0, abs(low), abs(high))
        checks.append(Check(largest <= cap + allowed, sentence))
    return checks


def check_levels(saved: SavedVerdict, witness: Image) -> list[Check]:
    """Every pixel one of the 256 numbers that a picture file holds, if that was asked for; its PNG fools."""
    record = saved.record
    if record.get("pixels") is None:
        return []
    levels = levels_of(record["pixel_range"])
    off = int((~on_levels(witness.astype(np.float64).ravel(), levels)).sum())
    checks = [Check(off == 0, f"{off} pixels are none of the 256 values of 8 bits.")]
    if record.get("png") is not None and record["png"].get("fools") is not None:
        fools = record["png"]["fools"] is True
        checks.append(Check(fools, f"the PNG is said {'' if fools else 'not '}to fool the model."))
    return checks


def check_where(saved: SavedVerdict, witness: Image, shape: tuple[int, ...]) -> list[Check]:
    """Only pixels of the mask or of one patch change, and no more than the budget, if any was asked for."""
    record, moved, checks = saved.record, shift(saved, witness), []
    if record.get("mask") is not None:
        outside = int((moved[~mask_from(record["mask"], witness.size)] != 0).sum())
        checks.append(Check(outside == 0, f"{outside} pixels outside the mask change."))
    if record.get("also") is not None:
        norm, amount = budget_from(budget_of(record["also"]))
        spent = float(norm.distance(moved))
        allowed = float(norm.distance(np.full(witness.size, 2 * ROUNDING))) if norm.name != "l0" else 0.0
        sentence = f"the {norm.name} distance is {spent:.6g}, {amount:g} was the most."
        checks.append(Check(spent <= amount + allowed, sentence))
    if record.get("patch") is not None:
        places = np.argwhere(channels_first(moved.reshape(shape)).any(axis=0))
        sides = np.ptp(places, axis=0) + 1 if len(places) else np.zeros(2, dtype=int)
        sentence = f"the pixels that change fit into {sides[0]} x {sides[1]}, a patch of {record['patch']}"
        holds = bool((sides <= record["patch"]).all())
        checks.append(Check(holds, f"{sentence} x {record['patch']} was asked for."))
    return checks


def check_change(saved: SavedVerdict, witness: Image) -> list[Check]:
    """The witness is what the amounts claimed make of the original, up to rounding to float32."""
    record, amounts = saved.record, amounts_of(saved)
    if record.get("change") is None:
        return []
    if amounts is None:
        return [Check(False, f"what makes the witness is a {record['change']!r} that is not claimed.")]
    low, high = record["pixel_range"]
    mask = None if record.get("mask") is None else mask_from(record["mask"], witness.size)
    original = saved.original.astype(np.float64).ravel()
    made = Change.of(record["change"], original, (low, high), mask).in_float32([*amounts.values()])
    off = float(np.abs(made.astype(np.float64) - witness.ravel()).max(initial=0.0))
    said = " and ".join(f"{name} {amount:+.6g}" for name, amount in amounts.items())
    inside = all(
        CHANGE_LIMITS[name][0] <= amount <= CHANGE_LIMITS[name][1] for name, amount in amounts.items()
    )
    if not inside:
        return [Check(False, f"{said} is more than a change may be.")]
    holds = off <= 2 * ROUNDING * max(1.0, abs(low), abs(high))
    return [Check(holds, f"{said} makes the witness of the original, up to {off:.2g} per pixel.")]


def amounts_of(saved: SavedVerdict) -> dict[str, float] | None:
    """The numbers that are claimed to make the witness, if they are claimed as they should be."""
    change, amounts = saved.record.get("change"), saved.record.get("amounts")
    if change not in CHANGE_NAMES or amounts is None or set(amounts) != set(change.split("+")):
        return None
    known = all(type(number) in (int, float) and math.isfinite(number) for number in amounts.values())
    return {name: float(amounts[name]) for name in change.split("+")} if known else None


def check_distance(saved: SavedVerdict, witness: Image) -> Check:
    norm, claimed = norm_named(saved.record["norm"]), saved.record["distance"]
    if saved.record.get("change") is not None:
        return check_size(saved, norm, claimed)
    found = float(norm.distance(shift(saved, witness)))
    allowed = float(norm.distance(np.full(witness.size, ROUNDING)))
    holds = claimed is not None and abs(found - claimed) <= allowed + 1e-9
    said = "none" if claimed is None else f"{claimed:.6g}"
    return Check(holds, f"the {norm.name} distance is {found:.6g}, {said} was claimed.")


def check_size(saved: SavedVerdict, norm: Norm, claimed: float | None) -> Check:
    """Of a change the distance is the size of its numbers."""
    amounts = amounts_of(saved)
    found = math.nan if amounts is None else float(norm.distance(np.array([*amounts.values()])))
    holds = claimed is not None and abs(found - claimed) <= 1e-9
    said = "none" if claimed is None else f"{claimed:.6g}"
    return Check(holds, f"the size of the change is {found:.6g}, {said} was claimed.")


def check_png(saved: SavedVerdict, witness: Image, classifier: Classifier) -> list[Check]:
    """The PNG files hold the witness in 8 bits, and the engines see in them what was claimed."""
    claimed, (low, high) = saved.record.get("png"), saved.record["pixel_range"]
    if claimed is None:  # written by a version without PNG files
        return []
    reason = why_no_png(witness.shape, (low, high))
    if reason:
        return [Check(claimed.get("fools") is None, f"there is no {PNG}: {reason}.")]
    steps = to_steps(witness, (low, high))
    same = holds_steps(saved.folder / PNG, steps)
    larger = holds_steps(saved.folder / ENLARGED, enlarge(steps))
    image = fitted(from_steps(steps, (low, high)), classifier.network.input_shape)
    found = judge(classifier.engines, image, wanted_by(saved.record).won)
    holds = (claimed.get("fools"), claimed.get("predicted")) == (found.fools, found.predicted)
    verb = "still fools" if found.fools else "does not fool"
    said = "as claimed" if holds else "but something else was claimed"
    return [
        Check(same, f"{PNG} {'holds' if same else 'does not hold'} the witness rounded to 8 bits."),
        Check(larger, f"{ENLARGED} {'shows' if larger else 'does not show'} the same pixels enlarged."),
        Check(holds, f"{PNG} {verb} the model: class {found.predicted} is seen in it, {said}."),
    ]


def holds_steps(path: Path, steps: NDArray[np.uint8]) -> bool:
    """Whether a file is a picture of exactly these pixels."""
    try:
        return np.array_equal(read_picture(path, len(steps)), steps)
    except DataError:
        return False


def shift(saved: SavedVerdict, witness: Image) -> NDArray[np.float64]:
    return witness.astype(np.float64).ravel() - saved.original.astype(np.float64).ravel()


def check_outcome(saved: SavedVerdict) -> Check:
    """The outcome must follow from the numbers beside it."""
    record = saved.record
    outcome, distance, radius = record["outcome"], record["distance"], record["radius"]
    lower = math.inf if record["lower_bound"] is None else float(record["lower_bound"])
    reach = math.inf if radius is None else float(radius)
    if saved.witness is not None and distance is not None:
        slack = 1e-6 * max(1.0, distance)
        closed = distance - lower <= record["gap"] * distance + 1e-9
        holds = lower <= distance <= reach + slack and (
            outcome == "adversarial" or (outcome == "nearest" and closed)
        )
    else:
        holds = outcome == "unresolved" or (outcome == "robust" and lower >= reach)
    numbers = f"lower bound {'infinite' if math.isinf(lower) else format(lower, '.6g')}"
    verb = "agrees" if holds else "does not agree"
    return Check(holds, f"the outcome {outcome!r} {verb} with its numbers ({numbers}).")
