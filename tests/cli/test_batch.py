"""`closecall batch`, what it prints and refuses, and what is made of its store."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from closecall import consoles


@pytest.fixture(autouse=True)
def _shown_again() -> None:
    consoles.ask_for_quiet(False)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images of 2×2 pixels; the label is the brightest one's place."""
    path = tmp_path_factory.mktemp("data") / "squares.npz"
    random = np.random.default_rng(0)
    rows = [[250, 150, 90 - number, 10 + number] for number in range(12)]
    images = random.permuted(np.array(rows), axis=1).astype(np.uint8)
    labels = images.argmax(axis=1)
    labels[:4] = range(4)  # every class is there, whatever the pixels say
    images = images.reshape(12, 1, 2, 2)
    np.savez(path, x_train=images, y_train=labels, x_test=images, y_test=labels)
    return path


@pytest.fixture
def asked(run, brightest: Path, squares: Path, tmp_path: Path):
    """A batch of five questions in the store r.sqlite."""
    given = ("batch", "--model", brightest, "--dataset", squares, "--norm", "linf", "--workers", 0)
    store = tmp_path / "r.sqlite"
    ran = run(*given, "--indices", "4:8,11", "--store", store)
    return given, store, ran


def test_a_line_for_each_answer_and_a_summary(asked) -> None:
    """Two pixels 100/255 apart meet, with the margin, after half of that and 0.0005 each."""
    _, store, ran = asked
    lines = ran.out.splitlines()
    assert ran.code == 0, ran.err
    assert len(lines) == 7
    assert all("Nearest: linf distance 0.1965" in line for line in lines[:5])
    assert lines[5] == "5 questions: 5 nearest."
    assert lines[6].startswith("5 asked now in ")
    assert lines[6].endswith(f"; kept in {store}")


def test_again_it_asks_nothing_and_json_has_an_object_for_each_answer(run, asked) -> None:
    given, store, _ = asked
    ran = run(*given, "--indices", "4:9", "--store", store, "--json")
    assert ran.code == 0
    (answer,) = map(json.loads, ran.out.splitlines())
    assert (answer["index"], answer["outcome"], answer["finished"]) == (8, "nearest", True)
    assert answer["distance"] == pytest.approx((100 / 255 + 0.001) / 2, abs=1e-4)
    again = run(*given, "--indices", "4:9", "--store", store)
    assert again.out.startswith(
        "5 of 5 questions are answered in the store already.\n5 questions: 5 nearest.\n0 asked"
    )
    assert run(*given, "--indices", "4:9", "--store", store, "--json").out == ""


def test_status_and_exports_say_the_same(run, asked, tmp_path: Path) -> None:
    _, store, _ = asked
    told = json.loads(run("batch", "status", "--store", store, "--json").out)
    assert (told["questions"], [*told["models"].values()], told["begun"]) == (5, [{"nearest": 5}], [])
    assert "nearest" in run("batch", "status", "--store", store).out
    for suffix in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"r.{suffix}"
        assert run("batch", "export", "--store", store, "--out", out).out == f"{out}: 5 rows\n"
    with (tmp_path / "r.csv").open() as file:
        as_csv = [float(row["distance"]) for row in csv.DictReader(file)]
    as_lines = [json.loads(line)["distance"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    as_parquet = pyarrow.parquet.read_table(tmp_path / "r.parquet")["distance"].to_pylist()
    assert as_csv == as_lines == as_parquet
    assert len(as_csv) == 5


def test_merge_replay_and_a_witness_that_was_exchanged(run, asked, tmp_path: Path) -> None:
    _, store, _ = asked
    ran = run("batch", "merge", store, "--store", tmp_path / "all.sqlite")
    assert ran.out == f"{tmp_path / 'all.sqlite'}: 5 answers taken\n"
    assert run("replay", "--store", tmp_path / "all.sqlite").out.startswith("5 witnesses: everything holds;")

    from closecall.batches.answers import packed, unpacked
    from closecall.batches.store import ANSWER, Store, insert_answer

    with Store.writing(store) as opened:
        names = ", ".join(ANSWER)
        found = opened.connection.execute(f"SELECT {names} FROM answers")  # noqa: S608
        row = list(found.fetchone())
        place = ANSWER.index("witness")
        row[place] = packed(np.zeros_like(unpacked(row[place])))
        insert_answer(opened.connection, tuple(row))
    ran = run("replay", "--store", store, "--json")
    told = json.loads(ran.out)
    assert (ran.code, told["holds"], told["witnesses"], len(told["failed"])) == (1, False, 5, 1)
    assert any("linf distance" in sentence for sentence in told["failed"][0]["failed"])


def test_the_page_has_every_section_and_number(run, asked, tmp_path: Path) -> None:
    _, store, _ = asked
    page = tmp_path / "page.html"
    assert run("report", "--store", store, "--out", page).out == f"The page is {page}\n"
    html = page.read_text(encoding="utf-8")
    for title in (
        "The answer",
        "Proven at every radius",
        "The easiest and the hardest",
        "What turns into what",
    ):
        assert f"<h2>{title}</h2>" in html
    assert html.count('alt="the changed image, seen as') == 5
    assert "5 questions about" in html
    assert html.count("<tr><td") >= 5 + 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "A batch needs --dataset"),
        (("--dataset", "digits"), "A batch needs --store"),
        (("--indices", "1:"), "--indices takes numbers and ranges such as 0:1000"),
        (("--indices", "0:4:0"), "cannot step by 0"),
        (("--shard", "two"), "--shard takes a part such as 2/8"),
        (("--shard", "3/2"), "A shard is a part such as 1/4 to 4/4, not 3/2"),
        (("--task", "certify"), "Certify within which radius"),
        (("--scheduler", "nowhere"), "nowhere is neither an address"),
    ],
)
def test_bad_input(run, brightest: Path, squares: Path, tmp_path: Path, given: tuple, sentence: str) -> None:
    whole = ("--dataset", squares, "--store", tmp_path / "r.sqlite")
    if given and given[0] != "--dataset":
        given = (*whole, *given)
    ran = run("batch", "--model", brightest, *given)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_exports_and_replays_that_cannot_be(run, asked, tmp_path: Path) -> None:
    _, store, _ = asked
    ran = run("batch", "export", "--store", store, "--out", tmp_path / "r.txt")
    assert (ran.code, ran.err.startswith("closecall: An export is a file .csv, .jsonl or .parquet")) == (
        2,
        True,
    )
    assert run("batch", "status", "--store", tmp_path / "none.sqlite").code == 2
    assert "neither was given" in run("replay").err


def test_without_dask_one_process_does_it_and_says_so(brightest: Path, squares: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['distributed'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'distributed' else find(name, *rest)\n"
        "from closecall.cli import main; main()"
    )
    given = [
        "batch",
        "--model",
        brightest,
        "--dataset",
        squares,
        "--indices",
        "5",
        "--store",
        tmp_path / "r.sqlite",
    ]
    command = [sys.executable, "-c", program, *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == 'Asked in one process; `pip install "closecall[scale]"` gives every core one.\n'
    refused = subprocess.run(
        [*command, "--workers", "2"], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert 'needs an optional package: pip install "closecall[scale]".' in refused.stderr
