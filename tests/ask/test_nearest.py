"""nearest() and certify(): what they claim is replayed or proven, however they are stopped."""

from __future__ import annotations

import io
import json
import math
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from closecall.ask.nearest import certify, nearest
from closecall.encoding.encode import Costs
from closecall.errors import InputError, ModelError, QueryError, UnsupportedLayerError
from closecall.models import CNN, DNN
from closecall.verdict.verdict import Verdict

torch.set_num_threads(1)

METHODS = ("auto", "milp", "milp-basic")


def exported(model: nn.Module, shape: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """onnxruntime on the model's export, independent of the readers."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.zeros(1, *shape),), file, input_names=["x"], dynamo=False)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    return lambda image: session.run(None, {"x": image.reshape(1, *shape)})[0][0]


def grid_image(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """An image that float32 holds exactly."""
    return np.random.default_rng(seed).integers(0, 257, shape) / 256


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dnn": (lambda: DNN([8, 6], (1, 3, 3), 4), (1, 3, 3)),
    "cnn": (lambda: CNN(["2x2/2s1"], [3], (1, 4, 3), 3, strict=False), (1, 4, 3)),
}


@pytest.fixture
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(1)
    model = MODELS[request.param][0]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0"])
@pytest.mark.parametrize("model", MODELS, indirect=True)
def test_every_witness_flips_the_label_in_onnxruntime(model: nn.Module, norm: str, method: str) -> None:
    shape = model.input_shape
    image = grid_image(shape, 3)
    run = exported(model, shape)
    before = int(run(image.astype(np.float32)).argmax())
    verdict = nearest(model, image, norm=norm, method=method, time_limit=20)
    assert verdict.outcome == "nearest"
    assert verdict.witness is not None
    assert verdict.witness.dtype == np.float32
    assert verdict.witness.shape == shape
    assert verdict.witness.min() >= 0
    assert verdict.witness.max() <= 1
    after = int(run(verdict.witness).argmax())
    assert (verdict.predicted_before, verdict.predicted_after) == (before, after)
    assert after != before
    order = {"l1": 1, "l2": 2, "linf": np.inf}.get(norm)
    shift = (verdict.witness.astype(np.float64) - image).ravel()
    moved = (np.abs(shift) > 1e-6).sum() if order is None else np.linalg.norm(shift, order)
    assert verdict.distance == pytest.approx(moved, abs=1e-12)


@pytest.mark.parametrize("model", MODELS, indirect=True)
def test_a_target_is_reached_in_onnxruntime(model: nn.Module) -> None:
    image = grid_image(model.input_shape, 5)
    run = exported(model, model.input_shape)
    before = int(run(image.astype(np.float32)).argmax())
    reached = 0
    for target in range(len(run(image.astype(np.float32)))):
        if target == before:
            continue
        verdict = nearest(model, image, target=target, norm="linf")
        if verdict.witness is not None:
            reached += 1
            assert int(run(verdict.witness).argmax()) == target
        else:
            assert verdict.outcome == "robust"
    assert reached > 0


class Cancelling(nn.Module):
    """Scores (1/2, max(0, big + x₀) − big): exactly (1/2, x₀), but in float32 only in steps of big·2⁻²³."""

    input_shape = (1, 1, 2)

    def __init__(self, big: float) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(2, 2), nn.Linear(2, 2)
        with torch.no_grad():
            self.enter.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
            self.enter.bias.copy_(torch.tensor([big, 0.0]))
            self.leave.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
            self.leave.bias.copy_(torch.tensor([0.5, -big]))

    def forward(self, images: Tensor) -> Tensor:
        return self.leave(torch.relu(self.enter(images.flatten(1))))


@pytest.mark.parametrize("method", METHODS)
def test_a_witness_that_fails_in_float32_is_repaired_and_that_is_said(method: str) -> None:
    """At 10⁴ the steps are 10⁻³: the exact answer 0.5001 is still a tie in float32."""
    model = Cancelling(1e4).eval()
    verdict = nearest(model, np.zeros((1, 1, 2)), margin=1e-4, method=method)
    assert verdict.witness is not None
    assert int(exported(model, (1, 1, 2))(verdict.witness).argmax()) == 1
    assert any("float32" in note for note in verdict.notes)
    assert verdict.lower_bound <= 0.5001 + 1e-6
    assert verdict.distance is not None
    assert 0.5001 < verdict.distance < 0.52


@pytest.mark.parametrize("method", METHODS)
def test_a_witness_beyond_repair_is_never_passed_on(method: str) -> None:
    """At 10⁸ the steps are 8: in float32 no image of the box is classified otherwise."""
    verdict = nearest(Cancelling(1e8).eval(), np.zeros((1, 1, 2)), method=method)
    assert verdict.outcome == "unresolved"
    assert verdict.witness is None
    assert verdict.distance is None
    assert not verdict.replayed
    assert any("float32" in note for note in verdict.notes)
    assert verdict.lower_bound <= 0.501 + 1e-6


@pytest.fixture(scope="module")
def hard() -> tuple[nn.Module, np.ndarray, float]:
    """A network that the yardstick needs seconds for, an image, and how far its nearest adversarial is."""
    torch.manual_seed(1)
    model = DNN([12, 12], (1, 4, 4), 4).eval()
    image = grid_image((1, 4, 4), 3)
    truth = nearest(model, image, method="milp", gap=1e-6)
    assert truth.outcome == "nearest"
    assert truth.distance is not None
    return model, image, truth.distance


def assert_holds(verdict: Verdict, truth: float) -> None:
    assert 0 <= verdict.lower_bound <= truth + 1e-5
    if verdict.distance is None:
        assert verdict.outcome == "unresolved"
    else:
        assert verdict.distance >= truth - 1e-5
        closed = verdict.distance - verdict.lower_bound <= 1e-4 * verdict.distance + 1e-6
        assert verdict.outcome in (("nearest", "adversarial") if closed else ("adversarial",))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seconds", [1e-6, 0.02, 0.1, 0.3])
def test_the_interval_holds_at_any_time_limit(
    hard: tuple[nn.Module, np.ndarray, float], method: str, seconds: float
) -> None:
    model, image, truth = hard
    assert_holds(nearest(model, image, method=method, time_limit=seconds), truth)


def test_the_interval_holds_when_ctrl_c_comes_with_the_first_progress(
    hard: tuple[nn.Module, np.ndarray, float],
) -> None:
    model, image, truth = hard
    calls = []

    def interrupt(lower: float, upper: float, nodes: int, seconds: float) -> None:
        calls.append((lower, upper))
        signal.raise_signal(signal.SIGINT)

    verdict = nearest(model, image, method="milp-basic", on_progress=interrupt)
    assert len(calls) == 1
    assert any("interrupted" in note for note in verdict.notes)
    assert verdict.outcome in ("adversarial", "unresolved")
    assert_holds(verdict, truth)


# A Ctrl-C that meets the garbage collection of the test tools is lost there; ours notices it all the same.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3, 0.6])
def test_ctrl_c_at_any_moment_never_leads_to_a_wrong_claim(
    hard: tuple[nn.Module, np.ndarray, float], method: str, delay: float
) -> None:
    """Before the search has begun the interrupt goes through to the caller: then nothing is claimed."""
    model, image, truth = hard
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        verdict = nearest(model, image, method=method, time_limit=20)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert_holds(verdict, truth)


@pytest.mark.parametrize("method", METHODS)
def test_progress_is_an_interval_around_the_optimum(
    hard: tuple[nn.Module, np.ndarray, float], method: str
) -> None:
    model, image, truth = hard
    seen: list[tuple[float, float, int, float]] = []
    nearest(model, image, method=method, on_progress=lambda *numbers: seen.append(numbers))
    assert seen
    for lower, upper, nodes, seconds in seen:
        assert lower <= truth + 1e-5
        assert upper >= truth - 1e-5
        assert nodes >= 0
        assert seconds > 0


@pytest.mark.parametrize("ask", ["nearest", "certify"])
def test_an_image_that_is_already_wrong_has_distance_zero(ask: str) -> None:
    torch.manual_seed(1)
    model = DNN([4], (1, 2, 2), 3).eval()
    image = grid_image((1, 2, 2), 0)
    seen = nearest(model, image).predicted_before
    wrong = (seen + 1) % 3
    verdict = nearest(model, image, wrong) if ask == "nearest" else certify(model, image, wrong, radius=0.1)
    assert verdict.distance == 0
    assert verdict.lower_bound == 0
    assert verdict.outcome == ("nearest" if ask == "nearest" else "adversarial")
    assert "Already misclassified" in verdict.summary()
    np.testing.assert_array_equal(verdict.witness, image.astype(np.float32))


def test_a_wrong_image_may_still_be_asked_for_a_target() -> None:
    """Seen as something else than its label, but not as the target: the search goes on."""
    torch.manual_seed(1)
    model = DNN([4], (1, 2, 2), 3).eval()
    image = grid_image((1, 2, 2), 0)
    seen = nearest(model, image).predicted_before
    label, target = (seen + 1) % 3, (seen + 2) % 3
    verdict = nearest(model, image, label, target=target)
    assert verdict.outcome in ("nearest", "robust")
    assert verdict.distance is None or verdict.distance > 0


@pytest.mark.parametrize("method", METHODS)
def test_certify_has_three_answers(hard: tuple[nn.Module, np.ndarray, float], method: str) -> None:
    model, image, truth = hard

    def ask(share: float, seconds: float = 60.0) -> Verdict:
        return certify(model, image, norm="l1", radius=share * truth, method=method, time_limit=seconds)

    below, above = ask(0.95), ask(1.05)
    assert (below.outcome, below.witness) == ("robust", None)
    assert below.lower_bound >= 0.95 * truth
    assert above.outcome == "adversarial"
    assert above.distance is not None
    assert truth - 1e-5 <= above.distance <= 1.05 * truth + 1e-6
    early = ask(0.999, 1e-6)
    assert early.outcome == "unresolved"
    assert early.lower_bound <= truth + 1e-5


class Constant(nn.Module):
    input_shape = (1, 2, 2)

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(4, 3)
        with torch.no_grad():
            self.scores.weight.zero_()
            self.scores.bias.copy_(torch.tensor([0.0, 1.0, 0.5]))

    def forward(self, images: Tensor) -> Tensor:
        return self.scores(images.flatten(1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0"])
def test_a_constant_classifier_is_robust_in_the_whole_box(method: str, norm: str) -> None:
    verdict = nearest(Constant().eval(), grid_image((1, 2, 2), 0), norm=norm, method=method)
    assert verdict.outcome == "robust"
    assert verdict.distance is None
    assert verdict.lower_bound == math.inf
    assert "whole box" in verdict.summary()
    assert verdict.to_json()["lower_bound"] is None


def test_with_costs_the_answer_is_not_called_nearest() -> None:
    torch.manual_seed(1)
    model = DNN([5], (1, 2, 2), 3).eval()
    image = grid_image((1, 2, 2), 0)
    plain = nearest(model, image)
    verdict = nearest(model, image, costs=Costs(unit=1.0, inactive=0.1, wanted_class=0.5))
    assert plain.outcome == "nearest"
    assert verdict.outcome == "adversarial"
    assert any("costs" in note for note in verdict.notes)
    assert verdict.distance is not None
    assert plain.distance is not None
    assert verdict.distance >= plain.distance - 1e-6
    assert verdict.lower_bound <= plain.distance + 1e-6


@pytest.mark.parametrize("outcome", ["nearest", "robust", "unresolved"])
def test_a_verdict_becomes_strict_json(hard: tuple[nn.Module, np.ndarray, float], outcome: str) -> None:
    model, image, _ = hard
    if outcome == "robust":
        verdict = nearest(Constant().eval(), grid_image((1, 2, 2), 0))
    else:
        verdict = nearest(model, image, time_limit=60.0 if outcome == "nearest" else 1e-6, method="milp")
    assert verdict.outcome == outcome
    record = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    wanted = {"outcome", "distance", "lower_bound", "norm", "label", "predicted_before", "predicted_after"}
    wanted |= {"target", "margin", "seconds", "seconds_by_stage", "nodes", "solver", "method", "replayed"}
    wanted |= {"network_sha256", "version"}
    assert wanted <= set(record)
    assert record["outcome"] == outcome


def test_what_counts_is_written_down() -> None:
    torch.manual_seed(1)
    model = DNN([5], (1, 2, 2), 3).eval()
    verdict = nearest(
        model, grid_image((1, 2, 2), 0), norm="linf", cap=0.9, radius=0.8, margin=0.02, method="milp"
    )
    assert (verdict.norm, verdict.cap, verdict.radius, verdict.margin) == ("linf", 0.9, 0.8, 0.02)
    assert (verdict.method, verdict.solver) == ("milp", "highs")
    assert len(verdict.network_sha256) == 64
    assert verdict.scores_after is not None
    lead = verdict.scores_after[verdict.predicted_after] - verdict.scores_after[verdict.label]
    assert lead == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_cap_holds_for_every_pixel_of_the_witness(norm: str) -> None:
    torch.manual_seed(2)
    model = DNN([6], (1, 3, 3), 3).eval()
    image = grid_image((1, 3, 3), 1)
    verdict = nearest(model, image, norm=norm, cap=0.25)
    free = nearest(model, image, norm=norm)
    assert verdict.witness is not None
    assert np.abs(verdict.witness - image).max() <= 0.25
    assert free.distance is not None
    assert verdict.distance is not None
    assert verdict.distance >= free.distance - 1e-6


def test_the_papers_target_and_outputs_are_understood() -> None:
    torch.manual_seed(0)
    model = DNN([8], (1, 3, 3), 10).eval()
    image = grid_image((1, 3, 3), 1)
    label = nearest(model, image).label
    verdict = nearest(model, image, target="paper", ratio=1.2, outputs="relu")
    assert verdict.target == (label + 5) % 10
    if verdict.scores_after is not None:
        scores = np.maximum(verdict.scores_after, 0.0)
        rivals = np.delete(scores, verdict.target)
        assert scores[verdict.target] >= 1.2 * rivals.max() - 1e-5
        assert scores[verdict.target] > 0


SMALL = DNN([3], (1, 2, 2), 3).eval()
PLAIN = np.full((1, 2, 2), 0.5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"image": np.full((1, 3, 3), 0.5)}, r"shape \(1, 2, 2\).*\(1, 3, 3\)"),
        ({"image": np.full((4, 1, 1), 0.5)}, r"shape"),
        ({"image": np.full((1, 2, 2), 1.5)}, r"pixels must lie in \[0, 1\].*1\.5"),
        ({"image": np.full((1, 2, 2), np.nan)}, "NaN"),
        ({"label": 3}, "label must be from 0 to 2, got 3"),
        ({"label": -1}, "label must be from 0 to 2"),
        ({"label": 1, "target": 1}, "target 1 is the label itself"),
        ({"target": 7}, "target must be from 0 to 2"),
        ({"target": "best"}, "unknown target 'best'"),
        ({"radius": -0.1}, "radius must be positive"),
        ({"radius": math.nan}, "radius"),
        ({"cap": 0.0}, "cap must be positive"),
        ({"margin": 0.0}, "margin must be positive"),
        ({"ratio": 0.9}, "ratio must be larger than 1"),
        ({"norm": "l3"}, "unknown norm 'l3'"),
        ({"norm": None}, "unknown norm None"),
        ({"norm": True}, "unknown norm True"),
        ({"costs": 3}, r"give costs as closecall\.Costs\(unit=.*not as 3"),
        ({"threads": 1.5}, "threads must be a whole number, got 1.5"),
        ({"outputs": "softmax"}, "outputs must be"),
        ({"pixel_range": (1.0, 0.0)}, "pixel range must rise"),
        ({"time_limit": 0.0}, "time limit must be a positive number"),
        ({"time_limit": math.inf}, "time limit must be a positive number"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"gap": -1.0}, "gap must be"),
        ({"solver": "abacus"}, "unknown solver 'abacus'"),
        ({"method": "magic"}, "unknown method 'magic'"),
    ],
)
def test_bad_questions_are_answered_in_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence) as refusal:
        nearest(SMALL, **{"image": PLAIN, **arguments})
    assert "\n" not in str(refusal.value)
    assert isinstance(refusal.value, InputError)


def test_a_negative_radius_is_refused_by_certify_too() -> None:
    with pytest.raises(QueryError, match="radius must be positive"):
        certify(SMALL, PLAIN, radius=-1.0)


def test_an_unsupported_layer_is_named() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 2)).eval()
    with pytest.raises(UnsupportedLayerError, match=r"(?i)gelu"):
        nearest(model, PLAIN)


def test_weights_that_are_not_numbers_are_refused() -> None:
    model = DNN([3], (1, 2, 2), 3).eval()
    with torch.no_grad():
        next(model.parameters())[0, 0] = math.nan
    with pytest.raises(ModelError, match="NaN"):
        nearest(model, PLAIN)


def test_a_model_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        nearest(tmp_path / "missing.onnx", PLAIN)
    with pytest.raises(ModelError, match="zoo"):
        nearest("zoo:nothing", PLAIN)


class Saturated(nn.Module):
    """Two scores that rise with the first pixel and are 1 in float32 from a half on, and one that falls."""

    input_shape = (1, 1, 2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        first, second = image.flatten(1).unbind(1)
        return torch.stack([40 * first, 50 * first - 2 * second, 30 - 40 * first], 1).sigmoid()


def test_two_saturated_sigmoids_are_no_change_of_mind() -> None:
    """Where both scores round to 1, the model prefers the first class of the tie, whatever the logits say."""
    image = np.array([[[0.6, 0.5]]])
    verdict = nearest(Saturated().eval(), image, label=0, target=1)
    assert (verdict.outcome, verdict.predicted_before, verdict.witness) == ("unresolved", 0, None)


def test_a_trailing_sigmoid_leaves_the_nearest_image_where_it_is() -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Flatten(), nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).eval()
    image = np.full((1, 2, 2), 0.5)
    plain, peeled = (nearest(module, image) for module in (body, nn.Sequential(body, nn.Sigmoid()).eval()))
    assert plain.outcome == peeled.outcome == "nearest"
    assert peeled.distance == pytest.approx(plain.distance, rel=1e-4)
    assert "Sigmoid" in peeled.notes[0]
