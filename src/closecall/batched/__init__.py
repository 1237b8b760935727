"""Branch and bound with batched linear relaxations in torch, for wide and convolutional networks."""

from closecall.batched.engine import Outcome, refute, shrink

__all__ = ["Outcome", "refute", "shrink"]
