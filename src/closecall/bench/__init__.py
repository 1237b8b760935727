"""`closecall bench`: measure the yardsticks, keep every measurement, and write the page about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from closecall.bench.figures import cactus_picture, growth_picture
from closecall.bench.measure import identify, measure
from closecall.bench.page import kept_part, performance_page
from closecall.bench.questions import Plan, plan
from closecall.bench.record import Measurement, Record
from closecall.bench.summary import Summary, interval, place_of, summarise
from closecall.bench.yardsticks import YARDSTICKS, Folders, Run, Yardstick
from closecall.files import prepare_folder, write_whole
from closecall.solvers import available

__all__ = ["PAGE", "RECORD", "measure_all", "write_page"]

PAGE, FIGURES, RECORD, IMAGES = "PERFORMANCE.md", "performance.json", "performance.jsonl", "images"
Say = Callable[[str], None]


def measure_all(
    yardsticks: Sequence[Yardstick], run: Run, out: Path, folders: Folders, say: Say
) -> list[str]:
    """Measure what the record does not hold yet, then write the page; gives the wrong answers, if any.

    Ctrl-C still writes the page with all that was finished, and is raised again after that.
    """
    prepare_folder(out)
    kept_part(out / PAGE)  # a page that cannot be rewritten is refused before hours are spent
    record = Record(out / RECORD)
    left_out: list[str] = []
    try:
        for yardstick in yardsticks:
            planned = plan(yardstick, run, folders)
            left_out += planned.left_out
            for sentence in planned.left_out:
                say(sentence)
            measure_yardstick(yardstick, run, planned, record, say)
    finally:
        found = write_page(record, out, {yardstick.name: run for yardstick in yardsticks}, left_out)
    return found


def measure_yardstick(yardstick: Yardstick, run: Run, planned: Plan, record: Record, say: Say) -> None:
    """Put each question to all contenders in turn, beginning with another one each time.

    A question of which some answers are missing is put to all of them again: only times that were measured
    side by side make a ratio.
    """
    total = len(planned.questions)
    for number, question in enumerate(planned.questions):
        known = [identify(yardstick, run, question, contender) for contender in yardstick.contenders]
        if all(settled(record, fields) for fields in known):
            continue
        pairs = list(zip(yardstick.contenders, known, strict=True))
        turn = number % len(pairs)
        for contender, fields in (*pairs[turn:], *pairs[:turn]):
            made = measure(question, contender, fields)
            record.append(made)
            say(f"{number + 1}/{total} {sentence(made)}")


def settled(record: Record, known: dict[str, Any]) -> bool:
    """Whether the record has it; what a missing solver left open is done once it is installed."""
    before = record.get(Measurement(**known, outcome="", seconds=0.0).key)
    return before is not None and (before.outcome != "missing" or before.solver not in available())


def sentence(made: Measurement) -> str:
    if made.outcome in ("refused", "missing", "failed"):
        return f"{place_of(made)}: {made.contender} {made.outcome}: {made.note}"
    answer = made.outcome if made.target == "vnnlib" else f"{made.outcome} ({interval(made)})"
    return f"{place_of(made)}: {made.contender} {answer} in {made.seconds:.2f} s"


def write_page(
    record: Iterable[Measurement], out: Path, runs: dict[str, Run], left_out: Sequence[str] = ()
) -> list[str]:
    """Write page, pictures and figures; of yardsticks not in `runs` the run measured last is shown."""
    summaries = summarise_record(record, runs)
    pictures = draw(summaries, out)
    content = {"yardsticks": [to_json(summary) for summary in summaries], "left_out": [*left_out]}
    write_whole(
        out / FIGURES, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"
    )
    page = performance_page(summaries, left_out, pictures, kept_part(out / PAGE))
    write_whole(out / PAGE, page.encode())
    return [found for summary in summaries for found in summary.contradictions]


def summarise_record(record: Iterable[Measurement], runs: dict[str, Run]) -> list[Summary]:
    by_yardstick: dict[str, list[Measurement]] = {name: [] for name in YARDSTICKS}
    for measurement in record:
        by_yardstick.setdefault(measurement.yardstick, []).append(measurement)
    summaries = []
    for name, measurements in by_yardstick.items():
        run = runs.get(name) or (measurements[-1].run if measurements else "")
        shown = [m for m in measurements if m.run == run]
        if shown:
            summaries.append(summarise(shown))
    return summaries


def draw(summaries: Sequence[Summary], out: Path) -> list[tuple[str, str]]:
    """Write the pictures; gives their paths as the page sees them, with captions."""
    growing = [m for summary in summaries for m in summary.measurements if summary.growing]
    raced = [summary for summary in summaries if not summary.growing]
    made: list[tuple[str, str, bytes]] = []
    if raced:
        caption = "How many questions are solved within how many seconds"
        made.append(("performance-cactus.png", caption, cactus_picture(raced)))
    if growing:
        caption = "Seconds against undecided units and against the radius"
        made.append(("performance-growth.png", caption, growth_picture(growing)))
    (out / IMAGES).mkdir(exist_ok=True)
    for name, _, content in made:
        write_whole(out / IMAGES / name, content)
    return [(f"{IMAGES}/{name}", caption) for name, caption, _ in made]


def to_json(summary: Summary) -> dict[str, object]:
    content = asdict(summary)
    return {**content, "measurements": [asdict(m) for m in summary.measurements]}
