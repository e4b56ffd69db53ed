"""A program that dies in the middle of a call: what it had done is in the recording, and where it died."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import textwrap
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.events import LiveRuns
from pyfunc_debug.pfrec.packing import pack
from pyfunc_debug.pfrec.ring import Ring, RingReader, is_held, is_ring
from pyfunc_debug.recorder.budget import Budget
from pyfunc_debug.recorder.hot import HotPath
from tests import forked
from tests.limits import HANG_S

PROGRAM = """
    import ctypes, mmap, os, signal, struct, sys, threading, time
    import numpy as np, tensorflow as tf
    import pyfunc_debug as pfd

    how, path, counter = sys.argv[1], sys.argv[2], open(sys.argv[3], "r+b")
    ended = mmap.mmap(counter.fileno(), 8)
    count = 0

    meeting = threading.Barrier(3)

    def decode(image, scale):
        global count
        if how == "kill":
            meeting.wait()
            time.sleep(float(sys.argv[4]))
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        if how == "segv" and count == 51:
            ctypes.string_at(0)
        if how == "abort" and count == 51:
            os.abort()
        struct.pack_into("<q", ended, 0, count - 1)  # so many calls have ended
        return image * scale

    @tf.function
    def loop(n):
        for i in tf.range(n):
            tf.numpy_function(decode, [tf.ones([4, 4]), tf.cast(i, tf.float32)], tf.float32)

    if how == "beginning":
        print("begins", flush=True)
    pfd.record(path, gradients="stock").start()
    if how == "kill":
        both = lambda i: tf.numpy_function(decode, [tf.fill([2], 2.0 * i), i], tf.float32)
        three = tf.data.Dataset.range(3, output_type=tf.float32).map(both, num_parallel_calls=3)
        options = tf.data.Options()
        options.threading.private_threadpool_size = 3
        list(three.with_options(options))
    loop(50)
    if how == "signal":
        signal.setitimer(signal.ITIMER_REAL, float(sys.argv[4]))  # the kernel ends the process, at no call's asking
    if how == "term":
        os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", f"sleep {sys.argv[4]}; kill -TERM {os.getpid()}")
    loop(1_000_000)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def run_to_death(program, folder, how, after_s=0.0):
    """The recording of a program that died, how many of its calls had ended, and the signal."""
    path, counter = folder / "train.pfrec", folder / "counter"
    counter.write_bytes(bytes(8))
    code = forked.run(program, how, path, counter, str(after_s)).returncode
    return path, struct.unpack("<q", counter.read_bytes())[0], -code


@pytest.mark.parametrize("how", ["segv", "abort"])
def test_a_crash_names_the_call_its_inputs_and_thread_and_no_call_before_it_is_missing(program, tmp_path, how):
    path, _, number = run_to_death(program, tmp_path, how)
    assert number == {"segv": signal.SIGSEGV, "abort": signal.SIGABRT}[how]
    with contextlib.closing(Recording(str(path))) as recording:
        calls = list(recording.calls())
        assert [call.id for call in calls] == [*range(1, 52)]
        assert [call.status for call in calls] == ["ok"] * 50 + ["running"]
        given = [[(value.min, value.max) for value in call.inputs] for call in calls]  # of the last ones from the ring
        assert given == [[(1, 1), (number, number)] for number in [*range(50), 0]]
        assert [value.text for value in calls[50].inputs] == ["float32[4, 4] x=1", "float32 0"]
        text = " ".join(str(recording.ledger()).split())
        assert re.search(
            r"the program died in call #51 of decode \(train.py:12\), (at least [\d.e-]+ s into it, )?"
            r"with image float32\[4, 4\] x=1, scale float32 0, on (MainThread|TF-\d+)",
            text,
        )
        assert "running" not in text
        (finding,) = [one for one in recording.findings() if one.rule == "died"]
        assert (finding.severity, finding.calls, finding.line) == ("error", (51,), 12)
    assert sorted(os.listdir(tmp_path)) == ["counter", "train.pfrec"]  # one whole file


