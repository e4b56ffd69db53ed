"""A real DAP client over a real debugpy adapter: the IDE's own breakpoints, and ours that stop in it."""

from __future__ import annotations

import textwrap

import pytest

from tests import forked
from tests.stops.dap import adapter, waiting

STOPS = textwrap.dedent(
    """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import threading
    import debugpy
    import numpy as np
    import tensorflow as tf
    import pyfunc_debug as pfd
    def double(x):
        return x * 2
    def body(x):
        y = double(x)
        if x > 5:
            raise ValueError("too much")
        if x < 0:
            breakpoint()
        return y + 1
    f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    sine = tf.function(lambda x: tf.numpy_function(np.sin, [x], tf.float32))
    f(tf.constant(0.0))  # traced before there is a breakpoint
    def stops(where, run, **more):
        stop = pfd.break_on(where, **more)
        print(stop.when, run(), stop.hits, flush=True)
        stop.remove()
    def failing(value=6.0):
        try:
            f(tf.constant(value))
        except tf.errors.InvalidArgumentError as error:
            return type(error.pyfunc_exception).__name__
    def gradient():
        with tf.GradientTape() as tape:
            y = f(x := tf.Variable(3.0))
        return float(tape.gradient(y, x))
    data = tf.data.Dataset.range(4).map(lambda n: tf.py_function(body, [n], tf.int64), num_parallel_calls=2)
    stops("body", lambda: float(f(tf.constant(1.0))), prompt="debugger")
    stops(f"{__file__}:{LINE}", lambda: float(f(tf.constant(2.0))))
    stops("body", lambda: float(f(tf.constant(3.0))), when="after")
    stops("body", failing, when="error")
    stops("body", gradient, when="gradient")
    stops("sin", lambda: float(sine(tf.constant(0.0))))
    stops("body", lambda: [int(n) for n in data], condition="x == 2")
    with pfd.answers("p int(x) + 30", "c") as dialogue:
        stops("body", lambda: float(f(tf.constant(4.0))))
    print("34" in str(dialogue), flush=True)
    from pyfunc_debug.stops.call_watch import CallWatch
    armed = CallWatch.arm
    def arm(watch):  # between its arming and its body another thread does what a program, too, may do at any time
        armed(watch)
        other = threading.Thread(target=debugpy.debug_this_thread)
        other.start()
        other.join()
    CallWatch.arm = arm
    new_threads = tf.data.Options()
    new_threads.threading.private_threadpool_size = 2
    stops("body", lambda: [int(n) for n in data.with_options(new_threads)])
    CallWatch.arm = armed
    with pfd.record(gil=False):
        print(float(f(tf.constant(-1.0))), flush=True)
    @tf.function
    def rewritten(x):
        def inside(v):
            if v > 0:
                breakpoint()  # here
                v = v * 3
            if v > 3:
                raise ValueError("rewritten")
            return v
        return tf.py_function(inside, [x], tf.float32)
    stops("no such node", lambda: float(rewritten(tf.constant(1.0))))
    f = rewritten
    stops("*inside", lambda: float(rewritten(tf.constant(-1.0))), when="after")
    stops("*inside", lambda: failing(2.0), when="error")
    """
).replace("{LINE}", "10")


