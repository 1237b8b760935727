"""A torch module as engines: its own forward, and onnxruntime on its export."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import torch
from torch import nn

from closecall.network.windows import Shape
from closecall.readers.classifier import Engine, Images
from closecall.readers.engines import in_batches, open_session, run_session
from closecall.readers.torch import number_type


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
            file,  # type: ignore[arg-type]
            input_names=["image"],
            output_names=["scores"],
            dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
            dynamo=False,
        )
    return file.getvalue()
