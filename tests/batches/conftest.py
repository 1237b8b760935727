"""Two small networks that read the embedded digits, one of which searches take long for, and stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from closecall import data
from closecall.models import save_model
from closecall.models.dnn import DNN


def trained(sizes: tuple[int, ...], seed: int = 0) -> DNN:
    """A network that reads most of the digits right, in a second."""
    torch.manual_seed(seed)
    digits, model = data.load_dataset("digits", "train"), DNN(sizes, (1, 8, 8))
    images = torch.from_numpy(digits.images.astype(np.float32) / 255)
    labels = torch.from_numpy(digits.labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 units: answered in a tenth of a second."""
    folder = tmp_path_factory.mktemp("models") / "small"
    save_model(trained((8,)), folder, dataset="digits")
    return folder


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same architecture with other weights."""
    folder = tmp_path_factory.mktemp("models") / "other"
    save_model(trained((8,), seed=1), folder, dataset="digits")
    return folder


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 units: the paper's basic model does not close within any limit that a test has."""
    folder = tmp_path_factory.mktemp("models") / "large"
    save_model(trained((200, 200)), folder, dataset="digits")
    return folder


@pytest.fixture(scope="session")
def closecall_process() -> Callable[..., AbstractContextManager[subprocess.Popen[str]]]:
    """The command line in a process of its own, which is not left behind."""

    @contextmanager
    def run(*arguments: object, program: str = "", **more: str) -> Iterator[subprocess.Popen[str]]:
        code = f"{program}\nfrom closecall.cli import main\nif __name__ == '__main__': main()"
        with subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **more},
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    return run
