"""Proofs of tiny networks, beside the exact distance by enumeration, and whoever tampers with them."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.proofs import closecheck
from closecall.proofs.closecheck import Refused, check
from closecall.proofs.lines import exact_form, packed
from closecall.proofs.tree import NotProvenError
from closecall.proofs.writing import Claim, Writer, write_proof
from closecall.question.question import Question

PIXELS, HIDDEN, CLASSES = 3, 3, 3


def dense(seed: int) -> Network:
    """Two layers of ReLUs; weights are small whole numbers over 8."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return rng.integers(-12, 13, shape) / 8

    return Network(
        (1, 1, PIXELS),
        (
            Node(Affine.of([weights(HIDDEN, PIXELS)], weights(HIDDEN)), (0,)),
            Node(Relu(HIDDEN), (1,)),
            Node(Affine.of([weights(HIDDEN, HIDDEN)], weights(HIDDEN)), (2,)),
            Node(Relu(HIDDEN), (3,)),
            Node(Affine.of([weights(CLASSES, HIDDEN)], weights(CLASSES)), (4,)),
        ),
    )


def pooled(seed: int) -> Network:
    """ReLUs that a pooling reads, and a way around them."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return rng.integers(-12, 13, shape) / 8

    return Network(
        (1, 1, PIXELS),
        (
            Node(Affine.of([weights(4, PIXELS)], weights(4)), (0,)),
            Node(Relu(4), (1,)),
            Node(Maximum(np.array([[0, 1], [2, 3]])), (2,)),
            Node(Affine.of([weights(CLASSES, 2), weights(CLASSES, PIXELS)], weights(CLASSES)), (3, 0)),
        ),
    )


def asked(network: Network, seed: int, norm: str, **more: Any) -> Question:
    image = np.random.default_rng(seed + 1000).integers(2, 7, PIXELS) / 8
    label = int(network.forward(image[None])[0].argmax())
    return Question(image, label, CLASSES, norm=norm, **more)


def true_distance(network: Network, question: Question) -> float:
    """The least distance over all ways to choose, each a linear program of its own."""
    choices = []
    for node in network.nodes:
        if isinstance(node.layer, Relu):
            choices += [[0, 1]] * node.layer.size
        elif isinstance(node.layer, Maximum):
            choices += [list(window) for window in node.layer.windows]
    found = [
        distance_in_region(network, question, case, picks)
        for picks in itertools.product(*choices)
        for case in question.goal().cases
    ]
    return min(found)


def distance_in_region(network: Network, question: Question, case: Any, picks: tuple[int, ...]) -> float:
    values = [(np.eye(PIXELS), np.zeros(PIXELS))]
    rows, least, left = [], [], list(picks)
    for node in network.nodes:
        matrix, constant = values[node.inputs[0]]
        if isinstance(node.layer, Affine):
            terms = [
                (w @ values[s][0], w @ values[s][1])
                for w, s in zip(node.layer.weights, node.inputs, strict=True)
            ]
            values.append((sum(m for m, _ in terms), sum(c for _, c in terms) + node.layer.bias))
            continue
        mine = [left.pop(0) for _ in range(node.layer.size)]
        if isinstance(node.layer, Relu):
            on = np.array(mine, dtype=float)
            rows.append((2 * on - 1)[:, None] * matrix)
            least.append(-(2 * on - 1) * constant)
            values.append((on[:, None] * matrix, on * constant))
        else:
            for window, won in zip(node.layer.windows, mine, strict=True):
                rows.append(matrix[won] - matrix[window])
                least.append(constant[window] - constant[won])
            values.append((matrix[mine], constant[mine]))
    matrix, constant = values[-1]
    rows.append(case.matrix @ matrix)
    least.append(case.threshold - case.matrix @ constant)
    inequality, bound = np.vstack(rows), np.concatenate(least)
    return smallest_shift(question, inequality, bound - inequality @ question.image)


def smallest_shift(question: Question, rows: np.ndarray, least: np.ndarray) -> float:
    each, size = np.eye(PIXELS), 1 if question.norm == "linf" else PIXELS
    spread = np.ones((PIXELS, 1)) if question.norm == "linf" else each
    above = np.vstack(
        [
            np.hstack([-rows, np.zeros((len(rows), size))]),
            np.hstack([each, -spread]),
            np.hstack([-each, -spread]),
        ]
    )
    most = np.concatenate([-least, np.zeros(2 * PIXELS)])
    image = question.image
    bounds = [(-x, 1 - x) for x in image] + [(0, None)] * size
    done = linprog([0] * PIXELS + [1] * size, A_ub=above, b_ub=most, bounds=bounds)
    return float(done.fun) if done.status == 0 else np.inf


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def checked(path: Path, lines: list[Any]) -> closecheck.Report:
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines), 1))
    return check(str(path), seconds=20)


def cases() -> Iterator[tuple[Network, Question]]:
    for seed in range(6):
        for norm in ("l1", "linf"):
            for make in (dense, pooled):
                network = make(seed)
                yield network, asked(network, seed, norm)


@pytest.mark.parametrize("number", range(24))
def test_what_is_nearer_than_the_nearest_is_proven_and_no_more(number: int, tmp_path: Path) -> None:
    network, question = list(cases())[number]
    distance, path = true_distance(network, question), tmp_path / "proof.ccp"
    if distance == 0 or np.isinf(distance):
        write_proof(network, Claim(question, np.inf, None), path)
        assert "in the box" in str(check(str(path)))
        return
    write_proof(network, Claim(question, distance * 0.9999, None), path)
    report = check(str(path))
    assert report.asked["radius"] == distance * 0.9999
    assert f"within {distance * 0.9999!r}" in str(report)
    lines = lines_of(path)
    (place,) = (k for k, line in enumerate(lines) if "label" in line)
    lines[place]["radius"] = distance * 1.0001
    with pytest.raises(Refused):
        checked(tmp_path / "more.ccp", lines)
    with pytest.raises(NotProvenError):
        write_proof(network, Claim(question, distance * 1.0001, None), path)
    assert not path.with_name("proof.ccp.part").exists()


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A proof with a tree in it, and the true distance."""
    path = tmp_path_factory.mktemp("proof") / "proof.ccp"
    for seed in range(7, 100):
        network = dense(seed)
        question = asked(network, seed, "l1")
        distance = true_distance(network, question)
        if 0 < distance < np.inf:
            write_proof(network, Claim(question, distance * 0.9999, None), path)
            if sum("split" in line for line in lines_of(path)) >= 4:
                return path, distance
    raise AssertionError("no proof with splits")


