"""Easy questions together: the intervals of many images in one pass, before anything is searched.

Over an L∞ ball the image lies in a box. Boxes are carried through the network for many images at once, and
the lead that is asked for is bounded by the last layer alone, or else by linear bounds of the few rows that
matter (`bounds.excluded_cases`). Every sum is rounded outward as in `bounds`; what overflows proves nothing.
So most images of a network that was trained for a radius are proven in a few milliseconds each. Where any
witness will do, a few steps of an attack look for one in what is left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from closecall.arrays import OUTWARD, Mask, Vector
from closecall.ask.deciding import decide
from closecall.ask.nearest import replay_found
from closecall.ask.posing import network_asked
from closecall.attacks.gradient import climb
from closecall.batches.answers import Reply
from closecall.batches.asking import peak_memory
from closecall.batches.items import Item
from closecall.batches.stopping import Stop
from closecall.bounds import Bounds, excluded_cases
from closecall.clock import Clock
from closecall.network import Network
from closecall.network.layers import Affine
from closecall.question.effort import Effort
from closecall.question.goal import Goal
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.search.problem import Finding
from closecall.verdict.replay import Wanted
from closecall.verdict.verdict import Verdict

AT_ONCE = 64  # images in one pass: enough for products of matrices to pay, few enough to show progress
# Where a smaller share of a pass than this is proven, bounds alone do not settle this network's questions.
WORTH_IT = 0.1
ENGINE = "linear bounds"
STEPS = 6  # of the climb to a witness; most that are found at all are found in three
WHY_ATTACKED = "a few steps of an attack, after bounds: any witness answers the question"
WHY = "linear bounds, of many images at once: most questions about a radius need nothing else"

Boxes = list[tuple[Vector, Vector]]  # lower and upper of the image and of every node, each (units, images)


def suits(item: Item, effort: Effort) -> bool:
    """Whether bounds over a box may answer: a radius in L∞, and a search that would begin with them, too."""
    return effort.method == "auto" and item.asked.get("radius") is not None


def settle_easy(classifier: Classifier, items: Sequence[Item], effort: Effort, stop: Stop) -> Iterator[Reply]:
    """Answer what bounds alone can prove; the other questions are left."""
    waiting = iter(items)
    while not stop.pressed and (some := [*islice(waiting, AT_ONCE)]):
        began = time.perf_counter()
        replies = settle(classifier, some, effort)
        each = (time.perf_counter() - began) / len(some)
        for reply, verdict in replies:
            timed = replace(verdict, seconds=each, seconds_by_stage={"bounds": each})
            yield replace(reply, verdict=timed)
        if len(replies) < WORTH_IT * len(some):
            return


def settle(classifier: Classifier, items: Sequence[Item], effort: Effort) -> list[tuple[Reply, Verdict]]:
    """One pass over a few images."""
    clock = Clock(math.inf)
    questions = [item.pose(classifier, clock) for item in items]
    if classifier.network.capsules is not None:
        return []
    if any(not is_a_box(question) for question in questions):
        return []
    scores = [classifier.scores(question.image) for question in questions]
    predicted = [int(seen.argmax()) for seen in scores]
    right = [
        place
        for place, question in enumerate(questions)
        if not Wanted.by(question).held_at_first(scores[place])
    ]
    if not right:
        return []
    network = network_asked(classifier, questions[0]).simplified()
    proven = prove(network, [questions[place] for place in right])
    memory = peak_memory()
    replies = []
    for place, held in zip(right, proven.tolist(), strict=True):
        finding, replayed = Finding(None, math.inf, engine=ENGINE, why=(WHY,)), None
        if not held:
            if items[place].task == "nearest" or questions[place].pixels is not None:
                continue
            finding = glance(network, questions[place])
            replayed = replay_found(classifier, questions[place], finding)
            if replayed is None:
                continue
        verdict = decide(
            classifier, questions[place], effort, finding, replayed, predicted=predicted[place], clock=clock
        )
        replies.append((Reply(items[place].key, verdict.outcome, verdict, memory=memory), verdict))
    return replies


def is_a_box(question: Question) -> bool:
    return question.norm == "linf" and question.patch is None and question.change is None


def glance(network: Network, question: Question) -> Finding:
    """A few steps up from the image: where any witness will do, the first one is the answer."""
    generator = np.random.default_rng(0)
    found = climb(network, question.domain(), question.goal(), generator, math.inf, STEPS)
    return Finding(found, 0.0, engine="attack", why=(WHY_ATTACKED,))


def prove(network: Network, questions: Sequence[Question]) -> Mask:
    """For each question whether bounds show that no image of its box reaches the goal."""
    domains = [question.domain() for question in questions]
    ends = [domain.box() for domain in domains]
    with np.errstate(over="ignore", invalid="ignore"):
        boxes = carry(network, np.stack([low for low, _ in ends], 1), np.stack([high for _, high in ends], 1))
        proven = np.zeros(len(questions), dtype=bool)
        for label in {(question.label, question.target) for question in questions}:
            mine = [k for k, question in enumerate(questions) if (question.label, question.target) == label]
            some = [(low[:, mine], high[:, mine]) for low, high in boxes]
            proven[mine] = by_last_layer(network, some, questions[mine[0]].goal())
    finite = np.all([np.isfinite(low).all(0) & np.isfinite(high).all(0) for low, high in boxes], axis=0)
    for k in np.flatnonzero(finite & ~proven).tolist():
        bounds = Bounds(tuple(low[:, k] for low, _ in boxes), tuple(high[:, k] for _, high in boxes))
        proven[k] = excluded_cases(network, domains[k], questions[k].goal(), bounds).all()
    return np.asarray(proven & finite)


def carry(network: Network, lower: Vector, upper: Vector) -> Boxes:
    """Intervals of every node for each image, as `bounds.interval_bounds` gives them for one."""
    boxes = [(lower, upper)]
    for node in network.nodes:
        read = [boxes[source] for source in node.inputs]
        if isinstance(node.layer, Affine):
            boxes.append(affine_box(node.layer, read))
        else:
            low, high = node.layer.interval([low.T for low, _ in read], [high.T for _, high in read])
            boxes.append((np.ascontiguousarray(low.T), np.ascontiguousarray(high.T)))
    return boxes


def affine_box(layer: Affine, read: Boxes) -> tuple[Vector, Vector]:
    """centre ± spread, widened by a share of all that is added up, whatever its sign."""
    centre = np.repeat(layer.bias[:, None], read[0][0].shape[1], axis=1)
    spread = OUTWARD * np.abs(centre)
    for weight, (low, high) in zip(layer.weights, read, strict=True):
        middle, reach = middle_and_reach(low, high)
        centre += weight @ middle
        spread += abs(weight) @ reach
    return centre - spread, centre + spread


def middle_and_reach(low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """The middle of a box, and how far it goes from there with what sums over it may be off by."""
    largest = np.maximum(np.abs(low), np.abs(high))
    return low / 2 + high / 2, high / 2 - low / 2 + OUTWARD * largest


def by_last_layer(network: Network, boxes: Boxes, goal: Goal) -> Mask:
    """Whether each case has a row that the last layer cannot reach from the box before it.

    With y = W·x + b, a row r is at most r·b + (r·W)·middle + |r·W|·reach, and a share of all that is added.
    """
    node = network.nodes[-1]
    if not isinstance(node.layer, Affine) or len(node.inputs) != 1:
        return np.zeros(boxes[0][0].shape[1], dtype=bool)
    layer, weight = node.layer, node.layer.weights[0]
    low, high = boxes[node.inputs[0]]
    middle, reach = middle_and_reach(low, high)
    rows = np.vstack([case.matrix for case in goal.cases])
    threshold = np.concatenate([case.threshold for case in goal.cases])
    constant, total = rows @ layer.bias, rows @ weight
    sums = np.abs(layer.bias)[:, None] + abs(weight) @ np.maximum(np.abs(low), np.abs(high))
    magnitude = np.abs(constant)[:, None] + np.abs(rows) @ sums
    most = constant[:, None] + total @ middle + abs(total) @ reach + OUTWARD * magnitude
    starts = np.cumsum([0, *(len(case.threshold) for case in goal.cases[:-1])])
    return np.asarray(np.logical_or.reduceat(most < threshold[:, None], starts).all(axis=0))
