"""Pages to look at: one HTML file each, with its style and its images inside."""

from __future__ import annotations

from closecall.report.axes import Axis, fixed_axis, plain_axis, powers_axis, shares_axis, span_axis
from closecall.report.charts import Chart, Curve, Line, chart, legend, line_chart
from closecall.report.page import (
    Card,
    Page,
    Section,
    Shot,
    bullets,
    cards,
    command_line,
    facts,
    folded,
    gallery,
    note,
    panels,
    paragraph,
    subheading,
)
from closecall.report.pixels import difference_pixels, difference_uri, image_uri
from closecall.report.ranges import Range, ranges
from closecall.report.strips import Change, Strip, Tile, sheet, strips, tiles
from closecall.report.tables import Cell, sortable_table

__all__ = [
    "Axis",
    "Card",
    "Cell",
    "Change",
    "Chart",
    "Curve",
    "Line",
    "Page",
    "Range",
    "Section",
    "Shot",
    "Strip",
    "Tile",
    "bullets",
    "cards",
    "chart",
    "command_line",
    "difference_pixels",
    "difference_uri",
    "facts",
    "fixed_axis",
    "folded",
    "gallery",
    "image_uri",
    "legend",
    "line_chart",
    "note",
    "panels",
    "paragraph",
    "plain_axis",
    "powers_axis",
    "ranges",
    "shares_axis",
    "sheet",
    "sortable_table",
    "span_axis",
    "strips",
    "subheading",
    "tiles",
]
