"""What a shell offers, against what the package knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from closecall.cli import completion


def test_the_names_are_those_of_the_package() -> None:
    from closecall.bench.yardsticks import YARDSTICKS
    from closecall.cli.asking import PRESETS
    from closecall.data import KNOWN_NAMES
    from closecall.models import MODELS
    from closecall.models.zoo import zoo_names

    assert completion.DATASETS == KNOWN_NAMES
    assert tuple(YARDSTICKS) == completion.YARDSTICKS
    assert tuple(PRESETS) == completion.PRESETS
    assert set(completion.MODELS) == set(MODELS)
    assert completion.complete_model("zoo:") == [f"zoo:{name}" for name in zoo_names()]


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    for name in ("mine/net.onnx", "mine/notes.txt", "mine/.hidden.onnx", "my.npz"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert completion.complete_model("mi") == ["mine/"]
    assert completion.complete_model("mine/") == ["mine/deep/", "mine/net.onnx"]
    assert completion.complete_model(f"{tmp_path}/mine/n") == [f"{tmp_path}/mine/net.onnx"]
    assert completion.complete_dataset("m") == ["mnist", "multimnist", "mnist-affine", "mine/", "my.npz"]
    assert completion.complete_model("nowhere/") == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("closecall nearest --norm l", {"l1", "l2", "linf", "l0"}),
        ("closecall nearest --solver g", {"gurobi"}),
        ("closecall certify --method mi", {"milp", "milp-improved", "milp-basic"}),
        ("closecall nearest --model zoo:mnist-dnn", {f"zoo:mnist-dnn{k}" for k in range(1, 6)}),
        ("closecall train --dataset fa", {"fashion"}),
        ("closecall exp", {"export-milp"}),
    ],
)
def test_as_bash_asks(words: str, offered: set[str], tmp_path: Path) -> None:
    program = "import sys; sys.argv = ['closecall']; from closecall.cli import main; main()"
    environment = {
        **os.environ,
        "_CLOSECALL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert set(done.stdout.split()) == offered, done.stderr


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['closecall', '--help']\nfrom closecall.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = [m for m in ('torch', 'numpy', 'scipy', 'matplotlib', 'PIL') if m in sys.modules]\n"
        "    print('heavy:', heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.rstrip().endswith("heavy: []"), done.stderr
