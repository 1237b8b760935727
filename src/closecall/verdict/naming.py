"""Classes by number and name, and what was asked for, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from closecall.question.question import Question


def class_named(number: int, names: Sequence[str] | None = None) -> str:
    """The number of a class and, where it has a name that says more, the name: 6, or 6 (frog)."""
    if not names or number >= len(names) or names[number] == str(number):
        return str(number)
    return f"{number} ({names[number]})"


def wish(question: Question, names: Sequence[str] | None = None) -> str:
    """What an image had to do, as the end of a sentence."""
    if question.out_of_top is not None:
        what = f"drops {class_named(question.label, names)} out of the top {question.out_of_top}"
    elif question.group is not None:
        listed = [class_named(number, names) for number in question.group]
        what = f"is seen as {', '.join(listed[:-1])} or {listed[-1]}"
    else:
        what = "changes the verdict"
    if question.confidence is not None:
        return f"{what} with confidence {question.confidence:g}"
    if question.ratio is not None:
        return f"{what} by the ratio {question.ratio:g}"
    return f"{what} by the margin {question.margin:g}"


def strength(question: Question) -> str:
    """What else is true of a new image, if more than its class was asked for."""
    if question.out_of_top is not None and question.out_of_top > 1:
        return f" and drops {question.label} out of the top {question.out_of_top}"
    if question.confidence is not None:
        return f" with confidence {question.confidence:g} or more"
    return ""
