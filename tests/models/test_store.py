"""Saving and loading: the same weights back, onnxruntime agrees, and bad files get one sentence."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from closecall.errors import ModelError
from closecall.models import CNN, DNN, build, describe, load_model, save_model
from closecall.models.export import onnx_bytes


def models() -> dict[str, nn.Module]:
    torch.manual_seed(5)
    blocks = ["3x6s2/3s1", "2x3p1/2"]
    built = {
        "dnn": DNN((9, 8)),
        "relu outputs": DNN((9, 8), bias=False, outputs="relu"),
        "standard": CNN(blocks, hidden=(6,)),
        "paper": CNN(blocks, hidden=(6, 5), convolution="paper"),
        "paper without bias": CNN(blocks, hidden=(), convolution="paper", bias=False),
        "colour": CNN(["4x5s2"], input_shape=(3, 33, 33), classes=3, strict=False),
    }
    for model in built.values():
        for parameter in model.parameters():
            parameter.data.normal_(std=0.3)
    return built


@pytest.fixture(params=list(models()))
def model(request: pytest.FixtureRequest) -> nn.Module:
    return models()[request.param]


def some_images(model: nn.Module, count: int = 5) -> torch.Tensor:
    return torch.rand(count, *model.input_shape, generator=torch.Generator().manual_seed(1))


def test_loaded_is_what_was_saved(model: nn.Module, tmp_path: Path) -> None:
    save_model(model, tmp_path / "a" / "b", dataset="mnist", accuracy=0.5)
    random_state = torch.get_rng_state()
    loaded = load_model(tmp_path / "a" / "b")
    assert torch.equal(torch.get_rng_state(), random_state)
    assert type(loaded) is type(model)
    assert not loaded.training
    assert loaded.config() == model.config()
    assert torch.equal(loaded(some_images(model)), model(some_images(model)))
    described = describe(str(tmp_path / "a" / "b"))
    assert (described["dataset"], described["accuracy"]) == ("mnist", 0.5)
    assert described["config"] == json.loads(json.dumps(model.config()))
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "model.json",
        "model.onnx",
        "model.safetensors",
    ]


def test_onnxruntime_agrees(model: nn.Module) -> None:
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    layers = [type(layer) for layer in model.modules()]
    content = onnx_bytes(model)
    assert model.training
    assert [type(layer) for layer in model.modules()] == layers
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())

    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content)
    assert [node.name for node in session.get_inputs()] == ["image"]
    for count in (1, 5):
        images = some_images(model, count)
        (scores,) = session.run(["scores"], {"image": images.numpy()})
        np.testing.assert_allclose(scores, model(images).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_paper_convolution_leaves_as_an_ordinary_one() -> None:
    graph = onnx.load_from_string(onnx_bytes(models()["paper"])).graph
    kinds = {node.op_type for node in graph.node}
    assert kinds <= {"Conv", "Relu", "MaxPool", "Flatten", "Gemm", "Constant", "Identity"}


def test_build_is_seeded_and_leaves_torch_alone() -> None:
    random_state = torch.get_rng_state()
    first, again, other = (build("dnn", {"sizes": [5]}, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), random_state)
    image = some_images(first)
    assert torch.equal(first(image), again(image))
    assert not torch.equal(first(image), other(image))


@pytest.mark.parametrize(
    ("kind", "config", "words"),
    [
        ("rnn", {}, "no model 'rnn'; the models are dnn, cnn"),
        ("dnn", {"sizes": [5], "depth": 3}, "no option 'depth'; its options are sizes"),
    ],
)
def test_bad_build(kind: str, config: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        build(kind, config)


def test_only_registered_models_are_saved(tmp_path: Path) -> None:
    class Mine(DNN):
        pass

    with pytest.raises(ModelError, match="not Mine: export it to ONNX"):
        save_model(Mine((3,)), tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(DNN((4, 3)), tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.PKL"])
def test_a_pickle_is_never_opened(folder: Path, name: str) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (folder / "exploded",))

    (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError, match="never loads one"):
        load_model(folder / name)
    (folder / "model.safetensors").write_bytes((folder / name).read_bytes())
    with pytest.raises(ModelError, match="not a whole safetensors file"):
        load_model(folder)
    assert not (folder / "exploded").exists()


def test_missing_files(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ModelError, match="is not a folder"):
        load_model(tmp_path / "nowhere")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"Cannot read .*model.safetensors"):
        load_model(folder)
    (folder / "model.json").unlink()
    with pytest.raises(ModelError, match=r"Cannot read .*model.json"):
        describe(folder)


def test_truncated_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    for kept in (0, 4, 100, len(content) - 1):
        weights.write_bytes(content[:kept])
        with pytest.raises(ModelError, match="not a whole safetensors file"):
            load_model(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("\xff", "not valid JSON"),
        ("[]", "does not describe a model"),
        ('{"kind": "dnn"}', "does not describe a model"),
        ('{"kind": "dnn", "config": {"sizes": [-1]}}', "positive whole numbers"),
        (
            '{"kind": "dnn", "config": {"sizes": [4, 4]}}',
            r"float32 \(3, 4\) but the architecture beside it needs",
        ),
        ('{"kind": "dnn", "config": {"sizes": [4]}}', "has an unknown tensor"),
        ('{"kind": "dnn", "config": {"sizes": [4, 3, 3]}}', "lacks tensor"),
    ],
)
def test_bad_description(folder: Path, text: str, words: str) -> None:
    (folder / "model.json").write_text(text, encoding="latin-1")
    with pytest.raises(ModelError, match=words):
        load_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(folder: Path, value: float) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["layers.1.weight"][2, 5] = value
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"'layers.1.weight' holds NaN or infinite weights"):
        load_model(folder)


def test_double_weights_are_refused(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({name: tensor.double() for name, tensor in tensors.items()}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"is torch.float64 .* needs torch.float32"):
        load_model(folder)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ModelError, match=r"Cannot write the model into .*taken"):
        save_model(DNN((3,)), tmp_path / "taken")


HUGE = 10**9


@pytest.mark.parametrize(
    ("kind", "config", "words"),
    [
        ("dnn", {"sizes": [HUGE]}, "would have 784,000,000,000 weights or more"),
        ("dnn", {"sizes": [5], "classes": HUGE}, "weights or more"),
        ("dnn", {"sizes": [10**30]}, "positive whole numbers"),
        ("dnn", {"sizes": [-3]}, "positive whole numbers"),
        ("dnn", {"sizes": [5], "classes": 10**30}, "at least 2 classes"),
        ("dnn", {"sizes": [5], "input_shape": [1, HUGE, HUGE]}, "more than 10,000,000 values"),
        ("cnn", {"blocks": [f"{HUGE}x5"]}, "weights or more"),
        ("cnn", {"blocks": [f"8x5p{HUGE}"]}, "the nearest valid choice"),
        ("cnn", {"blocks": ["8x5p50000"], "strict": False}, "weights or more"),
        ("cnn", {"blocks": ["300x5", "900x3"], "convolution": "paper", "strict": False}, "weights or more"),
        ("cnn-baseline", {"kernels": [10**6, 10**6]}, "weights or more"),
        ("capsnet", {"dimensions": HUGE}, "weights or more"),
        ("capsnet", {"iterations": HUGE}, "at most 100 iterations"),
        ("capsnet", {"preset": "matrix", "capsule_layers": [f"{HUGE}x3"]}, "weights or more"),
        ("capsnet", {"preset": []}, "cannot be built from these options"),
        ("capsnet", {"reconstruction_weight": "much"}, "cannot be built from these options"),
    ],
)
def test_sizes_beyond_all_measure_are_refused_before_memory_is_taken(
    folder: Path, kind: str, config: dict[str, object], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        build(kind, config)
    (folder / "model.json").write_text(json.dumps({"kind": kind, "config": config}))
    with pytest.raises(ModelError, match=words):
        load_model(folder)


def test_a_description_nested_without_end(folder: Path) -> None:
    (folder / "model.json").write_text("[" * 100_000)
    with pytest.raises(ModelError, match="not valid JSON"):
        load_model(folder)
