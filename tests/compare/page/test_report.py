"""The page and the figures of any comparison, also of one that measured next to nothing."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from closecall.compare.page import write_report
from closecall.compare.page.answer import answer_words
from closecall.compare.page.distances import distance_charts, missed_words
from closecall.compare.page.figures import write_figures
from closecall.compare.page.known import Known, known_of
from closecall.compare.page.milps import milp_charts, milps_section
from closecall.compare.page.names import in_words, sentence, title_of
from closecall.compare.page.report import comparison_page
from closecall.compare.results import DistanceRow, Results
from closecall.errors import InputError
from closecall.report.numbers import percent, rounded_up
from closecall.report.style import SERIES, STYLE

FIGURES = {
    "medians", "distances", "gallery", "moved", "few", "milps", "overlapping-capsnet",
    "reconstructions-capsnet", "dimensions-capsnet-1", "dimensions-capsnet-2",
}  # fmt: skip


def bare(results: Results) -> Results:
    """The same models with nothing measured but their accuracy."""
    return replace(
        results,
        distance_images=[],
        distances=[],
        transformed=[],
        few=[],
        overlapping=[],
        capsules=[],
        encodings=[],
    )


def with_distances(results: Results, **intervals: list[tuple[float | None, float | None]]) -> list[Known]:
    rows = [
        DistanceRow(model, index, 0, 1, "linf", "adversarial", lower, upper, lower == upper, upper, 1.0, 1)
        for model, own in intervals.items()
        for index, (lower, upper) in enumerate(own)
    ]
    return [part for part in known_of(replace(results, distances=rows)) if part.rows]


def test_every_figure_is_there_twice(report: Path) -> None:
    folder = report.parent / "figures"
    assert {path.name for path in folder.iterdir()} == {
        f"{n}.{kind}" for n in FIGURES for kind in ("png", "svg")
    }
    for name in FIGURES:
        with Image.open(folder / f"{name}.png") as image:
            pixels = np.asarray(image.convert("L"))
        assert min(pixels.shape) > 200
        assert pixels.std() > 5  # not an empty sheet
        root = ElementTree.parse(folder / f"{name}.svg").getroot()  # noqa: S314 - we wrote it
        assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_the_same_results_give_the_same_files(results: Results, report: Path, tmp_path: Path) -> None:
    page = write_report(results, tmp_path)
    assert page == tmp_path / "report.html"
    assert page.read_bytes() == report.read_bytes()
    for path in (tmp_path / "figures").iterdir():
        assert path.read_bytes() == (report.parent / "figures" / path.name).read_bytes(), path.name


def test_figures_have_the_colours_of_the_page() -> None:
    for name, colour in zip(("one", "two", "three", "four", "five", "six"), SERIES, strict=True):
        assert f"--{name}: {colour};" in STYLE


def test_a_folder_that_cannot_be_written_is_an_input_error(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write into the folder"):
        write_report(results, tmp_path / "file" / "out")


def test_what_was_not_measured_is_said(results: Results, tmp_path: Path) -> None:
    page = write_report(bare(results), tmp_path).read_text(encoding="utf-8")
    assert list((tmp_path / "figures").iterdir()) == []
    assert page.count("<section") == 8
    for said in (
        "No pictures were kept.",
        "No distances were measured.",
        "No moved images were tried.",
        "No training on few images was tried.",
        "No capsule network is among the models.",
        "No DNN and CNN were compared by their MILPs.",
    ):
        assert said in page
    assert page.count("not measured") == 2 * len(results.models)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0"])
def test_one_model_one_image_any_norm(results: Results, tmp_path: Path, norm: str) -> None:
    row = replace(results.distances[0], norm=norm, upper=3.0, lower=2.5, proven=False, outcome="adversarial")
    small = replace(
        bare(results), norm=norm, seeds=[0], distance_images=[0], distances=[row], models=results.models[:1]
    )
    page = write_report(small, tmp_path).read_text(encoding="utf-8")
    assert "2.500 to 3" in page
    assert "overlap" not in page


def test_colour_images_and_names_of_classes(results: Results, tmp_path: Path) -> None:
    colour = np.random.default_rng(0).random((3, 8, 8)).round(4).tolist()
    names = ["aeroplane", "a <ship>", *results.class_names[2:]]
    row = replace(results.distances[0], original=colour, nearest=colour, label=0, became=1)
    shown = replace(
        bare(results), class_names=names, distance_images=[0], distances=[row], models=results.models[:1]
    )
    page = write_report(shown, tmp_path).read_text(encoding="utf-8")
    assert "test image 0: aeroplane" in page
    assert "a &lt;ship&gt;" in page
    assert "a <ship>" not in page


def test_the_hardest_to_fool_is_named_only_when_proven(results: Results) -> None:
    apart = with_distances(results, dnn=[(0.1, 0.2)], cnn=[(0.25, 0.3)])
    assert "the CNN is the hardest to fool" in answer_words(results, apart)
    assert "0.2500 or more, while for the DNN half of them need no more than 0.2000" in answer_words(
        results, apart
    )
    third = with_distances(
        results, **{"dnn": [(0.3, 0.4)], "cnn": [(0.1, 0.2)], "cnn-baseline": [(0.15, 0.35)]}
    )
    assert "The hardest to fool is the DNN or the CNN baseline:" in answer_words(results, third)
    assert "is not settled; it is proven not to be the CNN." in answer_words(results, third)
    touching = with_distances(results, dnn=[(0.1, 0.26)], cnn=[(0.25, 0.3)])
    assert "is not settled" in answer_words(results, touching)
    unbounded = with_distances(results, dnn=[(0.1, None)], cnn=[(0.25, 0.3)])
    assert "is not settled" in answer_words(results, unbounded)
    alone = with_distances(results, dnn=[(0.1, 0.2)], capsnet=[(0.0, 0.9)])
    assert "hardest" not in answer_words(results, alone)
    assert "For the CapsNet there is only what an attack found" in answer_words(results, alone)


def test_the_median_of_bounds_is_what_is_shown(results: Results) -> None:
    part = with_distances(results, dnn=[(0.1, 0.1), (0.2, 0.4), (0.3, None)])[0]
    assert (part.lower, part.upper) == (0.2, 0.4)
    assert part.written() == "0.2000 to 0.4000"
    lost = with_distances(results, dnn=[(0.1, 0.1), (0.2, None), (0.3, None)])[0]
    assert lost.written() == "0.2000 or more"
    safe = with_distances(results, dnn=[(None, None)])[0]
    assert (safe.lower, safe.state, safe.written()) == (math.inf, "closed", "none in the box")


def test_the_attack_misses_only_what_is_nearer(results: Results) -> None:
    rows = [
        DistanceRow("dnn", index, 0, 1, "linf", outcome, 0.1, 0.1, True, attack, 1.0, 1)
        for index, (outcome, attack) in enumerate(
            [
                ("nearest", 0.1),
                ("nearest", 0.1005),
                ("nearest", 0.102),
                ("nearest", None),
                ("misclassified", 0.5),
            ]
        )
    ]
    part = known_of(replace(results, distances=rows))[0]
    assert part.missed() == (2, 4)
    assert "is known for 2 of 4 images under the DNN" in missed_words([part])


def test_charts_step_where_images_are_lost(results: Results) -> None:
    for shown, part in zip(distance_charts(results, known_of(results)), known_of(results), strict=True):
        for curve in shown.curves:
            assert curve.across[0] == 0
            assert list(curve.across) == sorted(curve.across)
            assert list(curve.up) == sorted(curve.up, reverse=True)
        right = sum(row.outcome != "misclassified" for row in part.rows)
        assert shown.curves[0].up[0] == right / len(part.rows)


def test_radii_end_with_the_distances(results: Results) -> None:
    for shown in distance_charts(results, known_of(results)):
        furthest = max(
            max(row.upper or 0.0, row.attack or 0.0, row.lower or 0.0) for row in results.distances
        )
        assert furthest < shown.across.high < 1.05 * furthest
        assert shown.across.ticks[-1] <= shown.across.high


def test_times_end_with_the_limit(results: Results) -> None:
    for shown in milp_charts(results):
        assert shown.across.high == results.how.milp_time_limit
        assert shown.across.label == "seconds, up to the limit of 10\N{NO-BREAK SPACE}s"
        assert max(curve.across[-1] for curve in shown.curves) == shown.across.high


def test_the_charts_of_the_milps_come_before_their_folded_table(results: Results) -> None:
    blocks = "".join(milps_section(results).blocks)
    assert blocks.index("<svg") < blocks.index("<ul>") < blocks.index("<details>") < blocks.index("<table")
    assert blocks.count("<table") == 1
    assert blocks.index("</table>") < blocks.index("</details>")


def test_models_are_called_by_words(results: Results) -> None:
    page = comparison_page(results).html()
    said = re.sub(r"<(style|script|pre)>.*?</\1>|<code>.*?</code>|data-key=\"[^\"]*\"", "", page, flags=re.S)
    spoken = re.findall(r'(?:alt|aria-label)="([^"]*)"', said)
    texts = [re.sub(r"<[^>]+>", " ", said), *spoken]
    for text in texts:
        assert not re.search(r"\b(dnn|cnn|capsnet)\b", text), text[:200]
    assert "The DNN, the CNN, the CNN baseline and the CapsNet, on the same images" in page


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("capsnet", "CapsNet", "the CapsNet"),
        ("dnn-10-10", "DNN 10-10", "dnn-10-10"),
        ("cnn-4-kernels", "CNN 4 kernels", "cnn-4-kernels"),
        ("my-cnn", "my-cnn", "my-cnn"),
    ],
)
def test_names_that_a_user_chose_stay(name: str, title: str, said: str) -> None:
    assert (title_of(name), in_words(name)) == (title, said)
    assert (
        sentence(f"{said} reads")
        == f"{said[0].upper() if said.startswith('the ') else said[0]}{said[1:]} reads"
    )


def test_accuracies_have_the_same_digits_everywhere(results: Results) -> None:
    """With many test images a hundredth of a percent is said, in tables, dots, sentences and alternatives."""
    for images, digits in ((360, 1), (10_000, 2)):
        page = comparison_page(replace(results, test_images=images)).html()
        for row in (*results.transformed, *results.encodings, *results.overlapping):
            share = np.mean(row.accuracy)
            assert percent(float(share), digits) in page
        accuracies = re.findall(r"<title>[^<]*: ([\d.]+)\N{NO-BREAK SPACE}%</title>", page)
        assert {len(text.split(".")[1]) for text in accuracies} == {digits}


def test_a_distance_is_written_the_same_way_everywhere(results: Results) -> None:
    """Where the attack's image is the nearest known one, both are the same number and the same text."""
    page = comparison_page(results).html()
    lines = re.findall(r"<tr>(.*?)</tr>", page[page.index("<caption>Every distance") :], flags=re.S)
    cells = [
        dict(re.findall(r'data-head="([^"]+)"[^>]*><span>(?:<i[^>]*></i>)?([^<]*)', line)) for line in lines
    ]
    every = {(line["model"], int(line["image"])): line for line in cells if "at most" in line}
    same = 0
    for row in results.distances:
        line = every[title_of(row.model), row.index]
        if row.upper is not None:
            assert line["at most"] == rounded_up(row.upper)
        if row.upper is not None and row.attack == row.upper:
            assert line["attack alone"] == line["at most"]
            same += 1
    assert same > 5
    capsnet = known_of(results)[-1]
    assert capsnet.attack == capsnet.upper
    written = rounded_up(capsnet.upper)
    assert f"under attack half of the images are lost at {written}" in page
    assert f"≤ {written}, not proven" in page


def test_only_seen_kinds_are_drawn(results: Results, tmp_path: Path) -> None:
    few = replace(bare(results), few=results.few)
    assert {path.name for path in write_figures(few, tmp_path)} == {"few.png", "few.svg"}


def test_the_page_has_no_scripts_but_its_own(results: Results) -> None:
    assert comparison_page(results).html().count("<script") == 1
