"""Changes that leave a network's function as it is, but not what a careless bound says of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from closecall.arrays import Vector
from closecall.bench.soundness.steps import Compete, Detour, Linear, Rectify, Step, Steps

Disguise = Callable[[np.random.Generator, Steps], Steps]

FURTHEST = 50  # doublings: 1e15


def rescaled(generator: np.random.Generator, steps: Steps) -> Steps:
    """Each unit before a ReLU or a maximum times a power of two, and the inverse behind it."""
    changed = list(steps)
    for place in hidden_places(steps):
        before, chooser, after = hidden_parts(changed, place)
        width = chooser.width if isinstance(chooser, Compete) else 1
        count = len(before.bias) // width
        doublings = generator.integers(3, FURTHEST + 1, count) * generator.choice([-1, 1], count)
        factors = 2.0 ** np.where(generator.random(count) < 0.7, doublings, 0)
        spread = np.repeat(factors, width)
        changed[place] = Linear(before.weight * spread[:, None], before.bias * spread)
        changed[place + 2] = Linear(after.weight / factors, after.bias)
    return tuple(changed)


def rescaled_alike(generator: np.random.Generator, steps: Steps) -> Steps:
    """A whole layer times a power of two, and the inverse behind it."""
    changed = list(steps)
    for place in hidden_places(steps):
        before, _, after = hidden_parts(changed, place)
        factor = 2.0 ** int(generator.integers(-FURTHEST, FURTHEST + 1))
        changed[place] = Linear(before.weight * factor, before.bias * factor)
        changed[place + 2] = Linear(after.weight / factor, after.bias)
    return tuple(changed)


def permuted(generator: np.random.Generator, steps: Steps) -> Steps:
    """The units of hidden layers in another order."""
    changed = list(steps)
    for place in hidden_places(steps, Rectify):
        before, _, after = hidden_parts(changed, place)
        order = generator.permutation(len(before.bias))
        changed[place] = Linear(before.weight[order], before.bias[order])
        changed[place + 2] = Linear(after.weight[:, order], after.bias)
    return tuple(changed)


def duplicated(generator: np.random.Generator, steps: Steps) -> Steps:
    """Some units twice, each with a share of what the one had to say; shares may be larger than the whole."""
    changed = list(steps)
    for place in hidden_places(steps, Rectify):
        before, _, after = hidden_parts(changed, place)
        copies = np.flatnonzero(generator.random(len(before.bias)) < 0.4)
        share = generator.choice([0.5, 0.25, 2.0, -1.0, 64.0])
        weight = after.weight.copy()
        weight[:, copies] *= 1.0 - share
        changed[place] = Linear(
            np.vstack([before.weight, before.weight[copies]]), np.append(before.bias, before.bias[copies])
        )
        changed[place + 2] = Linear(np.hstack([weight, share * after.weight[:, copies]]), after.bias)
    return tuple(changed)


def with_dead_units(generator: np.random.Generator, steps: Steps) -> Steps:
    """Units that no image switches on, though their bias says so only just, with loud voices."""
    place = first_hidden(steps, Rectify)
    if place != 0:
        return steps
    changed = list(steps)
    before, _, after = hidden_parts(changed, place)
    dead = int(generator.integers(1, 4))
    rows = generator.integers(-16, 17, (dead, before.weight.shape[1])) / 16
    bias = -np.maximum(rows, 0.0).sum(axis=1) - 2.0 ** generator.integers(-10, 1, dead)
    voices = generator.integers(-8, 9, (len(after.bias), dead)) * 2.0**18
    changed[place] = Linear(np.vstack([before.weight, rows]), np.append(before.bias, bias))
    changed[place + 2] = Linear(np.hstack([after.weight, voices]), after.bias)
    return tuple(changed)


def with_constants(generator: np.random.Generator, steps: Steps) -> Steps:
    """Units that are always the same, added and taken away again."""
    changed = list(steps)
    for place in hidden_places(steps, Rectify):
        before, _, after = hidden_parts(changed, place)
        size = 2.0 ** int(generator.integers(-20, 21))
        voices = generator.integers(-4, 5, (len(after.bias), 1)) / size
        row = np.zeros((1, before.weight.shape[1]))
        changed[place] = Linear(np.vstack([before.weight, row]), np.append(before.bias, size))
        changed[place + 2] = Linear(np.hstack([after.weight, voices]), after.bias - size * voices[:, 0])
    return tuple(changed)


def shifted(generator: np.random.Generator, steps: Steps) -> Steps:
    """A constant added to all values before a layer, and taken away by it."""
    place = int(generator.choice(linear_places(steps)))
    size = width_of(steps[place:])
    constant = generator.integers(-512, 513, size).astype(np.float64)
    there, back = Linear(np.eye(size), constant), Linear(np.eye(size), -constant)
    return (*steps[:place], there, back, *steps[place:])


def sheared_and_back(generator: np.random.Generator, steps: Steps) -> Steps:
    """A matrix of whole numbers and its inverse, also of whole numbers, before a layer."""
    place = int(generator.choice(linear_places(steps)))
    size = width_of(steps[place:])
    there, back = np.eye(size), np.eye(size)
    for _ in range(2):
        shear = np.triu(generator.integers(-2, 3, (size, size)), 1) + np.eye(size)
        shear = shear if generator.random() < 0.5 else shear.T
        there, back = shear @ there, back @ np.round(np.linalg.inv(shear))
    scale = 2.0 ** generator.integers(-20, 21, size)
    if np.abs(there).max() > 2**12 or np.abs(back).max() > 2**12:
        return steps
    pair = Linear(scale[:, None] * there, np.zeros(size)), Linear(back / scale, np.zeros(size))
    return (*steps[:place], *pair, *steps[place:])


def relu_as_maximum(generator: np.random.Generator, steps: Steps) -> Steps:
    """max(0, a) as the maximum of a window of two, one of which is always 0."""
    places = hidden_places(steps, Rectify)
    if not places:
        return steps
    place = int(generator.choice(places))
    before, _, _ = hidden_parts(list(steps), place)
    size = len(before.bias)
    weight, bias = np.zeros((2 * size, before.weight.shape[1])), np.zeros(2 * size)
    weight[0::2], bias[0::2] = before.weight, before.bias
    return (*steps[:place], Linear(weight, bias), Compete(2), *steps[place + 2 :])


def maximum_as_relus(_: np.random.Generator, steps: Steps) -> Steps:
    """max(a, b) = ReLU(a) − ReLU(−a) + ReLU(b − a), window by window."""
    place = next((index for index, step in enumerate(steps) if step == Compete(2)), -1)
    if place < 1:
        return steps
    windows = len(steps[place - 1].bias) // 2  # type: ignore[union-attr]
    split, join = np.zeros((3 * windows, 2 * windows)), np.zeros((windows, 3 * windows))
    for window in range(windows):
        split[3 * window : 3 * window + 3, 2 * window : 2 * window + 2] = [[1, 0], [-1, 0], [-1, 1]]
        join[window, 3 * window : 3 * window + 3] = [1, -1, 1]
    inside = (Linear(split, np.zeros(3 * windows)), Rectify(), Linear(join, np.zeros(windows)))
    return (*steps[:place], *inside, *steps[place + 1 :])


def with_detour(generator: np.random.Generator, steps: Steps) -> Steps:
    """A residual block that adds nothing: the same units once with one sign and once with the other."""
    place = int(generator.choice(linear_places(steps)))
    size = width_of(steps[place:])
    units = int(generator.integers(1, 4))
    rows = generator.integers(-8, 9, (units, size)) / 8
    bias = generator.integers(-8, 9, units) / 8
    voices = generator.integers(-8, 9, (size, units)) * 2.0 ** int(generator.integers(-6, 7))
    body: Steps = (
        Linear(np.vstack([rows, rows]), np.append(bias, bias)),
        Rectify(),
        Linear(np.hstack([voices, -voices]), np.zeros(size)),
    )
    return (*steps[:place], Detour(body), *steps[place:])


def halved_and_doubled(generator: np.random.Generator, steps: Steps) -> Steps:
    """x − x/2 by a residual block, then twice that."""
    place = int(generator.choice(linear_places(steps)))
    size = width_of(steps[place:])
    zeros = np.zeros(size)
    halve = Detour((Linear(-0.5 * np.eye(size), zeros),))
    return (*steps[:place], halve, Linear(2.0 * np.eye(size), zeros), *steps[place:])


def deepened(_: np.random.Generator, steps: Steps) -> Steps:
    """A ReLU on the pixels, which are never negative."""
    return (Linear.identity(width_of(steps)), Rectify(), *steps)


def drawn_out(generator: np.random.Generator, steps: Steps) -> Steps:
    """One unit (or pixel) handed on by many layers as 16 times itself less 15 times itself.

    Bounds that do not see what cancels grow by 31 at each of them, until float32 cannot hold them.
    """
    if first_hidden(steps, Rectify) < 0:
        steps = deepened(generator, steps)
    place = first_hidden(steps, Rectify)
    if place < 0:
        return steps
    _, _, after = hidden_parts(list(steps), place)
    count = after.weight.shape[1]
    unit = int(generator.integers(0, count))
    twice = np.vstack([np.eye(count), np.eye(count)[unit]])
    handing_on = np.eye(count + 1)
    handing_on[np.ix_([unit, count], [unit, count])] = [[16.0, -15.0], [16.0, -15.0]]
    zeros = np.zeros(count + 1)
    layers = int(generator.integers(5, 31))
    chain = (Linear(handing_on, zeros), Rectify()) * layers
    heard = Linear(np.hstack([after.weight, np.zeros((len(after.bias), 1))]), after.bias)
    return (*steps[: place + 2], Linear(twice, zeros), Rectify(), *chain, heard, *steps[place + 3 :])


DISGUISES: dict[str, Disguise] = {
    disguise.__name__: disguise
    for disguise in (
        rescaled,
        rescaled_alike,
        permuted,
        duplicated,
        with_dead_units,
        with_constants,
        shifted,
        sheared_and_back,
        relu_as_maximum,
        maximum_as_relus,
        with_detour,
        halved_and_doubled,
        deepened,
    )
}


def hidden_places(steps: Steps, kind: type[Rectify] | type[Compete] | None = None) -> list[int]:
    """Where a linear step, a choice and another linear step follow each other."""
    chooser = (Rectify, Compete) if kind is None else kind
    return [
        place
        for place in range(len(steps) - 2)
        if isinstance(steps[place], Linear)
        and isinstance(steps[place + 1], chooser)
        and isinstance(steps[place + 2], Linear)
    ]


def first_hidden(steps: Steps, kind: type[Rectify]) -> int:
    return next(iter(hidden_places(steps, kind)), -1)


def hidden_parts(steps: list[Step], place: int) -> tuple[Linear, Rectify | Compete, Linear]:
    before, chooser, after = steps[place : place + 3]
    if isinstance(before, Linear) and isinstance(chooser, (Rectify, Compete)) and isinstance(after, Linear):
        return before, chooser, after
    raise ValueError(f"no hidden layer begins at step {place}")


def width_of(steps: Steps) -> int:
    """How many values the steps begin with."""
    first = next(step for step in steps if isinstance(step, (Linear, Detour)))
    return width_of(first.steps) if isinstance(first, Detour) else first.weight.shape[1]


def linear_places(steps: Steps) -> list[int]:
    return [place for place, step in enumerate(steps) if isinstance(step, Linear)]


def exact_in_float32(values: Vector) -> bool:
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32).astype(np.float64) == values).all())
