"""Our training loop against the plainest one: DNN(50, 50) on MNIST, 8 epochs, batches of 256.

Both learn from the same number of images with Adam and one number of threads, in turns. The plain loop has
its images ready as floats in a tensor and does nothing but learn; ours starts from bytes, and it also counts
accuracy, measures the held-out images and writes a checkpoint after every epoch.

    python benchmarks/training_speed.py [--rounds N] [--threads N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from closecall import data
from closecall.models import DNN
from closecall.train import TrainingPlan, train

EPOCHS, BATCH, HELD_OUT = 8, 256, 5_000


def plain_loop(images: Tensor, labels: Tensor) -> float:
    """Train as plainly as PyTorch allows; give the seconds it took."""
    torch.manual_seed(0)
    model = DNN((50, 50))
    optimizer = torch.optim.Adam(model.parameters())
    start = time.perf_counter()
    for _ in range(EPOCHS):
        order = torch.randperm(len(images))
        for first in range(0, len(images), BATCH):
            chosen = order[first : first + BATCH]
            loss = F.cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return time.perf_counter() - start


def our_loop(dataset: data.Dataset, threads: int) -> float:
    """Train with closecall; give the seconds it took, everything included."""
    torch.manual_seed(0)
    model = DNN((50, 50))
    plan = TrainingPlan(epochs=EPOCHS, batch=BATCH, validation=HELD_OUT, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        train(model, dataset, plan, checkpoint=Path(folder) / "checkpoint.safetensors")
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="Our training loop against the plainest one.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dataset = data.load_dataset("mnist", "train")
    images = torch.from_numpy(dataset.images[HELD_OUT:]).float() / 255
    labels = torch.from_numpy(dataset.labels[HELD_OUT:])
    plain, ours = [], []
    for number in range(options.rounds):
        plain.append(plain_loop(images, labels))
        ours.append(our_loop(dataset, options.threads))
        print(f"round {number + 1}: plain {plain[-1]:.2f} s, ours {ours[-1]:.2f} s", flush=True)
    ratio = statistics.median(plain) / statistics.median(ours)
    print(f"median: plain {statistics.median(plain):.2f} s, ours {statistics.median(ours):.2f} s")
    print(f"ours is {ratio:.2f} times as fast ({options.threads} thread(s))")


if __name__ == "__main__":
    main()
