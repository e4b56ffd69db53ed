"""One prompt at a time: nothing lost, nothing hangs, each hit counted once."""

from __future__ import annotations

import io
import linecache
import os
import re
import threading

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.stops.terminal import Terminal
from tests import forked
from tests.limits import HANG_S


class Clicker:
    """Answers every stop with the same lines; `gate` holds the first answer back."""

    name = "a clicker"

    def __init__(self, *lines, gate=None):
        self.lines = lines
        self.gate = gate
        self.order = []
        self.at = {}
        self.overlaps = 0
        self.inside = threading.Lock()

    def can_answer(self, stop):
        return True

    def ask(self, stop, prompt):
        if not self.inside.acquire(blocking=False):
            self.overlaps += 1
            return None
        try:
            count = self.at.get(stop.id, 0)
            self.at[stop.id] = count + 1
            if count == 0:
                self.order.append(stop)
                if self.gate is not None:
                    self.gate(stop)
            return self.lines[count]
        finally:
            self.inside.release()

    def tell(self, stop, text): ...

    def closed(self, stop): ...

    def wake(self, stop): ...


def body(i):
    a = i * 2
    return a + 1


def _parallel(tf, count, threads=8, pool=None):
    """`count` calls, so many at a time; fails instead of hanging."""
    data = tf.data.Dataset.range(count).map(
        lambda i: tf.py_function(body, [i], tf.int64), num_parallel_calls=threads, deterministic=False
    )  # fmt: skip
    options = tf.data.Options()
    options.threading.private_threadpool_size = pool or threads
    data = data.with_options(options)
    results = []
    worker = threading.Thread(target=lambda: results.extend(sorted(int(one) for one in data)), daemon=True)
    worker.start()
    worker.join(HANG_S)
    assert not worker.is_alive(), "hangs"
    assert results == [2 * i + 1 for i in range(count)]


@pytest.fixture
def clicker():
    from pyfunc_debug.switchboard import board

    before = list(board.broker.fronts)

    def use(*lines, gate=None):
        made = Clicker(*lines, gate=gate)
        board.broker.fronts[:] = [made]
        return made

    yield use
    board.broker.fronts[:] = before


@pytest.mark.parametrize("lines", [("c",), ("n", "p a", "c"), ("n", "n", "n", "n")])
def test_eight_threads_a_hundred_hits(tf, clicker, lines):
    from pyfunc_debug.switchboard import board

    waiting = threading.Event()
    board.broker.listeners.append(lambda: waiting.set() if board.broker.waiting() else None)
    # Without the gate one thread may make all the calls before another one has begun.
    seen = clicker(*lines, gate=lambda stop: waiting.wait(HANG_S))
    breakpoint_ = pfd.break_on("body")
    _parallel(tf, 100)
    breakpoint_.remove()
    board.broker.listeners.clear()
    assert breakpoint_.outcomes == {"stopped": 100}
    assert len({stop.call for stop in seen.order}) == 100
    assert len({stop.ident for stop in seen.order}) > 1
    assert seen.overlaps == 0


@pytest.mark.parametrize("lines", [("c",), ("b 1", "c")])
def test_ctrl_c_after_the_answer_and_before_it_takes_effect_is_not_lost(tf, clicker, monkeypatch, lines):
    from pyfunc_debug.switchboard import board

    seen, leave = clicker(*lines), board.broker.leave

    def interrupted(stop):
        monkeypatch.setattr(board.broker, "leave", leave)
        assert board.broker.interrupt()
        leave(stop)

    monkeypatch.setattr(board.broker, "leave", interrupted)
    breakpoint_ = pfd.break_on("body")
    with pytest.raises(KeyboardInterrupt, match="interrupted at a pyfunc_debug stop"):
        tf.function(lambda i: tf.py_function(body, [i], tf.int64))(tf.constant(1, tf.int64))
    breakpoint_.remove()
    assert len(seen.order) == 1


