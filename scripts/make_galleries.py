"""Choose the images that `closecall serve` offers: `python scripts/make_galleries.py`.

Of every class the test images that three networks of the zoo are surest of, and the odd ones: those that they
disagree on, or that are nearest to being seen otherwise. The networks choose, no person does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from closecall import data, models
from closecall.files import write_whole
from closecall.verdict.eight_bit import encode_png

OUT = Path(__file__).parent.parent / "src" / "closecall" / "web" / "galleries"
JUDGES = {
    "mnist": ("mnist-50x2", "mnist-cnn-stable", "mnist-caps"),
    "cifar10": ("cifar-cnn-robust",),
}
EASY, ODD = 3, 1  # of each class
CONSIDERED = 3000  # the first test images


def certainty(name: str, images: NDArray[np.float32]) -> NDArray[np.float64]:
    """How sure a network is of each class: softmax, or the lengths of capsules as shares of their sum."""
    network = models.load_model(f"zoo:{name}")
    with torch.no_grad():
        scores = network(torch.from_numpy(images)).numpy().astype(np.float64)
    weights = scores if isinstance(network, models.CapsNet) else np.exp(scores - scores.max(1, keepdims=True))
    shares: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
    return shares


def chosen(labels: NDArray[np.int64], sure: list[NDArray[np.float64]]) -> list[dict[str, Any]]:
    """Of each class the surest images in the order of the test set, then the odd ones."""
    least = np.min([shares[np.arange(len(labels)), labels] for shares in sure], axis=0)
    seen = np.stack([shares.argmax(1) for shares in sure], axis=1)
    entries = []
    for label in np.unique(labels):
        of_class = np.flatnonzero(labels == label)
        order = of_class[np.argsort(-least[of_class])]
        easy = sorted(order[: 4 * EASY : 4].tolist())
        for index in easy + order[::-1][:ODD].tolist():
            odd = index not in easy
            kinds = sorted(set(seen[index].tolist()))
            entries.append(
                {"label": int(label), "index": index, "odd": odd, "seen": kinds if odd else [int(label)]}
            )
    return entries


def sheet_of(images: NDArray[np.uint8], across: int) -> NDArray[np.uint8]:
    count, channels, height, width = images.shape
    rows = images.reshape(count // across, across, channels, height, width)
    return np.ascontiguousarray(rows.transpose(2, 0, 3, 1, 4)).reshape(channels, -1, across * width)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name, judges in JUDGES.items():
        test = data.load_dataset(name, "test")
        images, labels = test.images[:CONSIDERED], test.labels[:CONSIDERED]
        floats = images.astype(np.float32) / np.float32(255)
        entries = chosen(labels, [certainty(judge, floats) for judge in judges])
        sheet = sheet_of(images[[entry["index"] for entry in entries]], EASY + ODD)
        write_whole(OUT / f"{name}.png", encode_png(sheet))
        described = {"dataset": name, "split": "test", "shape": list(images.shape[1:]), "images": entries}
        write_whole(OUT / f"{name}.json", (json.dumps(described) + "\n").encode())
        print(f"{name}: {len(entries)} images")


if __name__ == "__main__":
    main()
