"""Programs that run operations asynchronously: recorded although an output may fail or be in the making."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.limits import HANG_S

GLOBALLY = """
import sys
import tensorflow as tf
tf.config.experimental.set_synchronous_execution(False)
with start():
    for number in range(3):
        print(tf.py_function(lambda x: x + 1, [tf.constant(float(number))], tf.float32).numpy())
    print(tf.function(lambda x: tf.py_function(lambda x: x * 2, [x], tf.float32))(tf.constant(4.0)).numpy())
"""
IN_A_BODY = """
import sys
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
END = "sys.stdout.flush()\nimport os\nos._exit(0)"  # TensorFlow itself may hang when it ends asynchronous executors
STARTS = {
    "C": "def start():\n    import pyfunc_debug as pfd\n    return pfd.record(sys.argv[1], values=sys.argv[2])",
}
STARTS["Python"] = STARTS["C"].replace(
    "    import pyf", "    sys.modules['pyfunc_debug.recorder._hot'] = None\n    import pyf"
)


def run(program: str, way: str, path: str, values: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{STARTS[way]}\n{program}{END}", path, values],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("values", ["shape", "summary"])
@pytest.mark.parametrize("way", ["C", "Python"])
def test_the_program_goes_on(tf, tmp_path, way, values):
    assert run(GLOBALLY, way, str(tmp_path / "a.pfrec"), values) == ["1.0", "2.0", "3.0", "8.0"]
    printed = run(IN_A_BODY, way, str(tmp_path / "b.pfrec"), values)
    assert printed == ["2.0", "InvalidArgumentError", "4.0", "InvalidArgumentError"]
