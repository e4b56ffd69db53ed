"""A loop of the user's own over data that never end is told while it goes on, and to who interrupts it."""

from __future__ import annotations

import contextlib
import sys
import weakref

import pytest

from pyfunc_debug.doctor.failures.datasets import endless_loops
from tests.doctor.pasting import pasted, pastes
from tests.doctor.test_endless_epochs import interrupted

HEAD = """import numpy as np
import tensorflow as tf
from tensorflow.keras.preprocessing.image import ImageDataGenerator
images, labels = np.zeros((10, 8, 8, 3), "float32"), np.arange(10)
datagen = ImageDataGenerator(horizontal_flip=True)
gen = datagen.flow(images, labels, batch_size=4)
seen = []
def take(x):
    seen.append(x)
    if len(seen) > 50:
        interrupt()
"""
NAMED = """
for x, y in gen:
    take(x)
"""
COUNTED = """
for i, (x, y) in enumerate(gen):
    take(x)
"""
CALLED = """
def train():
    for epoch in range(2):
        for x, y in datagen.flow(images, labels, batch_size=4):
            for each in x:
                take(each[0])
                break
train()
"""
TWO = """
for (x, aux), y in datagen.flow((images, [labels]), labels, batch_size=4):
    take(x)
"""
WHOLE = """
for batch in gen:
    take(batch[0])
"""


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "source", [NAMED, COUNTED, CALLED, WHOLE, TWO], ids=["named", "counted", "called", "whole", "two"]
)
def test_who_interrupts_a_loop_over_keras_images_gets_one_that_ends(source, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + source)
    told, recording = interrupted(path, {"interrupt": interrupt})
    assert "this loop never ends" in " ".join(told.split())
    assert [one.rule for one in recording.findings() if one.severity == "error"] == ["endless-epoch"]
    assert pastes(told)
    path.write_text(pasted(path.read_text(), told))
    names = {"interrupt": interrupt}
    told, _ = interrupted(path, names)
    assert told == ""
    assert len(names["seen"]) == (6 if source == CALLED else 3)


def test_of_a_dataset_it_says_what_to_leave_out(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + "ds = tf.data.Dataset.range(3).repeat()\nfor x in ds:\n    take(x)\n")
    assert "Leave out .repeat(), or loop over ds.take(n)" in " ".join(
        interrupted(path, {"interrupt": interrupt})[0].split()
    )


LEFT = (
    "def enough(x):\n    if len(seen) > 60:\n        raise LookupError\n    take(x)\nfor x, y in gen:\n    enough(x)\n",
    "try:\n    for x, y in gen:\n        take(x)\nexcept LookupError:\n    pass\n",
    "for x, y in gen:\n    if len(seen) > 60:\n        break\n    take(x)\n",
    "def all():\n    for x, y in gen:\n        yield x\nfor x in all():\n    take(x)\n",
    "def all():\n    for x, y in gen:\n        take(x)\n        if len(seen) > 60:\n            return\nall()\n",
    "for x, y in gen:\n    if len(seen) > 60:\n        raise ValueError\n    take(x)\n",
    "for i in range(len(gen)):\n    take(gen[i])\n" * 20,
    "for x in tf.data.Dataset.range(99):\n    take(x)\n",
)


@pytest.mark.parametrize("source", LEFT)
def test_nothing_is_said_of_a_loop_that_may_end(source, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + source)
    assert interrupted(path, {"interrupt": interrupt})[0] == ""


@pytest.mark.parametrize(("source", "told"), [(NAMED, True), (LEFT[0], False)])
def test_it_is_known_while_it_goes_on(source, told, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD.replace("interrupt()", "look()") + source)
    found = []

    def look():
        found.append(endless_loops.going_on(sys._getframe(), lambda file, line: (file, line)))
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__", "look": look})
    assert (found[0] is not None) is told


class Thing:
    pass


def test_no_variable_of_a_function_that_runs_is_kept_by_a_look():
    def looked_at():
        thing = Thing()
        gone = weakref.ref(thing)
        for _ in range(1):
            endless_loops.going_on(sys._getframe(), lambda file, line: (file, line))
        del thing
        return gone() is None

    assert looked_at()
