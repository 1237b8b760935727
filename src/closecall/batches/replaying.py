"""The witnesses of a store, checked again without any solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from closecall.batches.store import Store
from closecall.batches.tables import rows
from closecall.errors import InputError
from closecall.readers import Classifier
from closecall.verdict.checking import Check, check_claims
from closecall.verdict.saved import SavedVerdict


@dataclass(frozen=True)
class Replayed:
    """One answer of a store, and what came of every check."""

    model: str
    index: int
    outcome: str
    checks: tuple[Check, ...]

    @property
    def refuted(self) -> list[str]:
        """What does not hold, in sentences."""
        return [check.sentence for check in self.checks if not check.holds]

    @property
    def holds(self) -> bool:
        return not self.refuted


def replay_store(path: Path, read_model: Callable[[str, tuple[int, ...]], Classifier]) -> Iterator[Replayed]:
    """Check every answer that has a witness: the network, the classes, the box, the distance, the outcome."""
    with Store.reading(path) as store:
        sources, classifiers = store.sources(), dict[str, Classifier]()
        for row in rows(store):
            verdict = store.verdict(row["key"])
            if verdict is None or verdict.witness is None:
                continue
            network = row["network_sha256"]
            if network not in classifiers:
                if not sources.get(network):
                    raise InputError(
                        f"{row['model']} was given as a module, and the store does not say where it is: "
                        "replay it where it was asked."
                    )
                classifiers[network] = read_model(sources[network], verdict.image.shape)
            record: dict[str, Any] = verdict.to_json()
            saved = SavedVerdict(path, record, verdict.image, verdict.witness)
            checks = tuple(check_claims(saved, classifiers[network]))
            yield Replayed(row["model"], row["index"], row["outcome"], checks)
