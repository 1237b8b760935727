"""The public names are all there, explain themselves, and take little to get at."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing

import pytest

import closecall
import closecall.errors

ERRORS = {
    name
    for name, value in vars(closecall.errors).items()
    if inspect.isclass(value) and issubclass(value, closecall.errors.ClosecallError)
}
NAMES = {
    "Attacked", "Batch", "Classifier", "Costs", "Curve", "Effort", "Ideal", "Ideals", "Question",
    "Universal", "Verdict", "__version__", "attack", "batch", "certify", "curve", "ideal", "ideals",
    "load_model", "nearest", "read", "universal",
} | ERRORS  # fmt: skip
FUNCTIONS = [
    "attack", "batch", "certify", "curve", "ideal", "ideals", "load_model", "nearest", "read", "universal",
]  # fmt: skip
HEAVY = ("torch", "scipy", "matplotlib", "sklearn", "onnx", "onnxruntime", "highspy", "PIL")


def test_the_public_names_are_few_and_all_there() -> None:
    assert set(closecall.__all__) == NAMES
    assert set(dir(closecall)) >= NAMES
    for name in NAMES:
        assert getattr(closecall, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'farthest'"):
        _ = closecall.farthest


def test_every_error_can_be_caught_by_its_public_name() -> None:
    assert {"DataError", "ModelError", "QueryError", "SolverError", "UnsupportedLayerError"} <= ERRORS
    for name in ERRORS:
        assert getattr(closecall, name) is getattr(closecall.errors, name)
    with pytest.raises(closecall.ModelError):
        closecall.read("nowhere.onnx")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_help_explains_every_parameter(name: str) -> None:
    function = getattr(closecall, name)
    parameters = [*inspect.signature(function).parameters]
    lines = inspect.getdoc(function).partition("Args:\n")[2].splitlines()
    explained = [line.split(":")[0].strip() for line in lines if ": " in line]
    assert explained == parameters


@pytest.mark.parametrize("name", ["nearest", "certify"])
def test_names_of_methods_solvers_and_norms_are_types(name: str) -> None:
    hints = typing.get_type_hints(getattr(closecall, name))
    assert typing.get_args(hints["solver"]) == ("highs", "scip", "gurobi", "cplex")
    assert "auto" in typing.get_args(hints["method"])
    assert "linf" in typing.get_args(typing.get_args(hints["norm"])[0])


@pytest.mark.parametrize(
    "program",
    [
        "import closecall",
        "import closecall\ndir(closecall)\nclosecall.QueryError",
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
