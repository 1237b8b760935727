from __future__ import annotations

from pathlib import Path

import pytest

from closecall.data.cache import cache_folder


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/closecall"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/closecall"),
        ("darwin", {"XDG_CACHE_HOME": "xdg"}, "home/Library/Caches/closecall"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/closecall"),
        ("win32", {}, "home/AppData/Local/closecall"),
        ("linux", {"CLOSECALL_DATA": "own", "XDG_CACHE_HOME": "xdg"}, "own"),
        ("linux", {"CLOSECALL_DATA": "~/own"}, "home/own"),
    ],
)
def test_the_cache_is_where_each_platform_keeps_its_caches(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("CLOSECALL_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "home")
    monkeypatch.setattr("sys.platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