def tampered(lines: list[Any], distance: float, rng: np.random.Generator) -> str:
    """Change something that the proof needs; what it was."""
    asked_at = next(k for k, line in enumerate(lines) if "label" in line)
    leaves = [k for k, line in enumerate(lines) if "leaf" in line]
    splits = [k for k, line in enumerate(lines) if "split" in line]
    nodes = [k for k, line in enumerate(lines) if "affine" in line]
    kind = str(
        rng.choice(["sign", "weight", "drop", "twice", "split", "radius", "image", "network", "end", "case"])
    )
    leaf = int(rng.choice(leaves))
    if kind == "sign":
        added = lines[leaf].setdefault("added", [])
        added.append([0, 0, -1 - int(rng.integers(10**6)), 0, 0])
    elif kind == "weight":
        lines[leaf]["leaf"] = [-int(rng.integers(1, 100)) for _ in lines[leaf]["leaf"]]
    elif kind == "drop":
        del lines[int(rng.integers(len(lines)))]
    elif kind == "twice":
        place = int(rng.integers(len(lines)))
        lines.insert(place, lines[place])
    elif kind == "split":
        lines[int(rng.choice(splits))]["split"] = [int(rng.integers(-2, 9)), int(rng.choice([-1, 7, 99]))]
    elif kind == "radius":
        lines[asked_at]["radius"] = distance * float(1 + rng.choice([1e-9, 1e-6, 1e-3, 1.0]))
    elif kind == "image":
        lines[asked_at]["image"] = lines[asked_at]["image"][:-8]
    elif kind == "network":
        node = lines[int(rng.choice(nodes))]
        node["bias"] = ("B" if node["bias"][0] != "B" else "C") + node["bias"][1:]
    elif kind == "end":
        lines[-1] = {"end": lines[-1]["end"] + int(rng.choice([-1, 1]))}
    else:
        place = next(k for k, line in enumerate(lines) if "case" in line)
        lines[place] = {"case": lines[place]["case"] + 1}
    return kind


def test_a_thousand_tampered_proofs_are_refused(proof: tuple[Path, float], tmp_path: Path) -> None:
    path, distance = proof
    text = json.dumps(lines_of(path))
    reasons = set()
    for seed in range(1000):
        lines = json.loads(text)
        kind = tampered(lines, distance, np.random.default_rng(seed))
        with pytest.raises(Refused) as refused:
            closecheck.checked_safely(iter(lines))
        reasons.add((kind, str(refused.value)[:20]))
    assert len({kind for kind, _ in reasons}) == 10


