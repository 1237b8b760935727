"""An .onnx file from a stranger, read in a process that is thrown away afterwards."""

from __future__ import annotations

from typing import Any

from closecall.errors import ModelError
from closecall.question.images import picture_shape
from closecall.web.limits import LARGEST_IMAGE
from closecall.web.messages import Tell


def read_model(_tell: Tell, *, place: str, input_shape: tuple[int, ...] | None, name: str) -> dict[str, Any]:
    """What a page needs to know of a model; one that cannot be asked about is refused."""
    from closecall.readers import read

    try:
        classifier = read(place, input_shape)
    except ModelError as error:
        # The place is the server's own: people know the file by its name.
        raise ModelError(str(error).replace(place, name)) from error
    network = classifier.network
    shape = picture_shape(network.input_shape)
    if shape is None or shape[0] not in (1, 3):
        raise ModelError(
            f"{name} takes images of shape {network.input_shape}, which cannot be shown: "
            "a picture has one or three channels."
        )
    if network.input_size > LARGEST_IMAGE:
        raise ModelError(
            f"{name} takes {network.input_size:,} numbers: at most {LARGEST_IMAGE:,} can be shown."
        )
    return {
        "shape": shape,
        "input_shape": network.input_shape,
        "classes": network.classes,
        "units": sum(node.layer.size for node in network.nodes),
    }
