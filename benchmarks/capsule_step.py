"""A training step of the `paper` capsule network against the textbook way, at batch 128.

The textbook way tiles the 1,152 × 10 matrices over the batch, multiplies each by its capsule with a broadcast
matmul, takes the softmax in every iteration, weighs and sums tiled tensors and, as nobody stops it, lets the
gradient flow through every iteration; `--last` stops it, to see what that part is worth. Convolutions,
decoder and optimiser are the same, and so is the loss: it is compared before anything is timed.

Steps are taken in turns in one process. The time of the wall clock and that of the processor are both given,
because on a shared machine the first says as much about the neighbours. Memory is the peak of a process that
does nothing but take two steps.

    python benchmarks/capsule_step.py [--rounds N] [--threads N] [--batch N] [--last]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time

import torch
from torch import Tensor, nn

from closecall.models import CapsNet
from closecall.models.capsules.routing import squash


class TextbookCapsules(nn.Module):
    """Class capsules as most tutorials write them."""

    def __init__(self, weight: Tensor, classes: int, last: bool) -> None:
        super().__init__()
        self.last = last
        children, child_dimensions, _ = weight.shape
        matrices = weight.detach().reshape(children, child_dimensions, classes, -1).permute(0, 2, 3, 1)
        self.weight = nn.Parameter(matrices.unsqueeze(0).clone())  # (1, children, classes, 16, 8)

    def forward(self, children: Tensor, iterations: int, _all_gradients: bool) -> Tensor:
        batch, classes = len(children), self.weight.shape[2]
        matrices = self.weight.repeat(batch, 1, 1, 1, 1)
        tiled = children[:, :, None, :, None].repeat(1, 1, classes, 1, 1)  # (B, children, classes, 8, 1)
        votes = torch.matmul(matrices, tiled).squeeze(4)  # (B, children, classes, 16)
        still = votes.detach() if self.last else votes
        logits = torch.zeros(*votes.shape[:3], 1)
        for iteration in range(iterations):
            couplings = torch.softmax(logits, dim=2)
            seen = votes if iteration == iterations - 1 else still
            parents = squash((couplings * seen).sum(dim=1, keepdim=True))  # (B, 1, classes, 16)
            if iteration < iterations - 1:
                agreement = still * parents.repeat(1, votes.shape[1], 1, 1)
                logits = logits + agreement.sum(dim=3, keepdim=True)
        return parents.squeeze(1)


def networks(last: bool) -> dict[str, CapsNet]:
    """Give two networks with the same weights."""
    made = {}
    for name in ("ours", "textbook"):
        torch.manual_seed(0)
        made[name] = CapsNet(preset="paper")
    weight = made["ours"].get_parameter("parents.weight")
    made["textbook"].parents = TextbookCapsules(weight, 10, last)
    return made


class Step:
    """One training step of one network on the same random images."""

    def __init__(self, network: CapsNet, batch: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.images = torch.rand(batch, 1, 28, 28, generator=generator)
        self.labels = torch.randint(10, (batch,), generator=generator)
        self.network, self.optimizer = network, torch.optim.Adam(network.parameters(), fused=True)

    def __call__(self) -> tuple[float, float]:
        """Give the seconds of the wall clock and of the processor."""
        start, start_processor = time.perf_counter(), time.process_time()
        self.optimizer.zero_grad()
        loss, _ = self.network.training_loss(self.images, self.labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.loss = float(loss.detach())
        return time.perf_counter() - start, time.process_time() - start_processor


def peak_megabytes(name: str, options: argparse.Namespace) -> float:
    """Give the peak memory of a fresh process that takes two steps."""
    arguments = ["--memory-of", name, "--threads", str(options.threads), "--batch", str(options.batch)]
    arguments += ["--last"] if options.last else []
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="A step of the paper's capsule network, two ways.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument(
        "--last", action="store_true", help="no gradient through the textbook's early iterations"
    )
    parser.add_argument("--memory-of", choices=["ours", "textbook"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        step = Step(networks(options.last)[options.memory_of], options.batch)
        step(), step()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    # A child process starts with its parent's peak, so memory is measured before this process has one.
    memory = {name: peak_megabytes(name, options) for name in ("ours", "textbook")}
    steps = {name: Step(network, options.batch) for name, network in networks(options.last).items()}
    for step in steps.values():
        step()
    losses = {name: step.loss for name, step in steps.items()}
    assert abs(losses["ours"] - losses["textbook"]) < 1e-4 * losses["ours"], losses
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for number in range(options.rounds):
        for name, step in steps.items():
            taken[name].append(step())
            wall, processor = taken[name][-1]
            print(f"round {number + 1}, {name}: {wall:.2f} s, processor {processor:.2f} s", flush=True)
    report(taken, memory)


def report(taken: dict[str, list[tuple[float, float]]], memory: dict[str, float]) -> None:
    """Print the medians and their ratio."""
    medians = {
        name: [statistics.median(times) for times in zip(*both, strict=True)] for name, both in taken.items()
    }
    for name, (wall, processor) in medians.items():
        print(f"{name}: median {wall:.2f} s, processor {processor:.2f} s, {memory[name]:,.0f} MB at most")
    wall, processor = (t / o for t, o in zip(medians["textbook"], medians["ours"], strict=True))
    print(f"ours is {wall:.2f} times as fast by the wall clock, {processor:.2f} times by processor time")


if __name__ == "__main__":
    main()
