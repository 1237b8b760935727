"""The original model as a function on batches of images in float32: what an answer is replayed with."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn

from closecall.layers.maps import Shape
from closecall.readers.classifier import Engine, Images
from closecall.readers.torch import number_type

FATAL = 4


class ModuleEngines(Mapping[str, Engine]):
    """A module's own forward, and onnxruntime on its export, which is made when it is first asked for."""

    def __init__(self, module: nn.Module, shape: Shape) -> None:
        self.module, self.shape = module, shape

    @cached_property
    def _torch(self) -> Engine:
        return in_batches(run_module(self.module, self.shape), self.shape)

    @cached_property
    def _exported(self) -> dict[str, Engine]:
        """Nothing where torch cannot export the module or onnxruntime cannot run it."""
        try:
            run = run_session(open_session(export(self.module, self.shape)), self.shape)
            engine = in_batches(run, self.shape)
            engine(np.zeros((1, *self.shape), dtype=np.float32))
        except Exception:
            return {}
        return {"onnxruntime": engine}

    def __getitem__(self, name: str) -> Engine:
        return self._torch if name == "torch" else self._exported[name]

    def __iter__(self) -> Iterator[str]:
        yield "torch"
        yield from self._exported

    def __len__(self) -> int:
        return 1 + len(self._exported)


def in_batches(run: Engine, shape: Shape) -> Engine:
    """The same engine if it treats every image of a batch alike, else one that gives it image by image."""

    def one_by_one(images: Images) -> Images:
        return np.concatenate([run(images[k : k + 1]) for k in range(len(images))])

    pair = np.random.default_rng(1).random((2, *shape), dtype=np.float32)
    try:
        together, alone = run(pair), one_by_one(pair)
        steady = together.shape == alone.shape and np.allclose(
            together, alone, rtol=1e-4, atol=1e-4, equal_nan=True
        )
    except Exception:
        steady = False
    return run if steady else one_by_one


def run_module(module: nn.Module, shape: Shape) -> Engine:
    """The module's own forward, in its own type of number."""
    kind = number_type(module)

    def run(images: Images) -> Images:
        with torch.no_grad():
            batch = torch.from_numpy(np.array(images, dtype=np.float32)).reshape(len(images), *shape).to(kind)
            scores: Images = module(batch).reshape(len(images), -1).to(torch.float32).numpy()
            return scores

    return run


def export(module: nn.Module, shape: Shape) -> bytes:
    """The module as an ONNX file; the module itself is left as it was."""
    file = io.BytesIO()
    example = torch.zeros((1, *shape), dtype=number_type(module))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            copy.deepcopy(module),
            (example,),
            file,
            input_names=["image"],
            output_names=["scores"],
            dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
            dynamo=False,
        )
    return file.getvalue()


def open_session(model: bytes | str) -> Any:
    """A quiet onnxruntime session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
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
