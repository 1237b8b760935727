"""Branch and bound with batched linear relaxations in torch, for wide and convolutional networks."""

from closecall.batched.blocks import TooLargeError
from closecall.batched.engine import Outcome, Watch
from closecall.batched.questions import approach, refute, shrink

__all__ = ["Outcome", "TooLargeError", "Watch", "approach", "refute", "shrink"]
