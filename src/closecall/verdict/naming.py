"""Classes by number and name."""

from __future__ import annotations

from collections.abc import Sequence


def class_named(number: int, names: Sequence[str] | None = None) -> str:
    """The number of a class and, where it has a name that says more, the name: 6, or 6 (frog)."""
    if not names or number >= len(names) or names[number] == str(number):
        return str(number)
    return f"{number} ({names[number]})"
