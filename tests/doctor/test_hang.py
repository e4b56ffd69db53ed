"""A call in which nothing moves is told while it hangs: where it stands, what it waits for, and what to paste."""

from __future__ import annotations

import io
import json
import os
import pdb
import queue
import re
import subprocess
import sys
import threading
import time
import zlib
from multiprocessing.connection import Connection
from types import SimpleNamespace

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.program import waiting
from pyfunc_debug.recorder import hang
from tests import forked
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written
from tests.limits import HANG_S
from tests.stops.terminals import talk

lock = threading.Lock()
owned = threading.RLock()


def run_until_told(told, body, release):
    """Runs a node in a thread until its hang was told, then lets it go."""
    step = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    step.get_concrete_function(tf.constant(1.0))
    with pfd.record(hang_after=0.2) as recording:
        thread = threading.Thread(target=step, args=(tf.constant(1.0),))
        thread.start()
        assert told.wait()
        release()
        thread.join()
    return recording


def test_an_event_that_nobody_sets(told):
    event = threading.Event()

    def wait(x):
        event.wait()
        return x

    recording = run_until_told(told, wait, event.set)
    assert "waits for a threading event or condition" in told.texts[0]
    assert "event.wait()" in told.texts[0]
    (finding,) = recording.findings(select=["hang"])
    assert finding.message.endswith("It went on later")
    assert (finding.severity, finding.confidence, finding.file) == ("warning", "likely", __file__)
    assert "event.wait(timeout=10)" in finding.fix


def test_a_queue_that_stays_empty(told):
    items: queue.Queue = queue.Queue()

    def take(x):
        return items.get()

    recording = run_until_told(told, take, lambda: items.put(1.0))
    (finding,) = recording.findings(select=["hang"])
    assert "an item of a queue" in finding.message
    assert any("items.get()" in line for line in finding.evidence)
    assert finding.fix.endswith("        return items.get(timeout=60)")


@pytest.fixture
def quiet(monkeypatch):
    """What threads died of; nothing is printed, and pytest does not hear of it."""
    died = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    return died


class Camera:
    def __init__(self):
        self.frames: queue.Queue = queue.Queue()
        self.sizes = {0: 1.0}

    def feed(self):
        for number in range(3):
            self.frames.put(self.sizes[number])


def test_a_queue_whose_thread_died_names_the_thread_and_hands_its_error_over(told, quiet):
    items, sizes = queue.Queue(), {0: 1.0}

    def feed():
        for number in range(3):
            items.put(sizes[number])

    def take(x):
        feeder = threading.Thread(target=feed, name="feeder")
        feeder.start()
        feeder.join()
        first = items.get()
        second = items.get()
        return first + second

    hook = threading.excepthook
    recording = run_until_told(told, take, lambda: items.put(1.0))
    assert threading.excepthook is hook
    assert [one.exc_type for one in quiet] == [KeyError], "the program's own hook was called"
    assert "feeder, which calls items.put, died of KeyError: 1:" in told.texts[0]
    (finding,) = recording.findings(select=["hang"])
    assert "Nobody" not in finding.message
    assert "feeder, which calls items.put in" in finding.message
    assert "items.put(sizes[number])" in (finding.evidence[-1])
    put, got = (
        finding.fix.index("            items.put(error)  # who waits raises it"),
        finding.fix.index("got = items.get()"),
    )
    assert got < put, "the last lines first"
    assert "        second = got" in finding.fix


def test_a_method_whose_thread_died(told, quiet):
    camera = Camera()

    def take(x):
        thread = threading.Thread(target=camera.feed)
        thread.start()
        thread.join()
        return camera.frames.get() + camera.frames.get(timeout=HANG_S)

    recording = run_until_told(told, take, lambda: camera.frames.put(1.0))
    (finding,) = recording.findings(select=["hang"])
    assert "which calls self.frames.put in" in finding.message


