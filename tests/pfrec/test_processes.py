"""Other processes: one that is killed, one that is forked, one that reads while another records."""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.pfrec import Reader, Writer
from pyfunc_debug.pfrec.processes import identity, writer_lives
from pyfunc_debug.pfrec.recovery import recover
from pyfunc_debug.pfrec.ring import is_held
from tests import forked
from tests.limits import HANG_S

ROOT = Path(__file__).parents[2]

WRITER = """
    import os, sys
    import numpy as np
    from pyfunc_debug.recorder import Budget, Recorder
    from pyfunc_debug.values import Policies
    from tests.recorder.test_recorder import call, node
    recorder = Recorder(sys.argv[1], Policies("full"), Budget(64_000_000), {"pid": os.getpid()})
    recorder.node_made(node("graph"))
    index = 0
    while True:
        for _ in range(int(sys.argv[2])):
            index += 1
            call(recorder, "graph", np.full(50, index), error=ValueError("x") if index % 3 == 0 else None)
        recorder.flush()
        print(index, flush=True)  # so many calls are in the file now
        if sys.argv[3:] == ["asked"]:
            sys.stdin.readline()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What the process wrote; it is killed, with its children, if it hangs."""
    try:
        return process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def test_sigkill_at_any_moment_leaves_a_readable_recording(tmp_path):
    """Each writer is killed after a random number of lines, so somewhere in the batch that follows."""
    chance = random.Random(3)
    for attempt in range(6):  # python -m tests.pfrec.kills kills more
        path = tmp_path / f"{attempt}.pfrec"
        process = start(WRITER, str(path), str(chance.randrange(1, 400)))
        flushed = 0
        for _ in range(chance.randrange(1, 8)):
            flushed = int(process.stdout.readline())
        for _ in range(chance.randrange(0, 20_000)):  # a different moment each time, without a clock
            pass
        process.kill()
        process.communicate()
        recording = pfd.open(path)
        calls = list(recording.calls())
        assert [one.id for one in calls] == list(range(1, len(calls) + 1))
        assert len(calls) >= flushed, "what was flushed is lost"
        stored = [
            one for one in calls if one.inputs and one.inputs[0].kept
        ]  # those of the last moments have no elements
        assert len(stored) >= flushed
        for one in stored[-3:] + stored[:3]:
            assert one.inputs[0].array().tolist() == [one.id] * 50
            assert (one.failure is not None) == (one.id % 3 == 0)
        assert recording.reader.rows("PRAGMA integrity_check") == [("ok",)]
        assert recording.reader.state() == "interrupted"
        recording.close()


