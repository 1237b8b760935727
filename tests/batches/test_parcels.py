"""Quick questions travel in parcels: each is answered once, and none waits for a hard one behind it."""

from __future__ import annotations

import json
import time
from pathlib import Path

# The worker takes three seconds for image 30, and says so at once.
HARD = """
import time
import closecall.batches.worker as worker
from closecall.batches.asking import ask
def held_up(classifier, item, effort, clock, tell):
    if item.place.index == 30:
        tell(item.key, 0.0, 1.0, 0, 0.0)
        time.sleep(3)
    return ask(classifier, item, effort, clock, tell)
worker.ask = held_up
"""
# What the coordinating process hands out, one line for each parcel.
COUNTED = """
import sys
import closecall.batches.cluster as cluster
submit = cluster.HandingOut.submit
def counted(self, items):
    print(len(items), file=sys.stderr)
    submit(self, items)
cluster.HandingOut.submit = counted
"""
ASKED = (
    "batch",
    "--dataset",
    "digits",
    "--indices",
    "0:40",
    "--task",
    "certify",
    "--radius",
    0.05,
    "--norm",
    "l1",
)


def test_parcels_are_opened_before_a_hard_question_ends(
    closecall_process, small: Path, tmp_path: Path
) -> None:
    preload = tmp_path / "hard.py"
    preload.write_text(HARD)
    given = (*ASKED, "--json", "--quiet", "--model", small, "--workers", 1, "--store", tmp_path / "r.sqlite")
    more = {"DASK_DISTRIBUTED__WORKER__PRELOAD": str(preload)}
    with closecall_process(*given, program=COUNTED, **more) as process:
        came = {json.loads(line)["index"]: time.monotonic() for line in process.stdout}
        sizes = [int(line) for line in process.communicate()[1].splitlines() if line.isdigit()]
    assert process.returncode == 0
    assert sorted(came) == [*range(40)]
    assert max(sizes) > 1
    assert len(sizes) < 40
    assert max(came[index] for index in range(30)) < came[30] - 1