FIRST_CALL = """
    import os, signal, sqlite3, sys
    import tensorflow as tf
    import pyfunc_debug as pfd

    pfd.record(sys.argv[2]).start()
    file = sqlite3.connect(sys.argv[2], isolation_level=None)
    file.execute("BEGIN IMMEDIATE")  # nothing is stored from now on: all that the process leaves is in the ring

    def decode(x):
        os.kill(os.getpid(), signal.SIGKILL)

    @tf.function
    def step(x):
        return tf.py_function(decode, [x], tf.float32)

    if sys.argv[1] == "graph":
        step(tf.constant(3.0))
    if sys.argv[1] == "map":
        list(tf.data.Dataset.range(3, output_type=tf.float32).map(step))
    if sys.argv[1] == "eager":
        tf.py_function(decode, [3.0], tf.float32)
"""

BEFORE = """
    import ctypes, os, signal, sqlite3, sys
    import tensorflow as tf
    import pyfunc_debug as pfd

    def decode(x):
        os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == "kill" else ctypes.string_at(0)

    @tf.function
    def step(x):
        return tf.py_function(decode, [x], tf.float32)

    traced = step.get_concrete_function(tf.TensorSpec([])) if sys.argv[3] == "graph" else None
    mapped = tf.data.Dataset.range(3, output_type=tf.float32).map(step) if sys.argv[3] == "map" else None
    pfd.record(sys.argv[2]).start()
    file = sqlite3.connect(sys.argv[2], isolation_level=None)
    file.execute("BEGIN IMMEDIATE")
    step(tf.constant(3.0)) if traced else list(mapped)
"""


@pytest.mark.parametrize(
    ("how", "rows"),
    [
        ("graph", [("step", "tf.function", 13, 1, ["step"])]),
        ("map", [("step", "tf.data", 13, 1, []), ("step", "tf.function", 13, 1, ["step"])]),
        ("eager", [("(eager)", "eager", None, 0, ["<module>"])]),
    ],
)
def test_a_program_that_dies_in_its_first_call_names_what_traced_it(tmp_path, how, rows):
    path = tmp_path / "train.pfrec"
    (tmp_path / "train.py").write_text(textwrap.dedent(FIRST_CALL))
    assert forked.run(tmp_path / "train.py", how, path).returncode == -signal.SIGKILL
    with contextlib.closing(Recording(str(path))) as recording:
        ledger = recording.ledger()
        text = " ".join(str(ledger).split())
    found = [
        (row.function.name, row.function.kind, row.function.line, row.traces,
         [node.node.stack[-1].function for node in row.nodes])
        for row in ledger.rows
    ]  # fmt: skip
    assert found == rows
    assert "was not stored" not in text
    assert "the program died in call #1 of decode (train.py:10)" in text


@pytest.mark.parametrize(("how", "what"), [("kill", "graph"), ("segv", "graph"), ("kill", "map")])
def test_a_program_that_dies_in_the_first_call_of_a_graph_older_than_its_recording_names_what_traced_it(
    tmp_path, how, what
):
    path = tmp_path / "train.pfrec"
    (tmp_path / "train.py").write_text(textwrap.dedent(BEFORE))
    signals = {"kill": signal.SIGKILL, "segv": signal.SIGSEGV}
    assert forked.run(tmp_path / "train.py", how, path, what).returncode == -signals[how]
    with contextlib.closing(Recording(str(path))) as recording:
        ledger = recording.ledger()
        text = " ".join(str(ledger).split())
    nodes = [(row.function.name, node.node.name, node.node.stack[-1].line)
             for row in ledger.rows for node in row.nodes]  # fmt: skip
    assert nodes == [("step", "EagerPyFunc", 11)]
    assert "was not stored" not in text
    assert "the program died in call #1 of decode (train.py:6)" in text


