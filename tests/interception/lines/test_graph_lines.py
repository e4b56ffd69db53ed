"""How often the graph ran each line: counts equal planted counts, the graph and the program's profiler stay theirs."""

# ruff: noqa: SIM108 - branches are what is counted here
from __future__ import annotations

import functools
import glob
import importlib.util
import re
import threading

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.interception.lines import graph_lines
from tests.limits import HANG_S

X = tf.constant(1.0)
PLANTED = re.compile(r"#: g(\d+|-)$")


def loop_with_a_branch():
    @tf.function
    def f(x):
        for _ in tf.range(7):  #: g24
            if x > 3.0:  #: g21
                x = x * 0.5  #: g6
            else:
                x = x + tf.sin(x)  #: g15
        return tf.exp(x)  #: g3

    f(X)
    f(X)
    with tf.GradientTape() as tape:  # the forward pass of a gradient is another graph, with a loop built anew
        tape.watch(X)
        y = f(X)
    tape.gradient(y, X)


def while_on_a_tensor():
    @tf.function
    def f(x):
        while x < 50.0:  #: g5
            x = x * 2.0 + tf.abs(x)  #: g4
        return x

    f(X)


def a_variable_that_begins_in_the_loop():
    @tf.function
    def f(x):
        for _ in tf.range(4):  #: g5
            y = x * x * 2.0  #: g4
            x = x + y  #: g4
        return tf.tanh(x)  #: g1

    f(X)


def nested_functions():
    @tf.function
    def inner(x):
        return tf.tanh(x)  #: g10

    @tf.function
    def f(x):
        for _ in tf.range(4):  #: g10
            x = inner(x)
        return inner(x)

    f(X)
    f(X)


def unrolled_loop_and_helper_called_twice():
    def helper(x):
        return tf.sin(x)  #: g4

    @tf.function
    def f(x):
        for _ in range(3):
            x = tf.tan(x) * x * x  #: g6
        return helper(x) + helper(x + 1.0)  #: g2

    f(X)
    f(X)


def two_graph_traces_of_one_function():
    @tf.function
    def f(x):
        return tf.sqrt(tf.abs(x))  #: g5

    for _ in range(2):
        f(X)
    for _ in range(3):
        f(tf.ones([2]))


def functions_with_one_name():
    def make(k):
        @tf.function
        def f(x):
            return tf.sin(x) if k else tf.cos(x)  #: g5

        return f

    @tf.function
    def f(x):
        return tf.sin(x)  #: g4

    one, other = make(True), make(False)
    for _ in range(2):
        one(X)
    for _ in range(3):
        other(X)
    for _ in range(4):
        f(X)


def a_loop_within_a_line_is_not_the_line():
    @tf.function
    def f(x):
        return tf.map_fn(  #: g2
            lambda e: tf.sin(e),
            tf.stack([x, x, x]),
        )

    f(X)
    f(X)


def many_rounds():
    @tf.function
    def f(x):
        for _ in tf.range(3000):  #: g3001
            x = x + 1.0  #: g3000
        return x

    f(X)


def cheap_ops():
    """TensorFlow leaves some out of the profiler: no number, and not a wrong one."""

    @tf.function
    def f(x):
        for _ in tf.range(4):  #: g10
            y = tf.reshape(x, [2, 2])  #: g-
            x = tf.matmul(y, y)  #: g8
            x = tf.reshape(x, [4])  #: g-
        return tf.expand_dims(x, 0)  #: g-

    f(tf.ones([4]))
    f(tf.ones([4]))


def tf_data():
    def f(e):
        e = tf.cast(e, tf.float32)  #: g6
        if e > 2.0:  #: g6
            return tf.sinh(e)  #: g3
        return tf.cosh(e)  #: g3

    list(tf.data.Dataset.range(6).map(f, num_parallel_calls=2))


def folded_and_pruned():
    @tf.function
    def f(x):
        y = tf.sin(x + 1.0)  #: g-
        z = tf.constant(2.0) * 3.0  #: g-
        del y
        return x * z  #: g1

    f(X)


def functions_of_one_name_in_two_datasets():
    def f(e):
        return tf.sinh(tf.cast(e, tf.float32))  #: g3

    one = f

    def f(e):
        return tf.sinh(tf.cast(e, tf.float32))  #: g5

    list(tf.data.Dataset.range(3).map(one))
    list(tf.data.Dataset.range(5).map(f, num_parallel_calls=2))


def a_filter():
    def keep(e):
        return tf.equal(tf.math.floormod(e, 2), 1)  #: g7

    list(tf.data.Dataset.range(7).filter(keep))


