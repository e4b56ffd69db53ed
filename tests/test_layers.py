"""Imports go one way, downwards: the contract in pyproject.toml, checked by import-linter."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter's own command on the packages in `folder`."""
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=folder, env={"PYTHONPATH": str(folder), "PATH": "/usr/bin"},
        capture_output=True, text=True,
    )  # fmt: skip


def test_imports_go_one_way_downwards():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_an_import_upwards_would_be_noticed(tmp_path):
    for name in ("pyfunc_debug", "jupyter_ext"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("frontend", "static"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    errors = tmp_path / "pyfunc_debug" / "values" / "policy.py"
    errors.write_text(errors.read_text() + "\nfrom pyfunc_debug.api import record as _upwards\n")
    done = lint(tmp_path)
    assert done.returncode != 0
    assert "2 broken" in done.stdout