def test_a_stop_is_not_lost_where_another_thread_drops_a_file_from_linecache(tf, clicker, monkeypatch, tmp_path):
    # As stops of several threads do it: each drops the files that are gone, and looks up what was there before.
    gone = [str(tmp_path / name) for name in ("first.py", "second.py")]
    for file in gone:
        linecache.cache[file] = (1, 0.0, ["x = 1\n"], file)
    stat = os.stat

    def also_drops_the_second(path, **more):
        if path == gone[0]:
            linecache.cache.pop(gone[1], None)
        return stat(path, **more)

    monkeypatch.setattr(os, "stat", also_drops_the_second)
    seen = clicker("c")
    breakpoint_ = pfd.break_on("body")
    _parallel(tf, 1)
    breakpoint_.remove()
    assert breakpoint_.outcomes == {"stopped": 1}
    assert len(seen.order) == 1
    assert not set(gone) & set(linecache.cache)


def test_turns_go_in_the_order_of_arrival(tf, clicker):
    from pyfunc_debug.switchboard import board

    expected = []

    def gate(stop):
        if expected:
            assert stop is expected.pop(0)
        else:
            expected.extend(board.broker.waiting())

    clicker("c", gate=gate)
    breakpoint_ = pfd.break_on("body")
    _parallel(tf, 60)
    breakpoint_.remove()
    assert breakpoint_.outcomes == {"stopped": 60}


def _until_others(board, outcome, count):
    """Holds a stop until that has become of so many other hits."""
    changed = threading.Event()
    board.broker.listeners.append(changed.set)

    def gate(stop):
        for _ in range(int(HANG_S / 0.05)):
            if stop.breakpoint.outcomes.get(outcome, 0) >= count:
                return
            changed.wait(0.05)
            changed.clear()

    return gate


def test_skip_while_another_is_stopped(tf, clicker):
    from pyfunc_debug.switchboard import board

    clicker("c", gate=_until_others(board, "skipped", 3))
    breakpoint_ = pfd.break_on("body", policy="skip")
    _parallel(tf, 40)
    breakpoint_.remove()
    board.broker.listeners.clear()
    assert breakpoint_.outcomes["skipped"] >= 3
    assert sum(breakpoint_.outcomes.values()) == breakpoint_.hits == 40


def test_go_on_after_some_time(tf, clicker):
    from pyfunc_debug.switchboard import board

    clicker("c", gate=_until_others(board, "waited too long", 1))
    breakpoint_ = pfd.break_on("body", policy=0.05)
    _parallel(tf, 40)
    breakpoint_.remove()
    board.broker.listeners.clear()
    assert breakpoint_.outcomes["waited too long"] >= 1
    assert sum(breakpoint_.outcomes.values()) == breakpoint_.hits == 40


@pytest.mark.parametrize("command", ["continue all", "detach"])
def test_continue_all_and_detach_release_everything(tf, clicker, command):
    from pyfunc_debug.switchboard import board

    waiting = threading.Event()
    board.broker.listeners.append(lambda: waiting.set() if len(board.broker.waiting()) >= 3 else None)
    clicker(command, gate=lambda stop: waiting.wait(HANG_S))
    breakpoint_ = pfd.break_on("body")
    _parallel(tf, 12)
    detached = not breakpoint_.enabled
    breakpoint_.remove()
    board.broker.listeners.clear()
    assert breakpoint_.outcomes["released"] >= 3
    assert detached is (command == "detach") or command == "continue all"
    assert sum(breakpoint_.outcomes.values()) == breakpoint_.hits


