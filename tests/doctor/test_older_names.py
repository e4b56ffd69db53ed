"""Pastes for a file whose `tf` is tensorflow.compat.v1 have names that it has."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import tensorflow as tf

import pyfunc_debug
from pyfunc_debug.doctor.failures.pastes.older_names import LACKING, OTHER, RENAMED, older
from pyfunc_debug.doctor.failures.reading.source import parsed
from tests.doctor.pasting import pasted, run

DOCTOR = Path(pyfunc_debug.__file__).parent / "doctor"
_NAMED = re.compile(r"(?:\btf|\{tf\})\.([a-z]\w*(?:\.\w+)*)|_op\(\s*f?\"([a-z][\w.]*\w)\"")
EXPORT = """
import numpy as np
import IMPORTED
def order(x):
    x = np.where(x > 0, x, 0.0)
    return np.argsort(x, axis=-1)[:, :2].astype(np.int32)
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32, (2, 4))
    y = tf.py_func(order, [x], tf.int32)
    y.set_shape((2, 2))
    out = tf.identity(y, name="out")
    result = session.run(out, {x: [[3.0, 1.0, 2.0, 5.0], [4.0, 3.0, 2.0, 1.0]]}).tolist()
    const = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["out"])
    ops = [one.op for one in const.node]
"""


def _has(module: object, name: str) -> bool:
    try:
        functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return False
    return True


def test_names_that_are_pasted_and_not_in_the_older_module_are_all_known():
    text = "\n".join(one.read_text() for one in DOCTOR.rglob("*.py"))
    names = {first or second for first, second in _NAMED.findall(text)}
    new = [one for one in names if _has(tf, one) and not _has(tf.compat.v1, one)]
    assert len(names) > 100
    assert [one for one in new if not any(f"{one}.".startswith(f"{each}.") for each in (*LACKING, *RENAMED))] == []
    assert all(_has(tf.compat.v1.compat.v2, one) for one in (*LACKING, *OTHER))
    assert all(_has(tf.compat.v1, one) for one in RENAMED.values())


def test_only_names_of_the_older_module_change_and_the_users_own_stay():
    old, new = parsed("import tensorflow.compat.v1 as tf"), parsed("import tensorflow as tf")
    lines = ["y = tf.experimental.numpy.diff(x)", "z = tf.where(x > 0, x, 0.0)"]
    assert older(new, lines, []) == tuple(lines)
    assert older(old, lines, []) == (
        "y = tf.compat.v2.experimental.numpy.diff(x)", "z = tf.compat.v2.where(x > 0, x, 0.0)",
    )  # fmt: skip
    assert older(old, lines, ["z = tf.where(ok, x, y)"])[1] == lines[1]
    assert older(old, ["tf.random.set_seed(1)", "tf.where_v2(a, b, c)"], []) == (
        "tf.set_random_seed(1)", "tf.where_v2(a, b, c)",
    )  # fmt: skip


@pytest.mark.parametrize("imported", ["tensorflow.compat.v1 as tf", "tensorflow.compat.v1 as v1"])
def test_the_paste_for_a_graph_that_is_frozen_runs_and_the_graph_has_no_py_func(tmp_path, imported):
    path = tmp_path / f"frozen_{imported.split()[-1]}.py"
    text = EXPORT.replace("IMPORTED", imported)
    path.write_text(text if imported.endswith("tf") else text.replace("tf.", "v1."))
    names: dict[str, object] = {}
    error, _, recording = run(path, names)
    assert error is None
    before = names["result"]
    assert "PyFunc" in names["ops"]
    (fix,) = [one.fix for one in recording.findings() if one.rule == "serialization"]
    path.write_text(pasted(path.read_text(), fix))
    error, _, _ = run(path, names)
    assert error is None, path.read_text()
    assert names["result"] == before
    assert "PyFunc" not in names["ops"]
