"""From an image to one of levels: round it, and repair what rounding breaks by a small search over the grid.

A pixel between two levels goes to the one that the slope of the goal asks for, or to the one that is nearer
to the original; with few of them all ways are tried. What misses the goal climbs from grid point to grid
point inside the ball: to ends of its box in L∞ and L0, by steps taken from one pixel and given to another
else.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from closecall.arrays import Indices, Vector
from closecall.clock import out_of_time
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal, slack_and_gradient
from closecall.question.levels import Distances, places
from closecall.settings import Rounding

NEARLY = 1e-6  # of a step: what rounding may make of a whole number of them


@dataclass(frozen=True, eq=False)
class Trials:
    """Images of levels by their places, with their pixels, distances and how far they are beyond the goal."""

    places: Indices
    pixels: Vector
    distances: Vector
    slack: Vector


class Rounder:
    """Rounds images of one question."""

    def __init__(self, network: Network, domain: Domain, goal: Goal, settings: Rounding) -> None:
        if domain.levels is None:
            raise ValueError("there are no levels to round to")
        self.network, self.domain, self.goal, self.settings = network, domain, goal, settings
        self.levels: Vector = domain.levels
        self.values: Distances = domain.distances
        self.centre = places(domain.centre, self.levels)
        self.low = np.ceil(places(domain.lower, self.levels) - NEARLY).astype(np.int64)
        self.high = np.floor(places(domain.upper, self.levels) + NEARLY).astype(np.int64)

    @cached_property
    def unit(self) -> float:
        return 1.0 if self.domain.norm.name == "l0" else self.values.step

    def rounded(self, image: Vector, best: float, until: float) -> Vector | None:
        """An image of levels near another that reaches the goal, nearer than `best`, if one is found."""
        if (self.low > self.high).any():
            return None
        trials = self.tried(self.candidates(image))
        found, distance = self.nearest(trials, best)
        ideal = self.values.at_least(self.domain.distance(image))
        for more in (0, *self.settings.steps_beyond):
            most = self.values.at_least(ideal + more * self.unit)
            if most >= min(distance, best) - self.values.clearly(ideal) or out_of_time(until):
                break
            climbed = self.climbed(trials, most, until)
            if climbed is not None:
                return climbed
        return found

    def nearest(self, trials: Trials, best: float) -> tuple[Vector | None, float]:
        fits = (trials.slack >= -self.goal.tolerance) & (trials.distances < best)
        for row in np.flatnonzero(fits)[np.argsort(trials.distances[fits], kind="stable")]:
            if self.allowed(trials.pixels[row]):
                return trials.pixels[row], float(trials.distances[row])
        return None, np.inf

    def allowed(self, pixels: Vector) -> bool:
        return self.domain.distance(pixels) <= self.domain.radius and self.domain.affords(pixels)

    def tried(self, rows: Indices) -> Trials:
        rows = np.unique(np.clip(rows, self.low, self.high), axis=0)
        pixels = self.levels[rows]
        some = np.array_split(pixels, -(-len(pixels) // self.settings.trials_at_once))
        slack = np.concatenate([self.goal.slack(self.network.forward(part)) for part in some])
        return Trials(rows, pixels, self.domain.norm.distance(pixels - self.domain.centre), slack)

    def candidates(self, image: Vector) -> Indices:
        """Ways to round: to the nearest, along the slopes, towards the original, and between these."""
        slopes = self.slopes(image)
        rows = [self.ways(places(image, self.levels), slopes)]
        if self.domain.norm.name == "linf":
            rows += [self.stretched(image, slopes, most) for most in self.radii(image)]
        return np.concatenate(rows).astype(np.int64)

    def ways(self, place: Vector, slopes: Vector) -> Vector:
        below, above = np.floor(place + NEARLY), np.ceil(place - NEARLY)
        outward = np.where(place >= self.centre, above, below)
        inward = np.where(place >= self.centre, below, above)
        gaining = np.where(slopes == 0, inward, np.where(slopes > 0, above, below))
        base = np.where(gaining == inward, gaining, inward)
        open_ones = np.flatnonzero((above > below) & (gaining == outward))
        order = open_ones[np.argsort(-np.abs(slopes[open_ones]), kind="stable")]
        rows = [np.rint(place), gaining, inward]
        few = order[: self.settings.tried_in_all_ways]
        if len(few) == len(order):
            chosen = [
                few[np.array(some, dtype=bool)] for some in itertools.product([False, True], repeat=len(few))
            ]
        else:
            chosen = [order[:count] for count in powers(len(order))]
        for some in chosen:
            row = base.copy()
            row[some] = outward[some]
            rows.append(row)
        return np.array(rows)

    def radii(self, image: Vector) -> list[float]:
        """Distances just below and above that of an image."""
        far, values = self.domain.distance(image), self.values
        above = values.at_least(far)
        near = (values.below(above), above, values.at_least(above + self.unit / 2))
        return [most for most in near if np.isfinite(most) and most > 0]

    def stretched(self, image: Vector, slopes: Vector, most: float) -> Vector:
        """The image gone as far as a radius, and the corner of the radius that the slopes point to."""
        low, high = self.box(most)
        far = self.domain.distance(image)
        shift = (image - self.domain.centre) * (most / far if far > 0 else 0.0)
        place = places(self.domain.centre + shift, self.levels)
        along = np.where(slopes > 0, np.ceil(place - NEARLY), np.floor(place + NEARLY))
        corner = np.where(slopes == 0, np.rint(place), np.where(slopes > 0, high, low))
        return np.asarray(np.clip(np.array([np.rint(place), along, corner]), low, high))

    def box(self, most: float) -> tuple[Indices, Indices]:
        """The places that each pixel may go to within a radius in L∞."""
        reach, centre = most + self.values.clearly(most) / 4, self.domain.centre
        low = np.ceil(places(centre - reach, self.levels)).astype(np.int64)
        high = np.floor(places(centre + reach, self.levels)).astype(np.int64)
        low, high = np.maximum(low, self.low), np.minimum(high, self.high)
        return np.minimum(low, high), high

    def slopes(self, image: Vector) -> Vector:
        """Those of the case that an image is nearest to reaching."""
        scores = self.network.forward(image[None])
        case = max(self.goal.cases, key=lambda case: float(case.slack(scores)[0]))
        return np.asarray(slack_and_gradient(self.network, Goal((case,)), image[None])[1][0])

    def climbed(self, trials: Trials, most: float, until: float) -> Vector | None:
        """Climb from the trial of largest slack within a distance until the goal is reached."""
        place, slack = self.start(trials, most)
        if place is None:
            return None
        for _ in range(self.settings.climbs):
            if out_of_time(until):
                return None
            moves = self.moves(place, self.slopes(self.levels[place]), most)
            if not len(moves):
                return None
            moved = self.tried(moves)
            slacks = np.where(moved.distances <= most + self.values.clearly(most) / 2, moved.slack, -np.inf)
            row = int(slacks.argmax())
            if not slacks[row] > slack:
                return None
            place, slack = moved.places[row], float(slacks[row])
            if slack >= -self.goal.tolerance:
                return moved.pixels[row] if self.allowed(moved.pixels[row]) else None
        return None

    def start(self, trials: Trials, most: float) -> tuple[Indices | None, float]:
        rows = trials.places
        if self.domain.norm.name == "linf":
            trials = self.tried(np.clip(rows, *self.box(most)))
        slack = np.where(trials.distances <= most + self.values.clearly(most) / 2, trials.slack, -np.inf)
        row = int(slack.argmax())
        return (trials.places[row], float(slack[row])) if np.isfinite(slack[row]) else (None, -np.inf)

    def moves(self, place: Indices, slopes: Vector, most: float) -> Indices:
        if self.domain.norm.name == "linf":
            return self.to_ends(place, slopes, *self.box(most))
        if self.domain.norm.name == "l0":
            changed = self.levels[place] != self.domain.centre
            ends = (np.where(changed, end, place) for end in (self.low, self.high))
            return self.to_ends(place, slopes, *ends)
        return np.array([self.traded(place, slopes, most, count) for count in self.settings.steps_traded])

    def to_ends(self, place: Indices, slopes: Vector, low: Indices, high: Indices) -> Indices:
        """The pixels that gain the most at the end of their box: one of them, two, four, and so on."""
        ends = np.where(slopes > 0, high, low)
        gains = slopes * (self.levels[ends] - self.levels[place])
        order = np.argsort(-gains, kind="stable")[: int((gains > 0).sum())]
        rows = np.repeat(place[None], len(powers(len(order))), axis=0)
        for row, count in zip(rows, powers(len(order)), strict=True):
            row[order[:count]] = ends[order[:count]]
        return rows

    def traded(self, place: Indices, slopes: Vector, most: float, count: int) -> Indices:
        """Take steps from where they gain the least, and spend all there is where they gain the most."""
        place = place.copy()
        outward = np.sign(place - self.centre).astype(np.int64)
        worth = np.where(outward == 0, np.inf, slopes * outward)
        for pixel in np.argsort(worth, kind="stable")[:count]:
            if count <= 0 or outward[pixel] == 0:
                break
            taken = min(count, int(np.floor(abs(place[pixel] - self.centre[pixel]) + NEARLY)))
            place[pixel] -= outward[pixel] * taken
            count -= taken
        rooms = np.where(slopes > 0, self.high - place, place - self.low)
        order = np.argsort(-np.abs(slopes) * (rooms > 0), kind="stable")
        for pixel in order[: self.settings.pixels_given_to]:
            given = self.affordable(place, int(pixel), int(np.sign(slopes[pixel])), int(rooms[pixel]), most)
            if given == 0:
                break
            place[pixel] += int(np.sign(slopes[pixel])) * given
        return place

    def affordable(self, place: Indices, pixel: int, sign: int, room: int, most: float) -> int:
        """How many steps a pixel may go in a direction before the image is too far."""
        enough, pixels = most + self.values.clearly(most) / 2, self.levels[place]
        less, more = 0, room
        while less < more:
            middle = (less + more + 1) // 2
            pixels[pixel] = self.levels[place[pixel] + sign * middle]
            less, more = (middle, more) if self.domain.distance(pixels) <= enough else (less, middle - 1)
        return less


def powers(most: int) -> list[int]:
    """1, 2, 4 and so on, and the last one."""
    found = [2**power for power in range(max(1, most).bit_length()) if 2**power < most]
    return [*found, most] if most else []
