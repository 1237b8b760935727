"""What has to be changed is said in words, with its unit, for every norm."""

from __future__ import annotations

import numpy as np
import pytest

from closecall.report.words import change_words, changed_pixels, distance_words


@pytest.mark.parametrize(
    ("norm", "said"),
    [
        ("l1", "Changing 8 pixels by 1.185 in all (u)"),
        ("l2", "Changing 8 pixels by 1.185 in L2 (u)"),
        ("linf", "Changing 8 pixels, none by more than 1.185 (u),"),
        ("l0", "Changing 8 pixels (u)"),
    ],
)
def test_a_change_in_words(norm: str, said: str) -> None:
    assert change_words(norm, 8, "1.185", "u") == said
    assert change_words(norm, 8, "1.185") == said.replace(" (u)", "")
    assert "1 pixel" in change_words(norm, 1, "1.185")
    assert "1 pixels" not in change_words(norm, 1, "1.185")


def test_a_distance_has_a_unit_and_counts_have_none() -> None:
    assert distance_words("l1").endswith("where 1 is one pixel from black to white")
    assert distance_words("linf") == "L∞: the largest change of any pixel, where 1 is from black to white"
    assert "from none to all of a colour" in distance_words("linf", colours=True)
    assert "where" not in distance_words("l0")


def test_pixels_are_counted_once_for_all_their_colours() -> None:
    grey = np.zeros((1, 2, 3))
    grey[0, 0, :2] = 0.5
    colours = np.zeros((3, 2, 3))
    colours[:, 1, 1], colours[0, 0, 0] = 0.2, -0.1
    assert (changed_pixels(grey), changed_pixels(colours)) == (2, 2)
    assert changed_pixels(np.array([0.0, 1e-8, 0.3])) == 1