def test_an_evaluation_may_run_nodes_with_breakpoints(tf, clicker):
    from pyfunc_debug.switchboard import board

    globals()["tf"] = tf
    function = tf.function(lambda i: tf.py_function(body, [i], tf.int64))
    globals()["function"] = function
    globals()["data"] = tf.data.Dataset.range(3).map(lambda i: tf.py_function(body, [i], tf.int64))
    out = io.StringIO()
    clicker()
    lines = "p sorted(int(v) for v in data)\np int(function(tf.constant(5, tf.int64)))\nc\n"
    board.broker.fronts[:] = [Terminal(io.StringIO(lines), out)]
    breakpoint_ = pfd.break_on("body")
    assert int(function(tf.constant(1, tf.int64))) == 3
    breakpoint_.remove()
    assert "[1, 3, 5]" in out.getvalue()
    assert "11" in out.getvalue()
    assert breakpoint_.outcomes == {"stopped": 1, "during an evaluation": 4}
    assert not tf.config.functions_run_eagerly()


def test_an_evaluation_runs_eagerly_on_its_own_thread_only(tf):
    from pyfunc_debug.interception.graphs.eagerly import eagerly_if_possible

    kind = type(tf.function(lambda: 0))
    original = vars(kind)["_run_functions_eagerly"]
    traced = tf.function(lambda: tf.constant(tf.inside_function()))
    seen = []
    with eagerly_if_possible():
        assert not bool(traced())
        other = threading.Thread(target=lambda: seen.append(bool(traced())))
        other.start()
        other.join()
    assert seen == [True]
    assert vars(kind)["_run_functions_eagerly"] is original


def test_a_body_called_by_a_stopped_body_stops_too(tf, script):
    def inner(x):
        return x + 1

    def outer(x):
        y = tf.py_function(inner, [x], tf.float32)
        return y * 2

    said = script("n", "p x", "c", "p y", "c")
    breakpoints = [pfd.break_on("*outer"), pfd.break_on("*inner")]
    result = tf.function(lambda x: tf.py_function(outer, [x], tf.float32))(tf.constant(1.0))
    for one in breakpoints:
        one.remove()
    assert float(result) == 4.0
    assert [one.outcomes["stopped"] for one in breakpoints] == [1, 1]
    assert "inner #" in said.text
    assert "numpy=2.0" in said.text


def _parked(tf, clicker, run):
    """What the stop says when `run` has three calls parked."""
    from pyfunc_debug.switchboard import board

    three = threading.Event()
    board.broker.listeners.append(lambda: three.set() if len(board.broker.waiting()) >= 2 else None)
    said = []

    def gate(stop):
        assert three.wait(HANG_S)
        said.append(board.broker.starving())
        gates.gate = None

    gates = clicker("c", gate=gate)
    breakpoint_ = pfd.break_on("body")
    run()
    breakpoint_.remove()
    board.broker.listeners.clear()
    return said[0]


def test_a_starving_tf_data_pool_is_named_with_its_size_and_how_that_is_known(tf, clicker, monkeypatch):
    from pyfunc_debug.program import pools

    monkeypatch.setattr(pools, "cores", lambda: 9)  # asked nowhere: the program says 3
    said = _parked(tf, clicker, lambda: _parallel(tf, 8, threads=3))
    assert re.match(
        r"3 calls are parked and the tf.data pool of test_turns.py:\d+ has 3 threads \(private_thread", said
    )
    assert ": the pipeline may stand still until you continue" in said
    assert _parked(tf, clicker, lambda: _parallel(tf, 8, threads=3, pool=4)) == ""


def test_the_size_of_a_pool_that_nobody_saw_being_made_is_not_known(tf, clicker, monkeypatch):
    from pyfunc_debug.program import pools

    monkeypatch.setattr(pools, "cores", lambda: 3)
    data = tf.data.Dataset.range(8).map(lambda i: tf.py_function(body, [i], tf.int64), num_parallel_calls=3)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 3
    before = iter(data.with_options(options))
    said = _parked(tf, clicker, lambda: list(before))
    assert said.startswith("3 calls are parked and the size of a tf.data pipeline's pool is not known (by default 3 ")


