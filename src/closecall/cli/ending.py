"""How a command ends: by its answer, by a signal, by a mistake or by an output that cannot be written."""

from __future__ import annotations

import errno
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, cast

import typer

from closecall.errors import ClosecallError, InputError

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
STOPPING = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = b"\x1b[?25h"

# Newer releases of typer bring a click of their own: its errors are found by way of one that typer names,
# BadParameter, which is a UsageError, which is a ClickException.
ClickError = cast("type[Exception]", typer.BadParameter.__mro__[2])


def run(app: Callable[..., Any], *, debug: bool) -> int:
    """Run the command line and give its exit code; whatever goes wrong becomes one sentence on stderr."""
    try:
        with stopping_at_signals():
            code = app(standalone_mode=False)
        flush_output()
    except (ClosecallError, OSError, ClickError) as error:
        if debug and not isinstance(error, BrokenPipeError):
            raise
        return explain(error)
    return code if isinstance(code, int) else 0


def explain(error: Exception) -> int:
    """Say in one sentence what went wrong; give the exit code."""
    if isinstance(error, OSError) and error.errno == errno.EPIPE:  # whoever read the output has seen enough
        discard_output()
        return FAILED
    if isinstance(error, ClickError):
        return explain_usage(error)
    if isinstance(error, OSError):
        discard_output()
        place = "the output" if error.filename is None else error.filename
        say(f"cannot read or write {place}: {error.strerror or error}.")
        return FAILED
    say(str(error))
    return BAD_INPUT if isinstance(error, InputError) else FAILED


def explain_usage(error: Any) -> int:
    """A command that was not written as it must be: what is wrong, and where to read more."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
        return BAD_INPUT
    context = getattr(error, "ctx", None)
    where = "closecall" if context is None else context.command_path
    say(f"{message.rstrip('.')}; see `{where} --help`.")
    return BAD_INPUT


def say(sentence: str) -> None:
    """A sentence on stderr; where even that cannot be written, the exit code has to do."""
    with suppress(OSError):
        typer.echo(f"closecall: {sentence}", err=True)


def flush_output() -> None:
    """Write what is still held back, so that a full disk is noticed while it can still be said."""
    if sys.stdout is not None:
        sys.stdout.flush()


def discard_output() -> None:
    """Send what is still held back nowhere: writing it again at exit would only fail again."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            sys.stdout = None


def show_every_letter() -> None:
    """Write what the terminal's encoding lacks, or what a strange file name holds, as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def stopping_at_signals() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C; the second of either ends the process at once, whatever it is doing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told, telling = socket.socketpair()
    telling.setblocking(False)
    before = signal.signal(signal.SIGTERM, pass_on_as_ctrl_c)
    wakeup = signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=count_signals, args=(told,), name="closecall-signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGTERM, before)
        telling.close()


def pass_on_as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do now: a training, for one, has its own way to take it."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(number, frame)


def count_signals(told: socket.socket) -> None:
    """End the process at the second signal; the first is left to Python, which raises it in the main thread.

    Python's own handlers have to wait until a solver or a layer returns; this thread does not.
    """
    seen = 0
    with told:
        while received := told.recv(64):
            for number in received:
                seen += number in STOPPING
                if seen == 2:
                    end_at_once(number)


def end_at_once(number: int) -> None:
    if sys.stderr is not None and sys.stderr.isatty():  # a live line hides the cursor
        os.write(sys.stderr.fileno(), b"\r\n" + SHOW_CURSOR)
    os._exit(128 + number)
