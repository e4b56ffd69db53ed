"""Bodies that need no Python are told with the lines that do without; the pasted program computes the same."""

from __future__ import annotations

import ast
import json
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.api import graph_code_sample, graph_timing, graph_trial
from pyfunc_debug.api.graph_timing import Measured
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.doctor.rules import needless_python
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written
from tests.limits import HANG_S

MS = 1_000_000
HEAD = "import numpy as np\nimport tensorflow as tf\n\nrng = np.random.default_rng(0)\n\n"


def source_of(body, mapped="tf.py_function(scale, [x], tf.float32)"):
    """A file whose function `mapped` calls the body, with their lines."""
    text = f"{HEAD}{textwrap.dedent(body).strip()}\n\n\ndef mapped(x):\n    y = {mapped}\n    return y\n"
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines, 1) if "scale" in line or "lambda" in line)
    return text, first, len(lines) - 1


def finding(tmp_path, body, mapped="tf.py_function(scale, [x], tf.float32)", calls=400, took_ns=10 * MS):
    """What is said of so many calls of the body, in a program that does little else."""
    text, first, site = source_of(body, mapped)
    name = "mapped.<lambda>" if "lambda" in mapped else "scale"
    line = site if "lambda" in mapped else first
    kind = "numpy_function" if "numpy_function" in mapped else "py_function"
    rows = [call(i, start_ns=i * took_ns, end_ns=(i + 1) * took_ns) for i in range(1, calls + 1)]
    value = {
        "call": 1,
        "role": "input",
        "position": 0,
        "path": "x",
        "dtype": "float32",
        "shape": "[3]",
        "text": "x",
        "note": "",
        "kept": "",
    }
    path = written(
        tmp_path / "a.pfrec", text, meta={"end_ns": (calls + 2) * took_ns, "clock": {"monotonic_ns": 0, "wall_ns": 0}},
        function=[{"id": 1, "name": "mapped", "kind": "tf.data", "file": FILE, "line": site - 1, "origin": "user"}],
        stack=[{"id": 1, "frames": json.dumps([[FILE, site, "mapped", ""]])}],
        node=[node(1, name, line, function=1, stack=1, kind=kind)], call=rows, value=[value],
    )  # fmt: skip
    recording = Recording(path)
    found = recording.findings(select=["graduate", "tiny-calls"])
    recording.close()
    return text, found


def results(text):
    names: dict = {}
    exec(compile(text, "pasted", "exec"), names)
    given = tf.constant([1.0, 2.0, 4.0])
    graph = tf.function(names["mapped"]).get_concrete_function(given)
    return np.asarray(graph(given)), [one.type for one in graph.graph.get_operations()]


