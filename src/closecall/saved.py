"""A verdict on disk, and the check of it without any solver.

A folder holds `verdict.json`, `original.npy`, `picture.png` and, if there is one, `witness.npy`. The check
repeats everything but the search: the network is the one that was asked about, the witness lies in the box at
the distance that was claimed, and every engine classifies it as claimed in float32. The lower bound was
proven by the search and is not proven again.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import InputError
from closecall.files import prepare_folder, write_whole
from closecall.norms import norm_named
from closecall.pictures import image_picture, verdict_picture
from closecall.readers.classifier import Classifier
from closecall.verdict import Image, Verdict, Wanted

RECORD, ORIGINAL, WITNESS, PICTURE = "verdict.json", "original.npy", "witness.npy", "picture.png"
IDEAL, IMAGE = "ideal.json", "image.npy"
# An original given in float64 is saved in float32: each pixel may be off by this much.
ROUNDING = 2.0**-24


def save_verdict(
    verdict: Verdict,
    folder: str | Path,
    *,
    model: str,
    class_names: tuple[str, ...] | None = None,
    origin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a verdict into a folder and give what `verdict.json` says.

    `model` is where the model came from, for whoever replays it; `origin` where the image came from.
    """
    folder = Path(folder)
    prepare_folder(folder)
    names = class_names or tuple(str(number) for number in range(len(verdict.scores_before)))
    files = {ORIGINAL: npy_bytes(verdict.image), PICTURE: verdict_picture(verdict, names)}
    if verdict.witness is not None:
        files[WITNESS] = npy_bytes(verdict.witness)
    record = {
        **verdict.to_json(),
        "witness": None if verdict.witness is None else WITNESS,
        "scores_before": verdict.scores_before.tolist(),
        "scores_after": None if verdict.scores_after is None else verdict.scores_after.tolist(),
        "class_names": list(names),
        "model": located(model),
        "origin": dict(origin or {}),
        "sha256": {name: sha256(files[name]) for name in (ORIGINAL, WITNESS) if name in files},
    }
    write_files(folder, {**files, RECORD: json_bytes(record)}, stale=WITNESS)
    return record


def save_ideal(record: Mapping[str, Any], image: Image, folder: str | Path, *, title: str) -> None:
    """Write an ideal image, what is known about it and a picture of it into a folder."""
    folder = Path(folder)
    prepare_folder(folder)
    described = {**record, "image": IMAGE, "model": located(str(record["model"]))}
    files = {IMAGE: npy_bytes(image), PICTURE: image_picture(image, title), IDEAL: json_bytes(described)}
    write_files(folder, files)


def write_files(folder: Path, files: Mapping[str, bytes], *, stale: str | None = None) -> None:
    """Write files into a folder, after removing one that may be left from an earlier answer."""
    try:
        if stale is not None:
            (folder / stale).unlink(missing_ok=True)
        for name, content in files.items():
            write_whole(folder / name, content)
    except OSError as error:
        raise InputError(f"Cannot write the answer into {folder}: {error.strerror or error}.") from error


def json_bytes(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def located(model: str) -> str:
    """A model's name or path, so that it can be found from any working directory."""
    return str(Path(model).resolve()) if Path(model).exists() else model


def npy_bytes(array: NDArray[Any]) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, eq=False)
class SavedVerdict:
    """What a folder claims; nothing in it is believed before it is checked."""

    folder: Path
    record: Mapping[str, Any]
    original: Image
    witness: Image | None

    @property
    def model(self) -> str:
        return str(self.record["model"])


# What a record must hold for a check: the key and the types it may have.
_NUMBER = (int, float)
_NEEDED: dict[str, tuple[type, ...]] = {
    "outcome": (str,),
    "distance": (*_NUMBER, type(None)),
    "lower_bound": (*_NUMBER, type(None)),
    "norm": (str,),
    "label": (int,),
    "predicted_before": (int,),
    "predicted_after": (int, type(None)),
    "target": (int, type(None)),
    "radius": (*_NUMBER, type(None)),
    "cap": (*_NUMBER, type(None)),
    "gap": _NUMBER,
    "witness": (str, type(None)),
    "network_sha256": (str,),
    "pixel_range": (list,),
    "model": (str,),
    "sha256": (dict,),
}


