"""The page of a comparison and its figures, made from the results alone."""

from __future__ import annotations

from pathlib import Path

from closecall.compare.page.answer import answer_section
from closecall.compare.page.capsules import capsules_section
from closecall.compare.page.curves import few_section, moved_section
from closecall.compare.page.distances import distances_section
from closecall.compare.page.figures import write_figures
from closecall.compare.page.gallery import gallery_section
from closecall.compare.page.how import how_section
from closecall.compare.page.known import known_of
from closecall.compare.page.milps import milps_section
from closecall.compare.page.names import all_of, sentence
from closecall.compare.results import Results
from closecall.files import prepare_folder, write_whole
from closecall.report import Page


def write_report(results: Results, out: Path) -> Path:
    """Write `report.html`, which needs nothing beside it, and the figures as PNG and SVG."""
    prepare_folder(out)
    write_figures(results, out / "figures")
    page = out / "report.html"
    write_whole(page, comparison_page(results).html().encode())
    return page


def comparison_page(results: Results) -> Page:
    """Eight sections, from the answer to how it was made."""
    known = known_of(results)
    names = sentence(all_of([model.name for model in results.models]))
    return Page(
        title=f"How close is the call on {results.dataset}?",
        lead=(
            f"{names}, on the same images: how often each is right, how far each image is from the nearest "
            "one that changes the verdict, and how much of that is proven."
        ),
        sections=[
            answer_section(results, known),
            gallery_section(results, known),
            distances_section(results, known),
            moved_section(results),
            few_section(results),
            capsules_section(results),
            milps_section(results),
            how_section(results),
        ],
        footer="Every number on this page comes from results.json.",
    )
