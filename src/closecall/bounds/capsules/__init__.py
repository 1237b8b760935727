"""Proven bounds on capsule networks with dynamic routing, by affine forms over the whole network."""

from closecall.bounds.capsules.lengths import excluded_capsule_cases
from closecall.bounds.capsules.whole import least_memory, routed_sums

__all__ = ["excluded_capsule_cases", "least_memory", "routed_sums"]
