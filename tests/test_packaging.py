"""The source archive holds all that is under version control, the wheel all that the package needs to run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = "https://github.com/closecall/closecall"
BUILD = (
    "import sys; from setuptools import build_meta; folder = sys.argv[1];"
    "build_meta.build_sdist(folder); build_meta.build_wheel(folder)"
)


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """The files under version control that are there."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout: there is nothing to compare with")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tracked: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel, built from a copy without network and isolation."""
    copy, folder = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for name in tracked:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    junk = copy / "src" / "closecall" / "__pycache__"
    junk.mkdir()
    (junk / "left.cpython-311.pyc").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_source_archive_is_complete(built: Path, tracked: set[str]) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert tracked - names == set()
    added = {name for name in names - tracked if ".egg-info/" not in name}
    assert added == {"PKG-INFO", "setup.cfg"}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path, tracked: set[str]) -> None:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {name.removeprefix("src/") for name in tracked if name.startswith("src/closecall/")}
    assert "closecall/models/weights/mnist-dnn1.safetensors" in names


def test_the_addresses_are_those_of_the_project() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert all(url == PROJECT or url.startswith(f"{PROJECT}/") for url in urls.values())
    for name in ("Documentation", "Changelog"):
        assert (ROOT / urls[name].split("/main/")[1]).exists(), urls[name]
