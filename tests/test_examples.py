"""Every example in docs/reference.md runs as it stands, on one small program that has the names they use."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from docs import build

weight = tf.Variable(2.0)


def augment(x):
    if x < 0:
        raise ValueError("negative")
    return x * x


def load(x):
    return tf.ensure_shape(tf.py_function(augment, [x], tf.float32), [])


@tf.function
def train_step(batch, lr=0.1):
    with tf.GradientTape() as tape:
        loss = tf.py_function(augment, [weight * batch], tf.float32)
    weight.assign_sub(lr * 1e-3 * tape.gradient(loss, weight))
    return loss


def train(dataset):
    for element in dataset:
        train_step(element)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the examples call theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n" * 9))  # of pdb, where an example opens it
    source = tf.data.Dataset.from_tensor_slices(np.linspace(0, 1, 12, dtype=np.float32))
    dataset = source.map(load)
    batch = tf.constant(1.0)
    model = tf.keras.Sequential([tf.keras.layers.Input([1]), tf.keras.layers.Dense(1)])
    for path in ("before.pfrec", "after.pfrec", "train.pfrec"):
        with pfd.record(path, gil=False):
            train_step(batch)
    recording = pfd.record("program.pfrec", values="full", lines=True)
    with recording:
        for _ in range(12):
            train_step(batch)
        train(dataset)
        try:
            load(tf.constant(-1.0))
        except tf.errors.InvalidArgumentError as error:
            kept = error
    found = {"augment": augment, "batch": batch, "dataset": dataset, "kept": kept, "load": load, "model": model}
    found |= {"np": np, "pfd": pfd, "recording": recording, "source": source, "tf": tf}
    return found | {"train": train, "train_step": train_step}


def test_every_example_runs(names, capsys):
    failed = []
    examples = build.examples()
    assert len(examples) > 30
    for name, code in sorted(examples, key=lambda one: one[0] != "post_mortem"):  # before there is a newer recording
        scope = dict(names)
        if name == "record":
            Path("train.pfrec").unlink()
        if name.startswith("Job"):
            scope["job"] = pfd.open([names["recording"].path])
            Path("run").mkdir(exist_ok=True)
            shutil.copy(names["recording"].path, "run/main.pfrec")
        try:
            exec(compile(code, name, "exec"), scope)
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            for thing in scope.values():
                if isinstance(thing, pfd.Recording) and thing is not names["recording"]:
                    thing.close()
            for stop in pfd.breakpoints():
                stop.remove()
    assert not failed, "\n".join(failed)