def load_verdict(folder: str | Path) -> SavedVerdict:
    """Read a folder that `save_verdict` wrote."""
    folder = Path(folder)
    if not (folder / RECORD).is_file():
        raise InputError(f"{folder} has no {RECORD}: give a folder that was written with --out.")
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / RECORD} cannot be read as JSON: {error}.") from error
    for key, kinds in _NEEDED.items():
        if not isinstance(record, dict) or key not in record or not isinstance(record[key], kinds):
            raise InputError(f"{folder / RECORD} has no usable {key!r}: it is not a whole verdict.")
    if [type(end) in _NUMBER for end in record["pixel_range"]] != [True, True]:
        raise InputError(f"{folder / RECORD} has no usable 'pixel_range': it is not a whole verdict.")
    norm_named(record["norm"])
    witness = None if record["witness"] is None else read_array(folder / WITNESS)
    return SavedVerdict(folder, record, read_array(folder / ORIGINAL), witness)


def read_array(path: Path) -> Image:
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise InputError(f"{path} cannot be read as an array of numbers: {error}.") from error
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{path} must hold floating-point pixels, not {array.dtype}.")
    return array.astype(np.float32)


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and how it came out."""

    holds: bool
    sentence: str


def check_verdict(saved: SavedVerdict, classifier: Classifier) -> list[Check]:
    """Check all that can be checked without a solver."""
    shape = classifier.network.input_shape
    checks = [*check_files(saved), check_network(saved, classifier)]
    for name, image in ((ORIGINAL, saved.original), (WITNESS, saved.witness)):
        if image is not None and image.size != math.prod(shape):
            return [*checks, Check(False, f"{name} has shape {image.shape}, the model takes {shape}.")]
    checks += check_predictions(saved, classifier)
    if saved.witness is not None:
        checks += [*check_box(saved, saved.witness), check_distance(saved, saved.witness)]
    return [*checks, check_outcome(saved)]


def check_files(saved: SavedVerdict) -> list[Check]:
    wanted = [ORIGINAL] if saved.witness is None else [ORIGINAL, WITNESS]
    checks = []
    for name in wanted:
        same = sha256((saved.folder / name).read_bytes()) == saved.record["sha256"].get(name)
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
    wanted = Wanted(record["label"], record["target"])
    checks = []
    for name, engine in classifier.engines.items():
        before = int(engine(saved.original.reshape(shape))[0].argmax())
        checks.append(seen(name, "original", before, record["predicted_before"]))
        if saved.witness is not None:
            after = int(engine(saved.witness.reshape(shape))[0].argmax())
            checks.append(seen(name, "witness", after, record["predicted_after"]))
    if saved.witness is not None:
        target = "anything but" if wanted.target is None else "the target"
        meant = wanted.label if wanted.target is None else wanted.target
        claimed = record["predicted_after"]
        holds = claimed is not None and wanted.accepts(claimed)
        checks.append(Check(holds, f"class {claimed} was claimed, {target} class {meant} was asked for."))
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
        checks.append(Check(largest <= cap + 2 * ROUNDING, sentence))
    return checks


def check_distance(saved: SavedVerdict, witness: Image) -> Check:
    norm, claimed = norm_named(saved.record["norm"]), saved.record["distance"]
    found = float(norm.distance(shift(saved, witness)))
    allowed = float(norm.distance(np.full(witness.size, ROUNDING)))
    holds = claimed is not None and abs(found - claimed) <= allowed + 1e-9
    said = "none" if claimed is None else f"{claimed:.6g}"
    return Check(holds, f"the {norm.name} distance is {found:.6g}, {said} was claimed.")


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
