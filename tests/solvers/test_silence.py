"""Standard error is kept clean of one library's remarks, and of nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os, sys
from closecall.solvers.silence import without_lines
print("before", file=sys.stderr)
with without_lines(b"Cannot set "):
    os.write(2, b"Cannot set this\\nCan")
    os.write(2, b"not set that\\nCannot help it\\n\\rhalf a line")
    print("inside", file=sys.stderr)
print("after", file=sys.stderr)
"""


def test_only_the_remarks_are_dropped() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, timeout=60)
    assert run.stderr.decode() == "before\nCannot help it\n\rhalf a lineinside\nafter\n"


def test_without_a_standard_error_nothing_fails() -> None:
    program = f"import os; os.close(2)\n{PROGRAM}".replace("print(", "(lambda *a, **k: None)(")
    run = subprocess.run(
        [sys.executable, "-c", program.replace("os.write", "(lambda *a: None)")],
        stdout=subprocess.PIPE,
        stderr=os.open(os.devnull, os.O_WRONLY),
        check=False,
        timeout=60,
    )
    assert run.returncode == 0
