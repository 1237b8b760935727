"""`closecall predict`: what a model says about one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.asking import check_place, class_names_of, pick, read_shape
from closecall.cli.grouping import grouped
from closecall.cli.output import print_json
from closecall.verdict.naming import class_named

if TYPE_CHECKING:
    from closecall.ask.predict import Prediction

MOST_SHOWN = 5


@app.command()
@grouped(without=("label",))
def predict(
    *,
    model: o.Model,
    input_shape: o.InputShape = None,
    place: o.ImageOptions,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Say which class a model sees on a picture, with the scores of all classes."""
    from dataclasses import asdict

    from closecall.cli.progress import waiting

    check_place(place)
    with waiting("reading the model and the image"):
        from closecall.ask.predict import predict as classify

        picked = None if place.dataset is None else pick(place.dataset, place.index, place.split)
        shape = read_shape(input_shape)
        prediction = classify(model, str(place.image) if picked is None else picked.image, shape)
        classes = len(prediction.scores)
        names = class_names_of(model, classes) if picked is None else picked.class_names
    if as_json:
        origin: dict[str, Any] = {"image": str(place.image)} if picked is None else picked.origin
        true_label = None if picked is None else picked.label
        named = {"class_names": list(names), "true_label": true_label}
        print_json({"model": model, "origin": origin, **asdict(prediction), **named})
        return
    what = str(place.image) if picked is None else f"Image {place.index} of {place.dataset}"
    truth = "" if picked is None else f"; its label is {class_named(picked.label, names)}"
    typer.echo(f"{what} is a {class_named(prediction.label, names)}, says {model}{truth}.")
    show_ranking(prediction, names)


def show_ranking(prediction: Prediction, names: tuple[str, ...]) -> None:
    """The classes with the largest scores."""
    values = prediction.probabilities or prediction.scores
    unit = {"logits": "probability", "lengths": "capsule length", "outputs": "output"}[prediction.kind]
    for label in sorted(range(len(values)), key=lambda label: -values[label])[:MOST_SHOWN]:
        typer.echo(f"  class {class_named(label, names)}: {unit} {values[label]:.4f}")
