"""How close is the call? The provably nearest image that changes a classifier's mind."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from closecall._version import __version__

if TYPE_CHECKING:
    from closecall.ask.attack import Attacked, attack
    from closecall.ask.curve import curve
    from closecall.ask.ideal import Ideal, ideal
    from closecall.ask.ideals import Ideals, ideals
    from closecall.ask.nearest import certify, nearest
    from closecall.ask.universal import universal
    from closecall.batches.batch import Batch, batch
    from closecall.encoding.encode import Costs
    from closecall.errors import (
        ClosecallError,
        ClusterError,
        DataError,
        InputError,
        MissingExtraError,
        ModelError,
        OutputError,
        QueryError,
        SolverError,
        TrainingError,
        UnsupportedLayerError,
    )
    from closecall.models import load_model
    from closecall.question.effort import Effort
    from closecall.question.question import Question
    from closecall.readers import Classifier, read
    from closecall.verdict.curve import Curve
    from closecall.verdict.universal import Universal
    from closecall.verdict.verdict import Verdict

# Whoever wants to watch a search gives this logger, or that of a room, a handler and a level.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Names are imported when first used, so that `import closecall` does not wait for torch or scipy.
_HOMES = {
    "Attacked": "closecall.ask.attack",
    "Batch": "closecall.batches.batch",
    "Classifier": "closecall.readers",
    "ClosecallError": "closecall.errors",
    "ClusterError": "closecall.errors",
    "Costs": "closecall.encoding.encode",
    "Curve": "closecall.verdict.curve",
    "DataError": "closecall.errors",
    "Effort": "closecall.question.effort",
    "Ideal": "closecall.ask.ideal",
    "Ideals": "closecall.ask.ideals",
    "InputError": "closecall.errors",
    "MissingExtraError": "closecall.errors",
    "ModelError": "closecall.errors",
    "OutputError": "closecall.errors",
    "QueryError": "closecall.errors",
    "Question": "closecall.question.question",
    "SolverError": "closecall.errors",
    "TrainingError": "closecall.errors",
    "Universal": "closecall.verdict.universal",
    "UnsupportedLayerError": "closecall.errors",
    "Verdict": "closecall.verdict.verdict",
    "attack": "closecall.ask.attack",
    "batch": "closecall.batches.batch",
    "certify": "closecall.ask.nearest",
    "curve": "closecall.ask.curve",
    "ideal": "closecall.ask.ideal",
    "ideals": "closecall.ask.ideals",
    "load_model": "closecall.models",
    "nearest": "closecall.ask.nearest",
    "read": "closecall.readers",
    "universal": "closecall.ask.universal",
}

__all__ = [
    "Attacked",
    "Batch",
    "Classifier",
    "ClosecallError",
    "ClusterError",
    "Costs",
    "Curve",
    "DataError",
    "Effort",
    "Ideal",
    "Ideals",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "OutputError",
    "QueryError",
    "Question",
    "SolverError",
    "TrainingError",
    "Universal",
    "UnsupportedLayerError",
    "Verdict",
    "__version__",
    "attack",
    "batch",
    "certify",
    "curve",
    "ideal",
    "ideals",
    "load_model",
    "nearest",
    "read",
    "universal",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'closecall' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