def test_an_event_whose_thread_died(told, quiet):
    ready = threading.Event()

    def load():
        os.stat("/nowhere/at/all")
        ready.set()

    def wait(x):
        thread = threading.Thread(target=load, name="loader")
        thread.start()
        thread.join()
        ready.wait()
        return x

    recording = run_until_told(told, wait, ready.set)
    (finding,) = recording.findings(select=["hang"])
    assert "loader, which calls ready.set in" in finding.message
    assert "had died of FileNotFoundError" in finding.message


@pytest.mark.parametrize("error", [SystemExit, ZeroDivisionError])
def test_a_thread_that_left_or_fed_another_queue_is_not_named(told, quiet, error):
    items: queue.Queue = queue.Queue()
    others: queue.Queue = queue.Queue()

    def feed():
        others.put(1.0)
        raise error

    def leave():
        items.put(1.0)
        raise SystemExit

    def take(x):
        for target in (feed, leave):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        items.get()
        return items.get()

    recording = run_until_told(told, take, lambda: items.put(1.0))
    (finding,) = recording.findings(select=["hang"])
    assert "died" not in f"{finding.message} {told.texts[0]}"


def test_a_queue_that_stays_full(told):
    progress = queue.Queue(1)
    progress.put(0.0)

    def report(x):
        progress.put(float(x))
        return x

    def empty():
        with progress.not_full:
            progress.queue.clear()
            progress.not_full.notify()

    recording = run_until_told(told, report, empty)
    (finding,) = recording.findings(select=["hang"])
    assert "room in a queue" in finding.message
    assert finding.fix.endswith("    progress = queue.Queue()")