def test_every_kind_of_stop_goes_to_an_attached_ide(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(STOPS)
    line = {text.strip(): number for number, text in enumerate(STOPS.splitlines(), 1)}
    assert line["return x * 2"] == 10
    with waiting(tmp_path, program) as (client, stdout):
        client.begin("attach", justMyCode=True)

        def at(name, text, kind="breakpoint"):
            """Asserts where it stops: the user's frame is the first."""
            thread, reason, frames = client.stop()
            assert (reason, frames[0]["name"].split(" [")[0], frames[0]["line"]) == (kind, name, line[text])
            assert frames[0]["source"]["path"] == str(program)
            return thread, frames[0]

        def goes_on(thread, told, command="continue"):
            client.ask(command, threadId=thread)
            assert not told or stdout.readline() == told

        thread, frame = at("body", "y = double(x)")
        assert "y" not in client.variables(frame)
        goes_on(thread, "", "stepIn")
        goes_on(at("double", "return x * 2", "step")[0], "", "stepOut")
        goes_on(at("body", "y = double(x)", "step")[0], "", "next")
        thread, frame = at("body", "if x > 5:", "step")
        assert "numpy=2.0" in client.variables(frame)["y"]
        goes_on(thread, "before 3.0 1\n")

        thread, frame = at("double", "return x * 2")
        assert "numpy=2.0" in client.variables(frame)["x"]
        goes_on(thread, "before 5.0 1\n")

        thread, frame = at("body", "return y + 1")
        assert client.ask("evaluate", expression="float(__return__)", frameId=frame["id"])["result"] == "7.0"
        client.ask("evaluate", expression="__return__ = y * 10", frameId=frame["id"], context="repl")
        goes_on(thread, "after 60.0 1\n")

        thread, frame = at("body", 'raise ValueError("too much")', "exception")
        assert "numpy=12.0" in client.variables(frame)["y"]
        goes_on(thread, "error ValueError 1\n")

        thread, frame = at("∇ body", "def body(x):")
        assert "numpy=1.0" in client.variables(frame)["dy"]
        goes_on(thread, "gradient 2.0 1\n")

        goes_on(
            at("sin", "sine = tf.function(lambda x: tf.numpy_function(np.sin, [x], tf.float32))")[0], "before 0.0 1\n"
        )

        thread, frame = at("body", "y = double(x)")
        assert client.ask("evaluate", expression="int(x) + 100", frameId=frame["id"])["result"] == "102"
        goes_on(thread, "before [1, 3, 5, 7] 1\n")

        assert stdout.readline() == "before 9.0 1\n", "answers that are prepared come first"
        assert stdout.readline() == "True\n"

        for last in (False, False, False, True):
            goes_on(at("body", "y = double(x)")[0], "before [1, 3, 5, 7] 4\n" if last else "")

        goes_on(at("body", "breakpoint()")[0], "", "next")
        goes_on(at("body", "return y + 1", "step")[0], "-1.0\n")

        def shown(*lines):  # code that AutoGraph generated, in frames of its own
            thread, _, frames = client.stop()
            assert [(one["source"]["path"], one["line"]) for one in frames[: len(lines)]] == [
                (str(program), line[text]) for text in lines
            ]
            for one in frames[: len(lines)]:
                assert client.variables(one).keys() <= {"v", "special variables"}  # such as __return__
            return thread

        goes_on(shown("breakpoint()  # here", "if v > 0:"), "", "next")
        goes_on(shown("v = v * 3", "if v > 0:"), "before 3.0 0\n")
        goes_on(shown("return v"), "after -1.0 1\n")  # AutoGraph returns from a line that it adds
        goes_on(shown("breakpoint()  # here"), "")
        goes_on(shown('raise ValueError("rewritten")', "if v > 3:"), "error ValueError 1\n")
        client.end()


PIPELINE = textwrap.dedent(
    """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    def double(x):
        return x * 2
    def body(x):
        y = double(x)
        if x == 7:
            raise ValueError("seven")
        return y
    for part in ([0, 1, 2, 3, 4], [7]):
        data = tf.data.Dataset.from_tensor_slices(part)
        try:
            for value in data.map(lambda n: tf.py_function(body, [n], tf.int32), num_parallel_calls=2):
                print(f"value {int(value)}\\n", end="", flush=True)  # in one piece: logpoints write meanwhile
        except tf.errors.InvalidArgumentError:
            print("it failed", flush=True)
    """
)


@pytest.mark.parametrize(
    ("started", "filter", "just_my_code"), [("ide", "userUnhandled", True), ("record", "uncaught", False)]
)
def test_an_ide_launches_a_program_that_knows_nothing_of_us(tmp_path, started, filter, just_my_code):
    """Conditional breakpoint, logpoint, evaluate, step into, and exceptions that leave a body, on tf.data's threads."""
    program = tmp_path / "pipeline.py"
    program.write_text(PIPELINE)
    line = {text.strip(): number for number, text in enumerate(PIPELINE.splitlines(), 1)}
    wanted = [
        {"line": line["return x * 2"], "logMessage": "doubles {int(x)}"},
        {"line": line["y = double(x)"], "condition": "int(x) == 3"},
    ]
    command = ["ide"] if started == "ide" else ["record", "-q", "-o", str(tmp_path / "pipeline.pfrec")]
    with adapter(tmp_path) as client:
        found = client.begin(
            "launch", [filter], {program: wanted}, module="pyfunc_debug", args=[*command, str(program)],
            python=forked.python(), cwd=str(tmp_path), console="internalConsole", justMyCode=just_my_code,
            subProcess=False,
        )  # fmt: skip
        assert all(one["verified"] for one in found)
        thread, reason, (frame, *below) = client.stop()
        assert (reason, frame["name"], frame["line"]) == ("breakpoint", "body", line["y = double(x)"])
        assert any("script_ops" in one["source"]["path"] for one in below) is not just_my_code
        assert client.ask("evaluate", expression="int(x) + 100", frameId=frame["id"])["result"] == "103"
        client.ask("stepIn", threadId=thread)
        thread, reason, (frame, *_) = client.stop()
        assert (reason, frame["name"]) == ("step", "double")
        client.ask("continue", threadId=thread)
        thread, reason, (frame, *_) = client.stop()
        assert (reason, frame["name"].split()[0]) == ("exception", "body")
        client.ask("continue", threadId=thread)
        printed = client.end()
    assert [f"doubles {n}" in printed for n in (0, 1, 2, 3, 4, 7)] == [True] * 6
    assert [f"value {n}" in printed for n in (0, 2, 4, 6, 8)] == [True] * 5, printed
    assert "it failed" in printed


def test_an_imported_debugpy_that_nobody_uses_stays_asleep():
    """Asking it whether an IDE is attached imports its server, which replaces sys.breakpointhook for good."""
    program = (
        "import sys, debugpy, tensorflow as tf, pyfunc_debug as pfd\n"
        "one = pfd.break_on('body')\none.remove()\n"
        "print(sys.breakpointhook is sys.__breakpointhook__, 'debugpy.server.api' in sys.modules)"
    )
    done = forked.run("-c", program)
    assert done.stdout == "True False\n"
