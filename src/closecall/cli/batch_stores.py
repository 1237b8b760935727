"""`closecall batch status|export|merge` and `closecall report`: what a store holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.batch import batch
from closecall.cli.output import print_json

StoreFile = Annotated[Path, typer.Option("--store", help="A store that `closecall batch` wrote.")]


@batch.command()
def status(store: StoreFile, as_json: o.AsJson = False, _quiet: o.Quiet = False) -> None:
    """Count what is answered, model by model; also while a batch is running."""
    rows = rows_of(store)
    if as_json:
        models = {name: dict(counted(rows, name)) for name in dict.fromkeys(row["model"] for row in rows)}
        begun = [
            {name: row[name] for name in ("model", "dataset", "index", "lower_bound", "distance", "seconds")}
            for row in rows
            if row["outcome"] == "begun"
        ]
        print_json({"store": str(store), "questions": len(rows), "models": models, "begun": begun})
    else:
        show_status(rows, store)


def rows_of(store: Path) -> list[dict[str, Any]]:
    from closecall.cli.progress import waiting

    with waiting(f"reading {store}"):
        from closecall.batches.store import Store
        from closecall.batches.tables import rows

        with Store.reading(store) as opened:
            return [*rows(opened)]


def counted(rows: list[dict[str, Any]], model: str) -> Counter[str]:
    return Counter(row["outcome"] for row in rows if row["model"] == model)


def show_status(rows: list[dict[str, Any]], store: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from closecall.batches.answers import OUTCOMES
    from closecall.batches.tables import BEGUN, WAITING

    present = [name for name in (*OUTCOMES, BEGUN, WAITING) if any(row["outcome"] == name for row in rows)]
    table = Table(title=str(store))
    table.add_column("model", overflow="fold")
    for heading in ("questions", *present, "search time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in dict.fromkeys(row["model"] for row in rows):
        counts = counted(rows, model)
        seconds = sum(row["seconds"] or 0.0 for row in rows if row["model"] == model)
        numbers = (f"{counts[name]:,}" for name in present)
        table.add_row(model, f"{counts.total():,}", *numbers, f"{seconds:,.1f} s")
    Console().print(table)
    for row in rows:
        if row["outcome"] == BEGUN:
            upper = "?" if row["distance"] is None else f"{row['distance']:.4g}"
            known = f"{row['lower_bound']:.4g} ≤ distance ≤ {upper} after {row['seconds']:.0f} s"
            typer.echo(f"begun: {row['model']}, {row['dataset']} {row['index']}: {known}")


@batch.command()
def export(
    store: StoreFile,
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .jsonl or .parquet.")],
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Write a row for each question of a store, for other programs."""
    from closecall.batches.export import check_export
    from closecall.batches.export import export as write
    from closecall.files import prepare_file

    check_export(out)
    prepare_file(out)
    count = write(rows_of(store), out)
    if as_json:
        print_json({"file": str(out), "rows": count})
    else:
        typer.echo(f"{out}: {count:,} row{'' if count == 1 else 's'}")


@batch.command()
def merge(
    stores: Annotated[list[Path], typer.Argument(help="The stores to join.")],
    store: Annotated[Path, typer.Option("--store", help="The store that gets them all, new or not.")],
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Join several stores into one, such as those of the shards of a batch."""
    from closecall.cli.progress import waiting

    with waiting(f"joining {len(stores)} stores"):
        from closecall.batches.merging import merge as join

        taken = join(store, stores)
    if as_json:
        print_json({"store": str(store), "taken": taken})
    else:
        typer.echo(f"{store}: {taken:,} answer{'' if taken == 1 else 's'} taken")


@app.command()
def report(
    store: StoreFile,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Show a batch on one page: what is proven at every radius, the easiest and the hardest images."""
    from closecall.cli.progress import waiting
    from closecall.files import explaining_failed_writes, prepare_file, write_whole

    prepare_file(out)
    with waiting(f"drawing {store}"):
        from closecall.batches.page.report import batch_page
        from closecall.batches.reading import read_results

        page = batch_page(read_results(store))
    with explaining_failed_writes(str(out)):
        write_whole(out, page.html().encode())
    if as_json:
        print_json({"page": str(out), "store": str(store)})
    else:
        typer.echo(f"The page is {out}")
