"""The measured choice of threads leaves no trace on what it measured."""

from __future__ import annotations

import os

import pytest
import torch

from closecall.models import DNN
from closecall.train.plan import TrainingPlan
from closecall.train.threads import choose_threads, using_threads


def test_choice_is_possible_and_leaves_no_trace() -> None:
    model = DNN((30,), input_shape=(1, 8, 8))
    images, labels = torch.rand(64, 1, 8, 8), torch.randint(10, (64,))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_state, threads = torch.get_rng_state(), torch.get_num_threads()
    chosen = choose_threads(model, TrainingPlan(), images, labels)
    assert 1 <= chosen <= (os.cpu_count() or 1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert torch.get_num_threads() == threads


def test_threads_are_given_back_after_an_error() -> None:
    before = torch.get_num_threads()

    def fail() -> None:
        with using_threads(before + 1):
            raise KeyError(torch.get_num_threads())

    with pytest.raises(KeyError, match=str(before + 1)):
        fail()
    assert torch.get_num_threads() == before
