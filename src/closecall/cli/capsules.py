"""`closecall capsules`: look inside a capsule network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closecall.cli import completion
from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.output import print_json
from closecall.errors import InputError

if TYPE_CHECKING:
    from closecall.data import Dataset
    from closecall.models import CapsNet

capsules = typer.Typer(help="Draw what a capsule network knows.", no_args_is_help=True)
app.add_typer(capsules, name="capsules")

Model = Annotated[
    str,
    typer.Option(
        help="A folder that `closecall train` wrote, or zoo:NAME.", autocompletion=completion.complete_model
    ),
]
Index = Annotated[int, typer.Option(help="Which test image, counted from 0.")]
DatasetName = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="A data set; by default the one the model learned from.",
        autocompletion=completion.complete_dataset,
    ),
]
Out = Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")]


@capsules.command()
def perturb(
    model: Model,
    index: Index = 0,
    dataset: DatasetName = None,
    out: Out = Path("perturb.png"),
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Draw how the reconstruction changes as each dimension of the longest capsule moves by −0.25 to 0.25."""
    with _drawing(model, dataset, out) as (network, images):
        from closecall.models.capsules.pictures import perturbation_sheet, write_figure

        write_figure(perturbation_sheet(network, images.image(index), images.class_names), out)
    sentence = (
        f"{network.sizes.dimensions} dimensions of test image {index} of {images.name} are drawn in {out}"
    )
    _tell(sentence, as_json, out, model, images, index=index, dimensions=network.sizes.dimensions)


@capsules.command()
def reconstruct(
    model: Model,
    dataset: DatasetName = None,
    first: Annotated[int, typer.Option(help="The first test image, counted from 0.")] = 0,
    count: Annotated[int, typer.Option(help="How many images from there.")] = 7,
    failures: Annotated[int, typer.Option(help="How many wrongly classified images to add.")] = 3,
    out: Out = Path("reconstruct.png"),
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Draw images over their reconstructions, with label and prediction, failures included."""
    with _drawing(model, dataset, out) as (network, images):
        from closecall.models.capsules.pictures import choose_images, reconstruction_rows, write_figure

        chosen = choose_images(network, images, first, count, failures)
        write_figure(reconstruction_rows(network, chosen), out)
    numbers = ", ".join(map(str, chosen.indices))
    sentence = f"Test images {numbers} of {images.name} are drawn in {out}"
    _tell(sentence, as_json, out, model, images, indices=[int(index) for index in chosen.indices])


@capsules.command()
def routing(
    model: Model,
    index: Index = 0,
    dataset: DatasetName = None,
    out: Out = Path("routing.png"),
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Draw the coupling coefficients, and the lengths of the class capsules, over the routing iterations."""
    with _drawing(model, dataset, out) as (network, images):
        from closecall.models.capsules.pictures import coupling_maps, write_figure

        write_figure(coupling_maps(network, images.image(index), images.class_names), out)
    sentence = (
        f"{network.sizes.iterations} iterations of test image {index} of {images.name} are drawn in {out}"
    )
    _tell(sentence, as_json, out, model, images, index=index, iterations=network.sizes.iterations)


@contextmanager
def _drawing(model: str, dataset: str | None, out: Path) -> Iterator[tuple[CapsNet, Dataset]]:
    """Give the network and the images, once it is known that the picture can be written."""
    from closecall.cli.progress import waiting
    from closecall.files import prepare_file

    with waiting("drawing"):
        from closecall.models.capsules.pictures import check_format

        check_format(out)
        network, images = _load(model, dataset)
        prepare_file(out)
        yield network, images


def _tell(sentence: str, as_json: bool, out: Path, model: str, images: Dataset, **facts: Any) -> None:
    if as_json:
        print_json({"file": str(out), "model": model, "dataset": images.name, **facts})
    else:
        typer.echo(sentence)


def _load(source: str, dataset: str | None) -> tuple[CapsNet, Dataset]:
    """Give a capsule network and the test images it was made for."""
    from closecall import data, models
    from closecall.train.evaluation import check_fit

    network = models.load_model(source)
    if not isinstance(network, models.CapsNet):
        kind = models.kind_of(network)
        raise InputError(f"{source} is a {kind}, which has no capsules: give a model trained as capsnet.")
    images = data.load_dataset(dataset or models.describe(source).get("dataset", "mnist"), "test")
    check_fit(network, images)
    return network, images
