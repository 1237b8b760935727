"""nearest() and certify() of capsule networks, beside torch and interval arithmetic of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from closecall import certify, ideal, nearest, read
from closecall.arrays import Vector
from closecall.ask.export import export_milp
from closecall.bounds.capsules import routed_sums
from closecall.errors import InputError, QueryError, UnsupportedLayerError
from closecall.models import CapsNet, save_model
from closecall.network.gradient import input_gradient
from closecall.question.domain import Domain
from closecall.question.names import NormName
from closecall.question.norms import norm_named
from closecall.readers import Classifier
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict, save_verdict


def tiny(iterations: int = 3, seed: int = 0, **sizes: Any) -> CapsNet:
    torch.manual_seed(seed)
    tiny_sizes = {
        "convolutions": ["4x3s2"], "primary_types": 3, "primary_dimensions": 3, "primary_size": 2,
        "dimensions": 4, "decoder": [], "primary_stride": 1, "gradients": "all",
    }  # fmt: skip
    return CapsNet((1, 8, 8), 10, iterations=iterations, **{**tiny_sizes, **sizes})


@pytest.fixture(scope="module", params=[1, 2, 3])
def trained(request: pytest.FixtureRequest) -> CapsNet:
    """2 × 2 places of three primary capsules, trained on scikit-learn's digits for a few seconds."""
    digits = load_digits()
    images, labels = torch.from_numpy(digits.images / 16).float()[:, None], torch.from_numpy(digits.target)
    network = tiny(request.param)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for step in range(150):
        chosen = torch.arange(step * 64, step * 64 + 64) % 1500
        loss, _ = network.training_loss(images[chosen], labels[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    network.eval()
    with torch.no_grad():
        assert (network(images[1500:]).argmax(1) == labels[1500:]).float().mean() > 0.7
    return network


def digit(index: int) -> Vector:
    return np.asarray(load_digits().images[index][None] / 16)


def test_the_network_and_its_slopes_are_those_of_torch(trained: CapsNet) -> None:
    classifier = read(trained)
    images = np.random.default_rng(0).random((5, 64))
    rows = np.random.default_rng(1).normal(size=(5, 10))
    given = torch.from_numpy(images).reshape(5, 1, 8, 8).requires_grad_()
    exact = trained.double()(given)
    (exact * torch.from_numpy(rows)).sum().backward()
    values = classifier.network.values(images)
    assert given.grad is not None
    np.testing.assert_allclose(values[-1], exact.detach(), atol=1e-12)
    slopes = input_gradient(classifier.network, values, rows)
    np.testing.assert_allclose(slopes, given.grad.reshape(5, -1), atol=1e-12)
    trained.float()


@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.01), ("l2", 0.03), ("l1", 0.06)])
def test_sums_stay_within_their_forms_however_they_are_pushed(
    trained: CapsNet, norm: str, radius: float
) -> None:
    """Frank-Wolfe steps climb on every entry of every sum, both ways, over torch's own network."""
    network, centre = read(trained).network, digit(3).ravel()
    domain = Domain(centre, np.zeros(64), np.ones(64), norm_named(norm), radius)
    sums = routed_sums(network, domain, np.inf)
    low = torch.from_numpy((sums.centre - sums.radius()).ravel())
    high = torch.from_numpy((sums.centre + sums.radius()).ravel())
    module, count = trained.double(), len(low)
    points = np.repeat(centre[None], 2 * count, axis=0)
    signs = torch.cat([torch.ones(count), -torch.ones(count)])
    nearest_to_bound = np.inf
    for step in range(15):
        images = torch.from_numpy(points).reshape(-1, 1, 8, 8).requires_grad_()
        found = sums_of(module, images).flatten(1)
        assert ((found >= low) & (found <= high)).all()
        own = torch.diagonal(found.reshape(2, count, count), dim1=1, dim2=2).flatten() * signs
        room = torch.cat([high, -low]) - own
        nearest_to_bound = min(nearest_to_bound, float((room / (high - low).repeat(2)).detach().min()))
        (slopes,) = torch.autograd.grad(own.sum(), images)
        target = centre + domain.furthest(slopes.reshape(2 * count, -1).numpy())
        points = points + (1.0 if step == 0 else 0.5) * (target - points)
    assert nearest_to_bound < 0.3  # the climbs use up most of what the bounds allow
    trained.float()


def sums_of(module: CapsNet, images: Tensor) -> Tensor:
    """s from v = squash(s): ‖v‖ = n²/(1 + n²)."""
    parents, lengths = module.encode(images)
    squares = lengths / (1 - lengths)
    return parents * ((1 + squares) / squares.sqrt())[..., None]


