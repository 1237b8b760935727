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
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=300, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def steady(text: str) -> str:
    """A text without what differs from machine to machine: times, nodes, and digits after the third."""
    timeless = re.sub(r"\d+\.\d s, [\d,]+ nodes?", "… s, … nodes", text)
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.3g}", timeless)


def test_four_lines_ask_about_a_module_of_ones_own(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert found is not None
    program, shown = found.groups()
    assert len([line for line in program.splitlines() if line]) == 4
    assert steady(run(["-c", program], tmp_path)) == steady(shown)


def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    """In their order and in one folder, since the last reads what the first wrote."""
    (shown,) = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    examples = re.findall(r"\$ closecall (.*?)\n(.*?)(?=\n\$ |\Z)", shown, re.DOTALL)
    assert [command.split()[0] for command, _ in examples] == ["nearest", "certify", "replay"]
    for command, output in examples:
        printed = run(["-m", "closecall", *command.split()], tmp_path)
        assert steady(printed).strip() == steady(output).strip()


def test_the_third_command_of_a_newcomer_shows_the_page() -> None:
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert first is not None
    commands = [line.partition("#")[0].strip() for line in first[1].splitlines()]
    assert commands[2] == "make serve"
    assert "serve: .venv/.installed-web\n\t$(BIN)/closecall serve\n" in (ROOT / "Makefile").read_text()
    assert README.index("docs/images/serve.png") < README.index("```python")


def test_the_pages_of_the_demo_are_where_the_makefile_puts_them() -> None:
    made = re.findall(r"--out (runs/\S+)", (ROOT / "Makefile").read_text())
    assert re.findall(r"`(runs/\S+)/report\.html`", README) == made


def test_every_picture_is_among_the_images_of_the_docs() -> None:
    """Relative, so that every copy of the source shows its own."""
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).is_file()
        assert picture.startswith("docs/images/")


def test_every_command_and_option_exists() -> None:
    program = get_command(app)
    commands = program.commands
    for name in re.findall(r"(?:`|\$ )closecall ([a-z-]+)", README):
        assert name in commands, name
    options = [option for command in (program, *commands.values()) for option in command.params]
    known = {flag for option in options for flag in (*option.opts, *option.secondary_opts)}
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", README):
        assert flag in known, flag


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (document.parent / target.split("#")[0]).exists(), target