def a_loop_that_is_left():
    @tf.function
    def f(x):
        for i in tf.range(7):  #: g-
            if i == 3:
                break
            x = tf.sin(x)  #: g3
        return tf.exp(x)  #: g1

    f(X)


def twice(function):
    @functools.wraps(function)
    def wrapper(x):
        x = tf.sinh(x)
        return function(x)

    return wrapper


def decorated():
    @tf.function
    @twice
    def f(x):
        y = tf.exp(x)  #: g2
        return y  #: g-

    @tf.function
    @twice
    def g(x):
        y = tf.cosh(x)  #: g1
        return y  #: g-

    f(X)
    f(X)
    g(X)


def keras_fit():
    class Layer(tf.keras.layers.Layer):
        def call(self, x):
            return tf.sin(x)  #: g4

    def loss(truth, prediction):
        return tf.reduce_mean(tf.abs(truth - prediction))  #: g4

    model = tf.keras.Sequential([tf.keras.layers.Input([2]), Layer(), tf.keras.layers.Dense(1)])
    model.compile("sgd", loss=loss)
    model.fit(tf.zeros([16, 2]), tf.zeros([16, 1]), batch_size=4, verbose=0)


def on_threads():
    @tf.function
    def f(x):
        return tf.cosh(x)  #: g20

    f.get_concrete_function(X)
    threads = [threading.Thread(target=lambda: [f(X) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def older():
    @tf.function
    def f(x):
        for _ in tf.range(6):  #: g14
            x = tf.cosh(x) * 0.1  #: g12
        return x

    f(X)
    return lambda: (f(X), f(X))


def older_of_the_same_name():
    @tf.function
    def f(x):
        for _ in tf.range(4):
            x = tf.sin(x)
        return x

    f(X)
    return f


PROGRAMS = [
    loop_with_a_branch, while_on_a_tensor, a_variable_that_begins_in_the_loop, nested_functions,
    unrolled_loop_and_helper_called_twice, two_graph_traces_of_one_function, functions_with_one_name,
    a_loop_within_a_line_is_not_the_line, many_rounds, cheap_ops, tf_data,
    functions_of_one_name_in_two_datasets, a_filter, a_loop_that_is_left,
    decorated, folded_and_pruned, keras_fit, on_threads,
]  # fmt: skip


def lines_of(function):
    with open(__file__) as file:
        text = file.read().splitlines()
    code = function.__code__
    last = max(line for inner in _codes(code) for _, _, line in inner.co_lines() if line)
    return range(code.co_firstlineno, last + 2), text


def _codes(code):
    return [code, *(one for inner in code.co_consts if hasattr(inner, "co_lines") for one in _codes(inner))]


def planted(function):
    lines, text = lines_of(function)
    found = {}
    for number in lines:
        match = PLANTED.search(text[number - 1])
        if match:
            found[number] = None if match[1] == "-" else int(match[1])
    return found


def counted(recording, function):
    lines, _ = lines_of(function)
    return {
        one.line: f"{one.ran}+" if one.capped else one.ran
        for one in recording.reader.lines(__file__) if one.kind == "graph" and one.line in lines
    }  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_counts_equal_planted_counts(program):
    wanted = planted(program)
    assert wanted
    with pfd.record(gil=False, lines="graph") as recording:
        program()
    found = counted(recording, program)
    assert {line: found.get(line) for line in wanted} == wanted
    assert not recording.meta["limits"]


def test_the_same_function_in_two_files_is_counted_in_its_own(tmp_path):
    """As a notebook's cell that was run twice: TensorFlow takes the second for the first."""
    text = "import tensorflow as tf\n\n\n@tf.function\ndef f(x):\n    return tf.sin(x)\n"
    counts = []
    for name in ("one", "other"):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with pfd.record(gil=False, lines="graph") as recording:
            module.f(X)
        counts.append([(one.line, one.ran) for one in recording.reader.lines(str(path)) if one.kind == "graph"])
    assert counts == [[(6, 1)], [(6, 1)]]


def test_functions_traced_before_are_counted():
    run = older()
    with pfd.record(gil=False, lines="graph") as recording:
        run()
    assert counted(recording, older) == planted(older)


def test_functions_of_one_name_traced_before_are_told_apart_by_their_ops():
    other = older_of_the_same_name()
    run = older()
    with pfd.record(gil=False, lines="graph") as recording:
        run()
    assert counted(recording, older) == planted(older)
    assert counted(recording, older_of_the_same_name) == {}
    del other


def test_the_gutter_shows_them_and_says_who_counted():
    @tf.function
    def step(x):
        for _ in tf.range(3):
            x = x * 0.5
        unused = tf.sin(x)
        del unused
        return x

    with pfd.record(gil=False, lines="graph") as recording:
        step(X)
    source = recording.source("*step")
    shown = {line.text.strip(): line.ran for line in source.lines}
    assert shown["for _ in tf.range(3):"] == "4x"
    assert shown["x = x * 0.5"] == "3x"
    assert shown["unused = tf.sin(x)"] == "-"
    assert "by TensorFlow's profiler" in str(source)
    assert "optimised it away" in str(source)
    assert "0x" not in str(source)


def test_without_asking_nothing_is_profiled_and_the_gutter_says_so():
    @tf.function
    def step(x):
        started.append(tf.profiler.experimental.start)
        return tf.sin(x)

    started = []
    with pfd.record(gil=False, lines=True) as recording:
        step(X)
    assert started == [tf.profiler.experimental.start]
    assert {line.ran for line in recording.source("*step").lines if line.counts is not None} == {"-"}
    assert "is not counted" in str(recording.source("*step"))


def test_graphs_are_the_same_with_and_without():
    def make():
        @tf.function
        def step(x):
            for _ in tf.range(3):
                if x > 2.0:
                    x = x * 0.5
                else:
                    x = x + 1.0
            return x

        return step

    def graph(function):
        function(X)
        definition = function.get_concrete_function(X).graph.as_graph_def()
        parts = [*definition.node, *definition.library.function]
        return sorted(re.sub(r"_\d+", "_N", str(part)) for part in parts)

    init = graph_lines.Profiler.__init__
    stock = graph(make())
    with pfd.record(gil=False, lines="graph"):
        ours = graph(make())
    assert ours == stock
    assert graph_lines.Profiler.__init__ is init


def test_the_programs_own_profiler_gets_the_session_and_counts_say_at_least(tmp_path):
    start = tf.profiler.experimental.start

    @tf.function
    def step(x):
        return tf.cosh(x)

    recording = pfd.record(gil=False, lines="graph").start()
    step(X)
    step(X)
    tf.profiler.experimental.start(str(tmp_path))
    step(X)
    tf.profiler.experimental.stop()
    with pytest.warns(UserWarning, match="not counted to the end: the program started the profiler"):
        recording.stop()
    assert glob.glob(str(tmp_path / "**" / "*.xplane.pb"), recursive=True)
    assert tf.profiler.experimental.start is start
    assert "2+x" in [line.ran for line in recording.source("*step").lines]


def test_a_profiler_that_runs_already_is_left_alone(tmp_path):
    tf.profiler.experimental.start(str(tmp_path))
    recording = pfd.record(gil=False, lines="graph").start()
    tf.function(lambda x: tf.cosh(x))(X)
    with pytest.warns(UserWarning, match="the profiler is in use"):
        recording.stop()
    tf.profiler.experimental.stop()
    assert glob.glob(str(tmp_path / "**" / "*.xplane.pb"), recursive=True)
    assert [one for one in recording.reader.lines(__file__) if one.kind.startswith("graph")] == []


def test_counting_ends_before_it_becomes_too_large(monkeypatch):
    ended = threading.Event()
    limit = graph_lines.GraphLines._limit
    monkeypatch.setattr(graph_lines.GraphLines, "_limit", lambda self, why: (limit(self, why), ended.set()))

    @tf.function
    def step(x):
        return tf.cosh(x)

    recording = pfd.record(gil=False, lines="graph").start()
    step(X)
    monkeypatch.setattr(graph_lines, "MOST_BYTES", -1)
    assert ended.wait(HANG_S)
    with pytest.warns(UserWarning, match="not counted to the end"):
        recording.stop()
    assert [one.capped for one in recording.reader.lines(__file__) if one.kind == "graph"] == [True]


def test_the_gil_is_measured_in_another_way_meanwhile(monkeypatch):
    from pyfunc_debug.gil import grade

    def absent(self):
        raise grade.AbsentError("switched off by the test")

    monkeypatch.setattr(grade.NativeProbe, "start", absent)
    with pfd.record(lines="graph") as recording:
        tf.function(lambda x: tf.numpy_function(lambda v: v, [x], tf.float32))(X)
    assert recording.meta["gil"]["grade"] == "bound"
    assert "the profiler is in use (by this recording)" in recording.meta["gil"]["why"]


def test_other_values_of_lines_are_refused():
    with pytest.raises(pfd.BadOptionError, match="lines='grph' is not one of True, False, 'graph'"):
        pfd.record(lines="grph")


def test_a_function_without_counts_of_its_own_is_not_called_uncounted():
    @tf.function
    def cheap(x):
        return tf.reshape(x, [1])

    @tf.function
    def counted(x):
        return tf.sin(x)

    with pfd.record(gil=False, lines="graph") as recording:
        cheap(X)
        counted(X)
    assert "or the profiler leaves it out" in str(recording.source("*cheap"))
