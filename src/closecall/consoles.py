"""Where progress is shown: on stderr, when that is a terminal and nobody asked for quiet."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# What tells rich that somebody looks on although stderr is no terminal.
TOLD = ("FORCE_COLOR", "TTY_COMPATIBLE")

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
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True, quiet=_quiet)


def shows_progress(console: Console) -> bool:
    """Whether a line that changes while it is looked at can be shown there."""
    return console.is_terminal and not console.quiet


def may_show_progress() -> bool:
    """Whether to ask rich, which takes a moment to import: not where all is quiet, nor for a file."""
    if _quiet:
        return False
    try:
        return any(name in os.environ for name in TOLD) or sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stderr at all, or one that is closed
        return False
