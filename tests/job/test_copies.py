"""Recordings go to a store as copies; the store's troubles cost the copy only."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.job.copies import Copies, copy, local_folder
from tests.limits import HANG_S, LIGHT

pytest.importorskip("fsspec")
ROOT = Path(__file__).parents[2]
PROGRAM = """
    import multiprocessing, sys

    def work():
        import tensorflow as tf

        print(float(tf.numpy_function(lambda x: x * 2, [1.5], tf.float64)))

    if __name__ == "__main__":
        one = multiprocessing.get_context("spawn").Process(target=work, name="loader")
        one.start()
        one.join()
"""


def run(folder: Path, store: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyfunc_debug", "record", "--processes", "--overwrite", "-o", f"file://{store}", script],
        cwd=folder, env={**os.environ, "PYTHONPATH": f"{LIGHT}{os.pathsep}{ROOT}", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip


@pytest.mark.slow
def test_each_process_copies_its_recording(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    done = run(tmp_path, tmp_path / "store", "train.py")
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr[-3000:]
    local = sorted(one.name for one in (tmp_path / "train-processes").glob("*.pfrec"))
    assert sorted(one.name for one in (tmp_path / "store").iterdir()) == local
    assert "2 processes recorded in train-processes" in done.stderr
    (loader,) = [one for one in pfd.open(str(tmp_path / "store")) if one.meta["role"] == "loader"]
    assert (loader.meta["state"], len(list(loader.calls()))) == ("complete", 1)


@pytest.mark.slow
def test_a_store_that_fails_costs_only_the_copy(tmp_path):
    (tmp_path / "train.py").write_text("print(3.0)")
    (tmp_path / "taken").touch()
    done = run(tmp_path, tmp_path / "taken" / "store", "train.py")
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr[-3000:]
    assert len(list((tmp_path / "train-processes").glob("*.pfrec"))) == 1
    assert done.stderr.count(f"was not copied to file://{tmp_path}/taken/store: ") == 1


def test_a_recording_is_copied_while_it_is_written_and_again_at_its_end(tmp_path):
    import fsspec

    with pfd.record(tmp_path / "train.pfrec") as recording:
        copy(recording.path, "memory://job/run")
    store = fsspec.filesystem("memory")
    store.get_file("/job/run/train.pfrec", str(tmp_path / "first.pfrec"))
    assert pfd.open(tmp_path / "first.pfrec").meta["state"] == "recording"
    copy(recording.path, "memory://job/run/again.pfrec")
    store.get_file("/job/run/again.pfrec", str(tmp_path / "last.pfrec"))
    assert pfd.open(tmp_path / "last.pfrec").meta["state"] == "complete"


def test_a_copy_that_fails_halfway_leaves_the_one_before(tmp_path, monkeypatch):
    from fsspec.implementations.local import LocalFileSystem

    store = tmp_path / "store"
    with pfd.record(tmp_path / "train.pfrec") as recording:
        copy(recording.path, f"file://{store}")

    def full(self, source, target, **more):
        Path(target).write_bytes(Path(source).read_bytes()[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LocalFileSystem, "put_file", full)
    with pytest.raises(OSError, match="No space left"):
        copy(recording.path, f"file://{store}")
    assert [one.name for one in store.iterdir()] == ["train.pfrec"]
    assert pfd.open(store / "train.pfrec").meta["state"] == "recording"


def test_a_forked_child_leaves_the_copy_to_its_parent(tmp_path, monkeypatch):
    copies = Copies(f"file://{tmp_path}/store")
    copies._path = str(tmp_path / "nothing.pfrec")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    copies.finish()
    assert not copies._end.is_set()
    assert local_folder("gs://bucket/run/monday").endswith("pyfunc_debug-gs_bucket_run_monday")
