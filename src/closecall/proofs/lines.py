"""What a proof file says, line by line: networks, questions and the file itself."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Image, Matrix
from closecall.errors import QueryError
from closecall.files import explaining_failed_writes
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.network.network import drop_unread, swap_relu_and_maximum
from closecall.proofs.closecheck import VERSION
from closecall.question.question import Question
from closecall.question.where import budget_from

Line = dict[str, Any]
COMPRESSION = 6

# What may be asked that a checker does not know of.
UNPROVABLE = ("confidence", "patch", "change", "pixels")


class ProofFile:
    """A compressed file that lines are added to."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=COMPRESSION, mtime=0)

    def add(self, line: Mapping[str, Any]) -> None:
        self._zip.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")

    def close(self) -> None:
        self._zip.close()


@contextmanager
def writing(path: Path) -> Iterator[ProofFile]:
    """A proof at a path, which is there when it is whole and not before."""
    beside = path.with_name(path.name + ".part")
    with explaining_failed_writes(str(path)):
        try:
            with beside.open("wb") as file:
                proof = ProofFile(file)
                yield proof
                proof.close()
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def exact_form(network: Network) -> Network:
    """An equal network, bit for bit, with ReLUs behind the pooling they feed and nothing unread."""
    return drop_unread(swap_relu_and_maximum(network))


def digest_of(network: Network) -> str:
    """The fingerprint of a network as a proof writes it."""
    digest = hashlib.sha256(repr(network.input_shape).encode())
    for node in network.nodes:
        digest.update(json.dumps(node_line(node), sort_keys=True).encode())
    return digest.hexdigest()


def header(network: Network) -> Line:
    shape = [int(side) for side in network.input_shape]
    return {
        "closecall proof": VERSION,
        "network": digest_of(network),
        "input_shape": shape,
        "nodes": len(network.nodes),
    }


def node_line(node: Node) -> Line:
    layer = node.layer
    if isinstance(layer, Affine):
        weights = [matrix_line(weight) for weight in layer.weights]
        return {"affine": list(node.inputs), "bias": packed(layer.bias, "<f8"), "weights": weights}
    if isinstance(layer, Maximum):
        windows = packed(layer.windows.ravel(), "<i4")
        return {"maximum": node.inputs[0], "width": layer.windows.shape[1], "windows": windows}
    if isinstance(layer, Relu):
        return {"relu": node.inputs[0]}
    raise TypeError(f"no such layer can be proven: {type(layer).__name__}")


def matrix_line(matrix: Matrix) -> Line:
    """The entries of a matrix that are not 0; columns as steps from the one before, which compress well."""
    sparse = csr_array(matrix, copy=True)
    sparse.eliminate_zeros()
    sparse.sort_indices()
    steps = np.diff(sparse.indices, prepend=0).astype(np.int64)
    counts = np.diff(sparse.indptr)
    starts = sparse.indptr[:-1][counts > 0]
    steps[starts] = sparse.indices[starts] + 1
    single = bool((sparse.data.astype(np.float32).astype(np.float64) == sparse.data).all())
    return {
        "counts": packed(counts, "<u4"),
        "steps": packed(steps, "<i4"),
        "kind": "f" if single else "d",
        "values": packed(sparse.data, "<f4" if single else "<f8"),
    }


def packed(values: NDArray[Any], kind: str) -> str:
    with np.errstate(over="ignore"):
        return base64.b64encode(values.astype(kind).tobytes()).decode()


def question_line(question: Question, radius: float, witness: Image | None, *, deployed: bool) -> Line:
    """The question as a checker reads it: none within this radius, and the witness, if there is one."""
    by_ratio = question.ratio is not None and question.outputs == "relu"
    targets = question.group if question.target is None else (question.target,)
    return {
        "norm": question.norm,
        "radius": None if math.isinf(radius) else radius,
        "image": packed(question.image, "<f4"),
        "pixel_range": [float(end) for end in question.pixel_range],
        "cap": cap_of(question),
        "mask": question.mask,
        "label": question.label,
        "targets": None if targets is None else list(targets),
        "out_of_top": question.out_of_top,
        "lead": 0.0 if by_ratio else lead_of(question),
        "factor": float(question.ratio) if by_ratio and question.ratio is not None else 1.0,
        "least": float(question.margin) if by_ratio else None,
        "deployed": deployed,
        "witness": None if witness is None else packed(witness.ravel(), "<f4"),
    }


def lead_of(question: Question) -> float:
    """By how much a score must be ahead of another: of all cases, a threshold that is not relative."""
    return float(question.goal().cases[0].threshold[0])


def cap_of(question: Question) -> float | None:
    """The most that a pixel may change: a cap, or a second budget that is one."""
    caps = [] if question.cap is None else [float(question.cap)]
    if question.also is not None:
        norm, amount = budget_from(question.also)
        if norm.name != "linf":
            raise QueryError(f"no proof can be written with a budget in {norm.name}: only L∞ can be one.")
        caps.append(amount)
    return min(caps) if caps else None
