"""How close is the call? The provably nearest image that changes a classifier's mind."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from closecall._version import __version__

if TYPE_CHECKING:
    from closecall.ask.attack import attack
    from closecall.ask.ideal import Ideal, ideal
    from closecall.ask.nearest import certify, nearest
    from closecall.encoding.encode import Costs
    from closecall.errors import ClosecallError
    from closecall.models import load
    from closecall.readers import read
    from closecall.verdict.verdict import Verdict

# Names are imported when first used, so that `import closecall` does not wait for torch or scipy.
_HOMES = {
    "ClosecallError": "closecall.errors",
    "Costs": "closecall.encoding.encode",
    "Ideal": "closecall.ask.ideal",
    "Verdict": "closecall.verdict.verdict",
    "attack": "closecall.ask.attack",
    "certify": "closecall.ask.nearest",
    "ideal": "closecall.ask.ideal",
    "load": "closecall.models",
    "nearest": "closecall.ask.nearest",
    "read": "closecall.readers",
}

__all__ = [
    "ClosecallError",
    "Costs",
    "Ideal",
    "Verdict",
    "__version__",
    "attack",
    "certify",
    "ideal",
    "load",
    "nearest",
    "read",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'closecall' has no attribute {name!r}")