def test_a_question_that_nobody_sees(told, monkeypatch):
    ours, theirs = os.pipe()
    monkeypatch.setattr(waiting.os, "isatty", lambda fd: False)

    def answer(x):
        return x * float(
            input("factor? ")  #
        )

    with open(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        recording = run_until_told(told, answer, lambda: os.write(theirs, b"2\n"))
    os.close(theirs)
    assert "waits for a line of standard input" in told.texts[0]
    (finding,) = recording.findings(select=["hang"])
    assert "it waited for a line of standard input" in finding.message
    assert finding.fix.startswith("< /dev/null  # ")


@pytest.mark.slow
def test_a_question_at_a_terminal_is_left_alone(tmp_path):
    (tmp_path / "program.py").write_text("""
import getpass, sys, threading
from pyfunc_debug.program.waiting import waiting
for ask in (lambda: input("name? "), lambda: sys.stdin.readline(), lambda: getpass.getpass("word? ")):
    thread = threading.Thread(target=ask)
    thread.start()
    while not waiting(thread.ident).stopped:
        pass
    print("left alone")
    thread.join()
""")
    # getpass forgets what is typed before it asks
    password = re.compile(r"word\? .*left alone|left alone.*word\? ", re.S)
    script = [("left alone", "3\r"), ("left alone", "3\r"), (password, "3\r")]
    screen, code = talk([sys.executable, "program.py"], script, cwd=tmp_path)
    assert code == 0, screen


def test_a_lock_with_its_owner(told):
    def enter(x):
        with owned:
            return x

    owned.acquire()
    recording = run_until_told(told, enter, owned.release)
    (finding,) = recording.findings(select=["hang"])
    assert "the lock owned, held by MainThread at test_hang.py:" in finding.message


def test_a_tf_function_that_is_called_by_the_body_while_another_traces_it(told):
    tracing, go = threading.Event(), threading.Event()

    @tf.function
    def inner(x):
        tracing.set()
        go.wait()
        return x + 1

    tracer = threading.Thread(target=inner, args=(tf.constant(1.0),))
    tracer.start()
    tracing.wait()
    recording = run_until_told(told, lambda x: inner(x), go.set)
    tracer.join()
    assert "inside TensorFlow" in told.texts[0] or "waits for TensorFlow" in told.texts[0]
    assert recording.findings(select=["hang"])


def test_a_call_that_still_hangs_is_an_error(told):
    event = threading.Event()

    def wait(x):
        event.wait()
        return x

    step = tf.function(lambda x: tf.py_function(wait, [x], tf.float32))
    recording = pfd.record(hang_after=0.2).start()
    thread = threading.Thread(target=step, args=(tf.constant(1.0),))
    thread.start()
    assert told.wait()
    (finding,) = recording.findings(select=["hang"])
    assert finding.severity == "error"
    event.set()
    thread.join()
    recording.stop()


def watched(target, after_s=0.0):
    """A watch over one call, run by a thread that runs `target`; what it told and noted."""
    noted, texts = [], []
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    ticket = SimpleNamespace(
        call=1, token="t", ident=thread.ident, thread=thread.native_id, start_ns=time.monotonic_ns(), end_ns=0
    )
    watch = hang.HangWatch({1: ticket}, str, lambda *a, **k: noted.append((a, k)), after_s, texts.append)
    return watch, texts


def test_a_body_that_works_for_long_is_left_alone(monkeypatch):
    monkeypatch.setattr(hang, "runnable", lambda thread: False)  # as when it is looked at between two of its rounds
    end = threading.Event()
    ready = threading.Event()
    data = bytes(10_000_000)

    def work():
        ready.set()
        while not end.is_set():
            zlib.crc32(data)  # lets the GIL go, and stands at one place of Python nearly always

    watch, texts = watched(work)
    ready.wait()
    now = [time.monotonic_ns()]
    monkeypatch.setattr(hang, "time", SimpleNamespace(monotonic_ns=lambda: now[0]))
    watch.look()
    (ticket,) = watch._open.values()
    start = waiting.ran_ns(ticket.thread)
    while waiting.ran_ns(ticket.thread) - start <= 10_000_000:
        pass  # until the thread has worked
    now[0] += int((waiting.ran_ns(ticket.thread) - start) / (2 * hang._BUSY_SHARE))
    watch.look()
    end.set()
    assert texts == []


nothing: list[str] = []


def working(told, body):
    """A recording of a call that works without end, and the thread that it runs on."""
    step = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    step.get_concrete_function(tf.constant(1.0))
    recording = pfd.record(hang_after=0.1).start()
    thread = threading.Thread(target=step, args=(tf.constant(1.0),))
    thread.start()
    assert told.wait()
    return recording, thread


def test_a_loop_over_nothing_that_never_ends(told):
    end = threading.Event()

    def first(x):
        while not end.is_set():
            for name in nothing:
                return float(name)
        return x

    recording, thread = working(told, first)
    assert re.search(r"call #1 of .*first, for \d+ s: seen 5 times, always in line", told.texts[0])
    assert re.search(r"test_hang.py:\d+ nothing is empty", told.texts[0])
    (finding,) = recording.findings(select=["hang"])
    end.set()
    thread.join()
    recording.stop()
    assert finding.severity == "warning"  # it may still end
    assert "has not ended: it has worked for" in finding.message
    assert "nothing is empty, so that line" in finding.message
    assert finding.fix.endswith("        if len(nothing) == 0:\n            raise ValueError('nothing is empty')")
    assert recording.findings(select=["hang"]) == []  # it ended


@pytest.mark.parametrize(("status", "told"), [("running", True), ("ok", False)])
def test_a_call_that_worked_until_the_program_was_ended(tmp_path, status, told):
    source = "def bad(x):\n    while True:\n        for name in names:\n            return name\n"
    facts = {
        "age_s": 61.2, "what": "", "pool": 0, "lock": False, "frames": [[FILE, 2, "bad", "while True:"]], "working": 9,
        "lines": [2, 3], "empty": [[3, "names"]],
    }  # fmt: skip
    notice = {"rule": "hang", "node": 1, "call": 1, "facts": json.dumps(facts)}
    path = written(tmp_path / "a.pfrec", source, node=[node()], call=[call(1, status=status)], notice=[notice])
    found = Recording(path).findings(select=["hang", "doctor-trouble"])
    assert [(one.severity, one.confidence, one.line) for one in found] == [("error", "measured", 2)] * told
    for one in found:
        assert one.message.startswith(
            "call #1 of bad did not end: it worked for 61 s and more, and was in lines 2 to 3 each of 9 times"
        )
        assert "names is empty, so that line 3 does nothing" in one.message


def test_a_loop_that_leaves_its_step_out(told):
    end = threading.Event()

    def read(x):
        i = 0
        while i < 10:
            if end.is_set():
                return x
            if i == 3:
                continue
            i += 1
        return x

    recording, thread = working(told, read)
    (finding,) = recording.findings(select=["hang"])
    end.set()
    thread.join()
    recording.stop()
    first = read.__code__.co_firstlineno
    assert f". i was 3 each time, and the loop ends by it: `continue` in line {first + 6} leaves out" in finding.message
    assert f"`i += 1` (line {first + 7})" in finding.message
    assert finding.fix.endswith("                i += 1\n                continue")


def test_a_loop_whose_step_is_somewhere_else(told):
    end = threading.Event()

    def read(x):
        i = 0
        while i < 10:
            if i < 3:
                i += 1
            if end.is_set():
                break
        return x

    recording, thread = working(told, read)
    (finding,) = recording.findings(select=["hang"])
    end.set()
    thread.join()
    recording.stop()
    assert "leaves out" not in finding.message


def test_a_draw_that_is_never_accepted(told):
    end = threading.Event()

    def draw(x):
        while True:
            if end.is_set():
                return x

    recording, thread = working(told, draw)
    (finding,) = recording.findings(select=["hang"])
    end.set()
    thread.join()
    recording.stop()
    assert finding.fix.endswith("        for turn in range(10_000):")


def test_the_lines_of_a_working_call_are_those_of_its_body(told):
    """Not those of what it calls, of which each look may meet another call."""
    end = threading.Event()

    def part(x):
        return float(x) + 1

    def collect(x):
        while not end.is_set():
            part(x)
        return x

    recording, thread = working(told, collect)
    (finding,) = recording.findings(select=["hang"])
    end.set()
    thread.join()
    recording.stop()
    assert finding.evidence
    assert not [line for line in finding.evidence if "float(x) + 1" in line]


@pytest.fixture
def pieces():
    """A pipe's end to read from, into which another process writes; it stops when the test ends."""
    read, write = os.pipe()
    code = "import os, time\nwhile True:\n    os.write(1, b'1')\n    time.sleep(0.0002)\n"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=write, stderr=subprocess.DEVNULL)
    os.close(write)
    assert os.read(read, 1) == b"1"  # it runs: until then nothing moves, as is said
    yield Connection(read, writable=False)
    child.kill()
    child.wait()


