"""How a download is shown: a bar on a terminal, one plain line elsewhere, always on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def transfer(description: str, total_bytes: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show one transfer and give the function to call with each number of bytes received."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from closecall.consoles import shows_progress, stderr_console

    console = stderr_console()
    if not shows_progress(console):
        console.print(description, soft_wrap=True, markup=False, highlight=False)
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(description, total=total_bytes)
        yield lambda received: progress.advance(task, received)
