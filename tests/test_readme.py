"""What the README says works as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from closecall.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]


def test_the_python_lines_print_what_is_shown(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert found is not None
    program, shown = found.groups()
    assert len([line for line in program.splitlines() if line]) == 3
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    distance = re.compile(r"Nearest: l1 distance (\d\.\d{3})\d* turns (\d) into (\d)")
    assert distance.match(done.stdout).groups() == distance.match(shown).groups()


def test_every_command_and_option_exists() -> None:
    commands = get_command(app).commands
    for name in re.findall(r"(?:`|\$ )closecall ([a-z-]+)", README):
        assert name in commands, name
    options = [option for command in commands.values() for option in command.params]
    known = {flag for option in options for flag in (*option.opts, *option.secondary_opts)}
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", README):
        assert flag in known, flag


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (document.parent / target.split("#")[0]).exists(), target
