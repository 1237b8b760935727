"""Execute notebooks and keep what they print and draw, so that a reader sees it without running them.

python scripts/run_notebooks.py examples/*.ipynb
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

SECONDS_FOR_A_CELL = 300


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a new run, and without the times, which differ each time."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS_FOR_A_CELL, record_timing=False, coalesce_streams=True)
    client.execute(cwd=str(path.parent))
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main() -> None:
    for name in sys.argv[1:]:
        nbformat.write(execute(Path(name)), name)
        print(f"{name}: executed, {Path(name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
