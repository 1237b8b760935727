"""`closecall predict`: what a model says about one picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import app

MOST_SHOWN = 5


@app.command()
def predict(
    model: Annotated[
        str, typer.Option(help="An .onnx file, a folder that `closecall train` wrote, or zoo:NAME.")
    ],
    image: Annotated[Path, typer.Option(help="A .png, .jpg or .npy file of the size the model takes.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a sentence.")] = False,
) -> None:
    """Say which class a model sees on a picture, with the scores of all classes."""
    from dataclasses import asdict

    from closecall.predicting import predict as classify

    prediction = classify(model, image)
    if as_json:
        typer.echo(json.dumps({"model": model, "image": str(image), **asdict(prediction)}))
        return
    typer.echo(f"{image} is a {prediction.label}, says {model}.")
    values = prediction.probabilities or prediction.scores
    named = {"logits": "probability", "lengths": "capsule length", "outputs": "output"}[prediction.kind]
    ranking = sorted(range(len(values)), key=lambda label: -values[label])
    for label in ranking[:MOST_SHOWN]:
        typer.echo(f"  class {label}: {named} {values[label]:.4f}")
