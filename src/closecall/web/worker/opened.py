"""The models that a worker has opened: each is read once and stays at hand."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import QueryError
from closecall.question.images import fitted
from closecall.web.messages import Source

if TYPE_CHECKING:
    from closecall.models import CapsNet
    from closecall.readers import Classifier

MOST_OPEN = 24
Pixels = NDArray[np.float32]

_opened: OrderedDict[Source, Any] = OrderedDict()


def opened(source: Source) -> Any:
    """A `Classifier`, or the module itself of a capsule network."""
    if source not in _opened:
        _opened[source] = _open(source)
        if len(_opened) > MOST_OPEN:
            _opened.popitem(last=False)
    _opened.move_to_end(source)
    return _opened[source]


def _open(source: Source) -> Any:
    if source.kind == "capsnet":
        from closecall.models import load_model

        return load_model(source.place)
    from closecall.readers import read

    classifier = read(source.place, source.input_shape if source.kind == "onnx" else None)
    classifier.prepare()
    return classifier


def capsule_network(source: Source) -> CapsNet:
    """A capsule network, which can be looked into."""
    if source.kind != "capsnet":
        raise QueryError(f"{source.name} has no capsules: choose a capsule network.")
    network: CapsNet = opened(source)
    return network


def classifier_of(source: Source) -> Classifier:
    """A network that can be searched."""
    if source.kind == "capsnet":
        return _capsules_read(source)
    classifier: Classifier = opened(source)
    return classifier


@lru_cache(maxsize=MOST_OPEN)
def _capsules_read(source: Source) -> Classifier:
    from closecall.readers import read

    classifier = read(capsule_network(source))
    classifier.prepare()
    return classifier


def scores_of(source: Source, image: Pixels) -> tuple[int, NDArray[np.float64]]:
    """The class that a model sees in an image, and the scores of all classes."""
    if source.kind == "capsnet":
        from closecall.compare.torch_attack import classify

        network = capsule_network(source)
        lengths = classify(network, fitted(image, network.input_shape)).astype(np.float64)
        return int(lengths.argmax()), lengths
    classifier = classifier_of(source)
    taken = fitted(image, classifier.network.input_shape)
    scores = classifier.network.forward(taken.reshape(1, -1).astype(np.float64))[0]
    return classifier.predict(taken), scores
