from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from closecall.data.fetch import fetch_missing, read_checked
from closecall.data.sources import Mirror, PublishedFile
from closecall.errors import DataError

if TYPE_CHECKING:
    from conftest import LocalServer

CONTENTS = {"one": b"first content " * 5000, "two": b"second"}
FILES = [
    PublishedFile(name, len(content), hashlib.sha256(content).hexdigest())
    for name, content in CONTENTS.items()
]


def publish(server: LocalServer, folder: str, **changed: bytes) -> Mirror:
    for name, content in {**CONTENTS, **changed}.items():
        server.files[f"/{folder}/{name}.gz"] = gzip.compress(content)
    return Mirror(f"{server.address}{folder}/")


def stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_come_decompressed_and_nothing_else_is_left(server: LocalServer, tmp_path: Path) -> None:
    fetch_missing(FILES, tmp_path / "new" / "set", [publish(server, "good")], "set")
    assert stored(tmp_path / "new" / "set") == CONTENTS


def test_a_second_fetch_asks_for_nothing(server: LocalServer, tmp_path: Path) -> None:
    source = publish(server, "good")
    fetch_missing(FILES, tmp_path, [source], "set")
    server.requests.clear()
    fetch_missing(FILES, tmp_path, [source], "set")
    assert server.requests == []


@pytest.mark.parametrize("damage", [b"", CONTENTS["one"][:-1], b"x" * len(CONTENTS["one"])])
def test_a_damaged_file_is_never_read_and_fetched_again(
    server: LocalServer, tmp_path: Path, damage: bytes
) -> None:
    source = publish(server, "good")
    fetch_missing(FILES, tmp_path, [source], "set")
    (tmp_path / "one").write_bytes(damage)
    assert read_checked(tmp_path / "one", FILES[0]) is None
    server.requests.clear()
    fetch_missing(FILES, tmp_path, [source], "set")
    assert server.requests == ["/good/one.gz"]
    assert stored(tmp_path) == CONTENTS


def test_the_next_source_serves_what_the_first_lacks(server: LocalServer, tmp_path: Path) -> None:
    absent = Mirror(f"{server.address}absent/")
    unreachable = Mirror("http://127.0.0.1:9/")
    fetch_missing(FILES, tmp_path, [unreachable, absent, publish(server, "good")], "set")
    assert stored(tmp_path) == CONTENTS


@pytest.mark.parametrize("wrong", [b"short", b"y" * len(CONTENTS["one"]), CONTENTS["one"] + b"!"])
def test_wrong_content_is_refused_but_right_files_are_kept(
    server: LocalServer, tmp_path: Path, wrong: bytes
) -> None:
    bad = publish(server, "bad", one=wrong)
    with pytest.raises(DataError, match="one does not have the published content"):
        fetch_missing(FILES, tmp_path, [bad], "set")
    assert stored(tmp_path) == {"two": CONTENTS["two"]}
    server.requests.clear()
    fetch_missing(FILES, tmp_path, [publish(server, "good")], "set")
    assert server.requests == ["/good/one.gz"]


def test_a_transfer_that_breaks_off_is_refused(server: LocalServer, tmp_path: Path) -> None:
    source = publish(server, "broken")
    server.cut_short.add("/broken/one.gz")
    with pytest.raises(DataError, match="could not be fetched"):
        fetch_missing(FILES, tmp_path, [source], "set")
    assert stored(tmp_path) == {}


def test_what_is_not_compressed_is_refused(server: LocalServer, tmp_path: Path) -> None:
    server.files["/plain/one.gz"] = b"<html>please log in</html>"
    with pytest.raises(DataError, match="Not a gzipped file"):
        fetch_missing(FILES, tmp_path, [Mirror(f"{server.address}plain/")], "set")


def test_a_file_that_unpacks_without_end_is_cut_off(server: LocalServer, tmp_path: Path) -> None:
    """The scratch file may grow to one byte more than it should have, not to what the bomb holds."""
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
    server.files["/bomb/two.gz"] = bomb
    Mirror(f"{server.address}bomb/").fetch([FILES[1]], tmp_path)
    assert (tmp_path / "two").stat().st_size == FILES[1].size + 1


def test_the_error_says_what_was_tried_and_what_to_place_where(server: LocalServer, tmp_path: Path) -> None:
    sources = [Mirror(f"{server.address}absent/"), Mirror("http://127.0.0.1:9/")]
    with pytest.raises(DataError) as caught:
        fetch_missing(FILES, tmp_path, sources, "my set")
    message = str(caught.value)
    assert f"{server.address}absent/ (Not Found)" in message
    assert "http://127.0.0.1:9/ ([Errno" in message
    assert f"place one, two (decompressed) in {tmp_path} by hand" in message
    assert "\n" not in message


def test_files_placed_by_hand_need_no_source(tmp_path: Path) -> None:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    fetch_missing(FILES, tmp_path, [], "set")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == CONTENTS


def test_a_folder_that_cannot_be_written_is_named(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot be written .* set CLOSECALL_DATA"):
        fetch_missing(FILES, tmp_path / "file" / "set", [publish(server, "good")], "set")


def test_only_abandoned_scratch_folders_are_removed(server: LocalServer, tmp_path: Path) -> None:
    for name in (".fetching-old", ".fetching-new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one").write_bytes(b"part")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(tmp_path / ".fetching-old", (two_days_ago, two_days_ago))
    fetch_missing(FILES, tmp_path, [publish(server, "good")], "set")
    assert {path.name for path in tmp_path.iterdir()} == {".fetching-new", "one", "two"}


def test_two_processes_may_fetch_at_once(server: LocalServer, tmp_path: Path) -> None:
    source = publish(server, "good")
    program = (
        "import sys; from pathlib import Path\n"
        "from closecall.data.fetch import fetch_missing, read_checked\n"
        "from closecall.data.sources import Mirror, PublishedFile\n"
        f"files = {FILES!r}\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for turn in range(20):\n"
        f"    folder = Path({str(tmp_path)!r}) / str(turn)\n"
        f"    fetch_missing(files, folder, [{source!r}], 'set')\n"
        "    contents = [read_checked(folder / file.name, file) for file in files]\n"
        "    assert contents.count(None) == 0, 'a file was torn'\n"
        "print('done')\n"
    )
    command = [sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        output, errors = process.communicate(timeout=60)
        assert output == "done\n", errors
    for turn in range(20):
        assert stored(tmp_path / str(turn)) == CONTENTS
