"""`closecall zoo` lists every model with the figures beside its weights."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from closecall.cli import app
from closecall.models import describe, zoo_names


def test_every_model_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    result = CliRunner().invoke(app, ["zoo"])
    assert result.exit_code == 0
    rows = {line.split("│")[1].strip(): line for line in result.stdout.splitlines() if "zoo:" in line}
    assert sorted(rows) == [f"zoo:{name}" for name in zoo_names()]
    for name in zoo_names():
        described = describe(f"zoo:{name}")
        cells = [cell.strip() for cell in rows[f"zoo:{name}"].split("│")]
        assert f"{described['accuracy']:.2%}" in cells
        assert f"{described['units']:,}" in cells
    assert "20-20-10-10-10" in rows["zoo:mnist-dnn5"]
    assert "paper convolution" in rows["zoo:mnist-cnn-paper"]