class Pieces:
    """Reads as a connection of multiprocessing does."""

    def __init__(self, connection, end):
        self.connection, self.end = connection, end

    def gather(self):
        kept = []
        while not self.end.is_set():
            piece = self.connection._recv(1)
            kept.append(piece)
            if len(kept) < 10_000_000:
                continue
            yield 1.0
        yield 0.0

    def elements(self):
        yield from self.gather()


def test_a_generator_that_takes_pieces_and_yields_nothing_works(told, pieces):
    end = threading.Event()
    source = Pieces(pieces, end)
    with pfd.record(hang_after=0.2) as recording:
        dataset = tf.data.Dataset.from_generator(source.elements, output_signature=tf.TensorSpec((), tf.float32))
        thread = threading.Thread(target=list, args=(dataset,))
        thread.start()
        assert told.wait()
        (finding,) = recording.findings(select=["hang"])
        end.set()
        thread.join()
    assert told.texts[0].startswith("pyfunc-debug: a call works for long:")
    assert re.search(r"waits for data from another process, some [\d,]+ times a second", told.texts[0])
    assert "it is a generator, and has yielded no element for" in told.texts[0]
    line = Pieces.gather.__code__.co_firstlineno + 5
    assert "has yielded nothing for" in finding.message
    assert f"`if len(kept) < 10000000` in line {line} leaves out the yield" in finding.message
    assert "nothing moved" not in finding.message
    (late,) = recording.findings(select=["hang"])
    assert late.severity == "warning"
    assert "yielded nothing for" in late.message


