"""How many test images are proven within a radius in L∞, and how long each takes, for trained networks.

An image counts as proven when the model is right about it and no image within the radius reaches another
class by the usual margin: by linear bounds alone, or, with `--search SECONDS`, by `closecall.certify` within
so many seconds for each image, which also refutes.

    python benchmarks/proven_share.py zoo:mnist-cnn zoo:mnist-cnn-robust --radius 0.02 --radius 0.1 \
        [--dataset mnist] [--images 100] [--search 10]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter

import numpy as np

from closecall import certify
from closecall.bounds import all_excluded, linear_bounds
from closecall.data import load_dataset
from closecall.network import Network
from closecall.question.question import Question
from closecall.readers import Classifier, read


def by_bounds(network: Network, question: Question) -> str:
    """Ask linear bounds alone: `robust`, or `unresolved`."""
    domain = question.domain()
    held = all_excluded(network, domain, question.goal(), linear_bounds(network, domain))
    return "robust" if held else "unresolved"


def by_search(classifier: Classifier, question: Question, seconds: float) -> str:
    """Ask the whole search: `robust`, `adversarial` or `unresolved`."""
    return certify(
        classifier, question.image, question.label, radius=question.radius, time_limit=seconds
    ).outcome


def measure(source: str, args: argparse.Namespace, radius: float) -> str:
    """Give a row of the table: outcomes over the first images, and the median seconds of a proof."""
    dataset, classifier = load_dataset(args.dataset, "test"), read(source)
    network = classifier.network.simplified()
    outcomes: Counter[str] = Counter()
    seconds: list[float] = []
    for index in range(args.images):
        image, label = dataset.image(index), int(dataset.labels[index])
        if classifier.predict(image) != label:
            outcomes["wrong"] += 1
            continue
        question = Question(image.astype(np.float64), label, network.classes, norm="linf", radius=radius)
        began = time.perf_counter()
        if args.search:
            outcome = by_search(classifier, question, args.search)
        else:
            outcome = by_bounds(network, question)
        outcomes[outcome] += 1
        if outcome == "robust":
            seconds.append(time.perf_counter() - began)
    taken = f"{statistics.median(seconds):.3f} s" if seconds else "–"
    counts = [outcomes[name] for name in ("robust", "adversarial", "unresolved", "wrong")]
    share = f"{counts[0] / args.images:.1%}"
    return " | ".join([source, f"{radius:g}", share, *map(str, counts), taken])


def main() -> None:
    parser = argparse.ArgumentParser(description="How many test images are proven within a radius.")
    parser.add_argument("models", nargs="+", help="zoo:NAME, a folder or an .onnx file")
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--radius", type=float, action="append", required=True)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--search", type=float, default=0.0, metavar="SECONDS")
    args = parser.parse_args()
    print("model | radius | proven | robust | adversarial | unresolved | wrong | median time of a proof")
    for source in args.models:
        for radius in args.radius:
            print(measure(source, args, radius), flush=True)


if __name__ == "__main__":
    main()