@pytest.mark.parametrize(("index", "pixels"), [(0, (20, 43)), (5, (28, 35))])
def test_subdivision_brackets_the_distance_that_is_found(
    trained: CapsNet, index: int, pixels: tuple[int, int]
) -> None:
    """Two pixels may move: a square that interval arithmetic cuts up until it knows the distance."""
    image, mask = digit(index), np.zeros((8, 8))
    mask.ravel()[list(pixels)] = 1
    verdict = nearest(trained, image, norm="linf", mask=mask, pixel_range=(-6, 7), time_limit=20)
    least, most = Subdivision(trained, image, pixels, 6.0).bracket(verdict.label, verdict.margin)
    assert least <= most
    assert verdict.lower_bound <= most
    assert verdict.lower_bound > 0.15 * least
    if verdict.distance is None:
        assert verdict.lower_bound < most
    else:
        assert verdict.distance >= least * (1 - 1e-6)
        assert verdict.distance <= 1.2 * most


class Subdivision:
    """Natural interval arithmetic on many squares at once; it shares no code with what is tested."""

    def __init__(self, module: CapsNet, image: Vector, pixels: tuple[int, int], reach: float) -> None:
        module = module.double()
        self.module: Any = module
        self.image, self.pixels, self.reach = torch.from_numpy(image), pixels, reach
        self.weight = self.module.parents.weight.detach()
        self.votes = self.weight.unflatten(2, (10, -1)).permute(0, 2, 3, 1)
        convolution, norm, _ = self.module.stem
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()  # type: ignore
        self.first = (convolution.weight * scale[:, None, None, None]).detach()
        self.bias = ((convolution.bias - norm.running_mean) * scale + norm.bias).detach()
        self.second = self.module.primary.convolution

    def bracket(self, label: int, margin: float) -> tuple[float, float]:
        """No image is nearer than the first number that has the margin; one at the second does."""
        half, best = self.reach / 24, np.inf
        steps = torch.arange(-23, 24, 2).double() * half
        centres = torch.cartesian_prod(steps, steps)
        for _ in range(7):
            flips, safe = self._flips(centres, label, margin), self._safe(centres, half, label, margin)
            distances = centres.abs().amax(1)
            best = min(best, float(distances[flips].min()) if flips.any() else np.inf)
            near = (distances - half).clamp_min(0.0)
            keep = ~safe & (near < best)
            left = float(near[keep].min()) if keep.any() else best
            corners = torch.cartesian_prod(*[torch.tensor([-0.5, 0.5]).double()] * 2) * half
            centres, half = (centres[keep][:, None] + corners).flatten(0, 1), half / 2
            if len(centres) > 20_000 or not len(centres):
                break
        self.module.float()
        return left, best

    def _images(self, shifts: Tensor) -> Tensor:
        images = self.image.flatten().repeat(len(shifts), 1)
        images[:, list(self.pixels)] += shifts
        return images.reshape(-1, 1, 8, 8)

    def _flips(self, shifts: Tensor, label: int, margin: float) -> Tensor:
        with torch.no_grad():
            scores = self.module(self._images(shifts))
        leads: Tensor = (scores - scores[:, label : label + 1]).amax(1)
        return leads >= margin  # the label's own lead is 0

    @torch.no_grad()
    def _safe(self, centres: Tensor, half: float, label: int, margin: float) -> Tensor:
        low, high = self._images(centres - half), self._images(centres + half)
        low, high = both(torch.nn.functional.conv2d, low, high, self.first, self.bias, 2)
        low, high = both(torch.nn.functional.conv2d, low.relu(), high.relu(), self.second.weight,
                         self.second.bias, 1)  # fmt: skip
        types = self.module.sizes.primary_types
        low, high = (
            maps.unflatten(1, (types, -1)).permute(0, 1, 3, 4, 2).flatten(1, 3) for maps in (low, high)
        )
        low, high = squashed(low, high)
        votes = product(low[:, :, None, None], high[:, :, None, None], self.votes, self.votes)
        low, high = votes[0].sum(-1), votes[1].sum(-1)
        least = most = torch.zeros(1, 10, low.shape[-1]).double()
        for _ in range(self.module.sizes.iterations):
            logits = product(low, high, least[:, None], most[:, None])
            ends = logits[0].sum(-1).exp(), logits[1].sum(-1).exp()
            all_low, all_high = ends[0].sum(-1, keepdim=True), ends[1].sum(-1, keepdim=True)
            shares = ends[0] / (ends[0] + all_high - ends[1]), ends[1] / (ends[1] + all_low - ends[0])
            terms = product(shares[0][..., None], shares[1][..., None], low, high)
            sums = terms[0].sum(1), terms[1].sum(1)
            parents = squashed(*sums)
            least, most = least + parents[0], most + parents[1]
        short, long = lengths(*sums)
        short, long = short**2 / (1 + short**2), long**2 / (1 + long**2)
        long[:, label] = 0
        return (long.amax(1) - short[:, label] < margin) & torch.isfinite(long).all(1)


