"""Pictures as the API has them, and what torch sees in them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from closecall.models import load_model

DEFAULTS = ("mnist-50x2", "mnist-cnn-stable", "mnist-caps")


def pixels(picture: dict[str, Any]) -> NDArray[np.float32]:
    kind = "u1" if picture["type"] == "uint8" else "<f4"
    values = np.frombuffer(base64.b64decode(picture["pixels"]), dtype=kind).reshape(picture["shape"])
    return (values / np.float32(255)).astype(np.float32) if kind == "u1" else values.astype(np.float32)


def grey(image: NDArray[np.uint8]) -> dict[str, Any]:
    content = base64.b64encode(image.tobytes()).decode()
    return {"shape": [1, *image.shape], "pixels": content}


def seen_by_torch(name: str, image: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.no_grad():
        scores: NDArray[np.float32] = load_model(f"zoo:{name}")(torch.from_numpy(image)[None])[0].numpy()
    return scores