def test_a_body_that_takes_pieces_works(told, pieces):
    end = threading.Event()

    def total(x):
        count = 0
        while not end.is_set():
            count += len(pieces._recv(1).getvalue())
        return x + 0 * count

    recording, thread = working(told, total)
    (finding,) = recording.findings(select=["hang"])
    end.set()
    thread.join()
    recording.stop()
    assert told.texts[0].startswith("pyfunc-debug: a call works for long:")
    assert "yielded" not in told.texts[0]
    assert "has not ended: it has worked for" in finding.message
    assert recording.findings(select=["hang"]) == []  # it ended


def test_a_queue_that_is_asked_in_vain_now_and_then_stands_still(told):
    items: queue.Queue = queue.Queue()

    def take(x):
        while True:
            try:
                return items.get(timeout=0.09)
            except queue.Empty:
                continue

    recording = run_until_told(told, take, lambda: items.put(1.0))
    assert told.texts[0].startswith("pyfunc-debug: nothing moves in these calls:")
    (finding,) = recording.findings(select=["hang"])
    assert "an item of a queue" in finding.message


def test_a_young_call_is_left_alone():
    end = threading.Event()
    watch, texts = watched(end.wait, after_s=1000)
    watch.look()
    watch.look()
    end.set()
    assert texts == []


def test_a_call_that_gets_no_core_is_left_alone(monkeypatch):
    """On a busy machine a thread that could run may stand still for longer than two looks."""
    end, asked = threading.Event(), []
    monkeypatch.setattr(hang, "runnable", lambda thread: asked.append(thread) or True)
    watch, texts = watched(end.wait)
    while not asked:  # until the thread stands still
        watch.look()
    monkeypatch.undo()
    assert texts == []
    while not texts:  # now it waits for what nobody sets
        watch.look()
    end.set()
    assert asked[0] == watch._open[1].thread
    assert waiting.runnable(threading.get_native_id())


def test_it_is_told_once():
    end = threading.Event()
    watch, texts = watched(end.wait)
    while not texts:  # until the thread stands still
        watch.look()
    watch.look()
    watch.look()
    end.set()
    assert len(texts) == 1


def test_of_many_calls_of_a_body_some_are_printed_and_all_noted():
    end, texts, noted = threading.Event(), [], []
    threads = [threading.Thread(target=end.wait, daemon=True) for _ in range(12)]
    for thread in threads:
        thread.start()
    tickets = {
        call: SimpleNamespace(
            call=call, token="t", ident=thread.ident, thread=thread.native_id, start_ns=time.monotonic_ns(), end_ns=0
        ) for call, thread in enumerate(threads)
    }  # fmt: skip
    watch = hang.HangWatch(tickets, str, lambda *a, **k: noted.append(a), 0.0, texts.append)
    while len(noted) < 12:  # until all threads stand still
        watch.look()
    end.set()
    printed = "\n".join(texts)
    assert printed.count("call #") == 8
    assert printed.count("are noted in the recording, and not printed") == 1
    assert {one[2] for one in noted} == {*range(12)}


@pytest.mark.parametrize("post_mortem", [False, True])
def test_a_call_at_the_prompt_of_another_debugger_is_left_alone(post_mortem):
    asked, answer, went_on, end = (threading.Event() for _ in range(4))

    class Lines:
        def readline(self):
            asked.set()
            answer.wait()
            return "c\n"

    debugger = pdb.Pdb(stdin=Lines(), stdout=io.StringIO(), nosigint=True, readrc=False)
    debugger.use_rawinput = False

    def work():
        if post_mortem:
            try:
                raise ValueError
            except ValueError as error:
                debugger.reset()
                debugger.interaction(None, error.__traceback__)
        else:
            debugger.set_trace()
        went_on.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    asked.wait()
    held = waiting.waiting(thread.ident).stopped
    answer.set()
    went_on.wait()
    later = waiting.waiting(thread.ident).stopped
    end.set()
    thread.join()
    assert (held, later) == (True, False)


