"""A real terminal: prompts, Ctrl-C, and a closed stdin."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from pyfunc_debug.stops import interrupts
from tests import forked
from tests.limits import HANG_S, LIGHT
from tests.stops.terminals import talk

PROGRAM = """
import signal, sys
import tensorflow as tf
def body(x):
    y = x * 2
    return y
f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
"""


@pytest.fixture
def program(tmp_path):
    def write(rest):
        path = tmp_path / "program.py"
        path.write_text(PROGRAM + textwrap.dedent(rest))
        return str(path)

    return write


def test_record_break_prompts_and_records(program, tmp_path):
    path = program("print('result', float(f(tf.constant(4.0))))\n")
    screen, code = talk(
        [sys.executable, "-m", "pyfunc_debug", "record", "--break", "body", "--if", "x > 1", "-o", "r.pfrec",
         "--log", "body=x * 10, y", path],
        [("(body #1) ", f"{line}\r") for line in ("n", "p y", "y = tf.constant(50.0)", "c")],
        cwd=tmp_path,
    )  # fmt: skip
    assert code == 0
    assert "numpy=8.0" in screen
    assert "result 50.0" in screen
    assert "1 hit (1 stopped)" in screen
    assert (
        "pyfunc_debug: body #1 (before): x * 10 = float32[] 40., y = *** NameError: name 'y' is not defined" in screen
    )
    assert "1 hit (1 logged)" in screen
    assert "body" in screen[screen.index("result") :], "the ledger"


def test_a_prompt_goes_to_the_terminal_where_stdout_is_a_file(program, tmp_path):
    path = program(
        "import pyfunc_debug as pfd\nb = pfd.break_on('body')\nprint('result', float(f(tf.constant(4.0))))\n"
    )
    with open(tmp_path / "out.txt", "w") as file:
        script = [("(body #1) ", "p x\r"), ("(body #1) ", "c\r")]
        screen, code = talk([sys.executable, path], script, stdout=file.fileno())
    assert code == 0
    assert "numpy=4.0" in screen
    assert (tmp_path / "out.txt").read_text() == "result 8.0\n"


def test_answers_come_from_a_pipe_and_the_rest_of_it_is_the_program_s(program, tmp_path):
    path = program("""
    print('result', float(f(tf.constant(4.0))))
    print('rest', sys.stdin.read())
    """)
    done = forked.run(
        "-m", "pyfunc_debug", "record", "--break", "body", "--answers", "-", "-q", "-o", "r.pfrec", path,
        input="p x * 10\nn\ny = tf.constant(50.0)\nc\nfor the program", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "(body #1) p x * 10\n<tf.Tensor: shape=(), dtype=float32, numpy=40.0>\n(body #1) n\n" in done.stdout
    assert "result 50.0\nrest for the program\n" in done.stdout


def prompt_after(answer):
    return re.compile(rf"{answer}\r\n[^\n]*\(body #1\) ")


def test_lines_are_edited_completed_and_remembered_where_the_terminal_can(program):
    path = program("import pyfunc_debug as pfd\nb = pfd.break_on('body')\nf(tf.constant(4.0))\nf(tf.constant(5.0))\n")
    screen, code = talk(
        [sys.executable, path],
        [("(body #1) ", "p 6*7\r"), (prompt_after("42"), "\x1b[A\x1b[D1\r"),  # up, left
         (prompt_after("102"), "p x.num\t().item()\r"), (prompt_after(r"4\.0"), "inp\t\r"),
         (prompt_after("x = float.*"), "c\r"), ("(body #2) ", "\x03")],
        terminal="xterm-256color",
    )  # fmt: skip
    assert "\x1b[36m> " in screen, "colours"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen)  # Python 3.13 colours tracebacks
    assert "KeyboardInterrupt: interrupted at a pyfunc_debug stop" in plain
    assert code == -signal.SIGINT


def test_ctrl_z_suspends_at_an_edited_prompt_and_fg_comes_back_to_it(program):
    path = program(
        "import pyfunc_debug as pfd\nb = pfd.break_on('body')\nprint('result', float(f(tf.constant(4.0))))\n"
    )
    screen, code = talk(
        ["bash", "--norc", "--noprofile", "-i"],
        [("$ ", f"{sys.executable} {path}\r"), ("(body #1) ", "\x1a"), (re.compile(r"Stopped[\s\S]*\$ "), "fg\r"),
         ("(body #1) ", "p 6*7\r"), (prompt_after("42"), "c\r"), (re.compile(r"result 8.0[\s\S]*\$ "), "exit\r")],
        terminal="xterm-256color", env={**os.environ, "PS1": "$ ", "PYTHONPATH": LIGHT},
    )  # fmt: skip
    assert code == 0, screen


INTERRUPTED = """
import pyfunc_debug as pfd
MODE = sys.argv[1]
context = pfd.record(gil=False) if MODE == "breakpoint" else None
if context: context.start()
else: b = pfd.break_on("body")
try:
    if MODE == "data":
        data = tf.data.Dataset.range(3).map(lambda i: tf.py_function(body, [tf.cast(i, tf.float32)], tf.float32))
        list(data)
    elif MODE == "eager":
        tf.py_function(body, [1.0], tf.float32)
    else:
        f(tf.constant(1.0))
