"""`closecall zoo`: list the trained models that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.output import print_json

CAPTION = (
    "accuracy: of the test images; proven: of them, by intervals alone, within this L∞ radius of the image; "
    "units: ReLU and pooling values per image"
)


@app.command()
def zoo(as_json: o.AsJson = False, _quiet: o.Quiet = False) -> None:
    """List the trained models that come with the package."""
    from closecall.cli.progress import waiting

    with waiting("reading the zoo"):
        from closecall.models.folders import describe
        from closecall.models.zoo import ZOO_PREFIX, zoo_names

        described = {ZOO_PREFIX + name: describe(ZOO_PREFIX + name) for name in zoo_names()}
    if as_json:
        print_json({"models": [{"name": name, **facts} for name, facts in described.items()]})
    else:
        show_table(described)


def show_table(described: Mapping[str, Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from closecall.models.zoo import summarise

    table = Table(title="Trained models in the package", caption=CAPTION)
    table.add_column("name", no_wrap=True)
    table.add_column("architecture")
    table.add_column("data")
    for heading in ("accuracy", "proven", "parameters", "units"):
        table.add_column(heading, justify="right")
    for name, facts in described.items():
        table.add_row(
            name,
            summarise(facts),
            facts["dataset"],
            f"{facts['accuracy']:.2%}",
            proven_share(facts),
            f"{facts['parameters']:,}",
            f"{facts['units']:,}",
        )
    Console().print(table)


def proven_share(facts: Mapping[str, Any]) -> str:
    """How many test images are proven, and within what, for models that were trained for it."""
    from closecall.models.zoo import radius_proven

    return f"{facts['proven']:.2%} at {radius_proven(facts['recipe']):.3g}" if "proven" in facts else ""
