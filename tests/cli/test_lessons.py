"""`pyfunc-debug learn` copies the lessons and never replaces what a learner wrote; a wheel holds them."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import lessons, main

ROOT = pathlib.Path(__file__).parents[2]


def test_lessons_are_copied_and_told_how_to_open(tmp_path, capsys):
    assert main(["learn", str(tmp_path / "here")]) == 0
    copies = sorted(path.name for path in (tmp_path / "here").glob("*.ipynb"))
    assert copies == [path.name for path in lessons.lessons()]
    first = json.loads((tmp_path / "here" / copies[0]).read_text())
    kept = json.loads(lessons.lessons()[0].read_text())
    assert any(cell.get("outputs") for cell in kept["cells"])
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in first["cells"])
    assert [cell["source"] for cell in first["cells"]] == [cell["source"] for cell in kept["cells"]]
    said = capsys.readouterr().out
    assert "1. What runs when" in said
    assert "jupyter lab" in said


def test_answers_are_not_replaced(tmp_path, capsys):
    main(["learn", str(tmp_path)])
    mine = tmp_path / lessons.lessons()[0].name
    mine.write_text("my answers")
    assert main(["learn", str(tmp_path)]) == 0
    assert mine.read_text() == "my answers"
    assert "left as they are" in capsys.readouterr().out
    main(["learn", str(tmp_path), "--overwrite"])
    assert mine.read_text() != "my answers"


def test_a_jupyterlab_that_does_not_start_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    (tmp_path / "jupyter_server_config.py").write_text("raise SystemExit(3)")
    assert main(["learn", "--lab", str(tmp_path / "my lessons")]) == 1
    said = capsys.readouterr().err
    assert "JupyterLab ended with code 3" in said
    assert f"cd '{tmp_path}/my lessons' && jupyter lab 01_what_runs_when.ipynb" in said


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(pfd.CannotWriteError, match="cannot write lessons to"):
        lessons.copy_lessons(tmp_path / "file" / "inside")


def test_learning_needs_no_tensorflow():
    code = "import sys; from pyfunc_debug.cli import lessons; lessons.lessons(); assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_wheel_is_told_to_hold_the_lessons():
    """The wheel itself is checked where it is built (CI): here only that the glob is there and meets every lesson."""
    text = (ROOT / "pyproject.toml").read_text()
    assert '"share/pyfunc_debug/notebooks" = ["notebooks/*.ipynb"]' in text
    assert {path.parent for path in lessons.lessons()} == {ROOT / "notebooks"}
