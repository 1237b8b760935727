"""Models by name and by path, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from closecall.compare.contenders import contenders_from, parse_given
from closecall.compare.presets import preset_named
from closecall.errors import InputError
from closecall.models import DNN, save_model

SHAPE = (1, 8, 8)
QUICK = preset_named("quick", SHAPE)


def test_names_and_paths_in_their_order(tmp_path: Path) -> None:
    save_model(DNN((5,), SHAPE), tmp_path / "mine")
    given = {"cnn": "net.onnx", "mine": str(tmp_path / "mine")}
    chosen = contenders_from(["dnn", "cnn"], given, QUICK, SHAPE)
    assert [(c.name, c.kind, c.source) for c in chosen] == [
        ("dnn", "dnn", ""),
        ("cnn", "other", "net.onnx"),
        ("mine", "dnn", str(tmp_path / "mine")),
    ]
    assert [c.trainable for c in chosen] == [True, False, True]
    assert chosen[2].config["sizes"] == [5]
    assert chosen[1].summary({}) == "ONNX file net.onnx"


@pytest.mark.parametrize(
    ("names", "given", "words"),
    [
        (["dnn", "dnn"], {}, "names dnn twice"),
        (["rnn"], {}, "--model rnn=PATH"),
        ([], {}, "nothing to compare"),
        (["dnn"], {"dnn": "zoo:mnist-50x2"}, r"takes images of shape \(1, 28, 28\)"),
        (["dnn"], {"dnn": "zoo:nothing"}, "no zoo model"),
        (["dnn"], {"dnn": "net.pt"}, "pickle"),
    ],
)
def test_bad_choices(names: list[str], given: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        contenders_from(names, given, QUICK, SHAPE)


def test_parsing() -> None:
    assert parse_given(["a=b=c", "d=zoo:e"]) == {"a": "b=c", "d": "zoo:e"}
    for texts, words in (
        (["dnn"], "NAME=PATH"),
        (["=x"], "NAME=PATH"),
        (["a=1", "a=2"], "twice"),
        (["../a=1"], "made of letters"),
        ([".a=1"], "made of letters"),
    ):
        with pytest.raises(InputError, match=words):
            parse_given(texts)
