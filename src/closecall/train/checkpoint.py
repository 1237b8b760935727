"""Checkpoints: one safetensors file, never a pickle, replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as dump_tensors
from torch import Tensor, nn

from closecall.errors import InputError
from closecall.files import write_whole

Weights = dict[str, Tensor]


def save_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, best: Weights, progress: dict[str, Any]
) -> None:
    """Write weights, best weights, the optimiser's memory, torch's random state and the progress so far."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best/{name}": tensor for name, tensor in best.items()}
    for index, memory in optimizer.state_dict()["state"].items():
        kept = {key: value for key, value in memory.items() if isinstance(value, Tensor)}
        tensors |= {f"optimizer/{index}/{key}": value for key, value in kept.items()}
    tensors["random"] = torch.get_rng_state()
    content = dump_tensors(
        {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()},
        metadata={"progress": json.dumps(progress)},
    )
    try:
        write_whole(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot write the checkpoint {path}: {reason}; choose another folder.") from error


def load_checkpoint(path: Path) -> tuple[Weights, dict[str, Any]]:
    """Read the tensors and the progress of a checkpoint."""
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()["progress"])


def load_progress(path: Path) -> dict[str, Any]:
    """Read the progress alone, which takes no time."""
    with _opened(path) as file:
        progress: dict[str, Any] = json.loads(file.metadata()["progress"])
    return progress


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A checkpoint to read from; what goes wrong meanwhile is said in one sentence."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"There is nothing to resume: {path} does not exist; leave --resume out.") from error
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise broken_checkpoint(path, error) from error


def broken_checkpoint(path: Path, error: Exception) -> InputError:
    """Say that a checkpoint cannot be used, and what to do."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(
        f"{path} is not a whole checkpoint ({reason}): start again with --overwrite instead of --resume."
    )


def restore(tensors: Weights, model: nn.Module, optimizer: torch.optim.Optimizer) -> Weights:
    """Put a checkpoint's tensors where they belong; give the best weights so far."""
    model.load_state_dict(_under("model/", tensors))
    memory: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under("optimizer/", tensors).items():
        index, key = name.split("/")
        memory.setdefault(int(index), {})[key] = tensor
    if len({frozenset(kept) for kept in memory.values()}) > 1:
        raise KeyError("the optimiser's memory is incomplete")
    optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(tensors["random"])
    return _under("best/", tensors)


def _under(prefix: str, tensors: Weights) -> Weights:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