def both(convolve: Any, low: Tensor, high: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Any:
    middle = convolve((low + high) / 2, weight, bias, stride)
    reach = convolve((high - low) / 2, weight.abs(), None, stride)
    return middle - reach, middle + reach


def product(low: Tensor, high: Tensor, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    corners = torch.stack([low * least, low * most, high * least, high * most])
    return corners.amin(0), corners.amax(0)


def lengths(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    inner = torch.where(low > 0, low, torch.where(high < 0, high, torch.zeros_like(low)))
    return inner.norm(dim=-1), torch.maximum(low.abs(), high.abs()).norm(dim=-1)


def squashed(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    short, long = lengths(low, high)
    ends = torch.stack([short / (1 + short**2), long / (1 + long**2)])
    most = torch.where((short < 1) & (long > 1), 0.5, ends.amax(0))
    return product(low, high, ends.amin(0)[..., None], most[..., None])


@pytest.mark.parametrize("norm", ["linf", "l2", "l1", "l0"])
def test_an_interval_in_every_norm(trained: CapsNet, norm: NormName, tmp_path: Path) -> None:
    verdict = nearest(trained, digit(7), norm=norm, time_limit=20)
    assert verdict.outcome == "adversarial"
    assert verdict.distance is not None
    assert (norm == "l0" and verdict.lower_bound >= 1) or verdict.lower_bound > 0.05 * verdict.distance
    assert verdict.engine == "affine forms"
    within = certify(trained, digit(7), norm=norm, radius=0.9 * verdict.lower_bound)
    assert within.outcome == "robust"
    beyond = certify(trained, digit(7), norm=norm, radius=1.5 * verdict.distance)
    assert beyond.outcome == "adversarial"
    save_model(trained, tmp_path / "model")
    save_verdict(verdict, tmp_path / "verdict", model=str(tmp_path / "model"))
    checks = check_verdict(load_verdict(tmp_path / "verdict"), read(tmp_path / "model"))
    assert all(check.holds for check in checks), [check.sentence for check in checks]


def test_the_network_of_another_model_is_another(trained: CapsNet) -> None:
    first = read(trained).network.fingerprint
    other = tiny(trained.sizes.iterations, seed=1).eval()
    assert read(trained).network.fingerprint == first != read(other).network.fingerprint


@pytest.fixture(scope="module")
def small() -> Classifier:
    return read(tiny().eval())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method": "milp"}, "method milp needs a MILP, and routing"),
        ({"ratio": 2.0}, "are lengths below 1: ask for a margin"),
        ({"confidence": 0.9}, "are lengths below 1: ask for a margin"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(small: Classifier, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        nearest(small, digit(0), **asked)


def test_other_verbs_say_what_to_ask(small: Classifier) -> None:
    for ask in (lambda: ideal(small, 3), lambda: export_milp(small, digit(0))):
        with pytest.raises(QueryError, match="ask nearest or certify"):
            ask()


@pytest.mark.parametrize("preset", ["efficient", "matrix"])
def test_other_routing_is_refused(preset: str) -> None:
    sizes: dict[str, Any] = {"convolutions": ["8x3", "16x3"], "primary_types": 2}
    chosen = sizes if preset == "efficient" else {}
    with pytest.raises(UnsupportedLayerError, match="only about those with dynamic routing"):
        read(CapsNet((1, 8, 8), 3, preset=preset, **chosen).eval())


def test_pooling_before_capsules_is_refused() -> None:
    pooled = tiny().eval()
    pooled.stem = nn.Sequential(pooled.stem, nn.MaxPool2d(3, stride=1, padding=1))
    with pytest.raises(UnsupportedLayerError, match="only convolutions, dense layers and ReLUs may stand"):
        nearest(pooled, np.zeros((1, 8, 8)), label=0)


def test_a_network_that_overflows_or_is_not_a_number_is_refused() -> None:
    for number in (float("nan"), 1e38):
        module: Any = tiny().eval()
        with torch.no_grad():
            module.parents.weight.fill_(number)
            module.primary.convolution.weight.mul_(number)
        with pytest.raises(InputError):
            nearest(module, digit(0), time_limit=5)


def test_capsules_that_never_move_are_robust() -> None:
    module: Any = tiny().eval()
    with torch.no_grad():
        module.primary.convolution.weight.zero_()
    verdict = certify(module, digit(0), radius=0.3)
    assert verdict.outcome == "robust"


def test_too_little_memory_proves_nothing_and_says_so(
    small: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("closecall.search.capsules.least_memory", lambda *_: 1000.0)
    verdict = nearest(small, digit(0), time_limit=5)
    assert verdict.lower_bound == 0
    assert any("too large" in note for note in verdict.notes)
