"""How rough an image is: its total variation, the sum of |difference| between neighbouring pixels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Vector
from closecall.errors import QueryError
from closecall.question.checks import check, check_number
from closecall.question.images import channels_first, picture_shape


@lru_cache(maxsize=8)
def neighbours(shape: tuple[int, ...]) -> csr_array:
    """One row for each two neighbours, above each other or side by side in one channel: 1 and −1."""
    if picture_shape(shape) is None:
        raise QueryError(
            f"the model takes {int(np.prod(shape))} numbers, which are no picture whose neighbouring pixels "
            "could be alike: leave smooth out."
        )
    places = channels_first(np.arange(int(np.prod(shape))).reshape(shape))
    left = np.concatenate([places[:, :-1].ravel(), places[:, :, :-1].ravel()])
    right = np.concatenate([places[:, 1:].ravel(), places[:, :, 1:].ravel()])
    each, signs = np.arange(len(left)), np.ones(len(left))
    entries = (np.concatenate([signs, -signs]), (np.tile(each, 2), np.concatenate([left, right])))
    return csr_array(entries, shape=(len(left), places.size))


def variation(differences: csr_array, point: Vector) -> float:
    """Σ |v_i − v_j| over neighbours."""
    return float(np.abs(differences @ point).sum())


def checked_smooth(smooth: float) -> float:
    """The weight of the total variation, if it is one."""
    check_number("weight smooth", smooth)
    check(
        bool(np.isfinite(smooth)) and smooth >= 0,
        f"the weight smooth must be 0 or a positive number, got {smooth:g}.",
    )
    return float(smooth)