def test_nothing_is_said_of_what_traced_a_node_where_a_death_took_that(tmp_path):
    """A program that dies as soon as it begins leaves its calls and nodes in the ring, and not what traced them."""
    with pfd.record(tmp_path / "train.pfrec", gil=False) as recording:
        list(tf.data.Dataset.range(3).map(lambda x: tf.py_function(lambda x: x, [x], tf.int64)))
    with contextlib.closing(sqlite3.connect(recording.path)) as file, file:
        file.executescript("UPDATE node SET function = NULL; DELETE FROM trace; DELETE FROM function")
    text = str(Recording(recording.path).ledger())
    assert "(what traced it was not stored)" in text
    assert "graph" not in text
    assert "Session" not in text


def test_runs_that_were_not_stored_are_not_said_to_be_started_in_cpp_only(tmp_path):
    with pfd.record(tmp_path / "train.pfrec", gil=False) as recording:
        tf.function(lambda x: tf.py_function(lambda x: x, [x], tf.float32))(1.0)
    lost = '{"calls": 0, "runs": 1, "reasons": {"runs": {"budget": 1}}}'
    with contextlib.closing(sqlite3.connect(recording.path)) as file, file:
        file.executescript(f"DELETE FROM run; INSERT OR REPLACE INTO meta VALUES ('dropped', '{lost}')")
    text = " ".join(str(Recording(recording.path).ledger()).split())
    assert "started in C++ by another graph, where nobody counts; or they were not stored" in text
    assert "1 runs were not stored" in text


def test_a_recording_that_came_without_its_parts_says_which(program, tmp_path):
    path, _, _ = run_to_death(program, tmp_path, "segv")
    alone = tmp_path / "alone" / "train.pfrec"
    alone.parent.mkdir()
    shutil.copy(path, alone)
    with contextlib.closing(Recording(str(alone))) as recording:
        text = " ".join(str(recording.ledger()).split())
    assert "No py_function was made" not in text
    missing = "train.pfrec-wal and train.pfrec-ring did not come with it: calls that only stood there are missing"
    assert missing in text
    packed, _, parts = pack(str(alone), str(tmp_path / "packed.pfrec"))
    assert parts == ["train.pfrec-wal", "train.pfrec-ring"]
    with contextlib.closing(Recording(packed)) as recording:
        assert "did not come with it" in " ".join(str(recording.ledger()).split())
    with contextlib.closing(Recording(str(path))) as recording:  # with its parts it is whole
        assert len(list(recording.calls())) == 51


@pytest.mark.parametrize("after_s", [0.0, 0.6])  # the writer has heard of none, of each
def test_all_calls_that_a_kill_ends_are_named_with_their_inputs_and_threads(program, tmp_path, after_s):
    path, _, number = run_to_death(program, tmp_path, "kill", after_s)
    assert number == signal.SIGKILL
    with contextlib.closing(Recording(str(path))) as recording:
        calls = list(recording.calls())
        assert [call.status for call in calls] == ["running"] * 3
        assert sorted([value.max for value in call.inputs] for call in calls) == [[0, 0], [2, 1], [4, 2]]
        assert len({call.thread for call in calls}) == 3
        text = " ".join(str(recording.ledger()).split())
        said = (
            r"call #\d of decode \(train.py:12\), (?:at least [\d.e-]+ s into it, )?"
            r"with image float32\[2\] x=\d.*?, scale float32\S* \d.*?, on TF-\d"
        )
        assert len(re.findall(said, text.partition("with 3 calls in progress:")[2])) == 3, text


