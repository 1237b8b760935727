"""The public names, and how little it takes to get at them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import closecall

NAMES = {
    "ClosecallError", "Costs", "Ideal", "Verdict", "__version__",
    "attack", "certify", "ideal", "load", "nearest", "read",
}  # fmt: skip
HEAVY = ("torch", "scipy", "matplotlib", "sklearn", "onnx", "onnxruntime", "highspy", "PIL")


def test_the_public_names_are_few_and_all_there() -> None:
    assert set(closecall.__all__) == NAMES
    for name in NAMES:
        assert getattr(closecall, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'farthest'"):
        _ = closecall.farthest


@pytest.mark.parametrize(
    "program",
    [
        "import closecall",
        "import sys\nsys.argv = ['closecall', '--help']\nfrom closecall.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass",
        "import sys\nsys.argv = ['closecall', 'nearest', '--help']\nfrom closecall.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass",
    ],
)
def test_importing_and_helping_load_nothing_heavy(program: str) -> None:
    listing = f"\nimport sys\nprint('loaded', [name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program + listing], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.rstrip().endswith("loaded []")
