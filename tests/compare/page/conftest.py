"""A made-up comparison with every kind of outcome in it, and its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from closecall import data
from closecall.compare.page import write_report
from closecall.compare.page.report import comparison_page
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
    Picture,
    Reconstruction,
    Results,
    TransformRow,
)

DIGITS = data.load_dataset("digits", "test")
IMAGES = list(range(10))
ACCURACY = {"dnn": 0.955, "cnn": 0.9722, "cnn-baseline": 0.981, "capsnet": 0.9861}
MODELS = list(ACCURACY)
SEEDS = [0, 1, 2]
MOVES = {
    "shift": ([0.0, 1.0, 2.0, 3.0], "pixels"),
    "rotation": ([-30.0, -15.0, 0.0, 15.0, 30.0], "degrees"),
    "scale": ([0.7, 0.85, 1.0, 1.15, 1.3], "times"),
    "shear": ([-0.4, -0.2, 0.0, 0.2, 0.4], ""),
}
EVIL = '<b>&</b> has "quotes"'


def picture(index: int, noise: float = 0.0) -> Picture:
    """A digit, with as much noise as asked for."""
    pixels = DIGITS.image(index).astype(np.float64)
    shift = noise * np.sign(np.random.default_rng(index).standard_normal(pixels.shape))
    kept: Picture = np.round(np.clip(pixels + shift, 0, 1), 4).tolist()
    return kept


def label(index: int) -> int:
    return int(DIGITS.labels[index])


def model_row(name: str) -> ModelRow:
    place = MODELS.index(name)
    return ModelRow(
        name=name,
        kind=name,
        description=f"a network that {EVIL}",
        source="trained here",
        parameters=1000 * 7**place + 210,
        units=None if name == "capsnet" else 48 * (place + 1),
        accuracy=[round(ACCURACY[name] + 0.004 * (seed - 1), 4) for seed in SEEDS],
        training_seconds=[1.5 + place, 1.6 + place, 1.9 + 30 * place],
        milliseconds_single=0.21 + 0.4 * place,
        milliseconds_batched=0.0123 * (place + 1),
        provable=name != "capsnet",
        note="The 35.4 M of the paper cannot be reproduced." if name == "cnn-baseline" else "",
    )


def distance_row(model: str, index: int) -> DistanceRow:
    """Every outcome comes up: 3 is misread by cnn, dnn is robust on 4, cnn-baseline is unresolved on 5."""
    upper: float | None = round(0.02 + 0.013 * ((7 * index + 3 * MODELS.index(model)) % 10), 4)
    lower: float | None = round(upper * 0.7, 6)
    outcome, proven = "adversarial", model == "dnn" or (model == "cnn" and index % 2 == 0)
    attack = None if index == 6 else round(upper * (1.0 + 0.05 * (index % 3)), 4)
    became: int | None = (label(index) + 1) % 10
    if proven:
        outcome, lower = "nearest", round(upper * 0.99995, 6)
    if model == "capsnet":
        outcome, lower, attack = "attacked", 0.0, None if index == 6 else upper
        upper = attack
    elif (model, index) == ("cnn", 3):
        outcome, lower, upper, attack, proven = "misclassified", 0.0, 0.0, 0.0, True
    elif (model, index) == ("dnn", 4):
        outcome, lower, upper, attack = "robust", None, None, None
    elif (model, index) == ("cnn-baseline", 5):
        outcome, upper, attack = "unresolved", None, None
    return DistanceRow(
        model=model,
        index=index,
        label=label(index),
        became=None if upper is None else became,
        norm="linf",
        outcome=outcome,
        lower=lower,
        upper=upper,
        proven=proven,
        attack=attack,
        seconds=0.37 + index,
        nodes=1300 * index,
        original=picture(index),
        nearest=None if upper is None else picture(index, upper),
    )


def transform_row(model: str, kind: str, amount: float, unit: str) -> TransformRow:
    start = 1.0 if kind == "scale" else 0.0
    far = abs(amount - start) / max(abs(other - start) for other in MOVES[kind][0])
    lost = 0.1 * far * (4 - MODELS.index(model))
    accuracy = [round(ACCURACY[model] + 0.004 * (seed - 1) - lost, 4) for seed in SEEDS]
    return TransformRow(model, kind, amount, unit, accuracy)


def encoding_row(family: str, pairing: str, seconds: float, solved: int, images: int = 8) -> EncodingRow:
    """The first `solved` questions take about `seconds` each, the others the whole limit of 10."""
    answers = [
        MilpAnswer(
            index=index,
            radius=0.05,
            variables=300 + index,
            binaries=40,
            rows=700,
            undecided=40,
            nodes=90 + index,
            seconds=seconds * (1 + 0.1 * index) if index < solved else 10.0,
            lower=0.04,
            upper=0.04 if index < solved else 0.05,
            gap=0.0 if index < solved else 0.2,
            solved=index < solved,
        )
        for index in range(images)
    ]
    matched_by = {"accuracy": "validation accuracy", "size": "units"}.get(pairing, "")
    return EncodingRow(
        model=family if pairing == "as trained" else {"dnn": "dnn-16-16", "cnn": "cnn-4-kernels"}[family],
        family=family,
        description="16-16" if family == "dnn" else "4x3/2, 16",
        pairing=pairing,
        matched_by=matched_by,
        accuracy=0.951 if family == "dnn" else 0.955,
        validation_accuracy=0.9583 if matched_by else None,
        parameters=2410 if family == "dnn" else 1812,
        units=48,
        variables=303.5 if family == "dnn" else 411.0,
        binaries=40.0,
        rows=700.0,
        undecided=40.0,
        nodes=93.5,
        seconds=float(np.median([answer.seconds for answer in answers])),
        solved_share=solved / images,
        answers=answers,
    )


def overlap_rows() -> list[OverlapRow]:
    pairs = [(0, 1), (2, 4), (5, 6), (7, 8)]
    shots = [
        OverlapShot(
            image=np.maximum(picture(one), picture(other)).tolist(),
            labels=[label(one), label(other)],
            predicted=[label(one), label(other) if place else 3],
            restored=[picture(one, 0.05), picture(other, 0.05)],
        )
        for place, (one, other) in enumerate(pairs)
    ]
    return [
        OverlapRow("capsnet", "small", 0.776, 699120, 6000, 1000, 321.0, shots),
        OverlapRow("cnn", "16x5", 0.724, 310986, 6000, 1000, 123.0),
    ]


def capsule_row() -> CapsuleRow:
    steps = [round(-0.25 + 0.05 * step, 2) for step in range(11)]
    return CapsuleRow(
        "capsnet",
        [
            Reconstruction(
                index, label(index), label(index) if index else 5, picture(index), picture(index, 0.04)
            )
            for index in range(8)
        ],
        [
            Dimensions(
                index,
                label(index),
                label(index),
                steps,
                [[picture(index, 0.01 * row + abs(step)) for step in steps] for row in range(16)],
            )
            for index in (1, 2)
        ],
    )


def how_made() -> HowMade:
    return HowMade(
        version="0.1.0",
        python="3.11.7",
        packages={"torch": "2.13.0", "numpy": "2.4.1"},
        machine="8 cores",
        command="closecall compare --dataset digits --out runs/compare",
        started="2030-01-02 03:04:05",
        finished="2030-01-02 03:05:10",
        measured_seconds=65.0,
        threads=1,
        solver="highs",
        time_limit=2.0,
        milp_time_limit=10.0,
        gap=1e-4,
        margin=1e-3,
        training={"dnn": "10 epochs, Adam", "capsnet": "6 epochs, shifted by up to 1 pixel"},
        narrowed=["cnn-baseline has fewer kernels.", EVIL],
    )


def made_up_results() -> Results:
    """A comparison that nobody measured."""
    return Results(
        dataset="digits",
        class_names=[str(digit) for digit in range(10)],
        input_shape=[1, 8, 8],
        train_images=1437,
        test_images=360,
        preset="quick",
        seeds=SEEDS,
        norm="linf",
        distance_images=IMAGES,
        models=[model_row(name) for name in MODELS],
        distances=[distance_row(model, index) for model in MODELS for index in IMAGES],
        transformed=[
            transform_row(model, kind, amount, unit)
            for model in MODELS
            for kind, (amounts, unit) in MOVES.items()
            for amount in amounts
        ],
        few=[
            FewRow(model, images, seed, round(ACCURACY[model] - (0.7 - 0.03 * seed) / images**0.6, 4))
            for model in MODELS
            for images in (1, 3, 10, 30, 100)
            for seed in SEEDS
        ],
        overlapping=overlap_rows(),
        capsules=[capsule_row()],
        encodings=[
            encoding_row("dnn", "accuracy", 0.02, 8),
            encoding_row("cnn", "accuracy", 0.5, 6),
            encoding_row("dnn", "size", 0.1, 8),
            encoding_row("cnn", "size", 0.104, 8),
            encoding_row("dnn", "as trained", 2.0, 5),
            encoding_row("cnn", "as trained", 5.0, 1),
        ],
        how=how_made(),
    )


def awkward_results() -> Results:
    """Colour images, long names, a model from elsewhere and a single seed."""
    made = made_up_results()
    own = replace(
        made.models[1],
        name="a-network-with-a-name-that-goes-on-and-on",
        kind="other",
        source="runs/" + "deep/" * 20 + "network.onnx",
        accuracy=[0.91],
        training_seconds=[],
    )
    rows = [
        replace(row, original=coloured(row.original), nearest=coloured(row.nearest)) for row in made.distances
    ]
    return replace(
        made,
        class_names=[
            "aeroplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "lorry",
        ],
        test_images=10_000,
        seeds=[0],
        models=[*made.models, own],
        distances=rows + [replace(row, model=own.name) for row in rows if row.model == "cnn"],
        overlapping=[],
        capsules=[],
    )


def coloured(grey: Picture | None) -> Picture | None:
    return None if grey is None else [grey[0], grey[0][::-1], grey[0]]


@pytest.fixture(scope="session")
def results() -> Results:
    return made_up_results()


@pytest.fixture(scope="session")
def report(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the made-up comparison, beside its results.json."""
    folder = tmp_path_factory.mktemp("comparison")
    (folder / "results.json").write_text(results.to_json(), encoding="utf-8")
    return write_report(Results.read(folder / "results.json"), folder)


@pytest.fixture(scope="session")
def awkward_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("awkward") / "report.html"
    page.write_text(comparison_page(awkward_results()).html(), encoding="utf-8")
    return page
