"""The table of yardsticks is complete, and folders of instances are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from closecall.bench.yardsticks import YARDSTICKS, Instance, instances_in, yardsticks_named
from closecall.errors import InputError
from closecall.models import zoo_names
from closecall.question.norms import norm_named
from closecall.search.methods import METHODS
from closecall.solvers import SOLVERS


def test_every_yardstick_can_be_asked() -> None:
    assert list(YARDSTICKS) == [
        "paper",
        "gurobi",
        "highs",
        "norms",
        "cnn",
        "robust",
        "wide",
        "oval21",
        "pixels",
        "growth",
    ]
    for yardstick in YARDSTICKS.values():
        assert yardstick.contenders[0].method == "auto"
        for contender in yardstick.contenders:
            assert contender.method in METHODS
            assert contender.solver in SOLVERS
            assert contender.quick <= contender.full
        for family in yardstick.families:
            norm_named(family.norm)
            assert {name.removeprefix("zoo:") for name in family.networks} & set(zoo_names())


def test_yardsticks_keep_their_order_and_unknown_ones_are_refused() -> None:
    assert [y.name for y in yardsticks_named([])] == list(YARDSTICKS)
    assert [y.name for y in yardsticks_named(["growth", "paper"])] == ["paper", "growth"]
    with pytest.raises(InputError, match="no yardstick 'papers': choose from paper, gurobi"):
        yardsticks_named(["papers"])


def test_instances_and_their_expected_answers_are_read(tmp_path: Path) -> None:
    (tmp_path / "some_instances.csv").write_text("a.onnx,one.vnnlib,120\na.onnx, two.vnnlib,120\n\n")
    (tmp_path / "expected.csv").write_text("network,property,expected\na.onnx,two.vnnlib,sat\n")
    assert instances_in(tmp_path) == [
        Instance("a.onnx", "one.vnnlib", None),
        Instance("a.onnx", "two.vnnlib", "sat"),
    ]


def test_expected_answers_alone_list_the_instances(tmp_path: Path) -> None:
    (tmp_path / "expected.csv").write_text(
        "network,property,expected\na.onnx,one.vnnlib.gz,unsat\na.onnx,two.vnnlib,unknown\n"
    )
    assert instances_in(tmp_path) == [
        Instance("a.onnx", "one.vnnlib.gz", "unsat"),
        Instance("a.onnx", "two.vnnlib", None),
    ]


def test_a_folder_without_a_list_or_with_a_short_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are 0"):
        instances_in(tmp_path)
    (tmp_path / "instances.csv").write_text("a.onnx\n")
    with pytest.raises(InputError, match="row 1 has 1 columns"):
        instances_in(tmp_path)
