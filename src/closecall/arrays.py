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

# Bounds are widened by this share of the largest magnitude that enters them: far above the
# rounding of float64 sums over a million terms, far below anything that matters to a distance.
OUTWARD = 1e-11
