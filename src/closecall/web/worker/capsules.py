"""A look into a capsule network: what its capsules know, what is made of them, and who votes for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from closecall.errors import QueryError
from closecall.models.capsules.pictures import couplings_and_lengths
from closecall.question.images import fitted
from closecall.web.messages import Source, Tell
from closecall.web.worker.opened import Pixels, capsule_network


def look(_tell: Tell, *, source: Source, image: Pixels) -> dict[str, Any]:
    """The class capsules of an image, the reconstruction from the longest, and the routing weights."""
    network = capsule_network(source)
    taken = np.ascontiguousarray(fitted(image, network.input_shape))
    with torch.no_grad():
        capsules, lengths = network.encode(torch.from_numpy(taken).unsqueeze(0))
        chosen = lengths.argmax(1)
        restored = network.decode(capsules, chosen)[0].numpy()
    return {
        "label": int(chosen),
        "lengths": lengths[0].tolist(),
        "capsules": capsules[0].tolist(),
        "reconstruction": restored,
        "routing": routing(source, taken),
    }


def routing(source: Source, image: Pixels) -> list[dict[str, Any]]:
    """For each iteration the lengths of the class capsules, and where on the image each gets its votes from.

    The coupling at a place is the mean over the types of primary capsules there; all classes share one sum.
    """
    network = capsule_network(source)
    if network.sizes.routing != "dynamic":
        return []
    types = network.sizes.primary_types
    found = []
    for couplings, lengths in zip(*couplings_and_lengths(network, image), strict=True):
        placed = couplings.reshape(len(couplings), types, -1).mean(axis=1)
        side = int(np.sqrt(placed.shape[1]))
        found.append({"side": side, "couplings": placed.tolist(), "lengths": lengths.tolist()})
    return found


def decode(_tell: Tell, *, source: Source, label: int, capsule: Sequence[float]) -> Pixels:
    """The image that a capsule of a class stands for."""
    network = capsule_network(source)
    if len(capsule) != network.sizes.dimensions or not 0 <= label < network.classes:
        raise QueryError(
            f"{source.name} has {network.classes} capsules of {network.sizes.dimensions} numbers: "
            f"class {label} with {len(capsule)} numbers is none of them."
        )
    capsules = torch.zeros(1, network.classes, network.sizes.dimensions)
    capsules[0, label] = torch.tensor(capsule)
    with torch.no_grad():
        decoded: Pixels = network.decode(capsules, torch.tensor([label]))[0].numpy()
    return decoded
