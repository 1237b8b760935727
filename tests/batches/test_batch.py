"""A batch gives what single calls give, asks nothing twice, and keeps models and questions apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import closecall
from closecall import data
from closecall.batches.answers import Reply
from closecall.batches.batch import Batch, contenders_of, pictures_of
from closecall.batches.choosing import Where
from closecall.batches.items import Plan
from closecall.batches.merging import merge
from closecall.batches.replaying import replay_store
from closecall.batches.store import Store
from closecall.errors import InputError
from closecall.question.effort import Effort
from closecall.readers import read

INDICES = range(6)


def outcomes(batch: closecall.Batch) -> list[tuple[int, str]]:
    return [(row["index"], row["outcome"]) for row in batch.table()]


@pytest.mark.parametrize("task", ["nearest", "certify"])
def test_answers_equal_those_of_single_calls(small: Path, task: str) -> None:
    batch = closecall.batch(
        small, "digits", indices=INDICES, task=task, norm="linf",
        radius=None if task == "nearest" else 0.05, workers=0,
    )  # fmt: skip
    verdicts = {verdict.image.tobytes(): verdict for verdict in batch}
    digits = data.load_dataset("digits", "test")
    assert len(verdicts) == len(INDICES)
    for index in INDICES:
        image, label = digits.image(index), int(digits.labels[index])
        found = verdicts[image.tobytes()]
        alone = (
            closecall.nearest(small, image, label, norm="linf")
            if task == "nearest"
            else closecall.certify(small, image, label, radius=0.05)
        )
        assert (found.outcome, found.predicted_before) == (alone.outcome, alone.predicted_before)
        if task == "nearest":
            assert found.distance == pytest.approx(alone.distance, rel=2e-4)
        np.testing.assert_allclose(found.scores_before, alone.scores_before, atol=1e-9)


def test_an_image_in_two_places_is_asked_about_once_and_listed_twice() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
    batch = closecall.batch({"mine": model}, np.full((2, 1, 2, 2), 0.5), norm="linf", workers=0)
    assert len(list(batch)) == 1
    one, other = batch.table()
    assert (one.pop("index"), other.pop("index")) == (0, 1)
    assert one == other


def test_what_is_kept_is_what_was_found(small: Path, tmp_path: Path) -> None:
    """Every field of a verdict survives the store, the witness bit for bit."""
    how = {"indices": range(3), "norm": "linf", "workers": 0, "store": tmp_path / "r.sqlite"}
    found = {v.image.tobytes(): v for v in closecall.batch(small, "digits", **how)}
    again = {v.image.tobytes(): v for v in closecall.batch(small, "digits", **how)}
    assert found.keys() == again.keys()
    for key, verdict in found.items():
        kept = again[key]
        assert kept.to_json() == verdict.to_json()
        assert kept.witness is not None
        np.testing.assert_array_equal(kept.witness, verdict.witness)
        np.testing.assert_array_equal(kept.question.image, verdict.question.image)
        np.testing.assert_array_equal(kept.scores_after, verdict.scores_after)


def test_nothing_is_asked_twice_and_no_two_networks_mix(small: Path, other: Path, tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    first = closecall.batch([small, other], "digits", indices=range(3), norm="linf", workers=0, store=store)
    assert len(list(first.replies())) == 6
    assert list(first.replies()) == []
    by_model = {
        name: [r["distance"] for r in first.table() if r["model"] == str(name)] for name in (small, other)
    }
    assert by_model[small] != by_model[other]
    more = closecall.batch(small, "digits", indices=range(4), norm="linf", workers=0, store=store)
    assert len(list(more.replies())) == 1
    wider = closecall.batch(
        small, "digits", indices=range(3), norm="linf", margin=0.1, workers=0, store=store
    )
    assert len(list(wider.replies())) == 3


def test_rerun_asks_what_is_unresolved_or_all(large: Path, tmp_path: Path) -> None:
    how = {
        "indices": range(2),
        "norm": "linf",
        "method": "milp-basic",
        "workers": 0,
        "store": tmp_path / "r.sqlite",
    }
    short = closecall.batch(large, "digits", time_limit=0.2, **how)
    list(short)
    left = sum(not row["resolved"] for row in short.table())
    assert left >= 1
    assert list(closecall.batch(large, "digits", time_limit=0.3, **how).replies()) == []
    unresolved = closecall.batch(large, "digits", time_limit=0.3, rerun="unresolved", **how)
    assert len(list(unresolved.replies())) == left
    assert len(list(closecall.batch(large, "digits", time_limit=0.2, rerun="all", **how).replies())) == 2
    with pytest.raises(InputError, match="--rerun takes never, unresolved, all, not 'often'"):
        list(closecall.batch(large, "digits", rerun="often", **how))


def test_an_answer_is_not_lost_to_a_worse_one(small: Path, large: Path, tmp_path: Path) -> None:
    how = {"indices": range(1), "norm": "linf", "workers": 0, "store": tmp_path / "r.sqlite"}
    list(closecall.batch(small, "digits", **how))
    with Store.writing(tmp_path / "r.sqlite") as store:
        (key,) = store.states()
        store.put(Reply(key, "crashed", note="the worker died"), "nearest")
        assert store.states()[key].outcome == "nearest"


def test_shards_share_the_questions_and_merge_joins_them(small: Path, tmp_path: Path) -> None:
    pictures = pictures_of("digits", None, range(5))
    contenders = contenders_of(small, pictures)
    asked: list[int] = []
    for part in (1, 2):
        plan = Plan(contenders, pictures, "nearest", {"norm": "linf"}, Effort(), (part, 2))
        shard = Batch(plan, tmp_path / f"{part}.sqlite", "never", Where(workers=0))
        asked += [row["index"] for row in (list(shard.replies()), shard.table())[1]]
    assert sorted(asked) == [0, 1, 2, 3, 4]
    assert merge(tmp_path / "all.sqlite", [tmp_path / "1.sqlite", tmp_path / "2.sqlite"]) == 5
    assert merge(tmp_path / "all.sqlite", [tmp_path / "1.sqlite"]) == 0
    whole = closecall.batch(
        small, "digits", indices=range(5), norm="linf", workers=0, store=tmp_path / "all.sqlite"
    )
    assert list(whole.replies()) == []
    assert len(list(whole)) == 5
    with pytest.raises(InputError, match="cannot be joined with itself"):
        merge(tmp_path / "all.sqlite", [tmp_path / "all.sqlite"])


def test_modules_arrays_and_labels_of_the_model_itself() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
    images = np.random.default_rng(0).random((3, 1, 2, 2), dtype=np.float32)
    batch = closecall.batch({"mine": model}, images, norm="linf", workers=0)
    verdicts = list(batch)
    assert len(verdicts) == 3
    for verdict in verdicts:
        assert verdict.label == int(model(torch.from_numpy(verdict.image[None])).argmax())
    assert {row["model"] for row in batch.table()} == {"mine"}


@pytest.mark.parametrize("error", [ValueError("odd pixels"), closecall.QueryError("the image is odd.")])
def test_what_fails_is_an_answer_too_and_the_rest_goes_on(small: Path, error: Exception) -> None:
    """An engine that gives up on one image, by a mistake or on purpose."""
    digits = data.load_dataset("digits", "test")
    odd = digits.image(1)
    real = closecall.read(small)

    def engine(images: np.ndarray) -> np.ndarray:
        if any(np.array_equal(image, odd) for image in images):
            raise error
        return real.engines["onnxruntime"](images)

    failing = closecall.Classifier(real.network, {"odd": engine}, "failing")
    batch = closecall.batch(failing, "digits", indices=range(3), norm="linf", workers=0)
    assert len(list(batch)) == 2
    by_index = {row["index"]: row for row in batch.table()}
    assert by_index[1]["outcome"] == "failed"
    assert str(error) in by_index[1]["note"]
    assert {by_index[0]["outcome"], by_index[2]["outcome"]} == {"nearest"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"task": "prove"}, "A batch asks for nearest or certify, not for 'prove'."),
        ({"task": "certify"}, "Certify within which radius"),
        ({"indices": [400]}, "digits has images 0 to 359, but image 400 was asked for"),
        ({"indices": []}, "but no image was asked for"),
        ({"labels": [1]}, "A data set brings its own labels"),
        ({"workers": -1}, "There cannot be -1 workers"),
        ({"workers": 1, "scheduler": "nowhere.json"}, "neither an address such as tcp"),
    ],
)
def test_bad_input_is_refused_by_a_sentence(small: Path, given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        list(closecall.batch(small, "digits", **{"indices": [0], **given}))


def test_what_is_asked_beyond_a_class_is_part_of_the_key(small: Path, tmp_path: Path) -> None:
    """Each question is kept for itself, comes back as it was asked, and its witness holds."""
    asked = (
        {},
        {"target": [0, 1]},
        {"target": [1, 3]},
        {"out_of_top": 2},
        {"confidence": 0.7},
        {"pixels": "8bit"},
    )
    keys = set()
    for more in asked:
        made = closecall.batch(
            small, "digits", indices=[3], norm="linf", workers=0, store=tmp_path / "r.sqlite", **more
        )
        (verdict,) = made
        (row,) = made.table()
        keys.add(row["key"])
        assert row["outcome"] == "nearest"
        assert verdict.group == (tuple(more["target"]) if "target" in more else None)
        assert (verdict.out_of_top, verdict.confidence) == (more.get("out_of_top"), more.get("confidence"))
        assert verdict.pixels == more.get("pixels")
    assert len(keys) == len(asked)
    replayed = [*replay_store(tmp_path / "r.sqlite", read)]
    assert [each.refuted for each in replayed] == [[]] * len(asked)
