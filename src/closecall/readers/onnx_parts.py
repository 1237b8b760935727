"""Open an ONNX file that may come from anyone: what it claims is checked before anything is built."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from closecall.errors import ModelError
from closecall.network.windows import Shape, check_entries
from closecall.readers.classifier import first_line

STANDARD = ("", "ai.onnx")  # two names of the domain of the standard operators
OLDEST_OPSET = 7
FOUR_BITS = {onnx.TensorProto.INT4: np.int8, onnx.TensorProto.UINT4: np.uint8}
LARGEST_FILE = 2**31 - 1


@dataclass(frozen=True, eq=False)
class OnnxFile:
    """A file's graph and constants, and its bytes as they were."""

    path: Path
    content: bytes
    graph: Any
    opset: int
    constants: Mapping[str, NDArray[Any]]
    external: bool
    half: bool


def open_file(path: Path) -> OnnxFile:
    """Parse a file and refuse what no exporter writes."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= LARGEST_FILE else b""
    except OSError as error:
        raise ModelError(f"Cannot read {path}: {error.strerror or error}.") from error
    if size > LARGEST_FILE:
        raise ModelError(f"{path} has {size:,} bytes: an ONNX file has at most {LARGEST_FILE:,}.")
    return parse(content, path)


def parse(content: bytes, path: Path) -> OnnxFile:
    """Parse a file's content; `path` says where its external data lies."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:
        raise ModelError(
            f"{path} is not an ONNX file ({first_line(error)}): export the model again."
        ) from error
    opset = _opset(model, path)
    tensors = list(_all_tensors(model))
    external = any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors)
    for tensor in tensors:
        _check_external(tensor, path.parent)
    if model.functions or model.graph.sparse_initializer or model.training_info:
        raise ModelError(
            f"{path} has local functions, sparse weights or training parts: export a plain model."
        )
    _make_plain(model)
    try:
        onnx.checker.check_model(str(path) if external else model.SerializeToString())
    except Exception as error:
        raise ModelError(f"{path} is not a valid ONNX model ({first_line(error)}).") from error
    constants = {tensor.name: constant(tensor, path.parent) for tensor in model.graph.initializer}
    half = any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in tensors)
    return OnnxFile(path, content, model.graph, opset, constants, external, half)


def _opset(model: Any, path: Path) -> int:
    """The version of the standard operators; a file may say the same one several times."""
    versions = sorted({int(entry.version) for entry in model.opset_import if entry.domain in STANDARD})
    newest = onnx.defs.onnx_opset_version()
    if len(versions) > 1:
        raise ModelError(
            f"{path} has the opsets {', '.join(map(str, versions))} at once, and operators change "
            "from one to the other: export the model again with a single one."
        )
    if not versions or not OLDEST_OPSET <= versions[0] <= newest:
        found = versions[0] if versions else "none"
        raise ModelError(
            f"{path} has opset {found}: closecall reads {OLDEST_OPSET} to {newest}; export the model again."
        )
    return versions[0]


def _make_plain(model: Any) -> None:
    """Write what onnxruntime takes in several ways in the one way that onnx's checker takes."""
    for entry in model.graph.output:
        if not entry.type.tensor_type.HasField("shape"):
            entry.type.tensor_type.shape.SetInParent()
    for part in (*model.opset_import, *model.graph.node):
        if part.domain in STANDARD:
            part.domain = ""


def _all_tensors(model: Any) -> Iterator[Any]:
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _check_external(tensor: Any, folder: Path) -> None:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    _external_file({entry.key: entry.value for entry in tensor.external_data}, folder)


def _external_file(entries: Mapping[str, str], folder: Path) -> Path:
    """The file of external data, which must be a plain file inside the model's own folder."""
    location = entries.get("location", "")
    try:
        home = folder.resolve()
        path = (home / location).resolve()
        inside = bool(location) and path.is_relative_to(home) and path.is_file()
    except (OSError, ValueError):
        inside = False
    if not inside:
        raise ModelError(f"the external data {location!r} is not a file inside the model's own folder.")
    return path


def constant(tensor: Any, folder: Path) -> NDArray[Any]:
    """A tensor's numbers: floats of any width as float64, whole numbers as they are."""
    shape = tuple(int(side) for side in tensor.dims)
    if any(side < 0 for side in shape):
        raise ModelError(f"the constant {tensor.name!r} has the impossible shape {shape}.")
    check_entries(math.prod(shape), f"the constant {tensor.name!r}")
    try:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            array = _read_external(tensor, shape, folder)
        else:
            array = onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OSError, OverflowError) as error:
        raise ModelError(
            f"the numbers of constant {tensor.name!r} do not fit its type and shape {shape}."
        ) from error
    if array.shape != shape:
        raise ModelError(f"the constant {tensor.name!r} has shape {array.shape} instead of {shape}.")
    if tensor.data_type in FOUR_BITS:  # numpy has no such type, and eight bits hold the same numbers
        array = array.astype(FOUR_BITS[tensor.data_type])
    if array.dtype.kind in "iub":
        return array
    try:
        return array.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise ModelError(f"the constant {tensor.name!r} does not hold numbers.") from error


def _read_external(tensor: Any, shape: Shape, folder: Path) -> NDArray[Any]:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    offset, needed = int(entries.get("offset", 0)), math.prod(shape) * kind.itemsize
    if offset < 0 or int(entries.get("length", needed)) != needed:
        raise ValueError("the length of external data")
    with _external_file(entries, folder).open("rb") as file:
        file.seek(offset)
        content = file.read(needed)
    return np.frombuffer(content, dtype=kind.newbyteorder("<")).reshape(shape)