def test_no_call_that_ended_is_missing_after_a_signal_at_any_moment(program, tmp_path):
    path, ended, number = run_to_death(program, tmp_path, "signal", random.Random(5).uniform(0.05, 0.5))
    assert number == signal.SIGALRM
    with contextlib.closing(Recording(str(path))) as recording:
        numbers = [call.id for call in recording.calls() if call.status == "ok"]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert ended <= len(numbers) <= ended + 1
        assert recording.meta["death"]["missing"] == 0
        sums = "count(*), total(status = 'error'), sum(end_ns - start_ns), max(end_ns - start_ns)"
        calls = recording.sql(f"SELECT node, {sums} FROM call WHERE status <> 'running' GROUP BY node")
        kept = recording.sql("SELECT node, calls, errors, total_ns, max_ns FROM summary")
        assert [tuple(row.values()) for row in kept] == [tuple(row.values()) for row in calls]
        running = sum(call.status == "running" for call in recording.calls())
    (row,) = pfd.open([str(path)]).ledger().rows  # from these sums, and what was in progress
    sums = row.by[0]
    assert (sums.stored, sums.running, sums.times.count) == (len(numbers) + running, running, len(numbers))


def test_sigterm_ends_a_program_as_ever_loses_no_call_and_is_named(program, tmp_path):
    path, ended, number = run_to_death(program, tmp_path, "term", random.Random(6).uniform(0.05, 0.3))
    assert number == signal.SIGTERM
    with contextlib.closing(Recording(str(path))) as recording:
        numbers = [call.id for call in recording.calls() if call.status == "ok"]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert ended <= len(numbers) <= ended + 1
        assert "the program was ended by SIGTERM" in " ".join(str(recording.ledger()).split())


def test_a_programs_own_handlers_stay_and_none_of_ours_is_left():
    """In a process of its own: what is under test is how it ends."""
    code = """
        import os, re, signal, sys, tempfile
        from collections import deque
        from pyfunc_debug.events import LiveRuns
        from pyfunc_debug.pfrec.ring import Ring, RingReader, is_held, is_ring
        from pyfunc_debug.recorder.budget import Budget
        from pyfunc_debug.recorder.hot import HotPath

        def caught():
            return int(re.search(r"SigCgt:\\s*(\\w+)", open("/proc/self/status").read())[1], 16) >> 14 & 1

        ring = Ring(os.path.join(tempfile.mkdtemp(), "x.pfrec"), 16)
        path = HotPath(None, deque(), {}, {}, LiveRuns(), Budget(1_000_000))
        path.ring = ring
        seen = [caught(), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL]
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGTERM)
        seen += [os.waitpid(child, 0)[1], RingReader(ring.path).signal]
        path.ring = None
        seen += [caught()]
        signal.signal(signal.SIGTERM, lambda *_: seen.append("own"))
        path.ring = ring
        os.kill(os.getpid(), signal.SIGTERM)
        path.ring = None
        seen += [caught(), RingReader(ring.path).signal]
        ring.close()
        print(seen)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stdout.strip() == "[1, True, 15, None, 0, 'own', 1, None]", done.stderr


def test_what_is_read_only_is_read_from_a_copy(program, tmp_path):
    """A mount that cannot be written to, in a namespace of its own."""
    path, *_ = run_to_death(program, tmp_path, "segv")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -m pyfunc_debug show "$3"'
    shown = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", tmp_path, sys.executable, path], capture_output=True, text=True
    )
    assert "the program died in call #51 of decode" in shown.stdout, shown.stderr
    assert before == {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}


class Owner:
    """What a hot path asks of its recorder."""

    def register(self, token, args):
        return token, 0

    def register_thread(self, native_id):
        pass


def test_python_and_c_write_the_same_ring(tmp_path):
    rings = [Ring(str(tmp_path / name), 16) for name in ("python.pfrec", "c.pfrec")]
    queue = deque()
    path = HotPath(Owner(), queue, {}, {}, LiveRuns(), Budget(1_000_000))
    path.ring = rings[1]
    for number in range(1, 38):
        path.leave(path.enter(f"pyfunc_{number}", ()), None)
    tickets = [*queue, path.enter("pyfunc_a", ()), path.enter("pyfunc_b", ())]
    for ticket in tickets:
        rings[0].begin(ticket)
    for ticket in tickets[:-2]:
        rings[0].end(ticket)
    reads = [RingReader(ring.path) for ring in rings]
    path.ring = None
    for ring in rings:
        ring.close()
        assert not os.path.exists(ring.path)
    assert reads[0].begun == reads[1].begun == 39
    (ours, theirs) = [sorted(read.calls(), key=lambda call: call.call) for read in reads]
    assert [call.call for call in ours] == [*range(22, 40)]  # the newest 16 that ended, and two in progress
    assert [call.end_ns for call in ours[-2:]] == [None, None]
    # The start of a call in progress is noted a moment before the one that its ticket keeps.
    assert [replace(call, start_ns=0) for call in ours] == [replace(call, start_ns=0) for call in theirs]


def test_a_sign_of_life_is_left_while_a_body_holds_the_gil(tmp_path):
    code = """
        import ctypes, sys
        from collections import deque
        from pyfunc_debug.events import LiveRuns
        from pyfunc_debug.pfrec.ring import Ring
        from pyfunc_debug.recorder.budget import Budget
        from pyfunc_debug.recorder.hot import HotPath

        ring = Ring(sys.argv[1], 16)
        path = HotPath(None, deque(), {}, {}, LiveRuns(), Budget(1_000_000))
        path.ring = ring
        print(ring.path, flush=True)
        ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)  # without letting go of the GIL
        path.ring = None
        ring.close()
        print("done")
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "x.pfrec")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        ring = process.stdout.readline().strip()
        first = RingReader(ring).sign_ns
        end = time.monotonic() + HANG_S
        while RingReader(ring).sign_ns == first and time.monotonic() < end:
            pass
        assert RingReader(ring).sign_ns > first
        assert process.communicate("x", timeout=HANG_S)[0] == "done\n"


