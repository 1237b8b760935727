"""The original model as a function on batches of images in float32: what an answer is replayed with."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from closecall.network.windows import Shape
from closecall.readers.classifier import Engine, Images

FATAL = 4


def in_batches(run: Engine, shape: Shape) -> Engine:
    """The same engine if it treats every image of a batch alike, else one that gives it image by image."""

    def one_by_one(images: Images) -> Images:
        return np.concatenate([run(images[k : k + 1]) for k in range(len(images))])

    # A bright and a dark image: whatever mixes the two shows.
    pair = np.random.default_rng(1).random((2, *shape), dtype=np.float32)
    pair[1] /= 2
    try:
        together, alone = run(pair), one_by_one(pair)
        scale = float(np.abs(alone).max(initial=0.0))
        steady = together.shape == alone.shape and np.allclose(
            together, alone, rtol=1e-4, atol=1e-4 * scale, equal_nan=True
        )
    except Exception:
        steady = False
    return run if steady else one_by_one


def open_session(model: bytes | str) -> Any:
    """A quiet onnxruntime session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
    # Otherwise quantised weights make it quantise the image too, which is not what the file says.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_session(session: Any, shape: Shape, batch: int | None = None) -> Engine:
    """onnxruntime's forward on images of a shape: any number of them at once (None), or a fixed number.

    The last images of a fixed batch are filled up; 0 stands for an input without a batch dimension.
    """
    entry, name = session.get_inputs()[0], session.get_outputs()[0].name
    kind = {"tensor(double)": np.float64, "tensor(float16)": np.float16}.get(entry.type, np.float32)

    def run_once(images: Images) -> Images:
        given = images.astype(kind).reshape(shape if batch == 0 else (len(images), *shape))
        return np.asarray(session.run([name], {entry.name: given})[0], dtype=np.float32).reshape(
            len(images), -1
        )

    def run(images: Images) -> Images:
        images = np.asarray(images, dtype=np.float32)
        step = max(1, len(images) if batch is None else batch)
        filled = np.concatenate([images, np.repeat(images[-1:], -len(images) % step, axis=0)])
        parts = [run_once(filled[start : start + step]) for start in range(0, len(filled), step)]
        return np.concatenate(parts)[: len(images)]

    return run
