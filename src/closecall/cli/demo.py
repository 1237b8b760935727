"""`closecall demo`: the main job on the embedded digits, ending in a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import app


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the models, the answers and the page.")] = Path(
        "runs/demo"
    ),
) -> None:
    """Train a DNN and a CNN on the embedded digits and show how close their calls are.

    Needs no network; takes about a minute. What an earlier demo left in the folder is replaced.
    """
    from rich.console import Console

    from closecall.cli.progress import showing_interval
    from closecall.demo import run_demo

    console = Console(highlight=False, soft_wrap=True)
    page = run_demo(out, console, showing_interval)
    console.print(f"The page is {page}")