def test_whatever_shares_say_only_what_is_true_is_accepted(proof: tuple[Path, float]) -> None:
    """A leaf may hold with other multipliers, too; a radius beyond the nearest image never does."""
    path, distance = proof
    text, accepted = json.dumps(lines_of(path)), 0
    for seed in range(300):
        rng, lines = np.random.default_rng(seed), json.loads(text)
        for line in lines:
            if "label" in line:
                line["radius"] = distance * float(rng.choice([0.9, 1.000001]))
            if "shares" in line and rng.random() < 0.3:
                count = len(closecheck.numbers(line["shares"], line["kind"]))
                kind = {"B": "<u1", "H": "<u2", "I": "<u4"}[line["kind"]]
                line["shares"] = packed(rng.integers(0, 129, count), kind)
        try:
            report = closecheck.checked_safely(iter(lines))
        except Refused:
            continue
        accepted += 1
        assert report.asked["radius"] < distance
    assert accepted > 0


def test_no_cut_proves_what_is_false(tmp_path: Path) -> None:
    """Cuts with other early, late and crossing terms, in a proof of a radius that is a hair too large."""
    path, network = tmp_path / "proof.ccp", dense(7)
    question = asked(network, 7, "linf")
    distance = true_distance(network, question)
    write_proof(network, Claim(question, distance * 0.9999, None), path)
    text = json.dumps(lines_of(path))
    assert '"cut"' in text
    for number in range(100):
        rng, lines = np.random.default_rng(number), json.loads(text)
        for line in lines:
            if "label" in line:
                line["radius"] = distance * 1.000001
            if "cut" in line and rng.random() < 0.7:
                line["beside"] = int(rng.integers(2))
                line["crossing"] = int(rng.integers(HIDDEN))
                line["late"] = [j for j in range(HIDDEN) if rng.random() < 0.5 and j != line["crossing"]]
        with pytest.raises(Refused):
            closecheck.checked_safely(iter(lines))


def test_fuzzed_files_are_refused(proof: tuple[Path, float], tmp_path: Path) -> None:
    path, fuzzed = proof[0], tmp_path / "fuzzed.ccp"
    content = path.read_bytes()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        changed = bytearray(content)
        for place in rng.integers(10, len(content), 3):  # the first bytes hold a date that nobody reads
            changed[place] ^= int(rng.integers(1, 256))
        fuzzed.write_bytes(bytes(changed[: int(rng.integers(1, len(content) + 1))] if seed % 2 else changed))
        with pytest.raises(Refused):
            check(str(fuzzed), seconds=20)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no proof",
        gzip.compress(b"[" * 10**6 + b"\n"),
        gzip.compress(b'{"closecall proof": 1, "input_shape": [99999999999], "nodes": 1, "network": ""}\n'),
        gzip.compress(b'{"closecall proof": 2}\n'),
        gzip.compress(b"7\n"),
        gzip.compress(b"\0" * 2**27, 9),
        gzip.compress(b'{"closecall proof": 1, "input_shape": [1], "nodes": 1, "network": NaN}\nnull\n'),
    ],
    ids=["empty", "text", "deep", "huge", "version", "number", "bomb", "nothing"],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.ccp"
    path.write_bytes(content)
    with pytest.raises(Refused):
        check(str(path), seconds=20)


def test_a_network_whose_float64_values_lie_is_not_believed(tmp_path: Path) -> None:
    """(2^60·x + 1) − 2^60·x is 1, in float64 0: the class changes anywhere, but no rounded number says so."""
    huge = 2.0**60
    network = Network(
        (1, 1, 1),
        (
            Node(Affine.of([np.array([[huge], [huge]])], np.array([1.0, 0.0])), (0,)),
            Node(Relu(2), (1,)),
            Node(Affine.of([np.array([[0.0, 0.0], [1.0, -1.0]])], np.array([0.5, 0.0])), (2,)),
        ),
    )
    question = Question(np.array([0.5]), 0, 2, norm="linf")
    assert network.forward(np.array([[0.5]]))[0].argmax() == 0
    with pytest.raises((NotProvenError, Refused)):
        write_proof(network, Claim(question, 0.01, None), tmp_path / "proof.ccp")
    tame = Question(np.array([0.5]), 1, 2, norm="linf")
    write_proof(network, Claim(tame, 0.01, None), tmp_path / "proof.ccp")
    assert "Proven" in str(check(str(tmp_path / "proof.ccp")))


