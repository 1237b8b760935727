"""Where progress is shown: on stderr, when that is a terminal and nobody asked for quiet."""

from __future__ import annotations

from rich.console import Console

_quiet = False


def ask_for_quiet(wanted: bool) -> None:
    """Show no progress from now on, or show it again."""
    global _quiet  # noqa: PLW0603 (one process has one terminal)
    _quiet = wanted


def quiet() -> bool:
    """Whether no progress is to be shown."""
    return _quiet


def stderr_console() -> Console:
    """Where progress and notices go."""
    return Console(stderr=True, highlight=False, soft_wrap=True, quiet=_quiet)


def shows_progress(console: Console) -> bool:
    """Whether a line that changes while it is looked at can be shown there."""
    return console.is_terminal and not console.quiet
