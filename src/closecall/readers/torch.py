"""Read a torch module by running it once and writing down what it does to the image.

The module runs on one image while every operation that reaches torch's dispatcher is seen, after torch has
turned mutations into new tensors. So any Python in `forward` is fine as long as it does not look at the
pixels; shapes are plain integers, and whatever does not depend on the image is a constant that torch
computed itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from closecall.arrays import Indices
from closecall.errors import ModelError, UnsupportedLayerError
from closecall.network.windows import Shape
from closecall.readers.aten import CHOICES, COMPARISONS, CONSTANTS, JOINS, MOVES, OPERATIONS
from closecall.readers.choosing import Comparison
from closecall.readers.classifier import SINGLE, first_line
from closecall.readers.graph import GraphBuilder
from closecall.readers.tensor import Array, Tensor


@dataclass(frozen=True)
class Unreadable:
    """A tensor that depends on the image in a way that closecall cannot write down."""

    reason: str


# What is known of a tensor that depends on the image.
Known = Tensor | Comparison | Unreadable


def read_module(module: nn.Module, input_shape: Shape) -> tuple[GraphBuilder, Tensor]:
    """Write down the module's network for one image of the given shape."""
    if any(part.training for part in module.modules()):
        raise ModelError("the module is in training mode: call .eval() on it first.")
    builder = GraphBuilder(input_shape)
    image = torch.zeros((1, *input_shape), dtype=number_type(module))
    recorder = Recorder(module, builder)
    recorder.follow(image, builder.input())
    try:
        with torch.no_grad(), recorder.places_known(), recorder:
            output = torch.func.functionalize(module, remove="mutations")(image)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"the module fails on an image of shape {input_shape}: {first_line(error)}"
        ) from error
    if not isinstance(output, torch.Tensor):
        raise ModelError(
            f"the module must return one tensor of class scores, but returns {type(output).__name__}."
        )
    value = recorder.value_of(output)
    if isinstance(value, Unreadable):
        raise UnsupportedLayerError(value.reason)
    if isinstance(value, Comparison):
        raise UnsupportedLayerError(
            "the module's output is a comparison, which jumps: expected class scores."
        )
    if not isinstance(value, Tensor):
        raise ModelError("the module's output does not depend on the image: expected class scores.")
    return builder, value


def precision_of(module: nn.Module) -> float:
    """The rounding of the module's numbers."""
    return max(SINGLE, float(torch.finfo(number_type(module)).eps))


