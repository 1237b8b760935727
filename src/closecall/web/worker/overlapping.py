"""Two digits on one image, pulled apart by a capsule network that learned from such pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from closecall.errors import QueryError
from closecall.web.centring import paste
from closecall.web.messages import Source, Tell
from closecall.web.worker.opened import Pixels, capsule_network

DIGITS = 2


def pull_apart(
    _tell: Tell, *, source: Source, parts: tuple[Pixels, Pixels], apart: tuple[int, int]
) -> dict[str, Any]:
    """Both parts on one image, moved apart by (down, right), and what is made of the two longest capsules."""
    network = capsule_network(source)
    channels, height, width = network.input_shape
    if channels != 1 or any(part.shape[0] != 1 or max(part.shape[1:]) > min(height, width) for part in parts):
        raise QueryError(f"{source.name} takes two grey digits of at most {height} × {width} pixels.")
    placed = [
        on_ground(part, (height, width), sign * np.array(apart) / 2)
        for part, sign in zip(parts, (-1, 1), strict=True)
    ]
    both = np.minimum(placed[0] + placed[1], 1.0)
    with torch.no_grad():
        capsules, lengths = network.encode(torch.from_numpy(both).unsqueeze(0))
        longest = lengths[0].topk(DIGITS).indices
        restored = network.decode(capsules.repeat(DIGITS, 1, 1), longest).numpy()
    seen = [
        {"label": int(label), "length": float(lengths[0, label]), "picture": picture}
        for label, picture in zip(longest, restored, strict=True)
    ]
    return {"picture": both, "seen": seen, "lengths": lengths[0].tolist()}


def on_ground(part: Pixels, size: tuple[int, int], moved: Any) -> Pixels:
    """A part in the middle of a black ground, moved by (down, right)."""
    ground = np.zeros(size, dtype=np.float32)
    down, right = (
        round((side - own) / 2 + move) for side, own, move in zip(size, part.shape[1:], moved, strict=True)
    )
    paste(ground, part[0], down, right)
    return ground[np.newaxis]