OPS = "def scale(x):\n    y = x - tf.reduce_mean(x)\n    return y / (tf.math.reduce_std(y) + 1e-6)"
NUMPY = "def scale(x):\n    y = x - np.mean(x)\n    return np.sqrt(np.abs(y))"


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        ("tf.random.uniform([3])", True),
        ("tf.image.random_brightness(tf.ones([2, 2, 3]), 0.2)[0, 0]", True),
        ("np.random.uniform()", False),
        ("tf.random.set_seed(1) or 1.0", False),
    ],
)
def test_a_body_of_ops_that_draw_numbers_needs_no_python_and_is_not_tried(tmp_path, drawn, told):
    text, found = finding(tmp_path, f"def scale(x):\n    return x * {drawn}")
    assert [one.rule for one in found] == ["graduate"] * told
    for one in found:
        assert "it was not tried: scale draws numbers, other ones in each run" in one.evidence[1]
        assert one.confidence == "likely"
        names: dict = {}
        exec(compile(pasted(text, one.fix), "pasted", "exec"), names)
        graph = tf.function(names["mapped"]).get_concrete_function(tf.ones([3]))
        first, second = (np.asarray(graph(tf.ones([3]))) for _ in range(2))  # of one graph: also where a seed is set
        assert first.shape == (3,)
        assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("body", "mapped"),
    [
        (OPS, "tf.py_function(scale, [x], tf.float32)"),
        (OPS, "tf.py_function(func=scale, inp=[x], Tout=[tf.float32])[0]"),
        ("scale = 2", "tf.py_function(lambda x: tf.nn.softmax(x), [x], tf.float32)"),
        (NUMPY, "tf.numpy_function(scale, [x], tf.float32)"),
    ],
)
@pytest.mark.parametrize(("calls", "took_ns", "rule"), [(400, 10 * MS, "graduate"), (4000, MS // 200, "tiny-calls")])
def test_the_paste_needs_no_python_and_gives_the_same(tmp_path, body, mapped, calls, took_ns, rule):
    text, (found,) = finding(tmp_path, body, mapped, calls, took_ns)
    assert (found.rule, found.confidence) == (rule, "likely")
    assert rule != "graduate" or "what the ops take is not measured" in found.evidence[1]
    before, ops = results(text)
    after, others = results(pasted(text, found.fix))
    assert {"EagerPyFunc", "PyFunc"} & {*ops}
    assert not {"EagerPyFunc", "PyFunc"} & {*others}
    np.testing.assert_allclose(before, after, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "calls", "took_ns"),
    [
        ("def scale(x):\n    return x * float(rng.normal())", 400, 10 * MS),
        ("def scale(x):\n    print(x)\n    return x * 2", 400, 10 * MS),
        ("def scale(x):\n    return tf.constant(x.numpy().tolist())", 400, 10 * MS),
        ("def scale(x):\n    return x * 2 if x[0] > 0 else x", 400, 10 * MS),
        ("def scale(x):\n    return tf.reshape(x, [x.shape[0], 1])", 400, 10 * MS),
        ("table = [1.0]\ndef scale(x):\n    return x * table[0]", 400, 10 * MS),
        ("import time\ndef scale(x):\n    time.sleep(0.02)\n    return np.square(x)", 400, 10 * MS),
        ("from time import time\ndef scale(x):\n    return np.square(x) + time()", 400, 10 * MS),
        ("def scale(x):\n    return np.square(x) + np.load('mean.npy')", 400, 10 * MS),
        (OPS, 100, 10 * MS),  # few calls
        (OPS, 400, MS),  # 0.4 s in all
    ],
)
def test_a_body_that_needs_python_or_costs_little_is_left_alone(tmp_path, body, calls, took_ns):
    assert [one.message for one in finding(tmp_path, body, calls=calls, took_ns=took_ns)[1]] == []


def centred(x):
    y = x - np.mean(x)
    return np.sqrt(np.abs(y))


def softened(x):
    return tf.nn.softmax(x) * tf.reduce_sum(x)


ROWS = np.random.default_rng(0).random((240, 5), np.float32)


def in_numpy(rows):
    for _ in rows.map(lambda x: tf.numpy_function(centred, [x], tf.float32)):
        pass


def in_ops(rows):
    for _ in rows.map(lambda x: tf.py_function(softened, [x], tf.float32)):
        pass


@pytest.fixture
def tried(monkeypatch):
    """What is said of a program whose calls all cost enough, in which graph code is so many times as fast.

    It is tried for as long as it takes: on a busy machine two seconds are over before all calls are.
    """
    monkeypatch.setattr(graph_code_sample, "BUDGET_NS", HANG_S * 1_000_000_000)
    monkeypatch.setattr(needless_python, "_TOTAL_NS", 0)
    monkeypatch.setattr(needless_python, "SHARE", 0.0)
    monkeypatch.setattr(needless_python, "MANY_CALLS", 1_000_000)  # one finding, whether they are tiny or not

    def found(program, ratio=4.1, won=1.0, rows=ROWS, **options):
        monkeypatch.setattr(graph_trial, "measure_alone", lambda *_: Measured(ratio, 1.0, won))
        with pfd.record(**options) as recording:
            program(tf.data.Dataset.from_tensor_slices(rows))
        findings = recording.findings(select=["graduate", "doctor-trouble"])
        recording.close()
        return findings

    return found


@pytest.mark.parametrize(
    ("program", "says", "text"),
    [
        (in_numpy, "with changed inputs, x4.1 faster alone", "tf.sqrt(tf.abs(y))"),
        (in_ops, "with changed inputs, gradients equal, x4.1 faster alone", "softened(x)):"),
    ],
)
def test_what_pays_was_tried_on_the_recorded_calls_as_the_recording_ended(tried, program, says, text):
    (found,) = tried(program, values="full")
    assert found.confidence == "proven"
    assert found.evidence[1].startswith("tried as the recording ended: same on 200 calls (")
    assert found.evidence[1].endswith(says)
    assert text in found.fix


@pytest.mark.parametrize("program", [in_numpy, in_ops])
def test_where_values_were_not_kept_it_was_tried_on_inputs_like_them(tried, program):
    (found,) = tried(program)
    assert found.confidence == "likely"
    assert "same on 50 inputs like those of recorded calls, whose values were not kept (" in found.evidence[1]


@pytest.mark.parametrize(("ratio", "won"), [(1.1, 1.0), (0.5, 0.0), (3.0, 0.6)])
def test_what_brings_no_time_is_not_told(tried, ratio, won):
    assert tried(in_ops, ratio, won) == []


def test_what_gives_something_else_is_not_told(tried, monkeypatch):
    monkeypatch.setattr(graph_trial.Trial, "_as_graph", lambda self, *given: [one + 1 for one in self._graph(*given)])
    assert tried(in_ops) == []


def test_what_cannot_be_tried_is_told_as_not_measured(tried):
    (found,) = tried(in_ops, values="none")
    assert "what the ops take is not measured" in found.evidence[1]


def test_nothing_is_tried_after_a_failure(tried, monkeypatch):
    monkeypatch.setattr(graph_timing, "_MOST", graph_timing._LEAST)  # the only one that is really timed

    def failing(rows):
        in_ops(rows)
        raise ValueError("the end")

    with pfd.record() as recording, pytest.raises(ValueError, match="the end"):
        failing(tf.data.Dataset.from_tensor_slices(ROWS))
    with pytest.raises(ValueError, match="the end"), pfd.record() as ended:
        failing(tf.data.Dataset.from_tensor_slices(ROWS))
    query = "SELECT count(*) AS many FROM notice WHERE rule = 'graph-code'"
    assert (recording.sql(query)[0]["many"], ended.sql(query)[0]["many"]) == (1, 0)
    recording.close()
    ended.close()


def test_random_numbers_are_drawn_on_as_if_nothing_had_been_tried(tried):
    np.random.seed(7)
    before = np.random.get_state()[1].tolist()
    assert tried(in_numpy)
    assert np.random.get_state()[1].tolist() == before


def test_of_an_import_of_several_modules_those_that_compute_are_there():
    tree = ast.parse(
        "import os, numpy as np, tensorflow as tf\nfrom math import pi\n\ndef f(x):\n    return np.sqrt(x) * pi\n"
    )
    made = graph_code_sample.made(tree, tree.body[-1], FILE)
    assert float(made(4.0)) == 2 * np.pi
    assert "os" not in made.__globals__
