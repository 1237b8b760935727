"""Capsules: vectors (or matrices) whose length says whether a thing is there and whose direction says how.

`routing.py` holds the formulas, `layers.py` and `matrix.py` the layers, `presets.py` the known sizes.
"""

from __future__ import annotations