except KeyboardInterrupt:
    print("caught KeyboardInterrupt", flush=True)
except tf.errors.UnknownError as error:
    print("caught", type(error.pyfunc_exception).__name__, flush=True)
context.stop() if context else b.remove()
print("original handler", signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
import termios
print("goes on", float(f(tf.constant(5.0))) if MODE != "breakpoint" else 10.0, flush=True)
"""


@pytest.mark.parametrize(
    ("mode", "caught"), [("run", "KeyboardInterrupt"), ("data", "Abort"), ("eager", "Abort"), ("breakpoint", "Keyb")]
)
def test_ctrl_c_at_a_prompt_ends_the_call_and_the_program_goes_on(program, mode, caught):
    rest = INTERRUPTED
    if mode == "breakpoint":
        rest = "def body(x):\n    breakpoint()\n    y = x * 2\n    return y\n" + rest
    screen, code = talk([sys.executable, program(rest), mode], [("(body #", "p x\r"), ("(body #", "\x03")])
    assert "numpy=" in screen
    assert f"caught {caught}" in screen, screen
    assert "original handler True" in screen
    assert "goes on 10.0" in screen
    assert code == 0


def test_a_signal_from_elsewhere_ends_the_stop_too(program):
    rest = """
    import os, threading, time
    import pyfunc_debug as pfd
    from pyfunc_debug.switchboard import board
    def send():
        while board.broker.active is None or not board.broker.active.open:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
    b = pfd.break_on("body")
    try:
        f(tf.constant(1.0))
    except KeyboardInterrupt as error:
        print("caught", error)
    b.remove()
    """
    screen, code = talk([sys.executable, program(rest)], [("(body #", "")])
    assert "caught interrupted at a pyfunc_debug stop" in screen
    assert code == 0


@pytest.mark.parametrize("stdin", ["closed", "null", "pipe"])
def test_without_a_terminal_nothing_hangs(program, stdin):
    path = program("import pyfunc_debug as pfd\nb = pfd.break_on('body')\nprint(float(f(tf.constant(4.0))), b)\n")
    if stdin == "closed":
        done = subprocess.run(
            [sys.executable, path],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            preexec_fn=lambda: os.close(0),
            env={**os.environ, "PYTHONPATH": LIGHT},
        )
    else:
        done = forked.run(path, input={"null": None, "pipe": "n\n"}[stdin])
    assert done.returncode == 0, done.stderr
    assert "8.0 <breakpoint 1: before body, 1 hit (1 nobody to answer)>" in done.stdout
    assert done.stderr.count("nobody can answer") == 1


RUNNING = """
import threading, time
import pyfunc_debug as pfd
lock = threading.Lock()
lock.acquire()
def body(x):
    n = 1
    print("it runs", flush=True)
    while n > 0:
        n += 1
    return x * 2
f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
"""


def test_ctrl_c_stops_a_body_that_runs_and_ends_an_evaluation_also_in_c(program):
    path = program(
        RUNNING + "with pfd.record(gil=False):\n    result = float(f(tf.constant(3.0)))\n"
        "print('result', result, signal.getsignal(signal.SIGINT) is signal.default_int_handler, sys.gettrace())\n"
    )
    in_c = [("*** KeyboardInterrupt", "print('sleeps') or time.sleep(1e6)\r"), ("sleeps\r\n", "\x03"),
            ("*** KeyboardInterrupt", "print('waits') or lock.acquire()\r"), ("waits\r\n", "\x03")]  # fmt: skip
    screen, code = talk(
        [sys.executable, path],
        [("it runs\r\n", "\x03"), ("(body #1) ", "p n > 0\r"), ("(body #1) ", "while print('round') is None: pass\r"),
         ("round\r\n", "\x03"), *(in_c if interrupts._c is not None else []),
         ("*** KeyboardInterrupt", "!n = -5\r"), ("-5", "c\r")],
    )  # fmt: skip
    assert "--- paused; Ctrl-C again ends the program: body #1 on TF-1" in screen
    assert "\r\nTrue\r\n(body #1) " in screen
    assert "result 6.0 True None" in screen
    assert code == 0


def test_ctrl_c_again_ends_the_program(program):
    path = program(RUNNING + "b = pfd.break_on('another')\nf(tf.constant(3.0))\n")
    screen, code = talk([sys.executable, path], [("it runs\r\n", "\x03"), ("(body #1) ", "\x03")])
    assert "KeyboardInterrupt" in screen
    assert screen.count("paused") == 1
    assert code == -signal.SIGINT


ENDLESS = """
import threading, time
import pyfunc_debug as pfd
lock = threading.Lock()
lock.acquire()
def spins(x):
    print("it spins", flush=True)
    while True: pass
def sleeps(x):
    print("it sleeps", flush=True)
    time.sleep(1e6)
def waits(x):
    print("it waits", flush=True)
    lock.acquire()
def stubborn(x):
    while True:
        try: spins(x)
        except BaseException: pass
"""


def test_ctrl_c_ends_a_condition_or_a_log_that_never_returns_and_stops_there(program):
    path = program(
        ENDLESS + "rule = pfd.break_on('body', condition='spins(x)')\n"
        "print([float(f(tf.constant(float(i)))) for i in range(5)], rule.hits, rule.condition_errors)\n"
        "log = pfd.break_on('body', log='spins(x)')\n"
        "print(float(f(tf.constant(5.0))), float(f(tf.constant(6.0))), log)\n"
        "rule.remove()\nlog.remove()\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, sys.gettrace())\n"
        "f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))\n"
        "rule = pfd.break_on('body', condition='stubborn(x)')\nf(tf.constant(7.0))\n"
    )
    in_c = [("(body #2) ", "edit sleeps(x)\r"), ("is now", "c\r"), ("it sleeps\r\n", "\x03"),
            ("(body #3) ", "edit waits(x)\r"), ("is now", "c\r"), ("it waits\r\n", "\x03"),
            ("(body #4) ", "disable\r")]  # fmt: skip
    screen, code = talk(
        [sys.executable, path],
        [("it spins\r\n", "\x03"), ("(body #1) ", "p x * 10\r"), ("numpy=0.0", "keep\r"), ("it spins\r\n", "\x03"),
         *(in_c if interrupts._c is not None else [("(body #2) ", "disable\r")]),
         ("is disabled", "c\r"), ("it spins\r\n", "\x03"), ("(body #6) ", "disable\r"), ("is disabled", "c\r"),
         ("it spins\r\n", "\x03"), ("it spins\r\n", "\x03")],
    )  # fmt: skip
    assert "its condition (spins(x)) failed: interrupted by Ctrl-C" in screen
    errors = 4 if interrupts._c is not None else 2
    assert f"[0.0, 2.0, 4.0, 6.0, 8.0] 0 {errors}\r\n" in screen
    assert "pyfunc_debug: body #6 (before): spins(x) = *** interrupted by Ctrl-C" in screen
    assert "its log (spins(x)) was interrupted by Ctrl-C: body #6" in screen
    assert "10.0 12.0 <breakpoint 2: before body, 1 hit (1 logged), disabled>\r\nTrue None\r\n" in screen
    assert code == -signal.SIGINT, "the second Ctrl-C for one condition"


def test_q_ends_all_that_wait_and_a_pipeline_that_begins_endless_bodies_and_later_loops_run(program):
    path = program("""
    import pyfunc_debug as pfd
    from pyfunc_debug.stops import broker
    broker._ABORTING_S = 1e6  # it is not time that ends it
    spins = True
    def spin(x):
        while spins: print("it runs", flush=True)
        return x
    def mapped(body):
        return tf.data.Dataset.range(16).map(
            lambda i: tf.py_function(body, [tf.cast(i, tf.float32)], tf.float32), num_parallel_calls=4)
    endless = mapped(spin).prefetch(2)
    b = pfd.break_on("body")
    data = mapped(body)
    def loop(data):
        for x in data: pass
    for attempt in 1, 2, 3:
        try: loop(data if attempt < 3 else endless)
        except tf.errors.UnknownError as error:
            print(f"ended {attempt} {type(error.pyfunc_exception).__name__}\\n", end="", flush=True)
        b.remove()
        if attempt == 1: b = pfd.break_on("body")
        if attempt == 2: recording = pfd.record(values="none", gil=False).start()
    spins = False  # the loop over the pipeline is gone, and with it what it had begun
    print("later", len(list(endless)), flush=True)
    recording.stop()
    """)
    again = re.compile(r"ended 1 Abort[\s\S]*\(body #\d+\) ")
    third = re.compile(r"ended 2 Abort[\s\S]*it runs")
    script = [("(body #", "q\r"), (again, "q\r"), (third, "\x03"), (re.compile(r"\(spin #\d+\) "), "q\r")]
    screen, code = talk([sys.executable, path], script)
    assert "ended 2 Abort" in screen
    assert "ended 3 Abort" in screen
    assert screen.count("--- breakpoint") == 2
    assert screen.count("--- paused") == 1
    assert screen.count("in _dispatch") == 0, "frames of ours"
    assert "later 16" in screen
    assert code == 0


@pytest.mark.parametrize(("answer", "code", "kind"), [("q\r", 1, "UnknownError"), ("\x03", 130, "KeyboardInterrupt")])
def test_quit_at_a_breakpoint_ends_endless_bodies_and_so_the_program(program, answer, code, kind):
    path = program("""
    import threading
    import pyfunc_debug as pfd
    spins = threading.Event()
    def body(x):
        if x == 1: spins.wait()
        else:
            while True: spins.set()
        return x
    b = pfd.break_on("body", when="after")
    data = tf.data.Dataset.range(16).map(
        lambda i: tf.py_function(body, [tf.cast(i, tf.float32)], tf.float32), num_parallel_calls=2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 2  # on one core a pipeline has one thread else
    for x in data.with_options(options).prefetch(2): pass
    """)
    screen, ended = talk([sys.executable, path], [("(body #", answer)])
    assert ended == code, screen
    assert screen.count("--- breakpoint") == 1
    assert kind in screen
    assert "pyfunc_debug/stops" not in screen, "frames of ours"


def test_ctrl_c_in_a_dataset_gives_the_exit_code_of_an_interrupt(program, tmp_path):
    data = "tf.data.Dataset.range(3).map(lambda i: tf.py_function(body, [tf.cast(i, tf.float32)], tf.float32))"
    path = program(
        "import atexit\natexit.register(print, 'exit handler')\n"
        f"import pyfunc_debug as pfd\nb = pfd.break_on('body', hits=1)\nlist({data})\n"
    )
    screen, code = talk([sys.executable, path], [("(body #1) ", "\x03")])
    assert "KeyboardInterrupt" in screen
    assert screen.rstrip().endswith("exit handler")
    assert code == 130


LEFT = """
import time
import keras, numpy as np
import pyfunc_debug as pfd
from pyfunc_debug.switchboard import board


class Pairs(keras.utils.PyDataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        stops(index)
        return np.ones((1, 1)), np.ones((1, 1))


def numbers():
    for index in range(9):
        stops(index)
        yield index


def stops(index):
    if index == 5:
        breakpoint()
        print("nobody said to go on")


def fit():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse")
    model.fit(Pairs(workers=2), verbose=0, shuffle=False, callbacks=[EndsEarly()])


class EndsEarly(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training = True


def take():
    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64)).prefetch(8)
    global iterator
    iterator = iter(data)
    next(iterator)


with pfd.record(gil=False):
    fit() if sys.argv[1] == "fit" else take()
    while board.broker.active is None:
        time.sleep(0.01)
print("main", "has ended")
"""


@pytest.mark.parametrize("how", ["fit", "take"])
def test_a_stop_of_what_fetches_ahead_ends_with_the_program_and_says_so(program, how):
    screen, code = talk([sys.executable, program(LEFT), how], [])
    assert code == 0, screen
    ended = re.search(r"the program has ended: .*, which was stopped on .*, goes on without an answer", screen)
    assert ended, screen
    assert screen.index("main has ended") < ended.start(), screen
    assert "nobody said to go on" in screen
