"""What every unit can be at most and at least within a domain."""

from closecall.bounds.linear import (
    Bounds,
    all_excluded,
    certified_radius,
    check_finite,
    dense_entries,
    dense_gigabytes,
    entries,
    excluded,
    excluded_cases,
    interval_bounds,
    linear_bounds,
    maximise,
    rows_at_once,
)

__all__ = [
    "Bounds",
    "all_excluded",
    "certified_radius",
    "check_finite",
    "dense_entries",
    "dense_gigabytes",
    "entries",
    "excluded",
    "excluded_cases",
    "interval_bounds",
    "linear_bounds",
    "maximise",
    "rows_at_once",
]
