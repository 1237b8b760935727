"""`closecall predict`: what a model says about one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from closecall.cli import app
from closecall.cli import options as o
from closecall.cli.asking import check_place, class_names_of, pick, read_shape
from closecall.cli.output import print_json
from closecall.verdict.naming import class_named

if TYPE_CHECKING:
    from closecall.ask.predict import Prediction

MOST_SHOWN = 5


@app.command()
def predict(
    model: o.Model,
    input_shape: o.InputShape = None,
    dataset: o.DatasetName = None,
    index: o.Index = None,
    split: o.SplitName = "test",
    image: o.ImageFile = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Say which class a model sees on a picture, with the scores of all classes."""
    from dataclasses import asdict

    from closecall.cli.progress import waiting

    check_place(dataset, index, image)
    with waiting("reading the model and the image"):
        from closecall.ask.predict import predict as classify

        picked = None if dataset is None else pick(dataset, index, split)
        shape = read_shape(input_shape)
        prediction = classify(model, str(image) if picked is None else picked.image, shape)
        classes = len(prediction.scores)
        names = class_names_of(model, classes) if picked is None else picked.class_names
    if as_json:
        origin: dict[str, Any] = {"image": str(image)} if picked is None else picked.origin
        true_label = None if picked is None else picked.label
        named = {"class_names": list(names), "true_label": true_label}
        print_json({"model": model, "origin": origin, **asdict(prediction), **named})
        return
    what = str(image) if picked is None else f"Image {index} of {dataset}"
    truth = "" if picked is None else f"; its label is {class_named(picked.label, names)}"
    typer.echo(f"{what} is a {class_named(prediction.label, names)}, says {model}{truth}.")
    show_ranking(prediction, names)


def show_ranking(prediction: Prediction, names: tuple[str, ...]) -> None:
    """The classes with the largest scores."""
    values = prediction.probabilities or prediction.scores
    unit = {"logits": "probability", "lengths": "capsule length", "outputs": "output"}[prediction.kind]
    for label in sorted(range(len(values)), key=lambda label: -values[label])[:MOST_SHOWN]:
        typer.echo(f"  class {class_named(label, names)}: {unit} {values[label]:.4f}")
