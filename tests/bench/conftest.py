"""Images for the network whose answers are known by hand, and measurements made up for arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closecall.bench.record import Measurement
from closecall.bench.yardsticks import Contender, Family, Yardstick

# Four pixels; the brightest wins. Image 1 bears a wrong label, so the correct ones are 0, 2 and 3.
IMAGES = np.array([[204, 51, 0, 0], [0, 255, 0, 0], [0, 0, 102, 51], [51, 153, 0, 0]], dtype=np.uint8)
LABELS = np.array([0, 3, 2, 1])


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pixels.npz"
    pixels = IMAGES.reshape(-1, 2, 2)
    np.savez(path, x_train=pixels, y_train=LABELS, x_test=pixels, y_test=LABELS)
    return path


@pytest.fixture
def tiny(brightest: Path, images: Path) -> Yardstick:
    """Two contenders, all three correct images in a full run and one in a quick run."""
    return Yardstick(
        "tiny",
        "A yardstick for tests.",
        (Contender("auto", "highs", 20, 10), Contender("milp", "highs", 20, 10)),
        (Family((str(brightest),), dataset=str(images)),),
        images=3,
        quick_images=1,
    )


@pytest.fixture
def made_up() -> Callable[..., Measurement]:
    """A measurement of which only some fields matter."""

    def make(**given: Any) -> Measurement:
        usual: dict[str, Any] = {
            "yardstick": "tiny", "run": "full", "network": "net", "image": 0, "norm": "l1", "target": "any",
            "cap": None, "radius": None, "method": "auto", "solver": "highs", "limit": 100.0, "threads": 1,
            "version": "0", "network_sha256": "f", "outcome": "nearest", "seconds": 1.0,
        }  # fmt: skip
        return Measurement(**{**usual, **given})

    return make
