"""Options that belong together, declared once as the fields of a dataclass and taken by many commands.

A command that is `grouped` may have parameters whose type is such a dataclass: typer sees the fields in their
place, and the command is called with the dataclass filled in.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

Command = Callable[..., None]


def grouped(*, without: Collection[str] = (), **defaults: Any) -> Callable[[Command], Command]:
    """Let a command take groups of options, but for those it goes without, and with defaults of its own."""

    def wrap(command: Command) -> Command:
        groups: dict[str, type] = {}
        shown: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if is_dataclass(parameter.annotation) and isinstance(parameter.annotation, type):
                groups[parameter.name] = parameter.annotation
                shown += options_of(parameter.annotation, without, defaults)
            else:
                shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def call(**options: Any) -> None:
            for name, group in groups.items():
                taken = [field.name for field in fields(group) if field.name not in without]
                options[name] = group(**{field: options.pop(field) for field in taken})
            command(**options)

        del call.__wrapped__
        call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return call

    return wrap


def options_of(group: type, without: Collection[str], defaults: dict[str, Any]) -> list[inspect.Parameter]:
    """The fields of a group as typer reads parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(
                field.name, inspect.Parameter.empty if field.default is MISSING else field.default
            ),
            annotation=hints[field.name],
        )
        for field in fields(group)
        if field.name not in without
    ]
