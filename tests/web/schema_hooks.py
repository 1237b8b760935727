"""Brings made-up requests past the door: half of them name models, pictures and questions that are there."""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from typing import Any

import schemathesis

SHAPES = {
    "mnist-50x2": [1, 28, 28],
    "mnist-cnn-stable": [1, 28, 28],
    "mnist-caps": [1, 28, 28],
    "multimnist-caps": [1, 36, 36],
    "cifar-cnn-robust": [3, 32, 32],
}


def chosen(what: object, count: int) -> int:
    """The same number for the same thing, every time."""
    return zlib.crc32(json.dumps(what, sort_keys=True, default=str).encode()) % count


def picture(model: str, seed: object) -> dict[str, Any]:
    """A picture that a model takes."""
    count = math.prod(SHAPES[model])
    few = bytes(chosen([seed, number], 256) for number in range(97))
    return {"shape": SHAPES[model], "pixels": base64.b64encode((few * count)[:count]).decode()}


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    if not isinstance(body, dict) or chosen(body, 3) == 0:
        return body
    model = list(SHAPES)[chosen([body, "model"], len(SHAPES))]
    fitting = {
        "model": model,
        "models": [model],
        "picture": picture(model, body),
        "parts": [picture("mnist-caps", [body, 1]), picture("mnist-caps", [body, 2])],
        "time_limit": 0.2,
        "capsule": [chosen([body, number], 200) / 100 - 1 for number in range(16)],
    }
    return {key: fitting.get(key, value) for key, value in body.items()}


@schemathesis.hook
def map_path_parameters(_context: Any, path_parameters: Any) -> Any:
    if isinstance(path_parameters, dict) and "identity" in path_parameters and chosen(path_parameters, 2):
        return {**path_parameters, "identity": os.environ["CLOSECALL_QUESTION"]}
    return path_parameters


@schemathesis.hook
def map_query(_context: Any, query: Any) -> Any:
    if isinstance(query, dict) and "question" in query and chosen(query, 2):
        return {**query, "question": [os.environ["CLOSECALL_QUESTION"]]}
    return query
