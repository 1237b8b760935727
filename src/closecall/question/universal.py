"""One perturbation δ for many images: a network that reads δ and says how far each image is from its goal.

Every image becomes clip(x_i + δ) before the network sees it. clip(z) = low + ReLU(z − low) − ReLU(z − high),
and where an end is out of reach for all δ its ReLU is left out; images that agree in a pixel share its ReLUs.
Behind that stands a copy of the network for each image, and behind each copy what its image lacks: a maximum
over the rivals, or one number for each rival of a target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, eye_array

from closecall.arrays import Indices, Vector
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.question.norms import norm_named
from closecall.question.question import Question


@dataclass(frozen=True, eq=False)
class Together:
    """Questions about several images, of one network, norm and pixel range, that one δ is to answer."""

    network: Network
    questions: tuple[Question, ...]
    radius: float = math.inf

    @property
    def images(self) -> Vector:
        return np.array([question.image for question in self.questions])

    @cached_property
    def domain(self) -> Domain:
        """Where δ may be: beyond the furthest that some image can follow, it is clipped for all of them."""
        low, high = self.questions[0].pixel_range
        furthest_down, furthest_up = (self.images - low).max(axis=0), (high - self.images).max(axis=0)
        norm = norm_named(self.questions[0].norm)
        return Domain(np.zeros_like(furthest_up), -furthest_down, furthest_up, norm, self.radius)

    def clipped(self, delta: Vector) -> Vector:
        """The images that a perturbation makes, in float64."""
        return np.clip(self.images + delta, *self.questions[0].pixel_range)

    @cached_property
    def joint(self) -> Network:
        """The network of δ; `rows` says which of its outputs belong to which image."""
        nodes, clipped = clipping(self.images, self.domain, self.questions[0].pixel_range)
        ends = []
        for question, start in zip(self.questions, clipped, strict=True):
            ids = [start]
            for node in self.network.nodes:
                nodes.append(Node(node.layer, tuple(ids[source] for source in node.inputs)))
                ids.append(len(nodes))
            nodes += lacking(question.goal(), len(nodes))
            ends.append(len(nodes))
        sizes = [nodes[end - 1].layer.size for end in ends]
        places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        every = eye_array(sum(sizes), format="csr")
        weights = [csr_array(every[:, place]) for place in places]
        nodes.append(Node(Affine.of(weights, np.zeros(sum(sizes))), tuple(ends)))
        return Network(self.network.input_shape, tuple(nodes), self.network.notes)

    @cached_property
    def rows(self) -> tuple[Indices, ...]:
        """For each image, the outputs that must not be negative."""
        sizes = [len(q.goal().cases[0].threshold) if len(q.goal().cases) == 1 else 1 for q in self.questions]
        return tuple(np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))

    def goal(self, count: int, among: Sequence[int] | None = None) -> Goal:
        """At least so many images, of those given, reach their goals: a case for each choice."""
        outputs = np.eye(self.joint.classes)
        places = range(len(self.questions)) if among is None else among
        chosen = (
            np.concatenate([self.rows[place] for place in some]) for some in combinations(places, count)
        )
        cases = tuple(Case(outputs[rows], np.zeros(len(rows))) for rows in chosen)
        return Goal(cases, self.questions[0].goal().tolerance)

    def slack(self, deltas: Vector) -> Vector:
        """By how much each image is beyond its goal, (deltas, images)."""
        outputs = self.joint.forward(deltas)
        return np.stack([outputs[:, rows].min(axis=1) for rows in self.rows], axis=1)


def clipping(
    images: Vector, domain: Domain, pixel_range: tuple[float, float]
) -> tuple[list[Node], list[int]]:
    """Nodes that make clip(x_i + δ) of δ, and the id of each image among them."""
    low, high = pixel_range
    least, most = domain.box()
    falls, rises = images + least < low, images + most > high
    units: dict[tuple[int, float], int] = {}
    for ends, end in ((falls, low), (rises, high)):
        for image, pixel in zip(*np.nonzero(ends), strict=True):
            units.setdefault((int(pixel), float(images[image, pixel] - end)), len(units))
    nodes, ids = rectified(units, images.shape[1]), []
    for image, fall, rise in zip(images, falls, rises, strict=True):
        moving = np.flatnonzero(~fall)
        weights, sources = [placed(moving, moving, np.ones(len(moving)), (len(image), len(image)))], [0]
        if units:
            places = [np.flatnonzero(ends) for ends in (fall, rise)]
            taken = [
                units[int(pixel), float(image[pixel] - end)]
                for pixels, end in zip(places, (low, high), strict=True)
                for pixel in pixels
            ]
            signs = np.repeat([1.0, -1.0], [len(pixels) for pixels in places])
            columns = np.array(taken, dtype=np.int64)
            weights.append(placed(np.concatenate(places), columns, signs, (len(image), len(units))))
            sources.append(2)
        nodes.append(Node(Affine.of(weights, np.where(fall, low, image)), tuple(sources)))
        ids.append(len(nodes))
    return nodes, ids


def rectified(units: dict[tuple[int, float], int], size: int) -> list[Node]:
    """ReLU(δ_p + offset) for each pixel and offset in order; no nodes where there are none."""
    if not units:
        return []
    pixels, offsets = np.array([pixel for pixel, _ in units]), np.array([offset for _, offset in units])
    reading = placed(np.arange(len(units)), pixels, np.ones(len(units)), (len(units), size))
    return [Node(Affine.of([reading], offsets), (0,)), Node(Relu(len(units)), (1,))]


def placed(rows: Indices, columns: Indices, entries: Vector, shape: tuple[int, int]) -> csr_array:
    return csr_array((entries, (rows, columns)), shape=shape)


def lacking(goal: Goal, scores: int) -> list[Node]:
    """Nodes behind the scores that say by how much a goal is reached: each row, or the best of all cases."""
    matrix = np.vstack([case.matrix for case in goal.cases])
    threshold = np.concatenate([case.threshold for case in goal.cases])
    nodes = [Node(Affine.of([matrix], -threshold), (scores,))]
    if len(goal.cases) > 1:
        if len(threshold) > len(goal.cases):
            raise ValueError("a maximum over cases needs cases of one row each")
        nodes.append(Node(Maximum(np.arange(len(threshold))[None]), (scores + 1,)))
    return nodes
