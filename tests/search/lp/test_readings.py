"""L2 over what a network reads of its pixels: the same function, tangents that hold, the nearest point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from closecall.bounds import linear_bounds
from closecall.network import Network, Node
from closecall.network.layers import Affine, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.question.norms import norm_named
from closecall.search.lp.nearest_point import NearestPoint
from closecall.search.lp.readings import Tangents, count_readings, readings_of
from closecall.search.lp.relaxation import relax_by_readings


def random_domain(generator: np.random.Generator, pixels: int, radius: float) -> Domain:
    """Some pixels black or white, some that cannot move, one that can hardly."""
    centre = np.clip(generator.normal(0.5, 0.6, pixels), 0.0, 1.0)
    lower, upper = np.zeros(pixels), np.ones(pixels)
    lower[0] = upper[0] = centre[0]
    lower[1], upper[1] = centre[1], centre[1] + 1e-7
    return Domain(centre, lower, upper, norm_named("l2"), radius)


def residual(generator: np.random.Generator, pixels: int, units: int) -> Network:
    """A first layer of very different rows, one of zeros; a second one that reads pixels, too."""
    first = generator.normal(size=(units, pixels)) * np.exp2(generator.integers(-12, 12, (units, 1)))
    first[0] = 0.0
    nodes = (
        Node(Affine.of([first], generator.normal(size=units)), (0,)),
        Node(Relu(units), (1,)),
        Node(
            Affine.of(
                [generator.normal(size=(3, units)), generator.normal(size=(3, pixels))],
                generator.normal(size=3),
            ),
            (2, 0),
        ),
    )
    return Network((pixels,), nodes)


@pytest.mark.parametrize(("pixels", "columns"), [(30, 8), (6, 6)])
def test_a_network_of_readings_is_the_same_function(pixels: int, columns: int) -> None:
    generator = np.random.default_rng(0)
    network, domain = residual(generator, pixels, 5), random_domain(generator, pixels, 2.0)
    readings = readings_of(network, domain.centre)
    assert len(readings.matrix) == count_readings(network) == columns
    images = generator.random((20, pixels))
    read = (images - domain.centre) @ readings.matrix.T + readings.start
    assert np.allclose(readings.network.forward(read), network.forward(images), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_tangents_of_any_multipliers_hold_for_every_shift(seed: int) -> None:
    generator = np.random.default_rng(seed)
    network, domain = residual(generator, 12, 5), random_domain(generator, 12, 0.1 + 3 * generator.random())
    tangents = Tangents(readings_of(network, domain.centre), domain)
    readings = len(tangents.readings.matrix)
    for _ in range(5):
        beyond = np.full(readings + 1, np.nan)
        multipliers = generator.normal(size=readings)
        beyond[:readings], beyond[readings] = 1e9 * np.sign(multipliers), 0.0
        assert tangents.place(multipliers, domain.radius * generator.random(), beyond)
    matrix, heights = tangents.rows(0, readings + 1)
    shifts = generator.uniform(-domain.down, domain.up, (2000, 12)) * generator.random((2000, 1))
    aimed = np.sign([tangent.slopes @ tangents.readings.matrix for tangent in tangents.placed])
    shifts = np.vstack([shifts, np.clip(aimed, -domain.down, domain.up), np.zeros((1, 12))])
    points = np.hstack([shifts @ tangents.readings.matrix.T, np.linalg.norm(shifts, axis=1)[:, None]])
    assert (points @ matrix.toarray().T <= heights + 1e-12).all()


def least_distance(rows: np.ndarray, sides: np.ndarray, domain: Domain) -> float:
    """The shift of least length with rows·d ≥ sides in the box, by non-negative least squares."""
    pixels = len(domain.centre)
    over = np.vstack([rows, np.eye(pixels), -np.eye(pixels)])
    least = np.concatenate([sides, -domain.down, -domain.up])
    wanted = np.append(np.zeros(pixels), 1.0)
    weights, _ = nnls(np.vstack([over.T, least]), wanted)
    residue = np.vstack([over.T, least]) @ weights - wanted
    return float(np.linalg.norm(residue[:-1] / residue[-1]))


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_is_that_of_least_squares_and_its_tangent_proves_it(seed: int) -> None:
    generator = np.random.default_rng(seed)
    pixels = 15
    matrix = generator.normal(size=(4, pixels))
    network = Network((pixels,), (Node(Affine.of([matrix], np.zeros(4)), (0,)),))
    domain = random_domain(generator, pixels, 10.0)
    reached = generator.uniform(domain.lower, domain.upper)
    case = Case(np.eye(4)[:3], (matrix @ reached)[:3])
    truth = least_distance(matrix[:3], case.threshold - (matrix @ domain.centre)[:3], domain)
    bounds = linear_bounds(network, domain)
    tangents = Tangents(readings_of(network, domain.centre), domain)
    relaxation = relax_by_readings(case, bounds, tangents)
    nearest = NearestPoint(relaxation.program, tangents.readings, domain)
    found = nearest.solve(relaxation.program.lower, relaxation.program.upper, np.inf)
    assert found.close
    assert np.linalg.norm(found.shift) == pytest.approx(truth, rel=1e-4, abs=1e-6)
    program = relaxation.warm()
    _, _, values = program.solve()
    assert values is not None
    assert tangents.place(found.multipliers, found.length, values) or truth == 0
    relaxation.sharpen(program)
    program.solve()
    assert truth * (1 - 1e-4) - 1e-6 <= program.safe_bound() <= truth * (1 + 1e-9)


def test_what_is_out_of_reach_is_no_point_of_use() -> None:
    generator = np.random.default_rng(1)
    matrix = generator.normal(size=(2, 5))
    network = Network((5,), (Node(Affine.of([matrix], np.zeros(2)), (0,)),))
    domain = random_domain(generator, 5, 10.0)
    case = Case(np.eye(2)[:1], np.array([1e3]))
    tangents = Tangents(readings_of(network, domain.centre), domain)
    program = relax_by_readings(case, linear_bounds(network, domain), tangents).program
    found = NearestPoint(program, tangents.readings, domain).solve(program.lower, program.upper, 10.0)
    assert found.length > 10.0 or not found.close
    assert np.isfinite(found.multipliers).all()
