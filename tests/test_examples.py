"""The notebooks run from top to bottom, and what they show is what they show when they are run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat: Any = pytest.importorskip("nbformat", reason="the notebooks need the extra dev")
pytest.importorskip("ipykernel", reason="the notebooks need the extra dev")

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LARGEST = 300_000  # bytes of a notebook with its pictures


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook: Any) -> list[str]:
    return [output.text for cell in code_cells(notebook) for output in cell.outputs if "text" in output]


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["capsules", "robustness-curve", "your-own-model"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert path.stat().st_size < LARGEST
    assert all("/home/" not in text and "/tmp/" not in text for text in printed(notebook))  # noqa: S108


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_anew(path: Path, tmp_path: Path) -> None:
    """Each states what it found by asserts of its own, so that an error is all there is to look for."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    kept = len(printed(notebook))
    for cell in code_cells(notebook):
        cell.outputs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the machinery; the notebook's own are in its outputs
        NotebookClient(notebook, timeout=300, coalesce_streams=True).execute(cwd=str(tmp_path))
    assert len(printed(notebook)) == kept
    assert all(output.get("name") != "stderr" for cell in code_cells(notebook) for output in cell.outputs)
