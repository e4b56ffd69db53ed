"""Each validation fills the buffer of `shuffle` again: counted, not timed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.refilled_buffers import refilled

PROGRAM = """
import keras
import numpy as np
import tensorflow as tf
def drawn():
    while True:
        yield np.ones(1, np.float32), np.ones(1, np.float32)
data = tf.data.Dataset.from_generator(drawn, output_signature=(tf.TensorSpec((1,)), tf.TensorSpec((1,))))
held = data.shuffle(SIZE, reshuffle_each_iteration=False).batch(5)
model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data.batch(5), epochs=4, steps_per_epoch=2, validation_data=held, validation_steps=2, verbose=0)
"""


@pytest.mark.parametrize("size", [100, 1])
def test_what_the_buffers_took_is_counted_and_validation_is_pasted_without_them(size, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("SIZE", str(size)))
    with pfd.record(gil=False) as recording:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    facts = Facts(recording._reader)
    (slow,) = [node for node in facts.nodes.values() if node.body == "drawn"]
    found = refilled(facts, SimpleNamespace(site=SimpleNamespace(file=str(path), line=12)), slow)
    if size == 1:
        assert found is None
        return
    assert found is not None
    said, fix = found
    assert said.startswith("4 passes each filled the buffer of shuffle(100) before their first batch: 400 of the ")
    assert fix == "Replace program.py:9 by:\nheld = data.batch(5)"
    assert refilled(facts, SimpleNamespace(site=None), slow) is None
