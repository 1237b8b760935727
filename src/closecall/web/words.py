"""Answers in one sentence for whoever looks at a page; what is proven is rounded so that it stays true."""

from __future__ import annotations

from collections.abc import Sequence

from closecall.ask.ideal import Ideal
from closecall.question.question import Question
from closecall.report.numbers import NORM_NAMES, rounded_down, rounded_near, rounded_up
from closecall.verdict.naming import class_named
from closecall.verdict.verdict import Verdict
from closecall.web.messages import Source


def model_of(source: Source) -> str:
    """What whoever replays an answer finds a model by: a name of the zoo, or that of the file it came in."""
    return source.place if source.place.startswith("zoo:") else source.name


def of_verdict(verdict: Verdict, names: Sequence[str]) -> str:
    """What was found and what is proven."""
    norm, before = NORM_NAMES[verdict.norm], class_named(verdict.predicted_before, names)
    into = "" if verdict.target is None else f" into {class_named(verdict.target, names)}"
    if verdict.outcome == "robust":
        where = "at all" if verdict.radius is None else f"within {norm} {verdict.radius:g}"
        return f"No image {where} can change this {before}{into}: proven."
    low = rounded_down(verdict.lower_bound)
    if verdict.outcome == "unresolved":
        return f"No image nearer than {norm} {low} can change this {before}{into}; further out, nobody knows."
    after, distance = class_named(verdict.predicted_after or 0, names), verdict.distance or 0.0
    found = f"{norm} {rounded_up(distance)} away, this {before} is seen as {after}"
    if verdict.outcome == "nearest":
        return f"{found}; no image nearer than {low} can change it{into}: proven."
    if verdict.radius is not None:
        return f"{found}: within {verdict.radius:g} there is an image that changes it."
    return f"{found}; proven only that none nearer than {low} can change it{into}."


def of_attack(question: Question, distance: float | None, became: int | None, names: Sequence[str]) -> str:
    """What an attack on a network has found that nothing can be proven about."""
    norm, before = NORM_NAMES[question.norm], class_named(question.label, names)
    if distance is None or became is None:
        return f"No image was found that changes this {before}; of capsules, that proves nothing."
    after = class_named(became, names)
    return f"{norm} {rounded_up(distance)} away, this {before} is seen as {after}; a nearer one may exist."


def of_ideal(found: Ideal, names: Sequence[str]) -> str:
    """How far the class leads in the best image, and how far any could."""
    wanted, lead = class_named(found.target, names), rounded_near(found.lead)
    if found.outcome == "ideal":
        return f"The best {wanted} there is: it leads by {lead}, and none leads by more: proven."
    if found.lead_bound is None:
        return f"The best {wanted} found: it leads by {lead}; nothing is proven."
    most = rounded_up(found.lead_bound)
    return f"The best {wanted} found: it leads by {lead}; proven that none leads by more than {most}."
