"""One picture through every kind of model, against torch and onnxruntime run by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from closecall import data, models
from closecall.ask.predict import predict
from closecall.errors import DataError, ModelError
from closecall.models import CNN, DNN, CapsNet


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def as_tensor(picture: Path) -> torch.Tensor:
    with Image.open(picture) as opened:
        return torch.from_numpy(np.asarray(opened).astype(np.float32) / 255).reshape(1, 1, 12, 10)


@pytest.mark.parametrize("kind", ["dnn", "cnn", "capsnet"])
def test_a_folder_and_its_onnx_file(kind: str, picture: Path, tmp_path: Path) -> None:
    torch.manual_seed(4)
    made = {
        "dnn": lambda: DNN((6,), (1, 12, 10), 4),
        "cnn": lambda: CNN(["3x3/2"], (5,), (1, 12, 10), 4, strict=False),
        "capsnet": lambda: CapsNet((1, 12, 10), 4, decoder=[8]),
    }
    model = made[kind]().eval()
    models.save_model(model, tmp_path / "model")
    with torch.no_grad():
        expected = model(as_tensor(picture))[0].double().numpy()
    by_folder = predict(tmp_path / "model", picture)
    np.testing.assert_allclose(by_folder.scores, expected, rtol=1e-6)
    assert by_folder.label == int(expected.argmax())
    assert by_folder.kind == ("lengths" if kind == "capsnet" else "logits")
    if kind == "capsnet":
        assert by_folder.probabilities is None
    else:
        softmax = torch.softmax(torch.from_numpy(expected), 0).numpy()
        np.testing.assert_allclose(by_folder.probabilities, softmax, rtol=1e-6)

    by_file = predict(tmp_path / "model" / "model.onnx", picture)
    session = onnxruntime.InferenceSession(str(tmp_path / "model" / "model.onnx"))
    (scores,) = session.run(None, {"image": as_tensor(picture).numpy()})
    np.testing.assert_allclose(by_file.scores, scores[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(by_file.scores, expected, rtol=1e-4, atol=1e-5)
    assert (by_file.kind, by_file.label) == ("outputs", by_folder.label)


def test_the_zoo_reads_a_digit(tmp_path: Path) -> None:
    digit = data.load_dataset("mnist", "test")
    Image.fromarray(digit.images[0, 0]).save(tmp_path / "seven.png")
    for name in ("zoo:mnist-caps", "zoo:mnist-cnn", "zoo:mnist-50x2"):
        assert predict(name, tmp_path / "seven.png").label == digit.labels[0] == 7


def test_what_cannot_be_used(picture: Path, tmp_path: Path) -> None:
    models.save_model(DNN((3,)), tmp_path / "model")
    with pytest.raises(DataError, match="is 10x12 pixels"):
        predict(tmp_path / "model", picture)
    with pytest.raises(DataError, match="there is no image file"):
        predict(tmp_path / "model", tmp_path / "nothing.png")
    with pytest.raises(ModelError, match="There is no model file"):
        predict(tmp_path / "nothing.onnx", picture)
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match="onnxruntime cannot open"):
        predict(tmp_path / "broken.onnx", picture)


def test_an_onnx_file_that_takes_no_picture(picture: Path, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    flat = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 7])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 7])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "flat", [flat], [out])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "flat.onnx")
    with pytest.raises(ModelError, match=r"takes \[\['batch', 7\]\], but a picture is one input"):
        predict(tmp_path / "flat.onnx", picture)
