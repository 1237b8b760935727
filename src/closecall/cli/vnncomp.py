"""`closecall vnncomp`: a network and a VNN-LIB property, answered as the competition asks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import app


@app.command("vnncomp")
def vnncomp(
    model: Annotated[Path, typer.Argument(help="An .onnx file.")],
    question: Annotated[Path, typer.Argument(metavar="PROPERTY", help="A .vnnlib file, plain or gzipped.")],
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for the whole search.")] = 120.0,
    threads: Annotated[int, typer.Option("--threads", help="Cores to use.")] = 1,
    result: Annotated[
        Path | None, typer.Option("--result", help="Write the answer to this file too.")
    ] = None,
) -> None:
    """Print sat (with a counterexample that onnxruntime confirms), unsat, unknown or timeout."""
    from closecall.cli.progress import waiting
    from closecall.readers import read
    from closecall.readers.vnnlib import read_property
    from closecall.search import How
    from closecall.vnncomp import decide

    how = How(time_limit=time_limit, threads=threads)
    with waiting("reading the model and the property"):
        classifier = read(model)
        asked = read_property(question, classifier.network.input_size, classifier.network.classes)
    with waiting("searching"):
        decision = decide(classifier, asked, seconds=how.time_limit, threads=how.threads)
    if result is not None:
        write(result, decision.text())
    typer.echo(decision.text(), nl=False)


def write(path: Path, text: str) -> None:
    from closecall.errors import InputError

    try:
        path.write_text(text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another --result.") from error