def test_of_a_pool_without_a_setting_the_default_is_named_as_that(tf):
    from pyfunc_debug.program.pools import Iterated, cores, pool_of

    found = []

    def asks(i):
        me = threading.get_native_id()
        found.append([pool_of(me, loops) for loops in ([Iterated("a.py:1", None)], [Iterated("", 2), Iterated("", 5)])])
        return i

    list(tf.data.Dataset.range(1).map(lambda i: tf.py_function(asks, [i], tf.int64), num_parallel_calls=1))
    default, mixed = found[0]
    assert default[:3] == ("the tf.data pool of a.py:1", cores(), "the default, one a CPU")
    assert mixed[:3] == ("a tf.data pipeline's pool", cores(), "")


STARVED = """
import threading, tensorflow as tf, pyfunc_debug as pfd
from pyfunc_debug.switchboard import board
from pyfunc_debug.stops.terminal import Terminal
tf.config.threading.set_inter_op_parallelism_threads({threads})
class Says(Terminal):
    def can_answer(self, stop): return True
    def ask(self, stop, prompt):
        three.wait()
        print("SAYS", board.broker.starving(), flush=True)
        board.broker.fronts.clear()
        return "c"
    def tell(self, stop, text): pass
three = threading.Event()
board.broker.fronts[:] = [Says()]
board.broker.listeners.append(lambda: three.set() if len(board.broker.waiting()) >= 2 else None)
def body(x): return x
b = pfd.break_on("body")
nodes = lambda x: tf.add_n([tf.numpy_function(body, [x + k], tf.float32, stateful=False) for k in range(3)])
print("RESULT", float(tf.function(nodes)(tf.constant(1.0))))
b.remove()
"""


@pytest.mark.parametrize(("threads", "starves"), [(3, True), (4, False)])
def test_a_starving_inter_op_pool_is_named_and_one_with_room_is_not(threads, starves):
    code = STARVED.format(threads=threads)
    done = forked.run("-c", code)
    assert "RESULT 6.0" in done.stdout, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("SAYS"))
    assert ("TensorFlow's inter-op pool has 3 threads (tf.config." in line, "parked" in line) == (starves, starves)


def test_a_thread_that_python_made_is_in_no_pool(tf):
    from pyfunc_debug.program.pools import pool_of

    assert pool_of(threading.get_native_id()) is None
    if (forked := os.fork()) == 0:
        os._exit(pool_of(threading.get_native_id()) is not None)
    assert os.waitpid(forked, 0)[1] == 0, "of a forked process, too"


def test_a_step_over_a_line_that_waits_for_a_call_with_a_breakpoint_does_not_hang(tf, script, capsys):
    """The inner call wants the turn, which the outer one has; and the outer one waits for the inner one."""
    inner = tf.function(lambda i: tf.py_function(body, [i], tf.int64))

    def outer(i):
        found = inner(i)
        return found * 10

    script("n", "p found", "c")
    breakpoints = [pfd.break_on("body"), pfd.break_on("*outer")]
    function = tf.function(lambda i: tf.py_function(outer, [i], tf.int64))
    results = []
    thread = threading.Thread(target=lambda: results.append(int(function(tf.constant(3, tf.int64)))), daemon=True)
    thread.start()
    thread.join(HANG_S)
    assert results == [70]
    for one in breakpoints:
        one.remove()
    assert [one.outcomes for one in breakpoints] == [{"while another was stepping": 1}, {"stopped": 1}]
    assert "may be waiting for this one" in capsys.readouterr().err


def test_no_stop_is_lost_of_nine_threads_that_make_their_first_nodes_at_once(tf, script):
    each, threads = 20, 9  # 1,000 each on 2 cores: 9,000 of 9,000 in 12 s
    script(*["c"] * each * threads)
    breakpoint_ = pfd.break_on("many")
    together, results = threading.Barrier(threads), []

    def many(x):
        return x * 2

    def work():
        function = tf.function(lambda x: tf.py_function(many, [x], tf.float32))
        together.wait()
        results.extend(float(function(tf.constant(float(value)))) for value in range(each))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    breakpoint_.remove()
    assert breakpoint_.outcomes == {"stopped": each * threads}
    assert sorted(results) == sorted([2.0 * value for value in range(each)] * threads)


