"""Branch and bound with batched linear relaxations in torch, for wide and convolutional networks."""

from closecall.search.crown.dense_network import TooLargeError
from closecall.search.crown.outcome import Outcome, Watch
from closecall.search.crown.questions import approach, refute, shrink

__all__ = ["Outcome", "TooLargeError", "Watch", "approach", "refute", "shrink"]
