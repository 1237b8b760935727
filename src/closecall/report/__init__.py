"""Pages to look at: one HTML file each, with its style and its images inside."""

from __future__ import annotations

from closecall.report.charts import Line, line_chart
from closecall.report.page import (
    Card,
    Page,
    Section,
    Shot,
    cards,
    gallery,
    panels,
    paragraph,
    subheading,
    table,
)
from closecall.report.pixels import difference_uri, image_uri

__all__ = [
    "Card",
    "Line",
    "Page",
    "Section",
    "Shot",
    "cards",
    "difference_uri",
    "gallery",
    "image_uri",
    "line_chart",
    "panels",
    "paragraph",
    "subheading",
    "table",
]
