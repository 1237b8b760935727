"""Two overlapping digits at once, for data that has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from closecall import data
from closecall.compare.comparison import FIRST_SEED, Comparison, picture, spread
from closecall.compare.contenders import Contender
from closecall.compare.results import OverlapRow, OverlapShot
from closecall.compare.subjects import Subject, trained_subject
from closecall.data import PairDataset, Split
from closecall.data.dataset import to_unit_interval
from closecall.models import CapsNet, count_parameters

PAIRS_OF = {"mnist": "multimnist"}
SHOTS = 6


def measure_overlapping(comparison: Comparison) -> list[OverlapRow]:
    """Train each kind of model anew on pairs, with one seed, and count the images with both classes right."""
    name = PAIRS_OF.get(comparison.dataset)
    wanted = [contender for contender in comparison.contenders if contender.trainable]
    if not any(contender.kind == "capsnet" for contender in comparison.contenders):
        return []
    if name is None:
        comparison.narrow(
            f"No overlapping digits: they are made from {', '.join(PAIRS_OF)} only, "
            f"not from {comparison.dataset}."
        )
        return []
    comparison.progress.heading("overlapping digits")
    train, test = pairs(comparison, name, "train"), pairs(comparison, name, "test")
    comparison.narrow(
        f"Overlapping digits: {len(train):,} pairs to learn from and {len(test):,} to test on, "
        f"{comparison.preset.overlapping_epochs} epochs, one seed; no model was tuned for them."
    )
    return [measure_one(comparison, contender, train, test) for contender in wanted]


def pairs(comparison: Comparison, name: str, split: Split) -> PairDataset:
    """The first pairs of a split, as many as the preset takes."""
    count = comparison.preset.overlapping_pairs[0 if split == "train" else 1]
    with comparison.progress.waiting(f"making pairs of digits for the {split} split"):
        loaded = data.load_dataset(name, split)
    if not isinstance(loaded, PairDataset):
        raise TypeError(f"{name} has no pairs")
    return loaded.subset(spread(len(loaded), count))


def measure_one(
    comparison: Comparison, contender: Contender, train: PairDataset, test: PairDataset
) -> OverlapRow:
    """Trained into a folder of its own, so that an interruption loses nothing."""
    apart = replace(contender, name=f"{contender.name}-overlapping", source="")
    subject = trained_subject(comparison, apart, train, FIRST_SEED, comparison.preset.overlapping_epochs)
    key = comparison.key(
        "overlapping", model=contender.name, weights=subject.weights, pairs=[len(train), len(test)]
    )
    known = comparison.record.has(key)
    row = comparison.row(OverlapRow, key, lambda: ask_pairs(contender, subject, len(train), test))
    if not known:
        comparison.progress.say(f"{contender.name}: {row.accuracy:.1%} of the pairs are named right")
    return row


def ask_pairs(contender: Contender, subject: Subject, trained: int, test: PairDataset) -> OverlapRow:
    if subject.module is None:
        raise ValueError("only a network that was trained here can be tested on pairs")
    predicted = np.concatenate(
        [
            np.sort(np.argsort(-subject.score(to_unit_interval(test.images[start : start + 250])), 1)[:, :2])
            for start in range(0, len(test), 250)
        ]
    )
    labels = np.sort(test.both_labels(), axis=1)
    return OverlapRow(
        model=contender.name,
        description=contender.summary(subject.described["config"]),
        accuracy=float((predicted == labels).all(axis=1).mean()),
        parameters=count_parameters(subject.module),
        trained_pairs=trained,
        tested_pairs=len(test),
        seconds=subject.described["seconds"],
        shots=[
            shot(subject, test, index, labels[index].tolist(), predicted[index].tolist())
            for index in range(min(SHOTS, len(test)))
        ]
        if contender.kind == "capsnet"
        else [],
    )


def shot(
    subject: Subject, test: PairDataset, index: int, labels: list[int], predicted: list[int]
) -> OverlapShot:
    """One image, and what the decoder makes of each thing that was seen on it."""
    image, module = test.image(index), subject.module
    restored = []
    if isinstance(module, CapsNet) and module.decoder is not None:
        with torch.no_grad():
            capsules, _ = module.encode(torch.from_numpy(image).unsqueeze(0))
            restored = [
                picture(module.decode(capsules, torch.tensor([label]))[0].numpy()) for label in predicted
            ]
    return OverlapShot(picture(image), labels, predicted, restored)
