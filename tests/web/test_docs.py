"""What docs/serve.md says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from typer.main import get_command

from closecall.cli import app
from closecall.web.limits import MEGABYTE, Limits

from .conftest import Running

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")


def test_the_example_prints_what_is_shown(server: Running) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    program, shown = found.groups()
    program = program.replace("http://127.0.0.1:8787", server.address)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == shown, done.stderr


def test_every_operation_and_option_is_listed(server: Running) -> None:
    described = server.get("/api/openapi.json")["paths"]
    said = re.sub(r"`…/", "`POST /api/capsules/", PAGE)
    for path, operations in described.items():
        pattern = re.escape(path).replace(r"\{identity\}", "ID").replace(r"\{name\}", "[a-z.]+")
        assert {f"{method.upper()}" for method in operations} <= set(
            re.findall(rf"`(\w+) {pattern}[`?]", said)
        ), path
    options = {flag for option in get_command(app).commands["serve"].params for flag in option.opts}
    assert options - {"--help"} <= set(re.findall(r"--[a-z-]+", PAGE))


def test_the_limits_are_those_that_are_kept() -> None:
    limits = Limits()
    sizes = [limits.body_bytes // MEGABYTE, limits.picture_bytes // MEGABYTE, limits.picture_side]
    sizes += [limits.model_bytes // MEGABYTE, limits.waiting]
    told = re.search(
        r"has at most (\d+) MB, a picture (\d+) MB and (\d+) pixels on a side, a model (\d+) MB; (\d+)", PAGE
    )
    assert told is not None
    assert list(map(int, told.groups())) == sizes
