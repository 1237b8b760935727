"""Sortable tables; all texts are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Cell:
    """A text with the value it is sorted by (None: always last) and a smaller line below it.

    `tone` marks the cell with one of the page's series colours.
    """

    text: str
    key: float | str | None = None
    detail: str = ""
    tone: int | None = None


def sortable_table(name: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table whose heads are buttons that sort it; on a narrow screen each row becomes a list.

    `name` is its caption. Rows come in the order given until someone sorts them.
    """
    kinds = [
        ' class="text"' if any(isinstance(row[k].key, str) for row in rows) else "" for k in range(len(heads))
    ]
    head = "".join(
        f'<th scope="col"{kind}><button type="button">{escape(text)}</button></th>'
        for text, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(cell(*parts) for parts in zip(heads, kinds, row, strict=True))}</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table class="sortable"><caption>{escape(name)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def cell(head: str, kind: str, shown: Cell) -> str:
    key = "" if shown.key is None else f' data-key="{escape(str(shown.key))}"'
    tone = "" if shown.tone is None else f'<i class="swatch tone{shown.tone}"></i>'
    detail = f"<small>{escape(shown.detail)}</small>" if shown.detail else ""
    return f'<td data-head="{escape(head)}"{kind}{key}><span>{tone}{escape(shown.text)}{detail}</span></td>'


SORTING = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const compare = (one, other) => {
    if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
    const numbers = [Number(one), Number(other)];
    return numbers.some(Number.isNaN) ? one.localeCompare(other) : numbers[0] - numbers[1];
  };
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const falling = head.getAttribute("aria-sort") === "ascending";
    const rows = [...table.tBodies[0].rows].sort((one, other) => {
      const keys = [one, other].map(row => row.cells[column].dataset.key);
      const order = compare(...keys);
      return keys.includes(undefined) || !falling ? order : -order;
    });
    heads.forEach(each => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  }));
}
"""
