"""Odd requests that fit the API's description, and many that do not: none is a server's error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .conftest import Running, running

EXAMPLES = 25  # of each kind, for each operation


def test_no_request_is_a_server_error(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("schema_hooks.py"), tmp_path)
    with running("--running", "1", "--time-limit", "2") as server:
        known = server.answer(task="nearest", model="mnist-50x2", picture=server.picture(), time_limit=2)
        done = subprocess.run(
            [
                sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
                "run", f"{server.address}api/openapi.json", "--checks", "not_a_server_error",
                "--max-examples", str(EXAMPLES), "--seed", "17", "--no-color",
            ],
            env=os.environ | {"SCHEMATHESIS_HOOKS": "schema_hooks", "CLOSECALL_QUESTION": known["id"]},
            capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert server.get("/api/status")["answered"] > 5, "some questions were asked, and answered"


def test_every_operation_is_described(server: Running) -> None:
    described = server.get("/api/openapi.json")
    assert described["info"]["title"] == "closecall serve"
    for path, operations in described["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            assert "429" in operation["responses"]
