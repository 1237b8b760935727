"""The cache of fetched files: nothing is read from it that does not have the right sha256."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from closecall.data.sources import PublishedFile, Source, SourceError
from closecall.errors import DataError

_SCRATCH = ".fetching-"
_ABANDONED_SECONDS = 24 * 3600


def read_checked(path: Path, file: PublishedFile) -> bytes | None:
    """The content of `path` if it is exactly the published one, else None."""
    try:
        if path.stat().st_size != file.size:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == file.sha256 else None


def fetch_missing(
    files: Sequence[PublishedFile], folder: Path, sources: Sequence[Source], set_name: str
) -> None:
    """Bring every missing or damaged file into `folder` from the first source that has it right.

    Each source works in a scratch folder of its own; a file enters the cache by one atomic rename and only
    after its sha256 was compared, so processes that fetch at the same time do each other no harm.
    """
    missing = [file for file in files if read_checked(folder / file.name, file) is None]
    tried: list[str] = []
    for source in sources:
        if not missing:
            break
        missing, failure = _fetch_from(source, missing, folder)
        if failure:
            tried.append(f"{source.name} ({failure})")
    if missing:
        raise DataError(
            f"{set_name} could not be fetched, tried {'; '.join(tried)}: check the network, or place "
            f"{', '.join(file.name for file in files)} (decompressed) in {folder} by hand."
        )


def _fetch_from(
    source: Source, missing: list[PublishedFile], folder: Path
) -> tuple[list[PublishedFile], str | None]:
    """What is still missing after asking one source, and why."""
    failure: str | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as name:
            scratch = Path(name)
            try:
                source.fetch(missing, scratch)
            except SourceError as error:
                failure = str(error)
            still_missing = [file for file in missing if not _move_if_right(file, scratch, folder)]
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror or error}); "
            "set CLOSECALL_DATA to a folder that can hold the data."
        ) from error
    if still_missing and failure is None:
        failure = f"{still_missing[0].name} does not have the published content"
    return still_missing, failure


def _move_if_right(file: PublishedFile, scratch: Path, folder: Path) -> bool:
    if read_checked(scratch / file.name, file) is None:
        return False
    try:
        os.replace(scratch / file.name, folder / file.name)
    except PermissionError:
        # Windows refuses to replace a file that another process is just reading.
        return read_checked(folder / file.name, file) is not None
    return True


def _remove_abandoned(folder: Path) -> None:
    """Remove the scratch folders of fetches that were killed."""
    for scratch in folder.glob(f"{_SCRATCH}*"):
        try:
            abandoned = time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS
        except OSError:
            continue
        if abandoned:
            shutil.rmtree(scratch, ignore_errors=True)