def test_a_call_that_waits_is_shown_with_its_inputs_and_gets_the_prompt(tf, clicker, script):
    """`others 2`, from the first of three: its prompt, on its thread; then the first one's again."""
    from pyfunc_debug.switchboard import board

    three = threading.Event()
    board.broker.listeners.append(lambda: three.set() if len(board.broker.waiting()) >= 2 else None)
    said = script("others", "others 2", "p int(i), ident()", "c", "p int(i), ident()", "others 7", "c", "c")
    ask = said.ask
    said.ask = lambda stop, prompt: three.wait(HANG_S) and ask(stop, prompt)
    names = {"ident": threading.get_ident}
    body.__globals__.update(names)
    breakpoint_ = pfd.break_on("body")
    _parallel(tf, 3, threads=3)
    breakpoint_.remove()
    board.broker.listeners.clear()
    del body.__globals__["ident"]
    listed = re.findall(
        r"^(\d)  (body #\d+) on (TF-\d+): breakpoint \d+ \(before\)\n +i = int64\[\] (\d)$", said.text, re.M
    )
    assert [number for number, *_ in listed] == ["1", "2"]
    shown = re.findall(r"^\((body #\d+)\) p .*\n\((\d), (\d+)\)$", said.text, re.M)
    (other, value, thread), (first, first_value, first_thread) = shown
    assert (other, value) == (listed[1][1], listed[1][3])
    assert re.search(rf"^--- breakpoint \d+ \(before\): {other} on {listed[1][2]}; 2 more waiting", said.text, re.M)
    assert (first not in (listed[0][1], other), first_thread != thread) == (True, True)
    assert f"--- back: {first} on TF-" in said.text
    assert "*** there is no call 7 in `others`" in said.text
    assert len({first_value, listed[0][3], listed[1][3]}) == 3
    assert breakpoint_.outcomes == {"stopped": 3}


def test_a_node_is_a_place_to_break_at_and_tab_knows_it(tf, script):
    inner = tf.function(lambda x: tf.py_function(body, [x], tf.int64))

    def outer(x):
        return x

    said = script("call", "b body, int(i) == 4", "b", "disable body", "enable body", "c", "p int(i)", "clear body", "c")
    ask = said.ask
    tabs, dots, words = [], [], []

    def tab(stop, prompt):
        if said.left == script_lines:
            tabs.extend([stop.complete("b bo", "bo"), stop.complete("clear bo", "bo"), stop.complete("others ", "")])
            words.extend(stop.complete("disa", "disa"))
            dots.extend(
                [stop.complete("p x.sh", "x.sh"), stop.complete("p x.", "x."), stop.complete("p x.__ad", "x.__ad")]
            )
        return ask(stop, prompt)

    script_lines = list(said.left)
    said.ask = tab
    inner(tf.constant(1, tf.int64))
    breakpoint_ = pfd.break_on("outer")
    inner(tf.constant(1, tf.int64))
    tf.function(lambda x: tf.py_function(outer, [x], tf.int64))(tf.constant(1, tf.int64))
    assert [int(inner(tf.constant(k, tf.int64))) for k in (3, 4, 4)] == [7, 9, 9]
    breakpoint_.remove()
    assert ["body" in names for names in tabs] == [True, True, False]
    assert (dots[0], [name for name in dots[1] if name.startswith("x._")]) == (["x.shape"], [])
    assert ("x.__add__" in dots[2], words) == (True, ["disable"])  # Python 3.13 wants more arguments for a first word
    assert re.search(
        r"breakpoint \d+ stops calls of body\n.*<breakpoint \d+: before body if int\(i\) == 4, 0 hits", said.text, re.S
    )
    assert re.search(
        r"is disabled\n.*is enabled\n.*p int\(i\)\n4\n.*clear body\nbreakpoint \d+ is gone", said.text, re.S
    )
    assert said.left == []
