"""What a model for a solver will cost, known before any of it is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closecall.bounds import Bounds, entries
from closecall.encoding.encode import Form
from closecall.network import Network
from closecall.network.layers import Affine
from closecall.settings import DEFAULT, Sizes


@dataclass(frozen=True)
class ModelSize:
    """About how many numbers the rows of a model hold, and what follows from that on a slow core."""

    entries: int
    settings: Sizes = DEFAULT.sizes

    @classmethod
    def of(cls, network: Network, bounds: Bounds, form: Form, settings: Sizes = DEFAULT.sizes) -> ModelSize:
        """In the tight form the row of a unit of open sign comes twice, that of one that is off never."""
        total = 0
        for node_id, node in enumerate(network.nodes, start=1):
            if isinstance(node.layer, Affine):
                low, high = bounds.lower[node_id], bounds.upper[node_id]
                times = 1.0 if form == "paper" else float(np.mean((low < 0) * (high > 0) + (high > 0)))
                total += int(times * sum(entries(weight) for weight in node.layer.weights))
        return cls(total, settings)

    @property
    def gigabytes(self) -> float:
        return self.settings.bytes_of_a_model_entry * self.entries / 1e9

    @property
    def seconds(self) -> float:
        """To make the model and to stop a solver that works on it."""
        return self.settings.seconds_to_encode_an_entry * self.entries + self.seconds_to_stop

    @property
    def seconds_to_stop(self) -> float:
        """By which a solver overruns its limit."""
        return self.settings.seconds_to_stop_for_an_entry * self.entries
