"""Bodies that need no Python are told with the lines that do without; the pasted program computes the same."""

from __future__ import annotations

import json
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import FILE, call, node, pasted, written

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
        ("def scale(x):\n    return x + tf.random.normal([3])", 400, 10 * MS),
        ("import time\ndef scale(x):\n    time.sleep(0.02)\n    return np.square(x)", 400, 10 * MS),
        ("from time import time\ndef scale(x):\n    return np.square(x) + time()", 400, 10 * MS),
        ("def scale(x):\n    return np.square(x) + np.load('mean.npy')", 400, 10 * MS),
        (OPS, 100, 10 * MS),  # few calls
        (OPS, 400, MS),  # 0.4 s in all
    ],
)
def test_a_body_that_needs_python_or_costs_little_is_left_alone(tmp_path, body, calls, took_ns):
    assert [one.message for one in finding(tmp_path, body, calls=calls, took_ns=took_ns)[1]] == []
