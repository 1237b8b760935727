"""The loop against a plain torch loop, and every way of stopping and going on against not stopping."""

from __future__ import annotations

import copy
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from closecall.data import Dataset
from closecall.errors import InputError, ModelError, TrainingError
from closecall.models import DNN, build
from closecall.train import TrainingPlan, evaluate, train
from closecall.train.batches import shuffle, split

PLAN = TrainingPlan(epochs=4, batch=32, seed=3, threads=1)


def small_model(seed: int = 0) -> nn.Module:
    return build("dnn", {"sizes": [8, 6], "input_shape": [1, 6, 6], "classes": 3}, seed=seed)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in model.state_dict().values()])


@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("batch", [32, 0])
def test_like_the_plainest_loop(stripes: Dataset, loss: str, optimizer: str, batch: int) -> None:
    plan = TrainingPlan(epochs=1, batch=batch, optimizer=optimizer, loss=loss, seed=3, threads=1)
    model = small_model()
    plain = copy.deepcopy(model)
    train(model, stripes, plan)

    make = {"adam": lambda p: torch.optim.Adam(p, lr=1e-3), "sgd": lambda p: torch.optim.SGD(p, lr=0.1)}
    steps = make[optimizer](plain.parameters())
    images, _ = split(stripes, plan)
    order = shuffle(images, plan, 1).order
    count = batch or len(images)
    for chosen in order.split(count):
        scores = plain(images.pixels[chosen].float() / 255)
        labels = images.labels[chosen]
        if loss == "mse":
            error = ((F.one_hot(labels, 3) - scores) ** 2).sum() / (2 * len(labels))
        else:
            error = F.cross_entropy(scores, labels)
        steps.zero_grad()
        error.backward()
        steps.step()
    torch.testing.assert_close(weights(model), weights(plain), rtol=1e-4, atol=1e-6)


def test_it_learns_and_keeps_the_best_epoch(stripes: Dataset) -> None:
    model = small_model()
    plan = TrainingPlan(epochs=30, batch=32, learning_rate=3e-3, schedule="cosine", validation=60, threads=1)
    run = train(model, stripes, plan)
    assert not model.training
    assert [record.epoch for record in run.history] == list(range(1, 31))
    best = max(run.history, key=lambda r: (r.validation_accuracy, -r.validation_loss))
    assert run.best_epoch == best.epoch
    _, held_out = split(stripes, plan)
    kept = (model(held_out.pixels.float() / 255).argmax(1) == held_out.labels).float().mean().item()
    assert kept == pytest.approx(run.validation_accuracy)
    assert kept > 0.95
    assert run.history[0].learning_rate > run.history[-1].learning_rate
    assert run.seconds > 0


def test_evaluate_is_the_mean_over_all_images(stripes: Dataset) -> None:
    many = Dataset(
        "many", np.repeat(stripes.images, 10, 0), np.repeat(stripes.labels, 10), stripes.class_names
    )
    model = small_model(seed=2)
    loss, accuracy = evaluate(model, many)
    scores = model(torch.from_numpy(many.images).float() / 255)
    labels = torch.from_numpy(many.labels)
    assert accuracy == pytest.approx((scores.argmax(1) == labels).double().mean().item())
    assert loss == pytest.approx(F.cross_entropy(scores, labels).item(), rel=1e-5)


def test_the_seed_decides_everything(stripes: Dataset) -> None:
    results = []
    for seed in (3, 3, 4):
        model = small_model()
        torch.rand(seed)
        run = train(model, stripes, replace(PLAN, seed=seed, shift=1))
        results.append((weights(model), [record.loss for record in run.history]))
    assert torch.equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    assert not torch.equal(results[0][0], results[2][0])


def test_training_leaves_torch_as_it_was(stripes: Dataset) -> None:
    random_state, threads = torch.get_rng_state(), torch.get_num_threads()
    handler = signal.getsignal(signal.SIGINT)
    train(small_model(), stripes, replace(PLAN, threads=None))
    assert torch.equal(torch.get_rng_state(), random_state)
    assert torch.get_num_threads() == threads
    assert signal.getsignal(signal.SIGINT) is handler