def test_calls_beyond_the_budget_are_stored_or_counted_once_after_a_kill(tmp_path):
    program = """
        import os, signal, sys
        from pyfunc_debug.recorder import Budget, Recorder
        from pyfunc_debug.values import Policies
        from tests.recorder.test_recorder import call, node
        recorder = Recorder(sys.argv[1], Policies("none"), Budget(1_000_000), {"pid": os.getpid()})
        recorder.node_made(node("graph"))
        while recorder._rows.allowance.keep_calls:
            for _ in range(100):
                call(recorder, "graph", 1)
            recorder.flush()
        for _ in range(3000):
            call(recorder, "graph", 1)
        recorder.flush()
        for _ in range(100):
            call(recorder, "graph", 1)
        print(recorder._hot.calls, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    path = tmp_path / "killed.pfrec"
    out, trouble = finish(start(program, str(path)))
    with contextlib.closing(pfd.open(path)) as recording:
        lost, stored = recording.meta["dropped"], [one.id for one in recording.calls()]
        (row,) = recording.sql("SELECT calls FROM dropped")
        assert int(out) == len(stored) + lost["calls"], trouble
        assert lost["calls"] == row["calls"] == lost["reasons"]["calls"]["budget"]
        assert stored[-1000:] == [*range(int(out) - 999, int(out) + 1)]  # they stood in the ring
        assert recording.meta["death"]["missing"] == 0


def killed(tmp_path):
    """A recording whose process was killed."""
    path = tmp_path / "killed.pfrec"
    process = start(WRITER, str(path), "5")
    process.stdout.readline()
    process.kill()
    process.communicate()
    return path


def test_a_killed_recording_may_be_replaced(tmp_path):
    path = killed(tmp_path)
    with pytest.raises(pfd.BadOptionError, match="exists"):
        pfd.record(path).start()
    with pfd.record(path, overwrite=True):
        pass
    assert pfd.open(path).reader.counts()["call"] == 0


def test_another_process_reads_while_one_records(tmp_path):
    path = tmp_path / "live.pfrec"
    process = start(WRITER, str(path), "50", "asked")
    try:
        reader = None
        for flushed in range(50, 501, 50):
            assert int(process.stdout.readline()) == flushed
            reader = reader or Reader(path)
            assert reader.counts()["call"] == flushed
            assert reader.state() == "recording"
            process.stdin.write("go on\n")
            process.stdin.flush()
        assert reader is not None
        reader.close()
    finally:
        process.kill()
        process.communicate()


def test_a_recording_of_a_container_is_known_for_alive_and_for_dead(tmp_path):
    """In a namespace where its process is number 1, as in every container."""
    alone = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    tried = subprocess.run([*alone, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"containers are NOT TRIED, this user may make no PID namespace: {tried.stderr.strip()}")
    path = tmp_path / "container.pfrec"
    command = [*alone, sys.executable, "-c", textwrap.dedent(WRITER), str(path), "5"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        flushed = int(process.stdout.readline())
        with contextlib.closing(Reader(path)) as reader:
            assert reader.meta["pid"] == 1
            meta = reader.meta
            assert (reader.state(), process.poll()) == ("recording", None)
        (inside,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(inside), signal.SIGSTOP)  # `docker pause`, or a machine that is busy for an hour
        with open(meta["ring"], "r+b") as ring, mmap.mmap(ring.fileno(), 0) as memory:
            memory[16:24] = bytes(8)  # its last sign of life
        assert writer_lives(str(path), meta)
        with contextlib.closing(Reader(path)) as reader:
            assert reader.state() == "recording"
        with pytest.raises(pfd.RecordingBusyError, match="process 1 is recording"):
            Writer(str(path), overwrite=True)
    finally:
        process.kill()
        process.communicate()  # ends when the process in the namespace has ended
    with open(meta["ring"]) as ring:
        fcntl.flock(ring, fcntl.LOCK_EX)  # waits until the system has ended all of it
    assert not writer_lives(str(path), meta)
    assert writer_lives(str(path), {**meta, "process": {**meta["process"], "lock": False}})  # nobody can know
    with contextlib.closing(pfd.open(path)) as recording:
        assert recording.reader.state() == "interrupted"
        assert recording.meta["death"]["missing"] == 0
        assert recording.reader.counts()["call"] >= flushed
    Writer(str(path), overwrite=True)


def test_a_forked_child_that_outlives_its_parent_does_not_hold_its_lock(tmp_path):
    program = """
        import os, sys
        from pyfunc_debug.pfrec.ring import Ring
        ring = Ring(sys.argv[1], 1000)
        print(ring.locked, ring.path, flush=True)
        sys.stdin.readline()
        if os.fork() == 0:
            print("child", flush=True)
            sys.stdin.readline()
        os._exit(0)
    """
    process = start(program, str(tmp_path / "a.pfrec"))
    try:
        locked, path = process.stdout.readline().split()
        assert locked == "True"
        assert is_held(path)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "child\n"
        assert process.wait(HANG_S) == 0
        assert not is_held(path)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_process_whose_first_thread_ended_lives_while_others_run():
    program = """
        import ctypes, os, sys, threading
        def go_on():
            while True:
                with open(f"/proc/self/task/{os.getpid()}/stat") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        break
            print("now", flush=True)
            sys.stdin.readline()
            os._exit(0)
        threading.Thread(target=go_on).start()
        ctypes.CDLL(None).pthread_exit(None)
    """
    process = start(program)
    before = identity(process.pid)
    assert isinstance(before["start"], int)
    assert process.stdout.readline() == "now\n"
    assert identity(process.pid) == before
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # all of it has ended, and nobody asked how
    assert identity(process.pid)["start"] is None
    process.wait()
    process.stdout.close()
    process.stderr.close()


def test_a_recording_that_took_the_name_of_a_dead_one_is_not_completed(tmp_path):
    """Between the look at who wrote it and its completion."""
    path = killed(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        dead = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM meta")}
    kept = Path(dead["ring"]).read_bytes()
    with contextlib.closing(Reader(path)) as reader:
        assert reader.state() == "interrupted"
    writer = Writer(str(path), overwrite=True)
    writer.start({"state": "recording", "process": {**dead["process"], "start": 1}})
    Path(dead["ring"]).write_bytes(kept)
    assert not recover(str(path), dead)
    assert os.path.exists(dead["ring"])
    assert writer.count("call") == 0
    writer.close()


def test_a_forked_child_never_writes_into_its_parents_file(tmp_path):
    program = """
        import multiprocessing, os, sys
        import numpy as np
        import tensorflow as tf
        import pyfunc_debug as pfd
        from pyfunc_debug.api.live import current

        def child():
            tf.numpy_function(lambda x: x, [np.float32(2)], tf.float32)
            assert current() is None
            assert "pyfunc_debug" not in tf.numpy_function.__module__
            recording.ledger()
            recording.stop()
            with pfd.record(sys.argv[1] + ".child") as own:
                tf.numpy_function(lambda x: x, [np.float32(2)], tf.float32)
            assert own.reader.counts()["call"] == 1

        with pfd.record(sys.argv[1]) as recording:
            tf.numpy_function(lambda x: x, [np.float32(1)], tf.float32)
            recording.ledger()
            pid = os.fork()
            if pid == 0:
                try:
                    child()
                    os._exit(0)
                except BaseException:
                    import traceback
                    traceback.print_exc()
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0
            arguments = (abs, [np.float32(3)], tf.float32)
            process = multiprocessing.get_context("fork").Process(target=tf.numpy_function, args=arguments)
            process.start()
            process.join()
            assert process.exitcode == 0
            tf.numpy_function(lambda x: x, [np.float32(4)], tf.float32)
            assert len(list(recording.calls())) == 2
        reader = recording.reader
        print(reader.counts()["call"], reader.rows("PRAGMA integrity_check"), reader.state())
    """
    done = forked.run("-c", textwrap.dedent(program), tmp_path / "parent.pfrec", cwd=ROOT)
    assert done.stdout == "2 [('ok',)] complete\n", done.stderr[-3000:]
    assert pfd.open(tmp_path / "parent.pfrec.child").reader.counts()["call"] == 1


def test_a_child_that_exits_leaves_its_parents_temporary_file_alone(tmp_path):
    program = """
        import os, sys
        import pyfunc_debug as pfd
        recording = pfd.record().start()
        recording.nodes()
        recording.stop()
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # runs the handlers for exit, as a script would
        os.waitpid(pid, 0)
        print(os.path.exists(recording.path), recording.nodes())
        path = recording.path
        del recording
        print(os.path.exists(path))
    """
    output, errors = start(program).communicate(timeout=HANG_S)
    assert output == "True []\nFalse\n", errors


def test_ctrl_c_and_an_exit_keep_the_recording(tmp_path):
    program = """
        import os, signal, sys
        import pyfunc_debug as pfd
        from tests.recorder.test_recorder import call, node
        recording = pfd.record(sys.argv[1]).start()
        recording._recorder.node_made(node("graph"))
        call(recording._recorder, "graph")
        if sys.argv[2] == "exit":
            sys.exit(3)
        os.kill(os.getpid(), signal.SIGINT)  # sent by another, just before a read blocks, Python never raises it
    """
    for how, code in (("exit", 3), ("interrupt", -signal.SIGINT)):
        path = tmp_path / f"{how}.pfrec"
        process = start(program, str(path), how)
        finish(process)
        assert process.returncode == code
        recording = pfd.open(path)
        assert (recording.reader.state(), recording.reader.counts()["call"]) == ("complete", 1)
        recording.close()
