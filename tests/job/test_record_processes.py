"""`pyfunc-debug record --processes`: every Python process of a job that loads TensorFlow writes its own recording."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from pyfunc_debug import cli
from pyfunc_debug.job.children import file_in
from tests import forked
from tests.limits import HANG_S, LIGHT

ROOT = Path(__file__).parents[2]
PROGRAM = """
    import multiprocessing, os, signal, subprocess, sys
    import numpy as np

    def work(times, fails=False, dies=False):
        import tensorflow as tf

        def double(x):
            if x == 3 and dies:
                os.kill(os.getpid(), signal.SIGKILL)
            return x * 2

        assert not any("on_path" in one for one in sys.path)
        f = tf.function(lambda x: tf.numpy_function(double, [x], tf.float32))
        print([float(f(tf.constant(float(one)))) for one in range(times)])

    if __name__ == "__main__":
        if sys.argv[1:] == ["child"]:
            work(3)
            sys.exit()
        subprocess.run([sys.executable, "-c", "print('no tensorflow here')"], check=True)
        subprocess.run([sys.executable, __file__, "child"], check=True)
        for how, name, options in (
            ("spawn", "loader", {"times": 4}), ("fork", "forked", {"times": 5}),
            ("fork", "victim", {"times": 6, "dies": True}),
        ):
            one = multiprocessing.get_context(how).Process(target=work, name=name, kwargs=options)
            one.start()
            one.join()
            print(name, one.exitcode)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(textwrap.dedent(PROGRAM))
    options = ["--processes", "--folder-budget", "80MB", "-o", "run"]
    environment = {**os.environ, "PYTHONPATH": f"{LIGHT}{os.pathsep}{ROOT}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = forked.run("-m", "pyfunc_debug", "record", *options, "train.py", cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "run", done


@pytest.mark.slow
def test_each_process_has_a_file_with_all_its_calls_and_the_program_runs_as_ever(job):
    folder, done = job
    assert done.stdout.splitlines() == [
        "no tensorflow here", "[0.0, 2.0, 4.0]", "[0.0, 2.0, 4.0, 6.0]", "loader 0", "[0.0, 2.0, 4.0, 6.0, 8.0]",
        "forked 0", "victim -9",
    ]  # fmt: skip
    found = {one.meta["role"]: one for one in pfd.open(str(folder))}
    assert {name: len(list(one.calls())) for name, one in found.items()} == {
        "main": 0, "train": 3, "loader": 4, "forked": 5, "victim": 4,
    }  # fmt: skip
    assert {(one.meta["budget"], one.meta["folder_budget"]) for one in found.values()} == {(20_000_000, 80_000_000)}
    assert len({one.meta["pid"] for one in found.values()}) == 5
    assert [call.status for call in found["victim"].calls()][-1] == "running"
    assert [one.meta["state"] for name, one in sorted(found.items()) if name != "victim"] == ["complete"] * 4
    for one in found.values():
        assert Path(one.path).name.endswith(f"-{one.meta['pid']}-{one.meta['role']}.pfrec")
        one.close()


@pytest.mark.slow
def test_the_end_of_the_job_shows_all_of_it(job):
    folder, done = job
    assert "5 processes recorded in run" in done.stderr
    assert "victim died: `pyfunc-debug show run" in " ".join(done.stderr.split())
    assert "empty-recording" not in done.stderr  # the main process only starts the others
    ledger = pfd.open(str(folder)).ledger()
    (row,) = ledger.rows
    assert (row.body, row.calls, len(row.by)) == ("work.double", 16, 4)
    assert [one.state for one in ledger.processes].count("died") == 1
    (finding,) = [one for one in pfd.open(str(folder)).findings() if one.rule == "died"]
    assert finding.processes == ("victim",)


@pytest.mark.slow
def test_a_folder_with_older_recordings_is_not_mixed_with_a_new_job(job, capsys):
    folder, _ = job
    before = sorted(os.listdir(folder))
    assert cli.main(["record", "--processes", "-o", str(folder), str(folder.parent / "train.py")]) == 2
    assert "holds recordings already" in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == before


def test_commands_take_a_folder_a_pattern_or_several_files(tmp_path, capsys):
    from tests.job.test_job_ledger import recorded

    for name in ("a", "b"):
        recorded(tmp_path / f"{name}.pfrec", name, 1.0)
    for paths in ([str(tmp_path)], [str(tmp_path / "*.pfrec")], [str(tmp_path / "a.pfrec"), str(tmp_path / "b.pfrec")]):
        assert cli.main(["show", *paths]) == 0
        assert capsys.readouterr().out.count("workshop") == 2
        assert cli.main(["doctor", *paths]) == 0
        capsys.readouterr()
    assert cli.main(["show", "--json", str(tmp_path)]) == 0
    assert len(json.loads(capsys.readouterr().out)["processes"]) == 2
    assert cli.main(["report", str(tmp_path), "-o", str(tmp_path / "all.html")]) == 0
    capsys.readouterr()
    assert cli.main(["show", "--call", "1", str(tmp_path)]) == 2
    assert "--call is about one recording: give one of these files" in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["show", str(empty)]) == 1
    assert "holds no recording" in capsys.readouterr().err


def test_the_line_that_a_wheel_brings_records_a_process_where_the_variable_asks_for_it(tmp_path):
    """Python reads such a line as it starts; this runs the same text in a fresh process."""
    setup = ast.parse((ROOT / "setup.py").read_text())
    line = next(ast.literal_eval(one.value) for one in setup.body if isinstance(one, ast.Assign))
    (tmp_path / "tensorflow.py").write_text("print('imported')")
    program = f"{line}\nimport sys, tensorflow\nprint([n for n in sys.modules if n == 'pyfunc_debug'])"
    for variable, told in (
        ({}, "imported\n[]\n"),
        ({"PYFUNC_DEBUG": f"record:{tmp_path}/run"}, "imported\n['pyfunc_debug']\n"),
    ):
        out = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), **variable},
            capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
        assert out.stdout == told, out.stderr
    (recorded,) = (tmp_path / "run").iterdir()
    assert recorded.name.endswith("-python.pfrec")


def test_a_place_is_a_folder_a_file_or_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["/home/u/train.py"])
    for name in ("TF_CONFIG", "RANK"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.pfrec").touch()
    assert (file_in("a.pfrec"), file_in("")) == ("a-2.pfrec", "train.pfrec")
    assert re.fullmatch(rf"run/[^/]+-{os.getpid()}-train\.pfrec", file_in("run"))
