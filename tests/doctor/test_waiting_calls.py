"""Bodies of a map that wait one after the other are pasted with parallel calls; those that share something are not."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written

MS = 1_000_000
HEAD = "import time, requests, queue, threading\nimport numpy as np\nimport tensorflow as tf\n"
SLEEPS = "time.sleep(0.01)\n    return np.float32(i)"
MAP = "ds.map(lambda i: tf.numpy_function(bad, [i], tf.float32))"
PARALLEL = "ds.map(lambda i: tf.numpy_function(bad, [i], tf.float32), num_parallel_calls=tf.data.AUTOTUNE)"


def recording(
    tmp_path, *, body=SLEEPS, above="", line=MAP, name="<lambda>", calls=120, took_ns=10 * MS, held_ns=0, cpu_ns=0,
    idle_ns=0, parallel=None, others=0.0, end_ns=0,
):  # fmt: skip
    """A map of which each call took so long, with such a pause behind it."""
    source = f"{HEAD}{above}def bad(i):\n    {body}\nds = tf.data.Dataset.range({calls})\nds = {line}.batch(10)\n"
    at = source.split("\n").index("def bad(i):") + 1
    site = source.count("\n")
    period = took_ns + idle_ns
    rows = [call(i, start_ns=i * period, end_ns=i * period + took_ns, cpu_ns=cpu_ns) for i in range(1, calls + 1)]
    gil = [
        {"call": i, "grade": "native", "wait_ns": 0, "held_ns": held_ns, "released_ns": took_ns - held_ns,
         "reacquire_ns": 0, "blame": "[]"} for i in range(1, calls + 1)
    ]  # fmt: skip
    stages = [{"kind": "Batch", "parallel": None, "batch": 10, "tokens": []},
              {"kind": "Map", "parallel": parallel, "batch": None, "tokens": ["pyfunc_1"]}]  # fmt: skip
    entry = {"site": [FILE, site + 1, "train"], "pool": None, "iterators": 1, "taken": 0, "first_ns": 0, "steps": 0,
             "step_ns": 0, "wait_ns": 0, "longest_ns": 0, "stages": stages}  # fmt: skip
    function = {"id": 1, "name": name, "kind": "tf.data", "file": FILE, "line": site, "origin": "user"}
    path = written(
        tmp_path / "a.pfrec", source,
        {"cores": 4, "gil": {"grade": "native", "why": "a test"}, "end_ns": end_ns or (calls + 2) * period,
         "clock": {"monotonic_ns": 0, "wall_ns": 0}, "inputs": [entry], "others": others},
        function=[function], call=rows, gil=gil,
        node=[node(function=1, line=at, stack=1)],
        stack=[{"id": 1, "frames": json.dumps([[FILE, site, "<module>", ""]])}],
    )  # fmt: skip
    return source, path


@pytest.mark.parametrize(
    "program",
    [
        {},
        {"others": 0.9},
        {"parallel": 1},
        {"body": "return np.frombuffer(requests.get(URLS[i]).content)", "above": 'URLS = ["http://a"] * 120\n'},
        {"body": "time.sleep(0.01)\n    return np.random.rand()"},
        {"line": "ds.filter(lambda i: i > 2).map(lambda i: tf.numpy_function(bad, [i], tf.float32))"},
        {"cpu_ns": 2 * MS, "held_ns": 2 * MS},
    ],
)
def test_calls_that_wait_one_after_the_other_are_pasted_side_by_side(tmp_path, program):
    source, path = recording(tmp_path, **program)
    (found,) = Recording(path).findings(select=["parallel-calls", "doctor-trouble"])
    assert "the 120 calls of bad ran one after the other for 1.2 s" in found.message
    assert pasted(source, found.fix) == source.replace(MAP[2:], PARALLEL[2:])


@pytest.mark.parametrize(
    "program",
    [
        {"calls": 40},  # 0.4 s in all
        {"end_ns": 60_000 * MS},  # of a minute
        {"parallel": 4},
        {"parallel": -1},
        {"cpu_ns": 8 * MS},  # NumPy works without the GIL
        {"held_ns": 9 * MS},
        {"cpu_ns": 2 * MS, "others": 0.8},  # it has to share its core
        {"idle_ns": 5 * MS},  # the loop is slower
        {"body": "return q.get()", "above": "q = queue.Queue()\n"},
        {
            "body": f"with lock:\n        {SLEEPS.replace(chr(10), chr(10) + '    ')}",
            "above": "lock = threading.Lock()\n",
        },
        {"body": "seen.append(i)\n    time.sleep(0.01)\n    return np.float32(i)", "above": "seen = []\n"},
        {"body": "return session.get(i).content", "above": "session = requests.Session()\n"},
        {"body": "time.sleep(0.01)\n    return np.random.rand()", "above": "np.random.seed(0)\n"},
        {"body": "time.sleep(0.01)\n    return db.read(i)", "above": "import db\n"},
        {"line": "ds.map(lambda i: i + 1).filter(lambda i: tf.numpy_function(bad, [i], tf.bool))"},
    ],
)
def test_others_are_left_alone(tmp_path, program):
    assert not Recording(recording(tmp_path, **program)[1]).findings(select=["parallel-calls", "doctor-trouble"])
