"""tf.data's debug mode: what a garbage collection takes from it, and what is said of calls that it hides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import forked
from tests.doctor.test_failures import apply

RECORD = ["-m", "pyfunc_debug", "record", "--overwrite", "-o", "run.pfrec"]
COLLECTED = """import gc
import tensorflow as tf

tf.data.experimental.enable_debug_mode()

def generator():
    yield 1
    yield 2

dataset = tf.data.Dataset.from_generator(generator, output_signature=tf.TensorSpec(shape=(), dtype=tf.int64))
iterator = iter(dataset)
print("first", next(iterator).numpy())
gc.collect()
print("second", next(iterator).numpy())
"""
ALONE = """import gc
import tensorflow as tf
from tensorflow.data.experimental import enable_debug_mode
def rows():
    yield [1.0]
    yield [2.0]
def main(debug=True):
    if debug:
        enable_debug_mode()
    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([1], tf.float32)).batch(1)
    for row in dataset:
        print("second" if row.numpy() == 2 else "first")
        gc.collect()
main()
"""
HEALTHY = """import tensorflow as tf
tf.data.experimental.enable_debug_mode()
def generator():
    yield 1
    yield 2
for x in tf.data.Dataset.from_generator(generator, output_signature=tf.TensorSpec(shape=(), dtype=tf.int64)):
    print("second" if x == 2 else "first")
"""


def ran(folder: Path) -> tuple[str, str]:
    """What the program printed on stdout and on stderr."""
    done = forked.run(*RECORD, "program.py", cwd=folder, env={**os.environ, "COLUMNS": "80"})
    return done.stdout, done.stderr


@pytest.mark.parametrize("source", [COLLECTED, ALONE], ids=["collected", "alone"])
def test_functions_that_a_garbage_collection_took_from_debug_mode_stay_without_it(source, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(source)
    out, said = ran(tmp_path)
    assert "second" not in out
    told = said[said.index("pyfunc-debug: program.py") :].split("\n\nname ")[0].rstrip("\n")
    assert "debug mode is on, in which Python runs the functions of from_generator" in " ".join(told.split())
    assert apply(told, program)
    out, said = ran(tmp_path)
    assert "second" in out
    assert "pyfunc-debug: program.py" not in said


def test_calls_that_debug_mode_hides_are_not_said_to_be_none(tmp_path):
    (tmp_path / "program.py").write_text(HEALTHY)
    out, said = ran(tmp_path)
    assert "second" in out
    assert "not seen in debug mode" in said
    assert "no calls recorded" not in said
    assert "in C++" not in said
    assert "never ran" not in said
