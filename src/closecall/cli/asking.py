"""From the options of a command to an image, a label and the meaning of the question."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from closecall.cli.options import CostOptions, EffortOptions, ImageOptions, QuestionOptions
from closecall.errors import InputError, MissingExtraError
from closecall.question.effort import Effort

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from closecall.ask.posing import Asked
    from closecall.data import Split
    from closecall.encoding.encode import Costs
    from closecall.readers import Classifier

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"norm": "l1", "target": "paper", "ratio": 1.2, "outputs": "relu", "cap": 0.2},
}


@dataclass(frozen=True, eq=False)
class Subject:
    """The model and the image that a question is about, and where both came from."""

    classifier: Classifier
    image: NDArray[np.float32]
    label: int | None
    class_names: tuple[str, ...]
    origin: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Picked:
    """An image of a data set, its label and its place."""

    image: NDArray[np.float32]
    label: int
    class_names: tuple[str, ...]
    origin: dict[str, Any]


def find_subject(model: str, input_shape: str | None, place: ImageOptions) -> Subject:
    """Read the model and the image, from a data set or from a file."""
    from closecall.cli.progress import waiting

    check_place(place)
    shape = read_shape(input_shape)
    if place.dataset is not None and place.label is not None:
        raise InputError("A data set brings its own labels: leave --label out beside --dataset.")
    with waiting("reading the model and the image"):
        if place.dataset is not None:
            picked = pick(place.dataset, place.index, place.split)
            classifier = read_model(model, picked.image.shape if shape is None else shape)
            return Subject(classifier, picked.image, picked.label, picked.class_names, picked.origin)
        return _from_file(model, cast("Path", place.image), place.label, shape)


def check_place(place: ImageOptions) -> None:
    """An image comes from a data set, with its number there, or from a file."""
    dataset, index, image = place.dataset, place.index, place.image
    if (dataset is None) == (image is None):
        said = "neither was" if dataset is None else "both were"
        raise InputError(f"Give the image by --dataset and --index, or by --image: {said} given.")
    if image is not None and index is not None:
        raise InputError("--index counts the images of a --dataset: leave it out beside --image.")
    if dataset is not None and index is None:
        raise InputError(f"Which image of {dataset}? Add --index, counted from 0.")
    if image is not None and not image.is_file():
        state = f"{image} is a folder, not an image" if image.is_dir() else f"There is no image file {image}"
        raise InputError(f"{state}: give a .png, .jpg or .npy file.")


def pick(dataset: str, index: int | None, split: str) -> Picked:
    """Read one image of a data set."""
    from closecall import data

    images = data.load_dataset(dataset, cast("Split", split))
    number = cast("int", index)
    origin = {"dataset": dataset, "split": split, "index": number}
    return Picked(images.image(number), int(images.labels[number]), images.class_names, origin)


def _from_file(model: str, image: Path, label: int | None, shape: tuple[int, ...] | None) -> Subject:
    from closecall.question.images import picture_of

    classifier = read_model(model, shape)
    pixels = picture_of(image, classifier.network.input_shape)
    names = class_names_of(model, classifier.network.classes)
    return Subject(classifier, pixels, label, names, {"image": str(image)})


def class_names_of(model: str, classes: int) -> tuple[str, ...]:
    """The names that a model's training wrote beside it; else the numbers of its classes."""
    if not model.lower().endswith(".onnx"):
        from closecall.models import describe

        names = describe(model).get("class_names")
        if isinstance(names, list) and len(names) == classes:
            return tuple(str(name) for name in names)
    return tuple(str(number) for number in range(classes))


def read_model(model: str, shape: tuple[int, ...] | None = None) -> Classifier:
    """Read a model; the shape of its images is only needed by files that leave it open."""
    from closecall.readers import read

    return read(model, shape if model.lower().endswith(".onnx") else None)


def read_shape(text: str | None) -> tuple[int, ...] | None:
    """Whole numbers separated by commas, such as 3,32,32."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) < 2**31 for part in parts):
        raise InputError(f"--input-shape takes positive whole numbers such as 3,32,32, not {text!r}.")
    return tuple(int(part) for part in parts)


def meaning(options: QuestionOptions) -> Asked:
    """What is asked; what was given wins over the preset."""
    preset = options.preset
    if preset is not None and preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}: the only one is {', '.join(PRESETS)}.")
    said = [f"--{name}" for name in ("margin", "ratio", "confidence") if getattr(options, name) is not None]
    if len(said) > 1:
        raise InputError(f"{' and '.join(said)} all say how clear the change must be: give one of them.")
    given = {name: value for name, value in vars(options).items() if name != "preset" and value is not None}
    asked = {**PRESETS.get(preset or "", {}), **given}
    if options.margin is not None or options.confidence is not None:
        asked.pop("ratio", None)
    if options.confidence is not None and options.outputs is None:
        asked.pop("outputs", None)
    if options.out_of_top is not None and options.target is None:
        asked.pop("target", None)
    if options.mask is not None:
        asked["mask"] = str(options.mask)
    if "target" in asked:
        asked["target"] = read_target(asked["target"])
    return cast("Asked", asked)


def read_target(text: str) -> int | str | list[int]:
    """`any`, `paper`, the number of a class, or several such as 3,8."""
    if text in ("any", "paper"):
        return text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--target takes any, paper, the number of a class or several such as 3,8, not {text!r}."
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers


def effort_of(options: EffortOptions) -> Effort:
    """How hard to try; a bad effort is refused before anything slow happens."""
    from closecall.cli.progress import waiting

    effort = Effort(**vars(options))
    with waiting("starting"):
        from closecall.solvers import available

        if effort.solver not in available():
            raise MissingExtraError(f"The {effort.solver} solver", effort.solver)
    return effort


def costs_of(options: CostOptions) -> Costs | None:
    """The paper's costs, if there are any."""
    from closecall.encoding.encode import Costs

    costs = Costs(options.unit_cost, options.inactive_penalty, options.class_cost)
    return costs if costs.any else None
