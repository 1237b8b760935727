"""Section 8: everything needed to make it again."""

from __future__ import annotations

from closecall.compare.page.names import in_words, sentence, title_of
from closecall.compare.results import Results
from closecall.report import Section, bullets, command_line, facts, paragraph, subheading
from closecall.report.numbers import NORM_NAMES, SOLVER_NAMES, count, duration, listed


def how_section(results: Results) -> Section:
    """The command, what was narrowed, how each model was trained, and every setting."""
    how = results.how
    blocks = [
        command_line(how.command),
        paragraph(
            "An interrupted run goes on where it stopped when the same command is given again: what was "
            "measured is kept in measurements.jsonl. The same numbers as here are in results.json and, as "
            "tables, in the folder csv; the figures are in the folder figures, as PNG and SVG."
        ),
    ]
    if how.narrowed:
        blocks += [
            subheading("Narrowed or left out"),
            bullets([named(results, told) for told in how.narrowed]),
        ]
    if how.training:
        blocks += [
            subheading("Training"),
            facts([(title_of(name), told) for name, told in how.training.items()]),
        ]
    blocks += [subheading("Everything else"), facts([*asked(results), *surroundings(results)])]
    return Section("How it was made", blocks, "how")


def named(results: Results, told: str) -> str:
    """A sentence that begins with a model's name, with that name in words."""
    name = next((model.name for model in results.models if told.startswith(f"{model.name} ")), None)
    return told if name is None else sentence(in_words(name)) + told.removeprefix(name)


def asked(results: Results) -> list[tuple[str, str]]:
    """What was asked of the models."""
    how = results.how
    sizes = "×".join(str(size) for size in results.input_shape)
    return [
        (
            "data",
            f"{results.dataset}: {count(results.train_images)} images to train on, "
            f"{count(results.test_images)} to test, {sizes} values each",
        ),
        ("preset", results.preset),
        ("seeds", listed([str(seed) for seed in results.seeds])),
        ("norm", NORM_NAMES[results.norm]),
        ("images asked about", listed([str(index) for index in results.distance_images]) or "none"),
        (
            "time limits",
            f"{duration(how.time_limit)} for a distance, {duration(how.milp_time_limit)} for a MILP",
        ),
        ("gap", f"{how.gap:g}: an interval narrower than this, relative to its upper end, is closed"),
        ("margin", f"{how.margin:g}: by so much the new class must beat the old one"),
    ]


def date_words(date: str) -> str:
    """A date of the record, easier to read."""
    return date.replace("T", " ").replace("+00:00", " UTC")


def surroundings(results: Results) -> list[tuple[str, str]]:
    """What it ran on, and with which versions."""
    how = results.how
    versions = {"closecall": how.version, "Python": how.python, **how.packages}
    return [
        ("solver", SOLVER_NAMES[how.solver]),
        ("threads", str(how.threads)),
        ("machine", how.machine),
        (
            "measured",
            f"{duration(how.measured_seconds)} in all, from {date_words(how.started)} to "
            f"{date_words(how.finished)}",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]
