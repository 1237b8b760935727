"""No function is longer than what can be read at a glance, its signature and docstring included."""

from __future__ import annotations

import ast
from pathlib import Path

import closecall

MOST_LINES = 60


def functions_over(lines: int, source: str) -> list[str]:
    return [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > lines
    ]


def test_no_function_is_over_sixty_lines() -> None:
    files = sorted(Path(closecall.__file__).parent.rglob("*.py"))
    assert len(files) > 200
    found = {
        str(path): long for path in files if (long := functions_over(MOST_LINES, path.read_text("utf-8")))
    }
    assert found == {}


def test_a_long_function_would_be_found() -> None:
    body = "\n".join(["    x = 1"] * MOST_LINES)
    assert functions_over(MOST_LINES, f"class A:\n    pass\ndef long():\n{body}\n") == ["long has 61 lines"]
    assert functions_over(MOST_LINES, f"def short():\n{body[10:]}\n") == []
