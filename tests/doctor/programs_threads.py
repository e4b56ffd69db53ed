"""More programs that do not fail: as `programs_silent`, after threads of users that were written down one by one."""

from __future__ import annotations

import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- trace-only: what Python keeps ------------------------------------------------------------------------------------


@triggers("trace-only", says="tf.py_function(lambda loss: self.history.append(loss), [loss], [])", pastes=True)
def a_history_of_an_object():
    class Tracker:
        def __init__(self):
            self.history = []

        @tf.function
        def step(self, x):
            loss = x * 2
            self.history.append(loss)
            return loss

    tracker = Tracker()
    for _ in range(5):
        tracker.step(tf.constant(1.0))
    tf.stack(tracker.history[1:])


@triggers("trace-only", says="[loss, scale], [])", pastes=True)
def a_history_by_names():
    class Tracker:
        def __init__(self):
            self.history = {"train": []}

        @tf.function
        def step(self, x, name):
            loss, scale = x * 2, x + 1
            self.history[name].append((loss, scale))
            return loss

    tracker = Tracker()
    for _ in range(5):
        tracker.step(tf.constant(1.0), "train")
    assert all(len(pair) == 2 for pair in tracker.history["train"])


@triggers("trace-only", says="return from step what line")
def a_history_of_dicts():
    history = []

    @tf.function
    def step(x):
        kept = {"loss": x * 2, "x": x}
        history.append(kept)
        return kept["loss"]

    for _ in range(5):
        step(tf.constant(1.0))


@near("trace-only")
def a_history_that_the_caller_keeps():
    class Tracker:
        def __init__(self):
            self.history = []

        @tf.function
        def step(self, x):
            return x * 2

    tracker = Tracker()
    for _ in range(5):
        tracker.history.append(tracker.step(tf.constant(1.0)))


@near("trace-only")
def a_history_that_a_body_keeps():
    class Tracker:
        def __init__(self):
            self.history = []

        @tf.function
        def step(self, x):
            loss = x * 2
            tf.py_function(lambda loss: self.history.append(loss), [loss], [])
            return loss

    tracker = Tracker()
    for _ in range(5):
        tracker.step(tf.constant(1.0))
