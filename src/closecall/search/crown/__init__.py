"""Branch and bound with batched linear relaxations in torch, for wide and convolutional networks."""

from closecall.search.crown.dense_network import TooLargeError
from closecall.search.crown.questions import approach, polish, search

__all__ = ["TooLargeError", "approach", "polish", "search"]
