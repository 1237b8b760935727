"""`closecall zoo`: list the trained models that come with the package."""

from __future__ import annotations

from closecall.cli import app


@app.command()
def zoo() -> None:
    """List the trained models that come with the package."""
    from rich.console import Console
    from rich.table import Table

    from closecall.models.store import describe
    from closecall.models.zoo import ZOO_PREFIX, summarise, zoo_names

    table = Table(title="Trained models in the package", caption="units: ReLU and pooling values per image")
    table.add_column("name", no_wrap=True)
    table.add_column("architecture")
    table.add_column("data")
    for heading in ("accuracy", "parameters", "units"):
        table.add_column(heading, justify="right")
    for name in zoo_names():
        described = describe(ZOO_PREFIX + name)
        table.add_row(
            ZOO_PREFIX + name,
            summarise(described),
            described["dataset"],
            f"{described['accuracy']:.2%}",
            f"{described['parameters']:,}",
            f"{described['units']:,}",
        )
    Console().print(table)
