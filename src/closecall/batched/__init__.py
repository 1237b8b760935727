"""Branch and bound with batched linear relaxations in torch, for wide and convolutional networks."""

from closecall.batched.engine import Outcome
from closecall.batched.questions import approach, refute, shrink

__all__ = ["Outcome", "approach", "refute", "shrink"]