def test_what_float32_may_be_off_by_is_counted(tmp_path: Path) -> None:
    """Sums of float32 in random orders, beside the exact scores."""
    rng = np.random.default_rng(3)
    size = 40
    layers = [
        rng.normal(size=shape).astype(np.float32).astype(np.float64) for shape in ((size, PIXELS), (3, size))
    ]
    network = Network(
        (1, 1, PIXELS),
        (
            Node(Affine.of([layers[0]], np.zeros(size)), (0,)),
            Node(Relu(size), (1,)),
            Node(Affine.of([layers[1]], np.zeros(3)), (2,)),
        ),
    )
    image = np.array([0.5, 0.25, 0.75])
    label = int(network.forward(image[None])[0].argmax())
    question = Question(image, label, 3, norm="linf", margin=1e-9)
    path = tmp_path / "proof.ccp"
    checker = write_proof(network, Claim(question, 1e-6, None, deployed=True), path)
    assert "in float32 with sums in any order" in str(check(str(path)))
    lowered = [float(least) for case in checker.cases for _, least in case]
    others = [score for score in range(3) if score != label]
    for _ in range(50):
        hidden = np.maximum(shuffled(layers[0], question.image, rng), 0)
        scores = shuffled(layers[1], hidden, rng)
        truth = network.forward(question.image[None])[0]
        for score, least in zip(others, lowered, strict=True):
            found = float(scores[score]) - float(scores[label]) - (truth[score] - truth[label])
            assert 0 <= abs(found) <= 1e-9 - least < 1e-3


def shuffled(weights: np.ndarray, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    order, total = rng.permutation(len(values)), np.zeros(len(weights), dtype=np.float32)
    for column in order:
        total = total + weights[:, column].astype(np.float32) * np.float32(values[column])
    return total


@pytest.mark.parametrize("seed", range(4))
def test_cuts_lie_above_their_units(seed: int) -> None:
    """Cuts with any early, late and crossing terms that are accepted, beside the network at random images."""
    network, rng = dense(seed), np.random.default_rng(seed)
    checker = Writer(network, Claim(asked(network, seed, "linf"), 0.5, None), Nowhere(), np.inf).begin()
    for _ in network.nodes:
        checker.add_ranges({"tighten": "open"})
    for _ in range(200):
        late = [place for place in range(HIDDEN) if rng.random() < 0.5]
        place = int(rng.integers(len(checker.order)))
        with contextlib.suppress(Refused):
            checker.add_cut(
                {"cut": place, "beside": int(rng.integers(2)), "crossing": int(rng.integers(3)), "late": late}
            )
    assert len(checker.cuts) > 5
    low, high = (np.array([float(end[k]) for end in checker.domain.box]) for k in (0, 1))
    centre = np.array(checker.domain.image)
    images = rng.uniform(np.maximum(low, centre - 0.5), np.minimum(high, centre + 0.5), (500, PIXELS))
    values = [*network.values(images)]
    for cut in checker.cuts:
        node, unit = cut.key
        above = np.full(len(images), float(cut.constant))
        if cut.entry >= 0:
            above += values[network.nodes[node - 1].inputs[0]][:, cut.entry]
        for source, terms in cut.terms.items():
            for j, factor in terms:
                above += values[source][:, j] * (factor / 2.0**cut.exponent)
        assert (values[node][:, unit] <= above + 1e-12).all()


class Nowhere:
    """A file that keeps nothing."""

    def add(self, line: Any) -> None:
        pass


def test_the_sentence_says_what_was_left_out(tmp_path: Path) -> None:
    network, path = dense(7), tmp_path / "proof.ccp"
    limits: dict[str, Any] = {"cap": 0.001, "mask": "0:2", "pixel_range": (0.0, 2.0)}
    question = asked(network, 7, "linf", outputs="relu", ratio=2.0, margin=0.5, **limits)
    write_proof(network, Claim(question, 0.0005, None), path)
    said = str(check(str(path)))
    for words in ("from 0 to 2", "by more than 0.001", "only the pixels 0:2", "factor 2", "a score of 0.5"):
        assert words in said


def test_closecheck_runs_alone(proof: tuple[Path, float]) -> None:
    command = [sys.executable, "-I", "-S", closecheck.__file__]
    done = subprocess.run([*command, str(proof[0])], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("Proven: no image within")
    done = subprocess.run([*command, "nowhere.ccp"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nowhere.ccp cannot be read" in done.stderr


def test_the_form_that_is_proven_is_the_same_function() -> None:
    network = pooled(0)
    images = np.random.default_rng(0).random((20, PIXELS))
    assert (exact_form(network).forward(images) == network.forward(images)).all()
