"""Capsule networks by gradients alone: those whose routing cannot be bounded, and ideal images of all."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch

from closecall.arrays import Vector
from closecall.ask.aims import leads_over_all
from closecall.ask.ideal import Ideal
from closecall.ask.posing import Asked, wanted_classes
from closecall.attacks.gradient import climb_freely, find_witness
from closecall.clock import Clock
from closecall.compare.torch_attack import attackable, classify, replayed_in
from closecall.question.checks import check_class
from closecall.question.domain import Domain
from closecall.question.goal import Goal
from closecall.question.images import fitted
from closecall.question.norms import norm_named
from closecall.question.question import Question
from closecall.verdict.eight_bit import encode_png, enlarge, to_steps
from closecall.verdict.saved import ENLARGED, ORIGINAL, PNG, RECORD, WITNESS, json_bytes, npy_bytes
from closecall.web import words
from closecall.web.messages import Source, Tell
from closecall.web.worker.opened import Pixels, capsule_network
from closecall.web.worker.telling import Telling


def attack_capsules(
    tell: Tell, source: Source, image: Pixels, asked: Asked, seconds: float, class_names: tuple[str, ...]
) -> dict[str, Any]:
    """An image that a capsule network sees otherwise, if one is found in time; no bound is proven."""
    network, clock = capsule_network(source), Clock(seconds)
    taken = np.ascontiguousarray(fitted(image, network.input_shape))
    before = classify(network, taken)
    label = int(before.argmax())
    target, _ = wanted_classes(asked.get("target", "any"), label, network.classes)
    radius, cap = asked.get("radius"), asked.get("cap")
    question = Question(
        taken.ravel().astype(np.float64), label, network.classes, target,
        norm=norm_named(asked.get("norm", "l1")).name, radius=math.inf if radius is None else radius, cap=cap,
    )  # fmt: skip
    telling = Telling(tell, source, taken.shape, clock)
    best = nearest_climb(network, question, taken.shape, clock, telling)
    found = None if best is None else replayed_in(network, question, best, taken.shape)
    return capsule_answer(source, question, taken, before, found, clock, class_names)


def nearest_climb(
    network: torch.nn.Module, question: Question, shape: tuple[int, ...], clock: Clock, telling: Telling
) -> Vector | None:
    """The nearest image that the climbs have found when they end, are out of time or are stopped."""
    domain, found = question.domain(), list[Vector]()

    def on_witness(point: Vector) -> None:
        distance = domain.distance(point)
        if not found or distance < domain.distance(found[-1]):
            found.append(point)
            telling.interval(0.0, distance, 0, clock.seconds)
            telling.image(point, distance)

    with clock.noting_interrupts(), clock.stage("attack"):
        try:
            climbed = attackable(network, shape)
            find_witness(climbed, domain, question.goal(), until=clock.deadline, on_witness=on_witness)
        except KeyboardInterrupt:
            if not found:
                raise
    return found[-1] if found else None


def capsule_answer(
    source: Source, question: Question, image: Pixels, before: Any, found: Any, clock: Clock,
    class_names: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    witness, distance, became = found or (None, None, None)
    after = None if witness is None else classify(capsule_network(source), witness).tolist()
    record = {
        "outcome": "unresolved" if witness is None else "adversarial",
        "model": words.model_of(source),
        "norm": question.norm,
        "distance": distance,
        "lower_bound": None,
        "proven": "nothing: bounds on this kind of routing are not known",
        "predicted_before": question.label,
        "predicted_after": became,
        "scores_before": before.tolist(),
        "scores_after": after,
        "seconds": clock.seconds,
    }
    files = {ORIGINAL: npy_bytes(image), RECORD: json_bytes(record)}
    if witness is not None:
        steps = to_steps(witness, (0.0, 1.0))
        files |= {WITNESS: npy_bytes(witness), PNG: encode_png(steps), ENLARGED: encode_png(enlarge(steps))}
    return {
        "outcome": record["outcome"],
        "sentence": words.of_attack(question, distance, became, class_names),
        "proven": False,
        "distance": distance,
        "lower": 0.0,
        "label": question.label,
        "became": became,
        "witness": witness,
        "shares_before": before.tolist(),
        "shares_after": after,
        "seconds": clock.seconds,
        "nodes": 0,
        "engine": "attack",
        "notes": [],
        "record": record,
        "files": files,
    }


def best_for_capsules(source: Source, target: int, seconds: float) -> Ideal:
    """The image of largest lead on a climb from grey; its capsule's length leads by at most 1."""
    network, clock = capsule_network(source), Clock(seconds)
    check_class("target", target, network.classes)
    climbed = attackable(network, network.input_shape)
    grey = np.full(climbed.input_size, 0.5)
    domain = Domain(grey, np.zeros_like(grey), np.ones_like(grey), norm_named("linf"))
    goal = Goal((leads_over_all(target, network.classes),))
    point = climb_freely(climbed, domain, goal, until=time.perf_counter() + clock.left)
    image = point.astype(np.float32).reshape(network.input_shape)
    scores = classify(network, image).astype(np.float64)
    return Ideal(
        outcome="unresolved",
        target=target,
        lead=float(scores[target] - np.delete(scores, target).max()),
        lead_bound=None,
        predicted=int(scores.argmax()),
        replayed=int(scores.argmax()) == target,
        seconds=clock.seconds,
        nodes=0,
        solver="highs",
        network_sha256="",
        image=image,
        scores=scores,
    )
