"""The page of a batch, from the share that is proven to every single question."""

from __future__ import annotations

from collections import Counter

from closecall.batches.page.images import images_section
from closecall.batches.page.proven import answer_section, proven_section
from closecall.batches.page.questions import confusion_section, questions_section, time_section
from closecall.batches.results import Results, groups_of
from closecall.report import Page
from closecall.report.numbers import count, listed


def batch_page(results: Results) -> Page:
    """All sections; each says so where it has nothing to show."""
    groups = groups_of(results)
    outcomes = Counter(row["outcome"] for row in results.rows)
    models = [*dict.fromkeys(row["model"] for row in results.rows)]
    told = listed([f"{count(number)} {outcome}" for outcome, number in outcomes.most_common()])
    plural = "question" if len(results.rows) == 1 else "questions"
    return Page(
        title="How close is the call?",
        lead=f"{count(len(results.rows))} {plural} about {listed(models)}: {told or 'none answered yet'}.",
        sections=[
            answer_section(results, groups),
            proven_section(groups),
            images_section(results, groups),
            confusion_section(results, groups),
            time_section(results),
            questions_section(results),
        ],
        footer=f"Every number on this page comes from {results.name}.",
    )
