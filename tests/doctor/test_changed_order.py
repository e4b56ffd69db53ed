"""Another order in each pass is told where it matters, from what a body was given; else silence."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written
from tests.limits import HANG_S

ANY = "import tensorflow as tf\ndata = files.map(read, num_parallel_calls=4, deterministic=False)\n"
SEEDED = ANY + "tf.random.set_seed(1)\n"
OPTIONS = "tf.keras.utils.set_random_seed(1)\noptions = tf.data.Options()\noptions.deterministic = False\n"
STAGES = ("Map", "ParallelMap", "Range")
ZIPPED = ("Map", "Zip", "Range", "ParallelMap", "Range")


def found(tmp_path, passes, source=SEEDED, kinds=STAGES, parallel=None):
    """One call an element; an element is the contents of its inputs."""
    calls, values = [], []
    for number, element in enumerate((one for each in passes for one in each), 1):
        calls.append(call(number))
        for position, content in enumerate(element):
            values.append(
                {"call": number, "role": "input", "position": position, "path": "xy"[position], "dtype": "int64",
                 "shape": "[]", "text": f"int64 {content}", "note": "", "kept": "",
                 "digest": None if content == "?" else content.encode()}
            )  # fmt: skip
    stages = [
        {"kind": kind, "parallel": parallel if not place else None, "batch": None, "tokens": ["pyfunc_1"] * (not place)}
        for place, kind in enumerate(kinds)
    ]
    loop = {"site": [FILE, 5, "<module>"], "iterators": len(passes), "taken": 1, "empty": 0, "stages": stages}
    tables = {"node": [node()], "call": calls, "value": values}
    path = written(tmp_path / "a.pfrec", source, {"inputs": [loop]}, **tables)
    return Recording(path).findings(select=["changed-order", "doctor-trouble"])


@pytest.mark.parametrize(
    ("passes", "options", "severity", "says", "line"),
    [
        (("abc", "acb"), {}, "warning", "from element 2 on: deterministic=False hands them out as they get ready", 2),
        (("ab", "ab", "ba"), {"source": OPTIONS}, "warning", ". tf.keras.utils.set_random_seed makes random", 3),
        (
            (("a1", "b2"), ("b1", "a2")), {"source": ANY, "kinds": ZIPPED}, "error",
            "so that they got other partners", 2,
        ),
    ],
)  # fmt: skip
def test_it_is_told_with_both_calls_and_the_line(passes, options, severity, says, line, tmp_path):
    (one,) = found(tmp_path, passes, **options)
    assert (one.severity, one.line, len(one.calls)) == (severity, line, 2)
    assert says in one.message
    source = options.get("source", SEEDED)
    assert pasted(source, one.fix) == source.replace("False", "True")


@pytest.mark.parametrize(
    ("passes", "options"),
    [
        (("abc", "abc"), {}),
        (("abc", "acb"), {"source": ANY}),  # asked for, and nothing needs an order
        (("abc", "acb"), {"source": SEEDED.replace("False", "True")}),
        (("abc", "acb"), {"kinds": ("Map", "Shuffle", "ParallelMap", "Range")}),
        (("abc", "acb"), {"kinds": ("Map", "Range")}),
        (("abc", "acb"), {"parallel": 4}),  # its calls are no order
        (("abc", "abd"), {}),  # other elements
        (("abc", "ab"), {}),  # a pass that was left
        (("ab?", "ba?"), {}),  # not recorded
        (("abc", "acb"), {"source": SEEDED + ANY}),  # which of two it was is not known
        ((("a1", "b2"), ("b2", "a1")), {"source": ANY, "kinds": ZIPPED}),  # pairs stay
    ],
)
def test_else_there_is_silence(passes, options, tmp_path):
    assert found(tmp_path, passes, **options) == []


PROGRAM = f"""
import threading
import tensorflow as tf
out, first = threading.Event(), [0]
def read(x):
    if FORCED and x != first[0]:
        out.wait({HANG_S})  # until the other one has come out
    return x
def use(x, y):
    out.set()
    return x
options = tf.data.Options()
options.threading.private_threadpool_size = 4
images = tf.data.Dataset.range(2).map(
    lambda x: tf.numpy_function(read, [x], tf.int64), num_parallel_calls=2, deterministic=False)
pairs = tf.data.Dataset.zip((images, tf.data.Dataset.range(2))).with_options(options)
pairs = pairs.map(lambda x, y: tf.numpy_function(use, [x, y], tf.int64))
for first[0] in range(2):
    out.clear()
    list(pairs)
"""


def test_images_that_get_other_labels_in_each_pass_are_an_error_and_the_paste_keeps_the_pairs(tmp_path):
    path, told = tmp_path / "program.py", []
    path.write_text(PROGRAM)
    for forced in (True, False):
        with pfd.record(gil=False) as recording:
            exec(compile(path.read_text(), str(path), "exec"), {"FORCED": forced})
        told.append([one for one in recording.findings() if one.rule == "changed-order"])
        if forced:
            mended = pasted(path.read_text(), told[0][0].fix)
            path = tmp_path / "mended.py"  # TensorFlow remembers code by file and line
            path.write_text(mended)
    ((one,), after) = told
    assert (one.severity, one.line) == ("error", 15)
    assert "use got the elements of two passes in different orders, from element 1 on" in one.message
    assert "num_parallel_calls=2, deterministic=True)" in path.read_text()
    assert after == []