def test_a_generator_ends_where_those_who_fed_it_have_ended(told):
    items: queue.Queue[float] = queue.Queue()
    items.put(1.0)

    def fed():
        while True:
            item = items.get()
            yield item

    data = tf.data.Dataset.from_generator(fed, output_signature=tf.TensorSpec([], tf.float32))
    recording = pfd.record(hang_after=0.2).start()
    seen: list[float] = []
    thread = threading.Thread(target=lambda: seen.extend(float(one) for one in data.take(2)))
    thread.start()
    assert told.wait()
    (finding,) = recording.findings(select=["hang"])
    items.put(2.0)
    thread.join()
    recording.stop()
    first = fed.__code__.co_firstlineno
    pasted = "            try:\n                item = items.get(timeout=10)\n            except queue.Empty:"
    assert finding.fix.startswith(f"Replace test_hang.py:{first + 2} by:\n{pasted}")
    assert finding.fix.endswith("have ended\n                return")
    assert f"-> Replace test_hang.py:{first + 2} by:" in told.texts[0], "said while it hangs, too"
    assert seen == [1.0, 2.0]


SESSION = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
sess = tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=2))
a = tf.placeholder(tf.float32, [1])
doubled = tf.multiply(a, 2.0)
def body(x):
    return sess.run(doubled, feed_dict={a: x}) + np.float32(1)
values = [tf.py_func(body, [tf.constant([float(one)]) + 0.0], tf.float32) for one in range(8)]
print([float(one[0]) for one in sess.run(values)])
"""


def test_a_body_that_runs_its_own_session_gets_one_with_threads_of_its_own(tmp_path):
    line = SESSION.splitlines().index("    return sess.run(doubled, feed_dict={a: x}) + np.float32(1)") + 1
    facts = {
        "age_s": 31.0, "what": "TensorFlow, to run what this line asked for", "pool": 2, "lock": True,
        "frames": [[FILE, line, "body", SESSION.splitlines()[line - 1]]],
    }  # fmt: skip
    notice = {"rule": "hang", "node": 1, "call": 1, "facts": json.dumps(facts)}
    path = written(
        tmp_path / "a.pfrec", SESSION, node=[node()], call=[call(1, status="running", end_ns=None)], notice=[notice]
    )
    (finding,) = Recording(path).findings(select=["hang"])
    assert "run_functions_eagerly" not in finding.fix
    (tmp_path / "mended.py").write_text(pasted(SESSION, finding.fix))
    done = forked.run("mended.py", cwd=tmp_path)
    assert done.stdout.split("\n")[0] == str([2.0 * one + 1 for one in range(8)]), done.stderr[-2000:]


ENQUEUED = """
import numpy as np
import tensorflow as tf
from keras.src.trainers.data_adapters.py_dataset_adapter import OrderedEnqueuer
class Batches(tf.keras.utils.PyDataset):
    def __len__(self):
        return 3
    def __getitem__(self, i):
        return np.full(2, i, np.float32), np.zeros(2, np.float32)
def batches():
    data = Batches()
    enqueuer = OrderedEnqueuer(data, workers=2)
    enqueuer.start()
