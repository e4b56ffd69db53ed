"""A real kernel: the input box, Interrupt, no stdin, and %debug."""

from __future__ import annotations

import re

import pytest

from tests.stops.kernels import Kernel

SETUP = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
import pyfunc_debug as pfd
%load_ext pyfunc_debug
def body(x):
    y = x * 2
    print("in the body")
    return y
f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
def bad(x):
    secret = x * 3
    raise ValueError("oh no")
g = tf.function(lambda x: tf.py_function(bad, [x], tf.float32))
def asks(x):
    breakpoint()
    return x
h = tf.function(lambda x: tf.py_function(asks, [x], tf.float32))
"""
BEFORE = """
import sys, pdb, signal
shell = get_ipython()
before = (sys.breakpointhook, sys.excepthook, pdb.set_trace, vars(shell).get("showtraceback"),
          vars(shell.kernel).get("_input_request"))
"""


@pytest.fixture(scope="module")
def kernel():
    with Kernel() as kernel:
        kernel.run(BEFORE)
        text, error, _ = kernel.run(SETUP)
        assert not error, text
        yield kernel


def _plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_the_input_box_prompts_in_the_right_cell(kernel):
    text, error, prompts = kernel.run(
        "%pyfunc_break body --if 'x > 1'\nprint(float(f(tf.constant(4.0))))", ["n", "p y", "!y = y * 10", "c"]
    )
    assert not error, text
    assert "numpy=8.0" in text
    assert "80.0" in text
    assert "in the body" in text
    assert all(re.match(r"\[TF-\d+\] \(body #\d+\) ", prompt) for prompt in prompts), prompts
    text, error, _ = kernel.run("%pyfunc_break list\n%pyfunc_break clear\n%pyfunc_break list")
    assert "1 hit (1 stopped)" in text
    assert "no breakpoints" in text


def test_parallel_calls_ask_one_after_the_other(kernel):
    text, error, prompts = kernel.run(
        "b = pfd.break_on('body')\n"
        "d = tf.data.Dataset.range(3).map(lambda i: tf.py_function(body, [tf.cast(i, tf.float32)], tf.float32), 3)\n"
        "print(sorted(float(v) for v in d))\nprint(b)\nb.remove()",
        ["n", "p y", "c"] * 3,
    )
    assert not error, text
    assert "[0.0, 2.0, 4.0]" in text
    assert "3 stopped" in text
    calls = [re.search(r"body #(\d+)", prompt).group(1) for prompt in prompts]
    assert [calls[0]] * 3 + [calls[3]] * 3 + [calls[6]] * 3 == calls, "a stop keeps its turn until it continues"


@pytest.mark.parametrize("written", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_breakpoint_in_a_body(kernel, written):
    text, error, _ = kernel.run(
        f"def mine(x):\n    a = x + 1\n    {written}\n    return a\n"
        "i = tf.function(lambda x: tf.py_function(mine, [x], tf.float32))\n"
        "with pfd.record(gil=False):\n    print(float(i(tf.constant(1.0))))",
        ["p a", "c"],
    )
    assert not error, text
    assert "numpy=2.0" in text


def test_input_works_afterwards(kernel):
    text, error, _ = kernel.run("print('got', input('? '))", ["yes"])
    assert not error
    assert "got yes" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("clear 99", "there is no breakpoint 99"),
        ("clear x", "clear takes a whole number, not 'x'"),
        ("body --hits many", "--hits takes a whole number, not 'many'"),
        ("body --when aftr", "Did you mean 'after'?"),
        ("body --often", "cannot understand '--often'"),
    ],
)
def test_a_wrong_word_is_answered_in_one_line(kernel, line, said):
    text, _, _ = kernel.run(f"%pyfunc_break {line}")
    assert text.startswith("UsageError: ")
    assert said in text


def test_exit_leaves_interact_and_not_the_kernel(kernel):
    """IPython puts an `exit` into the notebook's names that shuts the kernel down."""
    text, error, _ = kernel.run(
        'b = pfd.break_on("body")\nprint(float(f(tf.constant(4.0))))', ["interact", "x + 1", "exit()", "c"]
    )
    assert not error
    assert "numpy=5.0" in text
    assert "8.0" in text
    text, error, _ = kernel.run("b.remove()\nprint('alive')")
    assert text == "alive\n"


def test_interrupt_at_a_prompt_ends_the_cell_with_keyboardinterrupt(kernel):
    data = "list(tf.data.Dataset.range(1).map(lambda i: f(tf.cast(i, tf.float32))))"
    for code in ("f(tf.constant(1.0))", data, "tf.py_function(body, [1.0], tf.float32)"):
        text, error, _ = kernel.run(
            f"b = pfd.break_on('body')\n{code}", [], on_input=lambda: kernel.manager.interrupt_kernel()
        )
        assert "KeyboardInterrupt" in text, text
        text, error, _ = kernel.run("print(sys.last_type.__name__, repr(sys.last_value))")
        assert text == "KeyboardInterrupt KeyboardInterrupt('interrupted at a pyfunc_debug stop')\n"
        text, error, _ = kernel.run("print(float(f(tf.constant(4.0))))\nb.remove()", ["c"])
        assert not error, text
        assert "8.0" in text


def test_interrupt_at_a_pipeline_asks_no_more_in_this_cell_and_again_in_the_next(kernel):
    kernel.run("b = pfd.break_on('body')")
    data = "[float(v) for v in tf.data.Dataset.range(6).map(lambda i: f(tf.cast(i, tf.float32)), 4)]"
    for _ in range(3):
        _, error, prompts = kernel.run(data, on_input=kernel.manager.interrupt_kernel)
        assert error.startswith("KeyboardInterrupt")
        assert len(prompts) == 1
    kernel.run("b.remove()")


