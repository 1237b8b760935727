"""A verdict on disk.

A folder holds `verdict.json`, `original.npy`, `picture.png` and, if there is a witness, `witness.npy`,
the same rounded to 8 bits in `witness.png`, and that with larger pixels in `witness-enlarged.png`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import Image
from closecall.errors import InputError
from closecall.files import explaining_failed_writes, write_whole
from closecall.question.names import PIXELS_NAMES
from closecall.question.norms import norm_named
from closecall.verdict.curve import Curve
from closecall.verdict.curve_picture import curve_picture
from closecall.verdict.eight_bit import encode_png, enlarge, to_steps, why_no_png
from closecall.verdict.picture import image_picture, verdict_picture
from closecall.verdict.universal import Universal
from closecall.verdict.verdict import Verdict

RECORD, ORIGINAL, WITNESS, PICTURE = "verdict.json", "original.npy", "witness.npy", "picture.png"
PNG, ENLARGED = "witness.png", "witness-enlarged.png"
CHECKED = (ORIGINAL, WITNESS, PNG, ENLARGED)
IDEAL, IMAGE = "ideal.json", "image.npy"
IDEALS, SHEET = "ideals.json", "sheet.png"
CURVE, IMAGES = "curve.json", "images.npy"
UNIVERSAL, DELTA, ORIGINALS, PERTURBED = "universal.json", "delta.npy", "originals.npy", "perturbed.npy"


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
    names = class_names or tuple(str(number) for number in range(len(verdict.scores_before)))
    record, files = verdict_files(verdict, model=located(model), class_names=names, origin=origin)
    # The record comes last: where it is, everything else is there, too.
    with_picture = {PICTURE: verdict_picture(verdict, names), **files}
    write_files(Path(folder), with_picture, stale=(WITNESS, PNG, ENLARGED))
    return record


def verdict_files(
    verdict: Verdict, *, model: str, class_names: tuple[str, ...], origin: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `verdict.json` says, and all that a check of the verdict reads, by the names of the files."""
    files = {ORIGINAL: npy_bytes(verdict.image)}
    if verdict.witness is not None:
        files |= witness_files(verdict.witness, verdict.pixel_range)
    record = {
        **verdict.to_json(),
        "witness": None if verdict.witness is None else WITNESS,
        "scores_before": verdict.scores_before.tolist(),
        "scores_after": None if verdict.scores_after is None else verdict.scores_after.tolist(),
        "class_names": list(class_names),
        "model": model,
        "origin": dict(origin or {}),
        "sha256": {name: sha256(files[name]) for name in CHECKED if name in files},
    }
    return record, {**files, RECORD: json_bytes(record)}


def witness_files(witness: Image, pixel_range: tuple[float, float]) -> dict[str, bytes]:
    """A witness as numbers and, if it can be one, as a picture at its own size and enlarged."""
    files = {WITNESS: npy_bytes(witness)}
    if not why_no_png(witness.shape, pixel_range):
        steps = to_steps(witness, pixel_range)
        files |= {PNG: encode_png(steps), ENLARGED: encode_png(enlarge(steps))}
    return files


def save_ideal(record: Mapping[str, Any], image: Image, folder: str | Path, *, title: str) -> None:
    """Write an ideal image, what is known about it and a picture of it into a folder."""
    folder = Path(folder)
    described = {**record, "image": IMAGE, "model": located(str(record["model"]))}
    files = {IMAGE: npy_bytes(image), PICTURE: image_picture(image, title), IDEAL: json_bytes(described)}
    write_files(folder, files)


def save_sheet(
    record: Mapping[str, Any], images: Sequence[Sequence[Image]], picture: bytes, folder: str | Path
) -> None:
    """Write a sheet of ideal images, what is known of each, and the images of each model into a folder."""
    files = {f"images-{row + 1}.npy": npy_bytes(np.array(found)) for row, found in enumerate(images) if found}
    models = [located(str(model)) for model in record["models"]]
    described = {**record, "models": models, "files": list(files)}
    write_files(Path(folder), {**files, SHEET: picture, IDEALS: json_bytes(described)})


def save_curve(
    curve: Curve, record: Mapping[str, Any], folder: Path, *, class_names: tuple[str, ...]
) -> None:
    """Write a curve, the images that were found and its picture into a folder."""
    described = {**record, "images": IMAGES, "model": located(str(record["model"]))}
    files = {IMAGES: npy_bytes(np.stack(curve.images)), PICTURE: curve_picture(curve, class_names)}
    write_files(folder, {**files, CURVE: json_bytes(described)})


def save_universal(record: Mapping[str, Any], found: Universal, picture: bytes, folder: str | Path) -> None:
    """Write one perturbation for many images, these before and after, and a picture of all into a folder."""
    files = {ORIGINALS: npy_bytes(found.originals)}
    if found.delta is not None and found.perturbed is not None:
        files |= {DELTA: npy_bytes(found.delta), PERTURBED: npy_bytes(found.perturbed)}
    described = {**record, "model": located(str(record["model"])), "files": list(files)}
    contents = {**files, PICTURE: picture, UNIVERSAL: json_bytes(described)}
    write_files(Path(folder), contents, stale=(DELTA, PERTURBED))


def write_files(folder: Path, files: Mapping[str, bytes], *, stale: Iterable[str] = ()) -> None:
    """Write files into a folder, after removing those that may be left from an earlier answer."""
    with explaining_failed_writes(f"the answer into {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        for name, content in files.items():
            write_whole(folder / name, content)


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

# What records of earlier versions do not hold.
_LATER: dict[str, type | tuple[type, ...]] = {
    "group": list,
    "out_of_top": int,
    "confidence": _NUMBER,
    "mask": str,
    "also": str,
    "patch": int,
    "change": str,
    "amounts": dict,
    "pixels": str,
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
    for key, kind in _LATER.items():
        if record.get(key) is not None and not isinstance(record[key], kind):
            raise InputError(f"{folder / RECORD} has no usable {key!r}: it is not a whole verdict.")
    if not all(type(number) is int for number in record.get("group") or ()):
        raise InputError(f"{folder / RECORD} has no usable 'group': it is not a whole verdict.")
    if [type(end) in _NUMBER for end in record["pixel_range"]] != [True, True]:
        raise InputError(f"{folder / RECORD} has no usable 'pixel_range': it is not a whole verdict.")
    if record.get("pixels") not in (None, *PIXELS_NAMES):
        raise InputError(f"{folder / RECORD} has no usable 'pixels': it is not a whole verdict.")
    if not isinstance(record.get("png"), (dict, type(None))):
        raise InputError(f"{folder / RECORD} has no usable 'png': it is not a whole verdict.")
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
