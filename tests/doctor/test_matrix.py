"""The matrices: that their programs and their truths run, and that they tell a right paste from a wrong one."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests import forked
from tests.doctor.matrix import engine
from tests.doctor.pasting import pasted, pastes

SAMPLE = {
    "python": ("range_of_tensor/function", "np_pad/map", "all_below/layer"),
    "steps": ("loss_outside_tape/", "losses_appended_numpy/"),
    "keras": ("loss_np_square/",),
    "data": ("string_split_python/", "np_random_noise_array/"),
}
"""Of each matrix a few, to keep them from rotting. All of them are run by hand."""


ROOT = Path(__file__).parents[2]
VERDICTS = (
    ("result = 1.0", "result = 1.0", "runs"),
    ("result = 1.0", "result = 2.0", "silent"),
    ("raise ValueError", "result = 1.0", "no paste"),
    ("result = 1.0", "raise ValueError", "piece fails"),
    ("import os\nos._exit(3)", "result = 1.0", "no paste"),
    (
        "import tensorflow as tf\nds = tf.data.Dataset.range(3).batch(2)\nresult = ds[1]",
        "import tensorflow as tf\nresult = tf.constant([0, 1], tf.int64)",
        "WRONG",
    ),
)
ASKED = """
import json, sys
from tests.doctor.matrix import engine
engine.warm()
made = [engine.Program("piece", "", text, truth, 0) for text, truth in json.load(sys.stdin)]
print(json.dumps([engine.outcome(one).verdict for one in made]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_few_programs_of_each_matrix_are_mended(name):
    # A process of their own: a child of one that has run TensorFlow's threads waits for them for ever.
    only = "|".join(f"^{one}$" for one in SAMPLE[name])
    ran = forked.run("-m", "tests.doctor.matrix", name, "--only", only, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    verdicts = ast.literal_eval(ran.stdout.splitlines()[-1].partition(" of ")[0])
    assert sum(verdicts.values()) == len(SAMPLE[name])
    assert set(verdicts) <= {engine.OK, engine.RUNS}, ran.stdout
    assert len({one.piece for one in engine.programs(name)}) >= 40


@pytest.mark.slow
def test_the_verdict_is_what_became_of_the_program():
    asked = json.dumps([(text, truth) for text, truth, _ in VERDICTS])
    ran = forked.run("-c", ASKED, cwd=ROOT, input=asked)
    assert json.loads(ran.stdout) == [verdict for _, _, verdict in VERDICTS], ran.stderr


@pytest.mark.parametrize(
    ("wanted", "given", "same"),
    [
        (1.0, np.float32(1.0), True), (1.0, 1, False), (2, np.int64(2), True), ("a", np.array(b"a", object), True),
        ([1.0, 2.0], np.float32([1, 2]), True), (np.float32([1]), np.float64([1]), False), ({"a": 1}, {"b": 1}, False),
        (np.float32([[1]]), np.float32([1]), False), (None, None, True), (None, 0, False), ([1], [1, 2], False),
        (np.array(True), np.array(1), False), (np.float32([np.nan]), np.float32([np.nan]), True),
    ],
)  # fmt: skip
def test_results_differ_by_value_dtype_shape_and_structure(wanted, given, same):
    assert (engine.differs(wanted, engine.plain(given)) is None) == same


def test_float32_may_stand_for_float64_where_that_is_asked():
    assert engine.differs(np.float64([0.1]), np.float32([0.1]), narrow=True) is None
    assert engine.differs(np.float64([0.1]), np.float32([0.2]), narrow=True) is not None
    assert engine.plain({"a": (tf.constant([1]), 2)}) == {"a": [np.array([1]), 2]}


def test_what_is_printed_is_pasted_as_it_stands():
    told = "pyfunc-debug: a.py:2: why\n  Replace lines a.py:2 to 3 by:\n    x\n    y\n    z"
    assert pasted("1\n2\n3\n4", told) == "1\n    x\n    y\n    z\n4"
    assert pasted("1\n2", "Put above a.py:2:\nx\n") == "1\nx\n2"
    assert not pastes("pyfunc-debug: a.py:2: Replace it by something else")
