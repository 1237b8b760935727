"""The sizes of a capsule network, and the presets that are known to work."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from closecall.errors import ModelError
from closecall.models.blocks import Block
from closecall.models.checks import is_whole, whole_numbers

ROUTINGS = ("dynamic", "attention", "em")
GRADIENTS = ("last", "all")
SMALL_IMAGE = 20
MOST_ITERATIONS = 100


@dataclass(frozen=True)
class CapsuleSizes:
    """Everything but the images and classes that decides a capsule network.

    `convolutions` come first, written like `256x9` or `16x5s2`. `primary_size=0` is one window per map as
    large as the map. `capsule_layers` are convolutional layers of matrix capsules, for `routing="em"` only.
    `gradients="all"` lets gradients flow through every routing iteration, which attacks need.
    """

    convolutions: tuple[str, ...]
    batch_norm: bool
    primary_types: int
    primary_dimensions: int
    primary_size: int
    primary_stride: int
    capsule_layers: tuple[str, ...]
    dimensions: int
    decoder: tuple[int, ...]
    routing: str
    iterations: int
    gradients: str = "last"
    reconstruction_weight: float = 0.0005

    def __post_init__(self) -> None:
        for name in ("convolutions", "capsule_layers"):
            object.__setattr__(self, name, _windows(name, getattr(self, name)))
        decoder = whole_numbers("The hidden layers of a decoder", self.decoder, may_be_empty=True)
        object.__setattr__(self, "decoder", decoder)
        least = {"primary_size": 0}
        for name in ("primary_types", "primary_dimensions", "primary_size", "primary_stride", "dimensions"):
            _check_count(name, getattr(self, name), least.get(name, 1))
        _check_count("iterations", self.iterations, 1)
        if self.iterations > MOST_ITERATIONS:
            raise ModelError(f"Routing takes at most {MOST_ITERATIONS} iterations, not {self.iterations}.")
        _check_choice("routing", self.routing, ROUTINGS)
        _check_choice("gradients", self.gradients, GRADIENTS)
        if self.capsule_layers and self.routing != "em":
            raise ModelError(f'Capsule layers need routing "em", not {self.routing!r}: leave them out.')
        matrices = (self.primary_dimensions, self.dimensions, self.primary_size, self.primary_stride)
        if self.routing == "em" and matrices != (16, 16, 1, 1):
            raise ModelError(
                'Routing "em" moves 4×4 matrices made at every position, so dimensions must be 16 and the '
                'primary size and stride 1: start from the preset "matrix".'
            )
        if not 0 <= self.reconstruction_weight < float("inf"):
            raise ModelError(f"The reconstruction weight must be ≥ 0, not {self.reconstruction_weight!r}.")


def choose_sizes(preset: str, side: int, given: dict[str, Any]) -> CapsuleSizes:
    """Give a preset's sizes for images of that side, with what is given put in place of them."""
    if preset not in PRESETS:
        raise ModelError(f"There is no capsule preset {preset!r}; the presets are {', '.join(PRESETS)}.")
    sizes = PRESETS[preset]
    if side < SMALL_IMAGE and preset == "small":
        sizes = replace(sizes, convolutions=("16x3", "32x3"), primary_size=3, primary_stride=1)
    if side < SMALL_IMAGE and preset == "matrix":
        sizes = replace(sizes, convolutions=("64x3",), capsule_layers=("16x3",))
    return replace(sizes, **{name: value for name, value in given.items() if value is not None})


def as_config(sizes: CapsuleSizes) -> dict[str, Any]:
    """Give the sizes ready for JSON."""
    values = {field.name: getattr(sizes, field.name) for field in fields(sizes)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def window(text: str) -> Block:
    """Read `16x5s2` as a block without pooling."""
    block = Block.parse(text if "/" in text else f"{text}/0")
    if block.pool:
        raise ModelError(f"Capsule networks do not pool: write {text.split('/')[0]!r} instead of {text!r}.")
    return block


def _windows(name: str, texts: Any) -> tuple[str, ...]:
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise ModelError(
            f"The {name} of a capsule network are a list such as ['16x5s2', '32x3'], not {texts!r}."
        )
    return tuple(str(window(text)).removesuffix("/0") for text in texts)


def _check_count(name: str, value: Any, least: int) -> None:
    if not is_whole(value, least):
        raise ModelError(f"A capsule network's {name} must be a whole number ≥ {least}, not {value!r}.")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ModelError(f"A capsule network's {name} is one of {', '.join(choices)}, not {value!r}.")


PAPER = CapsuleSizes(
    convolutions=("256x9",),
    batch_norm=False,
    primary_types=32,
    primary_dimensions=8,
    primary_size=9,
    primary_stride=2,
    capsule_layers=(),
    dimensions=16,
    decoder=(512, 1024),
    routing="dynamic",
    iterations=3,
)
SMALL = replace(
    PAPER,
    convolutions=("16x5s2", "32x3"),
    batch_norm=True,
    primary_types=8,
    primary_size=5,
    decoder=(128, 256),
)
EFFICIENT = replace(
    PAPER,
    convolutions=("32x5", "64x3", "64x3", "128x3s2"),
    batch_norm=True,
    primary_types=16,
    primary_size=0,
    decoder=(),
    routing="attention",
)
MATRIX = replace(
    PAPER,
    convolutions=("64x5s2",),
    batch_norm=True,
    primary_types=8,
    primary_dimensions=16,
    primary_size=1,
    primary_stride=1,
    capsule_layers=("16x3s2", "16x3"),
    decoder=(),
    routing="em",
)
PRESETS = {"paper": PAPER, "small": SMALL, "efficient": EFFICIENT, "matrix": MATRIX}
