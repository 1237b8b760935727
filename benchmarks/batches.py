"""What a batch saves and what it costs, each ratio measured in one run.

*Together*: certify questions about a network that was trained for the radius, one by one in a loop and as a
batch in one process; the answers must be the same. *Workers*: certify questions that are searched, by one
worker and by two in turns; what a worker takes per question beyond the search itself is the overhead. The
first answers, while some worker may still wait for imports and for the model, are not counted.

    python benchmarks/batches.py [--together 1000] [--questions 200] [--radius 0.1]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import closecall
from closecall.batches.together import ENGINE
from closecall.data import load_dataset

ROBUST, SMALL = "zoo:mnist-cnn-robust", "zoo:mnist-dnn1"
L1_RADIUS = 0.5  # in L1 nothing is settled before workers are asked
ROUNDS = 5  # of one worker and two in turns; medians are told
NOT_COUNTED = 400  # answers: a worker that is already at work gives so many while another one gets ready


def one_by_one(model: str, count: int, radius: float) -> tuple[float, list[str]]:
    """The loop that a user would write, with the model read once."""
    images, classifier = load_dataset("mnist", "test"), closecall.read(model)
    closecall.certify(classifier, images.image(0), int(images.labels[0]), radius=radius)  # imports
    began = time.perf_counter()
    outcomes: list[str] = []
    for index in range(count):
        verdict = closecall.certify(classifier, images.image(index), int(images.labels[index]), radius=radius)
        outcomes.append(verdict.outcome)
    return time.perf_counter() - began, outcomes


def together(model: str, count: int, radius: float, workers: int | None) -> tuple[float, list[str]]:
    """The same as a batch."""
    batch = closecall.batch(
        model, "mnist", indices=range(count), task="certify", radius=radius, workers=workers
    )
    began = time.perf_counter()
    proven = sum(verdict.engine == ENGINE for verdict in batch)
    seconds = time.perf_counter() - began
    print(f"  {proven} of {count} were proven together")
    rows = sorted(batch.table(), key=lambda row: int(row["index"]))
    return seconds, [str(row["outcome"]) for row in rows]


def by_workers(count: int, workers: int) -> tuple[float, float, float]:
    """Seconds per question, milliseconds of overhead in a worker, and the most memory of a process in MB."""
    batch = closecall.batch(
        SMALL, "mnist", indices=range(NOT_COUNTED + count), task="certify", norm="l1", radius=L1_RADIUS,
        workers=workers,
    )  # fmt: skip
    arrived, searched, memory = [], [], 0
    for reply in batch.replies():
        if reply.verdict is not None:
            arrived.append(time.perf_counter())
            searched.append(reply.verdict.seconds)
            memory = max(memory, reply.memory)
    each = (arrived[-1] - arrived[NOT_COUNTED - 1]) / (len(arrived) - NOT_COUNTED)
    mean = sum(searched[NOT_COUNTED:]) / (len(searched) - NOT_COUNTED)
    return each, 1e3 * (workers * each - mean), memory / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="What a batch saves and what it costs.")
    parser.add_argument("--together", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--radius", type=float, default=0.1)
    args = parser.parse_args()
    print(f"{args.together} certify questions, {ROBUST}, L∞ {args.radius:g}")
    alone, expected = one_by_one(ROBUST, args.together, args.radius)
    print(f"  one by one: {alone:.2f} s")
    for workers, told in ((0, "a batch in one process"), (None, "a batch with its default workers")):
        seconds, outcomes = together(ROBUST, args.together, args.radius, workers)
        same = "the same answers" if outcomes == expected else "OTHER ANSWERS"
        print(f"  {told}: {seconds:.2f} s, {alone / seconds:.1f} times as fast, {same}", flush=True)
    print(f"{args.questions} certify questions, {SMALL}, L1 {L1_RADIUS:g}")
    rounds = [{workers: by_workers(args.questions, workers) for workers in (1, 2)} for _ in range(ROUNDS)]
    measured = {workers: np.median([found[workers] for found in rounds], axis=0) for workers in (1, 2)}
    for workers, (each, overhead, memory) in measured.items():
        print(
            f"  {workers} worker(s): {1e3 * each:.1f} ms a question, {overhead:.1f} ms of it overhead, "
            f"up to {memory:.0f} MB in a process"
        )
    print(f"  two workers are {measured[1][0] / measured[2][0]:.2f} times as fast as one")


if __name__ == "__main__":
    main()
