"""Work that is done again for equal inputs is told of with what a cache saves; work that differs is not."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import FILE, call, node, written

MS = 1_000_000
SOURCE = "def bad(x):\n    return x * 2\ndata = names.map(lambda x: tf.py_function(bad, [x], tf.float32))\n"


def found(tmp_path, keys, took_ms=100, source=SOURCE, gave=None, inputs=(), at_once=1):
    """One call a key, which its input's content goes by; what it gave goes by `gave`, else by the key."""
    calls, values = [], []
    for i, key in enumerate(keys, 1):
        turn = i // at_once
        calls.append(call(i, start_ns=turn * took_ms * MS, end_ns=(turn + 1) * took_ms * MS))
        for role, one in (("input", key), ("output", key if gave is None else gave(i))):
            digest = None if one is None else str(one).encode()
            values.append(
                {"call": i, "role": role, "position": 0, "path": "x", "dtype": "float32", "shape": "[2]", "text": "",
                 "note": "", "kept": "", "digest": digest}
            )  # fmt: skip
    stack = [{"id": 1, "frames": json.dumps([[FILE, 3, "<module>", ""]])}]
    meta = {"end_ns": (len(keys) + 2) * took_ms * MS, "clock": {"monotonic_ns": 0, "wall_ns": 0}, "inputs": [*inputs]}
    path = written(tmp_path / "a.pfrec", source, meta, node=[node(stack=1)], stack=stack, call=calls, value=values)
    return Recording(path).findings(select=["recomputed", "doctor-trouble"])


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ([*range(20)] * 3, "in 40 of 60 calls, and gave the same again: some 4.0 s of 6.2 s"),
        ([7] * 40, "in 39 of 40 calls"),
        ([one // 4 for one in range(100)], "in 75 of 100 calls"),
        ([*[None] * 10, *[1, 2] * 30], "in 58 of 60 calls"),  # what was not recorded is not counted
    ],
)
def test_what_a_cache_would_save(tmp_path, keys, says):
    (one,) = found(tmp_path, keys)
    assert (one.rule, one.severity, one.line) == ("recomputed", "note", 3)
    assert says in one.message
    assert one.fix.endswith(":\ndata = names.map(lambda x: tf.py_function(bad, [x], tf.float32)).cache()")


def stage(kind, tokens=(), batch=None):
    return {"kind": kind, "tokens": [*tokens], "parallel": None, "batch": batch}


@pytest.mark.parametrize(
    ("taken", "fix"),
    [
        (15, "tf.py_function(bad, [x], tf.float32)).take(20).cache().batch(4)"),
        (16, "or dataset.take(n).cache() for a part of it"),  # not as many in each pass
    ],
)
def test_a_cache_that_no_pass_filled(tmp_path, taken, fix):
    """It is there, so that another one would keep nothing either."""
    source = SOURCE.replace("tf.float32))", "tf.float32)).cache().batch(4)")
    stages = [stage("Batch", batch=4), stage("Cache"), stage("Map", ["pyfunc_1"])]
    loop = {"site": [FILE, 3, ""], "stages": stages, "iterators": 3, "taken": taken}
    (one,) = found(tmp_path, [*range(20)] * 3, source=source, inputs=[loop])
    assert "as no pass read its dataset to the end" in one.message
    assert one.fix.endswith(fix)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (range(60), {}),
        ([*range(50), *range(10)], {}),  # a few only
        ([*range(20)] * 3, {"took_ms": 10}),  # too short to matter
        ([*range(20)] * 3, {"gave": lambda i: i}),  # another result each time
        ([None] * 60, {}),
        ([*range(20)] * 3, {"at_once": 8}),  # 4 s of the calls, and half a second of the program
        ([*range(20)] * 3, {"source": SOURCE.replace("x * 2", "x * random.random()")}),
        ([*range(20)] * 3, {"source": SOURCE.replace("x * 2", "x * time.time()")}),
    ],
)
def test_what_it_would_not(tmp_path, keys, options):
    assert found(tmp_path, keys, **options) == []
