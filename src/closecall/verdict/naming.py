"""Classes by number and name, and what was asked for, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import TYPE_CHECKING

from closecall.question.names import CHANGE_LIMITS

if TYPE_CHECKING:
    from closecall.question.question import Question
    from closecall.verdict.verdict import Verdict


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


def moved(verdict: Verdict, digits: int = 6) -> str:
    """How far the witness is, and what makes it, if that is a change of the whole image."""
    distance = f"{verdict.distance:.{digits}g}"
    if verdict.amounts is None:
        return f"{verdict.norm} distance {distance}"
    said = " with ".join(f"{name} {amount:+.{digits}g}" for name, amount in verdict.amounts.items())
    return said if len(verdict.amounts) == 1 else f"{said} ({verdict.norm} size {distance})"


def kind(question: Question) -> str:
    """The images that count."""
    return "image" if question.pixels is None else "8-bit image"


def none_nearer(question: Question, low: str) -> str:
    """What a lower bound says."""
    if question.change is None:
        none = "none" if question.pixels is None else f"no {kind(question)}"
        return f"{none} is nearer than {low}"
    return f"no change of {question.change} by {sized(question)}less than {low} does"


def nothing(question: Question) -> str:
    """What a proof that there is none is about, to be followed by what it does not do."""
    everywhere = isinf(question.radius)
    if question.change is None:
        where = "in the whole box" if everywhere else f"within {question.norm} distance {question.radius:.6g}"
        return f"no {kind(question)} {where}"
    if not everywhere:
        return f"no change of {question.change} by {sized(question)}{question.radius:.6g} or less"
    ends = [(name, *CHANGE_LIMITS[name]) for name in question.change.split("+")]
    return "no " + " with ".join(f"{name} from {low:+g} to {high:+g}" for name, low, high in ends)


def sized(question: Question) -> str:
    """One number is its own size; two have that of a norm."""
    return f"an {question.norm} size of " if "+" in str(question.change) else ""
