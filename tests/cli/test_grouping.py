"""Groups of options: typer sees each field, the command gets the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from closecall.cli.grouping import grouped


@dataclass(frozen=True)
class Size:
    """Two options that belong together."""

    width: Annotated[int, typer.Option("--width", help="How wide.")]
    height: Annotated[int, typer.Option("--height", help="How high.")] = 3
    depth: Annotated[int, typer.Option("--depth", help="How deep.")] = 4


def run(*arguments: str, **wishes: Any) -> tuple[int, str, list[Any]]:
    taken: list[Any] = []
    app = typer.Typer()

    @app.command()
    @grouped(**wishes)
    def draw(*, name: Annotated[str, typer.Option()], size: Size, loud: bool = False) -> None:
        """Draw a box."""
        taken.extend((name, size, loud))

    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output, taken


def test_the_command_gets_the_group() -> None:
    code, _, taken = run("--name", "box", "--width", "2", "--height", "5", "--loud")
    assert (code, taken) == (0, ["box", Size(2, 5), True])


def test_a_field_without_a_default_must_be_given() -> None:
    code, said, _ = run("--name", "box")
    assert code == 2
    assert "--width" in said


def test_options_left_out_are_not_offered_and_keep_their_values() -> None:
    given = ("--name", "box", "--width", "2")
    assert run(*given, without=("depth",))[2] == ["box", Size(2, 3, 4), False]
    code, said, _ = run(*given, "--depth", "9", without=("depth",))
    assert code == 2
    assert "--depth" in said


def test_an_option_of_the_commands_own_may_stand_for_one_left_out() -> None:
    taken: list[Any] = []
    app = typer.Typer()

    @app.command()
    @grouped(without=("depth",))
    def dig(*, depth: Annotated[float, typer.Option()], size: Size) -> None:
        taken.extend((depth, size))

    assert CliRunner().invoke(app, ["--depth", "0.5", "--width", "2"]).exit_code == 0
    assert taken == [0.5, Size(2, 3, 4)]


def test_a_command_may_have_a_default_of_its_own() -> None:
    assert run("--name", "box", width=7)[2] == ["box", Size(7), False]


@pytest.mark.parametrize("words", ["Draw a box.", "How wide.", "How high.", "--loud"])
def test_the_help_shows_everything(words: str) -> None:
    assert words in run("--help")[1]
