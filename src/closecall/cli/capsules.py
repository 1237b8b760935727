"""`closecall capsules`: look inside a capsule network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import app
from closecall.errors import InputError

if TYPE_CHECKING:
    from closecall.data import Dataset
    from closecall.models import CapsNet

capsules = typer.Typer(help="Draw what a capsule network knows.", no_args_is_help=True)
app.add_typer(capsules, name="capsules")

Model = Annotated[str, typer.Option(help="A folder that `closecall train` wrote, or zoo:NAME.")]
Index = Annotated[int, typer.Option(help="Which test image, counted from 0.")]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="A data set; by default the one the model learned from.")
]
Out = Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")]


@capsules.command()
def perturb(
    model: Model, index: Index = 0, dataset: DatasetName = None, out: Out = Path("perturb.png")
) -> None:
    """Draw how the reconstruction changes as each dimension of the longest capsule moves by −0.25 to 0.25."""
    from closecall.capsule_pictures import perturbation_sheet, write_figure

    network, images = _load(model, dataset)
    write_figure(perturbation_sheet(network, images.image(index), images.class_names), out)
    typer.echo(
        f"{network.sizes.dimensions} dimensions of test image {index} of {images.name} are drawn in {out}"
    )


@capsules.command()
def reconstruct(
    model: Model,
    dataset: DatasetName = None,
    first: Annotated[int, typer.Option(help="The first test image, counted from 0.")] = 0,
    count: Annotated[int, typer.Option(help="How many images from there.")] = 7,
    failures: Annotated[int, typer.Option(help="How many wrongly classified images to add.")] = 3,
    out: Out = Path("reconstruct.png"),
) -> None:
    """Draw images over their reconstructions, with label and prediction, failures included."""
    from closecall.capsule_pictures import choose_images, reconstruction_rows, write_figure

    network, images = _load(model, dataset)
    chosen = choose_images(network, images, first, count, failures)
    write_figure(reconstruction_rows(network, chosen), out)
    typer.echo(f"Test images {', '.join(map(str, chosen.indices))} of {images.name} are drawn in {out}")


@capsules.command()
def routing(
    model: Model, index: Index = 0, dataset: DatasetName = None, out: Out = Path("routing.png")
) -> None:
    """Draw the coupling coefficients, and the lengths of the class capsules, over the routing iterations."""
    from closecall.capsule_pictures import coupling_maps, write_figure

    network, images = _load(model, dataset)
    write_figure(coupling_maps(network, images.image(index), images.class_names), out)
    typer.echo(
        f"{network.sizes.iterations} iterations of test image {index} of {images.name} are drawn in {out}"
    )


def _load(source: str, dataset: str | None) -> tuple[CapsNet, Dataset]:
    """Give a capsule network and the test images it was made for."""
    from closecall import data, models
    from closecall.train.loop import check_fit

    network = models.load(source)
    if not isinstance(network, models.CapsNet):
        kind = models.kind_of(network)
        raise InputError(f"{source} is a {kind}, which has no capsules: give a model trained as capsnet.")
    images = data.load(dataset or models.describe(source).get("dataset", "mnist"), "test")
    check_fit(network, images)
    return network, images
