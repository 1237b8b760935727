"""Results survive the way to JSON and back, and damage is named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from closecall.compare.results import (
    CapsuleRow,
    Dimensions,
    DistanceRow,
    EncodingRow,
    FewRow,
    HowMade,
    MilpAnswer,
    ModelRow,
    OverlapRow,
    OverlapShot,
    Reconstruction,
    Results,
    TransformRow,
)
from closecall.errors import InputError

PICTURE = [[[0.0, 0.25], [0.5, 1.0]]]


def whole_results() -> Results:
    """One row of every kind, with both branches of what may be missing."""
    answer = MilpAnswer(3, 0.1, 90, 12, 40, 12, 7, 0.5, 0.1, 0.1, 0.0, True)
    return Results(
        dataset="digits",
        class_names=["no", "yes"],
        input_shape=[1, 2, 2],
        train_images=8,
        test_images=4,
        preset="quick",
        seeds=[0, 1],
        norm="linf",
        distance_images=[3],
        models=[
            ModelRow("dnn", "dnn", "8", "trained here", 80, 8, [0.9, 1.0], [1.0, 2.0], 0.1, 0.01, True),
            ModelRow("capsnet", "capsnet", "small", "zoo:x", 80, None, [0.9], [], 0.1, 0.01, False, "note"),
        ],
        distances=[
            DistanceRow(
                "dnn", 3, 0, 1, "linf", "nearest", 0.1, 0.1, True, None, 1.0, 5, PICTURE, PICTURE
            ),
            DistanceRow("dnn", 2, 0, None, "linf", "robust", None, None, True, None, 1.0, 5),
        ],
        transformed=[TransformRow("dnn", "shift", 1.0, "pixels", [0.5, 0.75])],
        few=[FewRow("dnn", 3, 1, 0.5)],
        overlapping=[
            OverlapRow("capsnet", "", 0.5, 80, 8, 4, 1.0, [OverlapShot(PICTURE, [0, 1], [0, 1], [PICTURE])])
        ],
        capsules=[
            CapsuleRow(
                "capsnet",
                [Reconstruction(3, 0, 0, PICTURE, PICTURE)],
                [Dimensions(3, 0, 0, [-0.25, 0.25], [[PICTURE, PICTURE]])],
            )
        ],
        encodings=[
            EncodingRow(
                "dnn 8", "dnn", "8", "size", "units", 0.9, None, 80, 8, 90, 12, 40, 12, 7, 0.5, 1.0, [answer]
            )
        ],
        how=HowMade(
            "1", "3.11", {"torch": "2"}, "a machine", "closecall compare", "then", "now", 3.0, 1, "highs",
            1.0, 1.0, 1e-4, 1e-4, {"dnn": "10 epochs"}, ["less of it"],
        ),
    )  # fmt: skip


def test_json_gives_back_the_same_results(tmp_path: Path) -> None:
    results = whole_results()
    assert Results.from_json(results.to_json()) == results
    (tmp_path / "results.json").write_text(results.to_json())
    assert Results.read(tmp_path / "results.json") == results


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 99}, "format 99"),
        ({"seeds": "0"}, "expected list, got str"),
        ({"seeds": [True]}, "expected int, got bool"),
        ({"dataset": None}, "expected str, got NoneType"),
        ({"colour": "red"}, "no field 'colour'"),
        ({"few": [{"model": "dnn"}]}, "missing"),
    ],
)
def test_damage_is_named(change: dict[str, object], sentence: str) -> None:
    content = {**json.loads(whole_results().to_json()), **change}
    with pytest.raises(InputError, match=sentence):
        Results.from_json(json.dumps(content))


def test_no_json_at_all_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not valid JSON"):
        Results.from_json("{")
    with pytest.raises(InputError, match="run the comparison first"):
        Results.read(tmp_path / "results.json")


def test_a_field_left_out_takes_its_default_only_if_it_has_one() -> None:
    content = json.loads(whole_results().to_json())
    del content["models"][0]["note"]
    assert Results.from_json(json.dumps(content)) == whole_results()
    del content["models"][0]["parameters"]
    with pytest.raises(InputError, match="parameters"):
        Results.from_json(json.dumps(content))


def test_infinity_never_reaches_the_file() -> None:
    results = dataclasses.replace(whole_results(), few=[FewRow("dnn", 3, 1, float("inf"))])
    with pytest.raises(ValueError, match="JSON compliant"):
        results.to_json()