def test_a_second_interrupt_ends_bodies_that_hold_the_cell(kernel):
    kernel.run("""from pyfunc_debug.switchboard import board
def endless(x):
    print("begun", flush=True)
    while not board._interrupts._blocked:
        pass
    print("left to the program", flush=True)
    while True:
        pass
holds = tf.function(lambda x: tf.py_function(endless, [x], tf.float32))""")
    data = "list(tf.data.Dataset.range(9).map(lambda i: tf.py_function(endless, [i], tf.int64), 2))"
    for code in (f"with pfd.record(gil=False):\n    {data}", "b = pfd.break_on('nothing')\nholds(tf.constant(1.0))"):
        press = kernel.manager.interrupt_kernel
        text, error, _ = kernel.run(code, on_text={"begun": press, "left to the program": press})
        assert error == "KeyboardInterrupt: interrupted at a pyfunc_debug stop", text
        text, error, _ = kernel.run("print('there', float(f(tf.constant(1.0))))")
        assert "there 2.0" in text, text
    text, error, _ = kernel.run("print(board._interrupts._blocked)\nb.remove()")
    assert text == "False\n"


def test_interrupt_at_a_breakpoint_call_while_only_recording(kernel):
    text, error, prompts = kernel.run(
        "with pfd.record(gil=False):\n    h(tf.constant(1.0))", [], on_input=lambda: kernel.manager.interrupt_kernel()
    )
    assert len(prompts) == 1
    assert "KeyboardInterrupt" in error, text
    text, error, _ = kernel.run("%debug", ["p x", "q"])
    assert "numpy=1.0" in text, text
    text, error, _ = kernel.run("with pfd.record(gil=False):\n    print('there', float(f(tf.constant(1.0))))")
    assert not error, text
    assert "there 2.0" in text


def test_without_stdin_it_goes_on(kernel):
    text, error, prompts = kernel.run(
        "b = pfd.break_on('body')\nprint(float(f(tf.constant(4.0))))\nprint(b)\nb.remove()", allow_stdin=False
    )
    assert not error, text
    assert not prompts
    assert "1 nobody to answer" in text


def test_debug_opens_at_the_users_frame_and_the_original_is_the_cause(kernel):
    text, error, _ = kernel.run("with pfd.record(gil=False):\n    g(tf.constant(1.0))")
    assert "InvalidArgumentError" in error
    assert "direct cause" in text
    text, error, _ = kernel.run("%debug", ["p secret", "q"])
    assert "numpy=3.0" in text, text
    text, error, _ = kernel.run("r = pfd.record(gil=False).start()\ng(tf.constant(2.0))")
    assert "direct cause" in text
    text, error, _ = kernel.run("%debug", ["p secret", "q"])
    assert "numpy=6.0" in text, text
    kernel.run("r.stop()")
    text, error, _ = kernel.run("%pyfunc_debug", ["p secret", "q"])
    assert "numpy=6.0" in text, text


def test_debug_after_q_in_a_body_that_autograph_rewrote_is_in_the_users_cell(kernel):
    kernel.run("""@tf.function
def rewritten(x):
    def body(v):
        seen = 0
        for i in range(3):
            breakpoint()
            seen += 1
        return v
    return tf.py_function(body, [x], tf.float32)""")
    text, _, _ = kernel.run("rewritten(tf.constant(1.0))", ["c", "q"])
    assert "autograph" not in text.partition("direct cause")[0].partition("Abort")[2], text
    text, _, _ = kernel.run("%debug", ["p seen, i", "ll", "q"])
    assert "(1, 1)" in _plain(text), text
    assert re.search(r"> \S*ipykernel\S*\(\d\)\S*body\(\).*def body\(v\)", _plain(text), re.S), text
    assert "ag__" not in text


def test_debug_runs_a_recorded_call_again(kernel):
    text, error, _ = kernel.run("%pyfunc_trace --values full --no-panel f(tf.constant(4.0))")
    assert not error, text
    text, error, _ = kernel.run("%pyfunc_debug 1", ["n", "p y", "!y = y + 1", "c"])
    assert not error, text
    assert "skipped" not in text
    assert "numpy=8.0" in text, text
    assert "in the body" in text
    assert "returned something else than was recorded" in text
    text, error, _ = kernel.run("%pyfunc_trace --no-panel f(tf.range(1e5))")
    text, error, prompts = kernel.run("%pyfunc_debug 1")
    assert "runs again" not in text
    assert "its input 'x' was not kept in full" in text + error
    assert "%%pyfunc_trace --values full" in text + error
    assert not prompts
    text, error, _ = kernel.run("%pyfunc_trace --no-panel g(tf.constant(5.0))")
    text, error, _ = kernel.run("%pyfunc_debug 1", ["p secret", "q"])
    assert "numpy=15.0" in text, text
    assert "runs again" not in text
    text, error, _ = kernel.run("%pyfunc_debug 70")
    assert "there is no call 70" in text + error


def test_everything_is_put_back(kernel):
    text, error, _ = kernel.run(
        "%unload_ext pyfunc_debug\n"
        "after = (sys.breakpointhook, sys.excepthook, pdb.set_trace, vars(shell).get('showtraceback'),\n"
        "         vars(shell.kernel).get('_input_request'))\n"
        "print([one == other for one, other in zip(before, after)])"
    )
    assert not error, text
    kernel.run("%load_ext pyfunc_debug")
    assert "[True, True, True, True, True]" in text
