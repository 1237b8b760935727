"""The kinds of array that pass from room to room, and by how much bounds are rounded outward."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Image = NDArray[np.float32]
Matrix = NDArray[np.float64] | csr_array

# Bounds are widened by this share of what the terms of their sums add up to without their signs. That covers
# the rounding of sums in float64 of up to 90,000 terms, each by 1.1e-16 of it, added up in the worst order.
OUTWARD = 1e-11
