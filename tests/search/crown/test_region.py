"""The nearest image of a linear region in L∞ by boxes, against the LP with a column above all shifts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.question.norms import norm_named
from closecall.search.crown.region import BoxedRegion, LinearMaps, RegionProgram

PIXELS, ROWS = 12, 20


def region(seed: int, *, rivals: int = 1) -> tuple[LinearMaps, Domain, Case]:
    """Half-spaces that hold an image not far from the original, and scores that reach the case there."""
    generator = np.random.default_rng(seed)
    centre = generator.random(PIXELS)
    inside = np.clip(centre + generator.uniform(-0.3, 0.3, PIXELS), 0.0, 1.0)
    slopes = generator.normal(size=(ROWS, PIXELS))
    offsets = generator.random(ROWS) / 2 - slopes @ inside
    scores = generator.normal(size=(rivals + 1, PIXELS))
    matrix = np.hstack([np.ones((rivals, 1)), -np.eye(rivals)])
    score_offsets = np.append(0.0, (scores[0] - scores[1:]) @ inside - 0.01)
    domain = Domain(centre, np.zeros(PIXELS), np.ones(PIXELS), norm_named("linf"))
    return LinearMaps(slopes, offsets, scores, score_offsets), domain, Case(matrix, np.zeros(rivals))


def both(maps: LinearMaps, domain: Domain, case: Case, parts: int) -> list[tuple[float, np.ndarray | None]]:
    """What either program says once all rows are in it, which are added in parts as they are in a search."""
    said = []
    for program in (RegionProgram(maps, domain, case), BoxedRegion(maps, domain, case)):
        for some in np.array_split(np.arange(ROWS), parts):
            program.solve(60.0)
            program.add(maps.slopes[some], -maps.offsets[some])
        said.append(program.solve(60.0))
    return said


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rivals", [1, 3])
def test_boxes_find_the_same_image(seed: int, rivals: int) -> None:
    maps, domain, case = region(seed, rivals=rivals)
    (truth, _), (bound, image) = both(maps, domain, case, parts=1 + seed % 3)
    assert bound <= truth * (1 + 1e-9) + 1e-12
    assert bound == pytest.approx(truth, rel=1e-6)
    assert image is not None
    assert domain.distance(image) == pytest.approx(truth, rel=1e-6)
    assert (maps.slopes @ image + maps.offsets >= -1e-8).all()
    assert (case.matrix @ (maps.score_slopes @ image + maps.score_offsets) >= case.threshold - 1e-8).all()


@pytest.mark.parametrize("seed", range(4))
def test_none_within_the_radius(seed: int) -> None:
    maps, domain, case = region(seed)
    (truth, _), _ = both(maps, domain, case, parts=2)
    _, (bound, image) = both(maps, domain.within(0.999 * truth), case, parts=2)
    assert (bound, image) == (math.inf, None)
    _, (bound, image) = both(maps, domain.within(1.001 * truth), case, parts=2)
    assert bound <= truth * (1 + 1e-9)
    assert image is not None


def test_rows_that_no_image_fulfils() -> None:
    maps, domain, case = region(0)
    empty = BoxedRegion(maps, domain, case)
    empty.add(np.ones((1, PIXELS)), np.array([PIXELS + 1.0]))
    assert empty.solve(60.0) == (math.inf, None)


@pytest.mark.parametrize("seed", range(6))
def test_any_multipliers_show_a_radius_that_holds(seed: int) -> None:
    maps, domain, case = region(seed)
    (truth, _), _ = both(maps, domain, case, parts=1)
    program = BoxedRegion(maps, domain, case)
    program.add(maps.slopes, -maps.offsets)
    generator = np.random.default_rng(seed)
    for _ in range(50):
        multipliers = generator.exponential(size=ROWS) * (generator.random(ROWS) < 0.3)
        assert program.reach_shown_by(multipliers, float(generator.random() < 0.5)) <= truth * (1 + 1e-9)