LOOP
found = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec([2], tf.float32))
print([float(x[0]) for x in found])
"""
ONE_BY_ONE = "    while True:\n        x, _y = next(enqueuer.get())\n        yield x"
KEPT = "    given = enqueuer.get()\n    while True:\n        x, _y = next(given)\n        yield x"
LOOPED = "    for x, _y in enqueuer.get():\n        yield x"
ONCE = {"owner": "OrderedEnqueuer", "method": "get", "ended": True}


def of_keras(tmp_path, text, keras, what="an item of a queue"):
    """The finding of a generator whose line waits inside Keras."""
    lines = text.splitlines()
    line = next(n for n, one in enumerate(lines, 1) if "enqueuer.get()" in one or "next(given)" in one)
    line = next((n for n, one in enumerate(lines, 1) if "next(given)" in one), line)
    facts = {
        "age_s": 31.0, "what": what, "pool": 0, "lock": True, "keras": keras,
        "frames": [[FILE, line, "batches", lines[line - 1]]],
    }  # fmt: skip
    notice = {"rule": "hang", "node": 1, "call": 1, "facts": json.dumps(facts)}
    path = written(
        tmp_path / "a.pfrec", text, node=[node()], call=[call(1, status="running", end_ns=None)], notice=[notice]
    )
    (finding,) = Recording(path).findings(select=["hang"])
    return finding


@pytest.mark.parametrize("loop", [ONE_BY_ONE, KEPT, LOOPED])
def test_an_enqueuer_of_keras_gives_each_batch_once(tmp_path, loop):
    text = ENQUEUED.replace("LOOP", loop)
    finding = of_keras(tmp_path, text, ONCE)
    assert "OrderedEnqueuer.get of Keras" in finding.message
    assert "each batch once" in finding.message
    (tmp_path / "mended.py").write_text(pasted(text, finding.fix))
    done = forked.run("mended.py", cwd=tmp_path)
    assert done.stdout.split("\n")[0] == "[0.0, 1.0, 2.0]", done.stderr[-2000:]


def test_an_enqueuer_that_still_works_is_not_said_to_have_ended(tmp_path):
    finding = of_keras(tmp_path, ENQUEUED.replace("LOOP", ONE_BY_ONE), {**ONCE, "ended": False})
    assert "each batch once" not in finding.message
    assert finding.fix.startswith("enqueuer.stop()")


def test_a_queue_inside_keras_is_no_wait_for_tensorflow(told):
    from keras.src.trainers.data_adapters.py_dataset_adapter import OrderedEnqueuer

    class Batches(tf.keras.utils.PyDataset):
        def __len__(self):
            return 1

        def __getitem__(self, place):
            return (zlib.crc32(b"a") % 2 * 1.0,)

    enqueuer = OrderedEnqueuer(Batches(), workers=1)
    enqueuer.start()

    def take(x):
        next(enqueuer.get())
        for _ in enqueuer.get():
            return x
        return x

    def release():
        enqueuer.ready_queue.put((1.0,))
        enqueuer.future_queue.put(SimpleNamespace(get=lambda: (1.0,)))

    recording = run_until_told(told, take, release)
    assert "waits for an item of a queue, in OrderedEnqueuer.get of Keras" in told.texts[0]
    (finding,) = recording.findings(select=["hang"])
    assert "run_functions_eagerly" not in finding.fix


@pytest.mark.parametrize(("head", "eagerly"), [("@tf.function\n", True), ("", False)])
def test_functions_are_run_eagerly_only_where_the_line_calls_one(tmp_path, head, eagerly):
    text = f"import tensorflow as tf\n{head}def inner(x):\n    return x + 1\ndef body(x):\n    return inner(x)\n"
    line = len(text.splitlines())
    facts = {
        "age_s": 31.0, "what": "TensorFlow, to run what this line asked for", "pool": 0, "lock": True,
        "frames": [[FILE, line, "body", "return inner(x)"]],
    }  # fmt: skip
    notice = {"rule": "hang", "node": 1, "call": 1, "facts": json.dumps(facts)}
    path = written(
        tmp_path / "a.pfrec", text, node=[node()], call=[call(1, status="running", end_ns=None)], notice=[notice]
    )
    (finding,) = Recording(path).findings(select=["hang"])
    assert ("run_functions_eagerly" in finding.fix) is eagerly
