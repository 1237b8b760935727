"""How long commands take from the shell, beside an interpreter that only imports NumPy and ONNX Runtime.

Every command is run in an interpreter of its own, all of them in turns, so that a busy machine slows all down
alike: what counts is how many times as long as the imports a command takes.

    python benchmarks/start_up.py [--rounds N]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from closecall.data import load_dataset
from closecall.models.plain import load_plain
from closecall.readers.plain_engines import onnx_bytes

MODEL, CNN = "zoo:mnist-dnn1", "zoo:mnist-cnn-robust"
IMPORTS = "import numpy, onnxruntime"


def commands(folder: Path) -> dict[str, list[str]]:
    """The arguments of the interpreter for each thing that is measured, the imports first."""
    plain = load_plain(MODEL)
    if plain is None:
        raise SystemExit(f"{MODEL} cannot be read without torch.")
    file = folder / "model.onnx"
    file.write_bytes(onnx_bytes(plain))
    image = ["--dataset", "mnist", "--index", "0"]
    question = [*image, "--norm", "l1", "--target", "paper"]
    closecall = ["-m", "closecall"]
    return {
        IMPORTS: ["-c", IMPORTS],
        "--help": [*closecall, "--help"],
        "zoo": [*closecall, "zoo"],
        "predict, a model of the zoo": [*closecall, "predict", "--model", MODEL, *image],
        "nearest, a model of the zoo": [*closecall, "nearest", "--model", MODEL, *question],
        "nearest, an ONNX file": [*closecall, "nearest", "--model", str(file), *question],
        "certify, a CNN of the zoo": [*closecall, "certify", "--model", CNN, *image, "--radius", "0.1"],
    }


def run(arguments: list[str]) -> tuple[float, float]:
    """The seconds that an interpreter took, by the clock and of a core."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description="How long commands take from the shell.")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    load_dataset("mnist", "test")  # fetched before anything is measured
    with tempfile.TemporaryDirectory() as folder:
        measured = commands(Path(folder))
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
        for _ in range(options.rounds):
            for name, arguments in measured.items():
                taken[name].append(run(arguments))
    imports = [statistics.median(column) for column in zip(*taken[IMPORTS], strict=True)]
    print(f"median of {options.rounds} rounds, in turns; × is how many times as long as `{IMPORTS}`")
    for name, rows in taken.items():
        clock, core = (statistics.median(column) for column in zip(*rows, strict=True))
        print(
            f"{name:29} {clock:6.2f} s ({clock / imports[0]:4.1f}×), "
            f"{core:6.2f} s of a core ({core / imports[1]:4.1f}×)"
        )


if __name__ == "__main__":
    main()
