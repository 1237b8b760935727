"""What the project says about itself outside of the package: true, complete, and leading somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import closecall

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "closecall"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECISIONS = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "index.md")
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DECISIONS]


def text_of(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    named = re.findall(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?)[`:]", page.read_text(encoding="utf-8"))
    for name in named:
        if not name.startswith(("site/", "dist/")):  # which are made
            assert (ROOT / name).exists() or (PACKAGE / name).exists(), name


@pytest.mark.parametrize("page", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_says_what_else_there_was_and_when_to_think_again(page: Path) -> None:
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "What we chose"
    assert "What else there was" in headings
    assert headings[-1] == "When to think again"
    assert len(headings) >= 4
    assert f"({page.name})" in text_of("docs", "decisions", "index.md")


def test_every_page_is_on_the_site() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", text_of("mkdocs.yml")))
    folder = ROOT / "docs"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} == listed


def test_the_site_fetches_nothing() -> None:
    settings = text_of("mkdocs.yml")
    assert "font: false" in settings
    assert re.search(r"^(repo_url|extra_css|extra_javascript):", settings, re.MULTILINE) is None


def test_the_version_to_cite_is_the_version() -> None:
    assert f"\nversion: {closecall.__version__}\n" in text_of("CITATION.cff")


def test_the_workflow_runs_what_the_package_claims_to_run_on() -> None:
    workflow = text_of(".github", "workflows", "ci.yml")
    assert 'python: ["3.11", "3.12", "3.13"]' in workflow
    assert PROJECT["requires-python"] == ">=3.11"
    assert "run: .ci/run" in workflow


def test_every_requirement_has_a_version_in_the_constraints() -> None:
    pinned = {
        line.partition("==")[0].lower().replace("_", "-") for line in text_of("constraints.txt").split()
    }
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]:
        name = re.split(r"[\[<>=~!;]", requirement)[0].lower()
        assert name in pinned, name


def test_every_target_that_is_told_of_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    told = set(re.findall(r"`make ([a-z]+)`", text_of("CONTRIBUTING.md") + text_of("README.md")))
    asked = set(re.findall(r"run: make ([a-z]+)", text_of(".github", "workflows", "ci.yml")))
    assert {"quick", "test", "coverage", "docs", "smoke"} <= told
    assert told | asked <= targets
