"""How close is the call? The provably nearest image that changes a classifier's mind."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from closecall._version import __version__

if TYPE_CHECKING:
    from closecall.attack_batch import attack
    from closecall.encode import Costs
    from closecall.errors import ClosecallError
    from closecall.ideal_image import Ideal, ideal
    from closecall.models import load
    from closecall.readers import read
    from closecall.search import certify, nearest
    from closecall.verdict import Verdict

# Names are imported when first used, so that `import closecall` does not wait for torch or scipy.
_HOMES = {
    "ClosecallError": "closecall.errors",
    "Costs": "closecall.encode",
    "Ideal": "closecall.ideal_image",
    "Verdict": "closecall.verdict",
    "attack": "closecall.attack_batch",
    "certify": "closecall.search",
    "ideal": "closecall.ideal_image",
    "load": "closecall.models",
    "nearest": "closecall.search",
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
