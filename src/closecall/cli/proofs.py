"""`closecall check`: a proof file, checked again in exact arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.asking import read_model, read_shape
from closecall.cli.completion import complete_model
from closecall.cli.output import print_json

REFUSED = 1


@app.command()
def check(
    proof: Annotated[Path, typer.Argument(help="A file that nearest or certify wrote with --proof.")],
    model: Annotated[
        str | None,
        typer.Option(help="The model that it must be about.", autocompletion=complete_model),
    ] = None,
    input_shape: o.InputShape = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds; a proof that takes longer is refused.")
    ] = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Check a proof without any search or solver, in whole numbers alone.

    `closecheck` does the same and is one file that needs nothing but Python. Exit code 0: proven; 1: refused.
    """
    from closecall.cli.progress import waiting

    network = None
    if model is not None:
        with waiting("reading the model"):
            network = read_model(model, read_shape(input_shape)).network
    with waiting(f"checking {proof}"):
        from closecall.proofs.checking import check_proof
        from closecall.proofs.closecheck import Refused

        try:
            report, reason = check_proof(proof, network, time_limit), None
        except Refused as refused:
            report, reason = None, str(refused)
    if as_json:
        print_json(
            {
                "proven": report is not None,
                "reason": reason,
                "sentence": None if report is None else str(report),
                "norm": None if report is None else report.asked["norm"],
                "radius": None if report is None else report.asked["radius"],
                "leaves": None if report is None else report.leaves,
                "network": None if report is None else report.network,
            }
        )
    else:
        typer.echo(f"Refused: {reason}." if report is None else f"{report}\n{report.leaves} leaves.")
    if report is None:
        raise typer.Exit(REFUSED)
