"""How numbers are written: shares, times, counts, and distances that never claim more than was proven."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

NORM_NAMES = {"l1": "L1", "l2": "L2", "linf": "L∞", "l0": "L0"}
SOLVER_NAMES = {"highs": "HiGHS", "scip": "SCIP", "gurobi": "Gurobi", "cplex": "CPLEX"}
APART = "\N{NO-BREAK SPACE}"
MANY = 1000  # from so many test images on, a hundredth of a percent means something


def measure_name(measure: str) -> str:
    """A norm by its name, anything else as it is."""
    return NORM_NAMES.get(measure, measure)


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}{APART}%"


def accuracy_digits(test_images: int) -> int:
    return 2 if test_images >= MANY else 1


def spread(values: Sequence[float], digits: int = 1) -> str:
    """The lowest and the highest share, or nothing when there is only one."""
    if len(values) < 2:
        return ""
    return f"{100 * min(values):.{digits}f} to {percent(max(values), digits)}"


def duration(seconds: float) -> str:
    """Three digits below 100 seconds, then minutes and hours."""
    if seconds < 99.95:
        return f"{seconds:.3g}{APART}s" if seconds >= 0.001 or seconds == 0 else f"<{APART}0.001{APART}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{APART}min {rest}{APART}s"
    return f"{minutes // 60}{APART}h {minutes % 60}{APART}min"


def milliseconds(value: float) -> str:
    return f"{value:.3g}{APART}ms"


def count(value: float) -> str:
    """A whole number with its thousands apart; medians may end in a half."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def rounded_down(value: float) -> str:
    return rounded(value, ROUND_FLOOR)


def rounded_up(value: float) -> str:
    return rounded(value, ROUND_CEILING)


def rounded_near(value: float) -> str:
    return rounded(value, ROUND_HALF_EVEN)


def rounded(value: float, way: str) -> str:
    """Four decimals below 1, three above, and none for whole numbers."""
    if math.isinf(value):
        return "∞"
    if float(value).is_integer():
        return f"{value:.0f}"
    exponent = Decimal("0.0001") if value < 1 else Decimal("0.001")
    return str(Decimal(repr(float(value))).quantize(exponent, way))


def interval(lower: float, upper: float) -> str:
    """Between rounded ends that hold the exact ones."""
    if math.isinf(lower):
        return "none in the box"
    if math.isinf(upper):
        return f"{rounded_down(lower)} or more"
    return f"{rounded_down(lower)} to {rounded_up(upper)}"


def median(values: Sequence[float]) -> float:
    """The median, also where some values are infinite; nothing has none."""
    return statistics.median(values) if values else math.nan


def listed(names: Sequence[str]) -> str:
    """A, B and C."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