def test_a_call_whose_end_was_noted_has_ended_though_its_beginning_still_stands_there(tmp_path):
    ring, queue = Ring(str(tmp_path / "x.pfrec"), 16), deque()
    path = HotPath(Owner(), queue, {}, {}, LiveRuns(), Budget(1_000_000))
    path.leave(path.enter("pyfunc_1", ()), None)
    (ticket,) = queue
    ring.begin(ticket)
    beginning = bytes(ring.memory)
    ring.end(ticket)
    place = beginning.index(struct.pack("<qq", ticket.call, ticket.start_ns))
    ring.memory[place : place + 16] = beginning[place : place + 16]  # the program dies before this is taken out
    read = RingReader(ring.path)
    ring.close()
    assert read.numbers() == [ticket.call] * 2
    assert [(call.call, call.end_ns) for call in read.calls()] == [(ticket.call, ticket.end_ns)]


def test_nodes_and_threads_are_described(tmp_path):
    ring = Ring(str(tmp_path / "x.pfrec"), 16)
    ring.describe(token="pyfunc_1", body="decode")
    ring.describe(thread=7, name="TF-1")
    ring.describe(trace=3, signature="(x)")
    assert [ring.share(fact) for fact in (("step", 3), ("other", 4), ("step", 3), ())] == [0, 1, 0, None]
    read = RingReader(ring.path)
    ring.close()
    assert read.nodes["pyfunc_1"]["body"] == "decode"
    assert read.threads == {7: "TF-1"}
    assert read.traces[3]["signature"] == "(x)"
    assert read.shared == {0: ["step", 3], 1: ["other", 4]}


def test_a_pipe_in_a_rings_place_is_not_waited_for(tmp_path):
    path = f"{tmp_path}/train.pfrec-ring"
    os.mkfifo(path)
    assert not is_ring(path)
    assert is_held(path)  # which cannot be known
    with pytest.raises(OSError, match="is not a file"):
        RingReader(path)


def test_a_damaged_ring_is_not_believed(tmp_path):
    ring = Ring(str(tmp_path / "x.pfrec"), 8)
    for content in (b"", b"PFDRING1", bytes(5000), Path(ring.path).read_bytes()[:5000]):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ValueError, match="ring"):
            RingReader(str(tmp_path / "bad"))
    ring.close()
