"""Does an installed closecall work, from its archive alone? Train, ask, replay, and look into the zoo.

    python scripts/smoke.py

Run by `make smoke` in an environment of its own, in a folder that has nothing to do with the source.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

import closecall

COMMAND = Path(sys.executable).with_name("closecall")


def say(folder: Path, *arguments: str) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(
        [str(COMMAND), *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"closecall {' '.join(arguments)} ended with code {done.returncode}:\n{done.stderr}")
    return done.stdout


def ask(folder: Path, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(say(folder, *arguments, "--json"))
    return answer


def expect(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"smoke test: {what} was expected, and did not hold.")


def try_commands(folder: Path) -> None:
    expect("nearest" in say(folder, "--help"), "a list of commands")
    say(folder, "train", "--model", "dnn", "--dataset", "digits", "--epochs", "30", "--out", "m")
    question = ("--model", "m", "--dataset", "digits", "--index", "0")
    found = ask(folder, "nearest", *question, "--out", "answer")
    expect(found["outcome"] == "nearest", "the nearest image")
    expect(0 < found["lower_bound"] <= found["distance"], "a proven interval")
    say(folder, "replay", "answer")
    near = str(0.9 * found["lower_bound"])
    held = ask(folder, "certify", *question, "--norm", "l1", "--radius", near)
    expect(held["outcome"] == "robust", "a proof that there is none within nine tenths of the distance")
    Image.new("L", (28, 28)).save(folder / "black.png")
    seen = ask(folder, "predict", "--model", "zoo:mnist-dnn1", "--image", "black.png")
    expect(len(seen["scores"]) == 10, "ten scores from a model of the zoo")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        try_commands(Path(folder))
    print(f"closecall {closecall.__version__} in {Path(closecall.__file__).parent}: all is well.")


if __name__ == "__main__":
    main()