def number_type(module: nn.Module) -> torch.dtype:
    """The type of number that the module computes with."""
    tensors = [*module.parameters(), *module.buffers()]
    return next((tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point), torch.float32)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation and repeats it on the network that is being built."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Torch would import its compiler, for three seconds, only to keep it away from this class.
        return False

    def __init__(self, module: nn.Module, builder: GraphBuilder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.builder = builder
        self.names = {id(part): name or type(module).__name__ for name, part in module.named_modules()}
        self.path: list[str] = []
        # The torch tensors are kept beside their values, so that no id is ever used twice.
        self.values: dict[int, tuple[torch.Tensor, Known]] = {}

    @contextmanager
    def places_known(self) -> Iterator[None]:
        """Know inside which submodule an operation happens, for messages."""
        entering = register_module_forward_pre_hook(
            lambda part, _: self.path.append(self.names.get(id(part), ""))
        )
        leaving = register_module_forward_hook(self._leave)
        try:
            yield
        finally:
            entering.remove()
            leaving.remove()

    def _leave(self, *_: Any) -> None:
        self.path.pop()

    def follow(self, tensor: torch.Tensor, value: Known) -> None:
        self.values[id(tensor)] = (tensor, value)

    def value_of(self, item: Any) -> Any:
        """The network's tensor for a torch tensor that depends on the image, else the item itself."""
        return self.values[id(item)][1] if id(item) in self.values else item

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        values = [self.value_of(item) for item in tree_flatten((args, kwargs))[0]]
        name = func.overloadpacket.__name__
        if name in CONSTANTS and not any(isinstance(value, Known) for value in values[1:]):
            return result
        if name == "copy_" or not any(isinstance(value, Known) for value in values):
            return result
        outputs = [item for item in tree_flatten(result)[0] if isinstance(item, torch.Tensor)]
        if name == "_local_scalar_dense" or not outputs:
            raise UnsupportedLayerError(
                f"{self._where(name)}: forward decides by the image's numbers, not by layers."
            )
        for output, value in zip(outputs, self._apply(func, args, kwargs, len(outputs)), strict=True):
            self.follow(output, value)
        return result

    def _apply(self, func: Any, args: Any, kwargs: Any, count: int) -> list[Known]:
        """The values of an operation's outputs."""
        name = func.overloadpacket.__name__
        seen = [self.value_of(item) for item in tree_flatten((args, kwargs))[0]]
        for value in seen:
            if isinstance(value, Unreadable):
                return [value] * count
        try:
            if name in COMPARISONS or any(isinstance(value, Comparison) for value in seen):
                return [self._compared(name, args, kwargs)]
            if name in MOVES:
                return list(self._move(func, args, kwargs))
            if name in JOINS:
                return [self._join(func, args, kwargs)]
            if name == "_to_copy":
                return [self._converted(args[0], kwargs.get("dtype"))]
            if name not in OPERATIONS:
                raise UnsupportedLayerError(
                    "closecall cannot reason about it exactly; it reads affine layers, ReLU and its "
                    "relatives, and max pooling, so replace it or cut the model before it."
                )
            given, named = tree_map(self._operand, (tuple(args), dict(kwargs)))
            first = OPERATIONS[name](self.builder, *given, **named)
        except UnsupportedLayerError as error:
            return [Unreadable(f"{self._where(name)}: {error}")] * count
        except ModelError as error:
            raise ModelError(f"{self._where(name)}: {error}") from error
        other = Unreadable(f"{self._where(name)}: only its first result can be used.")
        return [first, *[other] * (count - 1)]

    def _compared(self, name: str, args: Any, kwargs: Any) -> Tensor | Comparison:
        """A comparison, or what depends on one."""
        seen = [self.value_of(item) for item in tree_flatten(args)[0]]
        known = [value for value in seen if isinstance(value, Comparison)]
        if known and name in ("_to_copy", "alias", "clone", "detach"):
            return known[0]
        operation = CHOICES.get(name) if known else COMPARISONS.get(name)
        if operation is None:
            raise UnsupportedLayerError("a comparison can be read only where it chooses between two values.")
        given, named = tree_map(self._operand, (tuple(args), dict(kwargs)))
        return operation(self.builder, *given, **named)

    def _where(self, name: str) -> str:
        inside = f" in {self.path[-1]}" if self.path and self.path[-1] else ""
        return f"operation {name}{inside}"

    def _operand(self, item: Any) -> Any:
        value = self.value_of(item)
        return numbers(value) if isinstance(value, torch.Tensor) else value

    def _converted(self, tensor: torch.Tensor, kind: torch.dtype | None) -> Tensor:
        if kind is not None and not kind.is_floating_point:
            raise UnsupportedLayerError("rounding to whole numbers jumps.")
        value: Tensor = self.value_of(tensor)
        return value

    def _move(self, func: Any, args: Any, kwargs: Any) -> Iterator[Tensor]:
        source: Tensor = self.value_of(args[0])
        if not isinstance(source, Tensor):
            raise UnsupportedLayerError("it chooses entries of a constant by the image.")
        # Doubles hold every place exactly, and more operations know them than integers.
        places = torch.from_numpy(np.ascontiguousarray(source.places)).double()
        name = func.overloadpacket.__name__
        view = name in ("view", "_unsafe_view", "_reshape_alias")
        moved = places.reshape(args[1]) if view else func(places, *args[1:], **kwargs)
        for part in tree_flatten(moved)[0]:
            yield source.moved(partial(_as_places, part))

    def _join(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        """Let torch put numbered entries together, then take those entries."""
        parts: list[Tensor | Array] = []

        def numbered(item: Any) -> Any:
            value = self.value_of(item)
            if not isinstance(value, (Tensor, torch.Tensor)) or item.dtype == torch.bool:
                return item
            start = sum(part.size for part in parts)
            parts.append(value if isinstance(value, Tensor) else numbers(value))
            return torch.arange(start, start + item.numel(), dtype=torch.float64).reshape(item.shape)

        order = func(*tree_map(numbered, tuple(args)), **kwargs).numpy().astype(np.int64)
        flat = [p.moved(np.ravel) if isinstance(p, Tensor) else p.ravel() for p in parts]
        return self.builder.concatenated(flat, 0).moved(lambda places: places[order])


def _as_places(numbered: torch.Tensor, _: Indices) -> Indices:
    return numbered.numpy().astype(np.int64)


def numbers(tensor: torch.Tensor) -> Array:
    """A constant as a float64 array."""
    return tensor.detach().to(torch.float64).cpu().numpy()
