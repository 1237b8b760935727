"""The trained models that come with the package; their recipes live beside their weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from closecall.errors import ModelError
from closecall.models.blocks import Block

ZOO_PREFIX = "zoo:"
WEIGHTS = Path(__file__).parent / "weights"


def zoo_names() -> list[str]:
    """List the names that `closecall.models.load_model("zoo:NAME")` knows."""
    return sorted(path.stem for path in WEIGHTS.glob("*.json"))


def zoo_files(name: str) -> tuple[Path, Path]:
    """Give the weights and the description of a zoo model."""
    if name not in zoo_names():
        raise ModelError(f"There is no zoo model {name!r}; the zoo has {', '.join(zoo_names())}.")
    return WEIGHTS / f"{name}.safetensors", WEIGHTS / f"{name}.json"


def summarise(described: Mapping[str, Any]) -> str:
    """Put an architecture into a few words."""
    config = described["config"]
    if described["kind"] == "dnn":
        return "-".join(str(size) for size in config["sizes"])
    if described["kind"] == "cnn":
        blocks = " ".join(str(Block(**block)) for block in config["blocks"])
        dense = "-".join(str(size) for size in config["hidden"])
        kernels = "" if config["convolution"] == "standard" else f"{config['convolution']} convolution "
        return f"{kernels}{blocks} {dense}".strip()
    if described["kind"] == "cnn-baseline":
        parts = (config["kernels"], config["hidden"])
        return "{} kernels 5x5, {}".format(*("-".join(map(str, sizes)) for sizes in parts))
    if described["kind"] == "capsnet":
        return f"{config['preset']} capsules, {config['routing']} routing"
    return str(described["kind"])


def radius_proven(recipe: Mapping[str, Any]) -> float:
    """The radius in L∞ that the share of proven images in a description is about."""
    return float(recipe["certified"] if "certified" in recipe else recipe["adversarial"])
