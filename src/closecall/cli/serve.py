"""`closecall serve`: a page to look with."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.asking import read_shape
from closecall.cli.completion import complete_model
from closecall.cli.output import print_json
from closecall.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from closecall.web.limits import Limits

HOST, PORT = "127.0.0.1", 8787


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Where to listen; 0 for any free port.")] = PORT,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Your own: an .onnx file or a folder that `closecall train` wrote; may be repeated.",
            autocompletion=complete_model,
        ),
    ] = None,
    input_shape: o.InputShape = None,
    running: Annotated[
        int | None,
        typer.Option(help="How many questions are searched at once; by default one for each core."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="The longest that one question may take, in seconds.")
    ] = 600.0,
    host: Annotated[
        str, typer.Option(help="The address to listen at; any but 127.0.0.1 lets other machines ask.")
    ] = HOST,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name that pages may call this server by; may be repeated."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Show a page to draw on and to ask: what networks see, how little changes it, and what is proven.

    It listens on this machine alone until Ctrl-C, with the models of the zoo and your own.
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("`closecall serve`", "web")
    from closecall.clock import usable_cores
    from closecall.web.limits import Limits

    if not 0 <= port <= 65535:
        raise InputError(f"--port takes a number from 0 to 65535, not {port}.")
    if time_limit <= 0 or (running is not None and not 1 <= running <= 64):
        raise InputError("--time-limit takes seconds above 0, and --running a number from 1 to 64.")
    limits = Limits(running=running or min(4, usable_cores()), seconds=time_limit)
    start(model or [], read_shape(input_shape), limits, host, port, allow_host or [], open_page, as_json)


def start(
    models: list[str], shape: tuple[int, ...] | None, limits: Limits, host: str, port: int, names: list[str],
    open_page: bool, as_json: bool,
) -> None:  # fmt: skip
    from closecall.cli.progress import waiting
    from closecall.consoles import quiet

    logging.basicConfig(level=logging.WARNING, format="closecall: %(message)s")
    with waiting("reading the models"):
        from closecall.web.server import read_own
        from closecall.web.server import serve as run

        own = read_own(models, shape, limits)

    def on_ready(address: str) -> None:
        if as_json:
            print_json({"address": address, "models": [one.name for one in own], "running": limits.running})
        elif not quiet():
            typer.echo(f"Look at {address} (Ctrl-C ends it).")
            if not address.startswith("http://127.") or host != HOST:
                typer.echo("Whoever reaches this machine can ask it: there are no passwords.", err=True)
        if open_page:
            import webbrowser

            webbrowser.open(address)

    run(own, limits, host=host, port=port, names=names, on_ready=on_ready)
