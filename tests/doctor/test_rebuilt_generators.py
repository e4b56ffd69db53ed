"""Datasets of from_generator that a loop builds again: told with what TensorFlow keeps, and built once by the paste."""

from __future__ import annotations

import textwrap

import pytest

from tests.doctor.pasting import pasted

HEAD = """
import functools
import numpy as np
import tensorflow as tf
spec = tf.TensorSpec((3,), tf.float32)
table = np.arange(60, dtype=np.float32).reshape(20, 3)
seen = []
"""
LARGE = """
def rows_of(fold):
    rows = np.zeros((300_000, 3), np.float32)
    rows[:4] = fold
    return rows
"""
BUILT_AGAIN = {
    "a_function_of_the_epoch": """
        def make(epoch, scale=2.0):
            def gen():
                for row in table[epoch : epoch + 3]:
                    yield row * scale
            return tf.data.Dataset.from_generator(gen, output_signature=spec).batch(2)
        for epoch in range(12):
            for batch in make(epoch, scale=3.0):
                seen.append(batch.numpy())
    """,
    "a_def_in_the_loop": """
        for fold in range(12):
            part = table[fold:fold + 2]
            def gen():
                for row in part:
                    yield row
            ds = tf.data.Dataset.from_generator(gen, output_signature=spec)
            ds = ds.batch(2)
            for batch in ds:
                seen.append(batch.numpy())
    """,
    "a_lambda_in_two_loops": """
        for epoch in range(3):
            for start in range(4):
                for row in tf.data.Dataset.from_generator(lambda: iter(table[start:start + 2]), output_signature=spec):
                    seen.append(row.numpy() + epoch)
    """,
    "large_arrays_of_two_datasets_a_fold": LARGE + """
        def build(rows, size: int = 2) -> tf.data.Dataset:
            def generator():
                '''All rows.'''
                for row in rows[:4]:
                    yield row
            return tf.data.Dataset.from_generator(generator, output_signature=spec).batch(size)
        for fold in range(4):
            train, test = rows_of(fold), rows_of(-fold)
            for batch in build(train):
                seen.append(batch.numpy())
            for batch in build(test, size=4):
                seen.append(batch.numpy())
    """,
    "a_partial_with_a_large_array": LARGE + """
        def each(rows, count):
            for row in rows[:count]:
                yield row
        def train():
            for fold in range(4):
                rows = rows_of(fold)
                data = tf.data.Dataset.from_generator(functools.partial(each, rows, count=3), output_signature=spec)
                for row in data:
                    seen.append(row.numpy())
        train()
    """,
    "an_object_with_a_large_array": LARGE + """
        class Rows:
            def __init__(self, rows):
                self.rows = rows
            def __call__(self):
                yield from self.rows[:3]
        def build(rows):
            return tf.data.Dataset.from_generator(Rows(rows), output_signature=spec).prefetch(1)
        for fold in range(4):
            data = build(rows_of(fold))
            for row in data:
                seen.append(row.numpy())
    """,
}  # fmt: skip
LEFT_ALONE = {
    "once": """
        def gen():
            yield from table
        ds = tf.data.Dataset.from_generator(gen, output_signature=spec)
        for epoch in range(12):
            for row in ds:
                seen.append(row.numpy())
    """,
    "three_small_ones": """
        for fold in range(3):
            for row in tf.data.Dataset.from_generator(lambda: iter(table[fold:]), output_signature=spec):
                seen.append(row.numpy())
    """,
    "one_large_array_for_all": LARGE + """
        def build(rows, first):
            return tf.data.Dataset.from_generator(lambda: iter(rows[first:4]), output_signature=spec)
        rows = rows_of(1)
        for first in range(4):
            for row in build(rows, first):
                seen.append(row.numpy())
    """,
    "large_arrays_in_tensors": LARGE + """
        for fold in range(4):
            for row in tf.data.Dataset.from_tensor_slices(rows_of(fold)).take(3):
                seen.append(row.numpy())
    """,
    "from_four_lines": LARGE + """
        def build(rows):
            return tf.data.Dataset.from_generator(lambda: iter(rows[:3]), output_signature=spec)
        train = build(rows_of(1))
        test = build(rows_of(2))
        more = build(rows_of(3))
        last = build(rows_of(4))
        for row in train.concatenate(test).concatenate(more).concatenate(last):
            seen.append(row.numpy())
    """,
}  # fmt: skip


def program(text: str) -> str:
    head, _, rest = text.rpartition(LARGE) if LARGE in text else ("", "", text)
    del head
    return HEAD + (LARGE if LARGE in text else "") + textwrap.dedent(rest)


def recorded(tmp_path, text: str, name: str = "program.py"):
    """Findings of a program, and what it saw."""
    import pyfunc_debug as pfd

    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    names: dict = {"__name__": "program"}
    with pfd.record(tmp_path / f"{name}.pfrec", gil=False) as recording:
        exec(compile(text, str(path), "exec"), names)
    found = recording.findings(select=["dataset-in-loop", "memory", "doctor-trouble"])
    recording.close()
    return found, names["seen"]


@pytest.mark.parametrize("name", BUILT_AGAIN)
def test_it_is_told_and_the_paste_builds_it_once(tmp_path, name):
    text = program(BUILT_AGAIN[name])
    found, seen = recorded(tmp_path, text)
    assert {one.rule for one in found} == {"dataset-in-loop"}
    assert ("MB more each time" in found[0].message) == (LARGE in text)
    after, left = pasted(text, found[0].fix), len(found)
    found, now = recorded(tmp_path, after, "after.py")
    assert [one.tolist() for one in now] == [one.tolist() for one in seen]
    assert not found, left


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_does_not_grow_is_left_alone(tmp_path, name):
    assert recorded(tmp_path, program(LEFT_ALONE[name]))[0] == []


KEPT = {
    "in_a_list": """
        kept = []
        for fold in range(12):
            ds = tf.data.Dataset.from_generator(lambda: iter(table[fold:fold + 1]), output_signature=spec)
            kept.append(ds)
        seen.extend(row.numpy() for one in kept for row in one)
    """,
    "read_behind_the_loop": """
        for fold in range(12):
            ds = tf.data.Dataset.from_generator(lambda: iter(table[fold:fold + 1]), output_signature=spec)
        seen.extend(row.numpy() for row in ds)
    """,
    "size_of_another": """
        def make(first, count):
            def gen():
                yield from table[first:first + count]
            return tf.data.Dataset.from_generator(gen, output_signature=spec).batch(count)
        for count in range(1, 13):
            seen.extend(batch.numpy() for batch in make(1, count))
    """,
}


@pytest.mark.parametrize("name", KEPT)
def test_what_needs_a_dataset_of_its_own_gets_no_paste(tmp_path, name):
    found, _ = recorded(tmp_path, program(KEPT[name]))
    assert len(found) == 1
    assert not found[0].fix.startswith(("Put", "Replace"))
