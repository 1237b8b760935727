"""Every preset builds every network for images of any of the data sets' sizes."""

from __future__ import annotations

import pytest
import torch

from closecall.compare.presets import PRESETS, cnn_config, is_small, preset_named, recipes_for
from closecall.errors import InputError
from closecall.models import build, count_units

SHAPES = {"digits": (1, 8, 8), "mnist": (1, 28, 28), "cifar10": (3, 32, 32), "wide": (3, 10, 31)}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_networks_fit_images_of_any_size(name: str, shape: tuple[int, int, int]) -> None:
    preset = preset_named(name, shape)
    assert preset.name == name
    architectures = [*preset.sizes.items()]
    architectures += [("dnn", {"sizes": [width, width]}) for width in preset.dnn_ladder]
    small = is_small(shape)
    architectures += [("cnn", cnn_config(kernels, 10, small=small)) for kernels in preset.cnn_ladder]
    for kind, config in architectures:
        model = build(kind, {**config, "input_shape": shape, "classes": 7}).eval()
        assert model(torch.rand(2, *shape)).shape == (2, 7)
        plan = recipes_for(shape).plan(kind, preset.epochs[kind], seed=1, threads=1)
        assert (plan.epochs, plan.seed, plan.shift) == (preset.epochs[kind], 1, 0)
    assert preset.narrow_baseline


def test_the_ladder_stays_within_reach_of_a_milp() -> None:
    for shape in SHAPES.values():
        small = is_small(shape)
        config = {**cnn_config(4, 10, small=small), "input_shape": shape, "classes": 10}
        assert count_units(build("cnn", config)) < 500


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="choose quick or full"):
        preset_named("slow", (1, 8, 8))
