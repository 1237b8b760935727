"""How models are called on the page: as words, not as options of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from closecall.report.numbers import listed

WRITTEN = {"dnn": "DNN", "cnn": "CNN", "cnn-baseline": "CNN baseline", "capsnet": "CapsNet"}
RUNG = re.compile(r"(dnn|cnn)-(\d+(?:-\d+)*)(-kernels)?")  # networks trained for their MILPs alone


def title_of(name: str) -> str:
    """A model's name in a heading, a legend or a table; names that a user chose stay as they are."""
    rung = RUNG.fullmatch(name)
    if rung is None:
        return WRITTEN.get(name, name)
    family, sizes, kernels = rung.groups()
    return f"{WRITTEN[family]} {sizes}{' kernels' if kernels else ''}"


def in_words(name: str) -> str:
    """A model's name within a sentence."""
    return f"the {WRITTEN[name]}" if name in WRITTEN else name


def all_of(names: Sequence[str], last: str = "and") -> str:
    """Several names within a sentence."""
    words = [in_words(name) for name in names]
    return listed(words) if last == "and" else f" {last} ".join(words)


def sentence(text: str) -> str:
    """Begin with a capital, unless the sentence begins with a name that a user chose."""
    return f"T{text[1:]}" if text.startswith("the ") else text
