"""Programs that run operations asynchronously: recorded although an output may fail or be in the making."""

from __future__ import annotations

import json

import pytest

from tests import forked

GLOBALLY = """
import tensorflow as tf
tf.config.experimental.set_synchronous_execution(False)
with start():
    for number in range(3):
        print(tf.py_function(lambda x: x + 1, [tf.constant(float(number))], tf.float32).numpy())
    print(tf.function(lambda x: tf.py_function(lambda x: x * 2, [x], tf.float32))(tf.constant(4.0)).numpy())
"""
IN_A_BODY = """
import tensorflow as tf
from tensorflow.python.eager import context, executor
kept = []
def fails(x):
    return tf.raw_ops.CheckNumerics(tensor=x / 0.0 * 0.0, message="boom")
def body(x):
    kept.append(executor.new_executor(enable_async=True))
    with context.executor_scope(kept[-1]):
        return fails(x) if x < 0 else x * 2
f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
with start():
    for number in (1.0, -1.0, 2.0, -2.0):
        try:
            print(f(tf.constant(number)).numpy())
        except Exception as error:
            print(type(error).__name__)
"""
STARTS = {
    "C": "def start():\n    import pyfunc_debug as pfd\n    return pfd.record(path, values=values)",
}
STARTS["Python"] = STARTS["C"].replace(
    "    import pyf", "    sys.modules['pyfunc_debug.recorder._hot'] = None\n    import pyf"
)
EACH = """
import json, os, sys, warnings
import tensorflow as tf
warnings.simplefilter("ignore")
for name, program, path, values in json.load(sys.stdin):
    print(name, flush=True)
    child = os.fork()
    if not child:
        exec(program, {"path": path, "values": values, "sys": sys})
        sys.stdout.flush()
        os._exit(0)  # TensorFlow itself may hang when it ends asynchronous executors
    assert os.waitpid(child, 0)[1] == 0
"""
PRINTED = {
    "globally": ["1.0", "2.0", "3.0", "8.0"],
    "in a body": ["2.0", "InvalidArgumentError", "4.0", "InvalidArgumentError"],
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each program printed: in a process of its own, forked from one that has imported TensorFlow only."""
    folder = tmp_path_factory.mktemp("recordings")
    programs = [
        (f"{way} {values} {where}", f"{STARTS[way]}\n{program}", str(folder / f"{way}-{values}-{where}.pfrec"), values)
        for way in STARTS
        for values in ("shape", "summary")
        for where, program in (("globally", GLOBALLY), ("in a body", IN_A_BODY))
    ]
    done = forked.run("-c", EACH, input=json.dumps(programs))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith(tuple(STARTS)):
            lines = found[line] = []
        else:
            lines.append(line)
    return found


@pytest.mark.parametrize("where", PRINTED)
@pytest.mark.parametrize("values", ["shape", "summary"])
@pytest.mark.parametrize("way", STARTS)
def test_the_program_goes_on(printed, way, values, where):
    assert printed[f"{way} {values} {where}"] == PRINTED[where]
