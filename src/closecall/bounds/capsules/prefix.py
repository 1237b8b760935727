"""Affine forms through the affine maps and ReLUs before the capsules."""

from __future__ import annotations

import time

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.bounds.capsules.forms import UP, Ball, Blocks, Form, widened
from closecall.bounds.linear import Bounds
from closecall.clock import OutOfTimeError
from closecall.errors import UnsupportedLayerError
from closecall.network import Network
from closecall.network.layers import Affine, Relu


def form_before(network: Network, known: Bounds, ball: Ball, until: float) -> Form:
    """The form of the network's output; `known` are bounds on all its values over the domain."""
    forms = [ball.image()]
    blocks: Blocks = ()  # of all errors so far, each in columns of its own, whoever reads them
    last_use = {source: number for number, node in enumerate(network.nodes) for source in node.inputs}
    for number, node in enumerate(network.nodes):
        if time.perf_counter() >= until:
            raise OutOfTimeError
        inputs = [forms[source] for source in node.inputs]
        if isinstance(node.layer, Affine):
            forms.append(mapped(node.layer, inputs))
        elif isinstance(node.layer, Relu):
            source = node.inputs[0]
            forms.append(rectified(inputs[0], known.lower[source], known.upper[source], blocks))
            blocks = forms[-1].blocks
        else:
            raise UnsupportedLayerError(f"a {type(node.layer).__name__} before capsules has no affine form.")
        for source in node.inputs:
            if last_use[source] == number:
                forms[source] = forms[0]  # its columns are not needed again
    return forms[-1]


def mapped(layer: Affine, inputs: list[Form]) -> Form:
    """Σ weight · form + bias."""
    ball, blocks = inputs[0].ball, max((form.blocks for form in inputs), key=len)
    centre = layer.bias.copy()
    shared = np.zeros((layer.size, 1))
    for weight, form in zip(layer.weights, inputs, strict=True):
        centre += weight @ form.centre
        shared = shared + widened(ball, np.asarray(weight @ form.shared), blocks)
    bare = layer.sums([form.slack for form in inputs]) - np.abs(layer.bias)
    slack = np.maximum(bare, 0.0) + 2 * OUTWARD * layer.sums([form.size() for form in inputs])
    return Form(ball, centre, shared, slack, blocks)


def rectified(form: Form, low: Vector, high: Vector, blocks: Blocks) -> Form:
    """max(0, a) = λ a + m + f with 0 ≤ λ ≤ 1 and |f| ≤ m, where low ≤ a ≤ high.

    max(0, a) − λ a is convex and not negative, so at most its larger end: 2m = max(−λ low, (1 − λ) high).
    The bounds are those of the form, where these are better. The new errors come after `blocks`.
    """
    radius = form.radius()
    # fmax and fmin: what overflows in a form is no number, and says nothing about the bounds.
    low = np.fmax(low, form.centre - radius - OUTWARD * np.abs(form.centre))
    high = np.fmin(high, form.centre + radius + OUTWARD * np.abs(form.centre))
    is_open = (low < 0) & (high > 0)
    slope = np.where(low >= 0, 1.0, 0.0)
    np.divide(high, high - low, out=slope, where=is_open)
    middle = np.where(is_open, np.maximum(-slope * low, (1 - slope) * high) / 2 * UP, 0.0)
    own = np.flatnonzero(middle)
    errors = np.zeros((len(middle), len(own)))
    errors[own, np.arange(len(own))] = middle[own]
    shared = np.hstack([widened(form.ball, slope[:, None] * form.shared, blocks), errors])
    slack = slope * form.slack + OUTWARD * (slope * form.size() + middle)
    return Form(form.ball, slope * form.centre + middle, shared, slack, (*blocks, (len(own), 1)))