class Interrupting(DNN):
    """A model with dropout that presses Ctrl-C during its step number `presses`."""

    presses = -1

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            self.presses -= 1
            if self.presses == 0:
                signal.raise_signal(signal.SIGINT)
        return self.layers(F.dropout(images, 0.2, self.training))


def interrupting(presses: int) -> Interrupting:
    torch.manual_seed(11)
    model = Interrupting((8, 6), input_shape=(1, 6, 6), classes=3)
    model.presses = presses
    return model


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("step", [1, 5, 7, 13, 28])
def test_resumed_ends_as_if_never_interrupted(
    stripes: Dataset, tmp_path: Path, step: int, schedule: str
) -> None:
    plan = replace(PLAN, shift=1, schedule=schedule, weight_decay=0.01)
    straight = interrupting(-1)
    wanted = train(straight, stripes, plan)

    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(interrupting(step), stripes, plan, checkpoint=checkpoint)
    resumed = interrupting(-1)
    for parameter in resumed.parameters():
        parameter.data.zero_()
    run = train(resumed, stripes, plan, checkpoint=checkpoint, resume=True)
    assert torch.equal(weights(resumed), weights(straight))
    assert run.best_epoch == wanted.best_epoch
    for got, want in zip(run.history, wanted.history, strict=True):
        timeless = {"seconds": 0, "images_per_second": 0}
        assert replace(got, **timeless) == replace(want, **timeless)


def test_a_constant_rate_may_go_on_for_longer(stripes: Dataset, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    train(small_model(), stripes, replace(PLAN, epochs=2), checkpoint=checkpoint)
    longer, straight = small_model(), small_model()
    train(longer, stripes, PLAN, checkpoint=checkpoint, resume=True)
    train(straight, stripes, PLAN)
    assert torch.equal(weights(longer), weights(straight))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch": 16}, r"another batch \(32, now 16\)"),
        ({"seed": 9}, r"another seed \(3, now 9\)"),
        ({"optimizer": "sgd"}, r"another optimizer \(adam, now sgd\)"),
    ],
)
def test_resuming_another_training(
    stripes: Dataset, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    train(small_model(), stripes, replace(PLAN, epochs=1), checkpoint=checkpoint)
    with pytest.raises(InputError, match=words):
        train(small_model(), stripes, replace(PLAN, **change), checkpoint=checkpoint, resume=True)


def test_resuming_with_other_data_or_another_model(stripes: Dataset, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    train(small_model(), stripes, replace(PLAN, epochs=1), checkpoint=checkpoint)
    other = Dataset("stripes", 255 - stripes.images, stripes.labels, stripes.class_names)
    with pytest.raises(InputError, match="another data set"):
        train(small_model(), other, PLAN, checkpoint=checkpoint, resume=True)
    wider = DNN((9, 6), input_shape=(1, 6, 6), classes=3)
    with pytest.raises(InputError, match="another model"):
        train(wider, stripes, PLAN, checkpoint=checkpoint, resume=True)


def test_a_loss_that_explodes_is_named(stripes: Dataset, tmp_path: Path) -> None:
    plan = replace(PLAN, optimizer="sgd", loss="mse", learning_rate=1e30)
    with pytest.raises(
        TrainingError, match=r"The loss became (inf|nan) in epoch 1, batch \d of 7: .*smaller"
    ):
        train(small_model(), stripes, plan)


def test_weights_that_explode_in_the_last_step_are_not_kept(stripes: Dataset) -> None:
    plan = TrainingPlan(epochs=1, batch=0, optimizer="sgd", loss="mse", learning_rate=1e35, threads=1)
    with pytest.raises(
        TrainingError, match=r"The loss became (inf|nan) on the held-out images after epoch 1"
    ):
        train(small_model(), stripes, plan)


def test_models_that_do_not_fit(stripes: Dataset) -> None:
    with pytest.raises(InputError, match=r"images of shape \(1, 28, 28\) but stripes has \(1, 6, 6\)"):
        train(DNN((4,)), stripes, PLAN)
    with pytest.raises(InputError, match="tells 2 classes apart but stripes has 3"):
        train(DNN((4,), input_shape=(1, 6, 6), classes=2), stripes, PLAN)
    with pytest.raises(ModelError, match="Linear cannot be trained or saved here: it has no `input_shape`"):
        train(nn.Linear(36, 3), stripes, PLAN)
