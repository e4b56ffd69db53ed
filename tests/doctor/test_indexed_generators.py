"""A generator that makes each element by itself is pasted as a map that gives the same. Others are left alone."""

from __future__ import annotations

import ast
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators import indexed_generators
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, written

HEAD = """
import os
import numpy as np
import pandas as pd
import tensorflow as tf
"""
BY_INDEX = {
    "two_values_of_an_index": """
        def load(i):
            return np.full((2, 3), i) / 2, f"{i}.png"
        def gen():
            for i in range(5):
                image, name = load(i)
                yield image, i % 2
        ds = tf.data.Dataset.from_generator(
            gen,
            output_signature=(
                tf.TensorSpec((2, 3), tf.float32),
                tf.TensorSpec((), tf.int32),
            ),
        ).batch(2)
    """,
    "a_tuple_that_a_function_returns": """
        files = ["a", "bb", "ccc"]
        def load(name):
            return np.ones(len(name)), name
        def gen():
            '''Loads.'''
            for name in files:
                yield load(name)
        spec = (tf.TensorSpec((None,), tf.float32), tf.TensorSpec((), tf.string))
        ds = tf.data.Dataset.from_generator(gen, output_signature=spec)
    """,
    "one_value_old_style": """
        def load(i):
            return [i, i + 1]
        ds = tf.data.Dataset.from_generator(lambda: (load(i) for i in range(2, 8, 3)), tf.int64, [2])
    """,
    "names_and_labels_in_a_function": """
        def windows(names, labels, width=2):
            for number, (name, label) in enumerate(zip(names, labels)):
                vector = np.arange(width) + label
                vector = vector * number
                yield vector, name
        def dataset(names, labels):
            names = sorted(names)
            return tf.data.Dataset.from_generator(
                lambda: windows(names, labels, width=3), output_types=(tf.float64, tf.string)
            )
        ds = dataset(["b", "a", "c"], np.array([3, 1, 2]))
    """,
    "an_object_that_is_called": """
        class Source:
            def __init__(self, names):
                self.names = names
            def read(self, name):
                return {"x": np.ones(len(self.names)), "n": len(name)}
            def __len__(self):
                return len(self.names)
            def __call__(self):
                for i in range(len(self.names)):
                    yield self.read(self.names[i])
        spec = {"x": tf.TensorSpec((3,), tf.float32), "n": tf.TensorSpec((), tf.int32)}
        ds = tf.data.Dataset.from_generator(Source(["a", "bb", "ccc"]), output_signature=spec)
    """,
    "a_method": """
        class Source:
            def __init__(self, names):
                self.names = list(names)
            def samples(self):
                for name in self.names:
                    with open(os.devnull) as file:
                        text = file.read() + name
                    yield {"x": len(text), "y": text}, [len(name)] * 2
            def dataset(self):
                return tf.data.Dataset.from_generator(
                    self.samples,
                    output_signature=(
                        {"y": tf.TensorSpec((), tf.string), "x": tf.TensorSpec((), tf.int16)},
                        tf.TensorSpec((2,), tf.int64),
                    ),
                )
        ds = Source(["a", "bb"]).dataset()
    """,
    "rows_of_a_frame": """
        def make(frame, size):
            def gen():
                for _, row in frame.iterrows():
                    ids = [row["n"]] * size
                    yield ids, row["text"]
            return tf.data.Dataset.from_generator(
                gen, output_types=(tf.int32, tf.string), output_shapes=([size], [])
            ).batch(2)
        ds = make(pd.DataFrame({"n": [3, 1, 2], "text": ["a", "b", "c"]}, index=[7, 8, 9]), 2)
    """,
    "for_ever": """
        data = np.arange(4.0)
        def gen():
            while True:
                for x in data:
                    y = np.square(x)
                    yield y
        ds = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec([], tf.float32)).take(9)
    """,
    "names_that_are_listed_first": """
        def gen():
            names = sorted(["b", "a"])
            scale = 2.0
            for name in names:
                yield np.ones(2) * scale, name
        ds = tf.data.Dataset.from_generator(gen, (tf.float32, tf.string), ((2,), ()))
    """,
}
NOT_BY_INDEX = {
    "what_the_round_before_left": """
        def gen():
            total = 0
            for i in range(4):
                total = total + i
                yield total
        ds = tf.data.Dataset.from_generator(gen, tf.int64)
    """,
    "a_counter": """
        seen = []
        def load(i):
            seen.append(i)
            return len(seen)
        def gen():
            for i in range(4):
                yield load(i)
        ds = tf.data.Dataset.from_generator(gen, tf.int64)
    """,
    "an_iterator_of_its_own": """
        lines = iter("abcd")
        def gen():
            for i in range(4):
                yield next(lines)
        ds = tf.data.Dataset.from_generator(gen, tf.string)
    """,
    "a_file_that_is_read_on": """
        file = open(os.devnull)
        def gen():
            for i in range(4):
                yield file.readline()
        ds = tf.data.Dataset.from_generator(gen, tf.string)
    """,
    "what_has_no_length": """
        def gen():
            for x in map(float, range(4)):
                yield x
        ds = tf.data.Dataset.from_generator(gen, tf.float32)
    """,
    "some_of_them": """
        def gen():
            for i in range(4):
                if i == 2:
                    continue
                yield i
        ds = tf.data.Dataset.from_generator(gen, tf.int64)
    """,
    "several_of_each": """
        def gen():
            for i in range(4):
                for j in range(i):
                    yield i + j
        ds = tf.data.Dataset.from_generator(gen, tf.int64)
    """,
    "a_generator_of_numpys": """
        rng = np.random.default_rng(0)
        def gen():
            for i in range(4):
                yield i + rng.random()
        ds = tf.data.Dataset.from_generator(gen, tf.float32)
    """,
    "a_list_that_it_is_given": """
        def gen(names):
            for name in names:
                yield name
        ds = tf.data.Dataset.from_generator(gen, tf.string, args=(["a", "b"],))
    """,
    "ragged": """
        def gen():
            for i in range(4):
                yield tf.ragged.constant([[i], [i, i]])
        ds = tf.data.Dataset.from_generator(gen, output_signature=tf.RaggedTensorSpec((2, None), tf.int32))
    """,
}


def paste(tmp_path, text: str) -> str:
    facts = Facts(Recording(written(tmp_path / "a.pfrec", text)).reader)
    calls = [
        one for one in ast.walk(facts.tree(FILE))
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "from_generator"
    ]  # fmt: skip
    return indexed_generators.as_map(facts, FILE, calls[0])


def elements(text: str) -> list:
    names: dict = {}
    exec(compile(text, "program.py", "exec"), names)
    return [tf.nest.map_structure(lambda one: one.numpy(), one) for one in names["ds"]], names["ds"].element_spec


@pytest.mark.parametrize("name", BY_INDEX)
def test_the_map_gives_the_same_elements(tmp_path, name):
    text = HEAD + textwrap.dedent(BY_INDEX[name])
    fix = paste(tmp_path, text)
    assert "num_parallel_calls=tf.data.AUTOTUNE" in fix
    after = pasted(text, fix)
    assert "from_generator" not in after
    (before, spec), (now, new_spec) = elements(text), elements(after)
    assert len(before) == len(now) >= 2
    for one, other in zip(before, now):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)
    assert [one.dtype for one in tf.nest.flatten(spec)] == [one.dtype for one in tf.nest.flatten(new_spec)]
    assert [one.shape for one in tf.nest.flatten(spec)] == [one.shape for one in tf.nest.flatten(new_spec)]


@pytest.mark.parametrize("name", NOT_BY_INDEX)
def test_where_an_element_needs_another_there_is_no_map(tmp_path, name):
    assert paste(tmp_path, HEAD + textwrap.dedent(NOT_BY_INDEX[name])) == ""


def test_an_order_that_is_drawn_is_drawn_in_each_pass(tmp_path):
    text = HEAD + textwrap.dedent("""
        data = np.arange(30)
        def gen():
            order = np.random.permutation(len(data))
            for i in order:
                yield data[i]
        ds = tf.data.Dataset.from_generator(gen, tf.int64, ())
    """)
    after = pasted(text, paste(tmp_path, text))
    names: dict = {}
    exec(compile(after, "program.py", "exec"), names)
    first, second = ([int(one) for one in names["ds"]] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second


BATCHES = """
class Batches:
    def __init__(self, names, size=2, shuffle=True):
        self.names, self.size, self.shuffle = list(names), size, shuffle
        self.on_epoch_end()
    def __len__(self):
        return len(self.names) // self.size
    def __getitem__(self, index):
        return self.__load(self.order[index * self.size:(index + 1) * self.size])
    def __iter__(self):
        for i in range(len(self)):
            yield self[i]
    def on_epoch_end(self):
        self.order = np.arange(len(self.names))
        if self.shuffle:
            np.random.shuffle(self.order)
    def __load(self, order):
        return np.array([self.names[one] for one in order])
names = np.arange(40)
"""
IN_EACH_PASS = {
    "an_object_that_shuffles": """
        def gen():
            batches = Batches(names)
            for i in range(len(batches)):
                yield batches[i]
        ds = tf.data.Dataset.from_generator(gen, tf.int64, (None,))
    """,
    "one_of_a_parameter_in_a_function": """
        def gen(rows):
            batches = Batches(rows, shuffle=True)
            for i in range(len(batches)):
                x = batches[i]
                yield x + 0
        def dataset(given):
            return tf.data.Dataset.from_generator(lambda: gen(given), output_signature=tf.TensorSpec((None,), tf.int64))
        ds = dataset(names)
    """,
    "for_ever": """
        def gen():
            while True:
                batches = Batches(names)
                for i in range(len(batches)):
                    yield batches[i]
        ds = tf.data.Dataset.from_generator(gen, tf.int64, (None,)).take(20)
    """,
    "numbers_that_are_drawn": """
        def gen():
            order = np.random.permutation(40)
            for i in range(40):
                yield [names[order[i]]]
        ds = tf.data.Dataset.from_generator(gen, tf.int64, (None,))
    """,
    "an_object_of_a_lambda": """
        ds = tf.data.Dataset.from_generator(lambda: iter(Batches(names)), tf.int64, (None,))
    """,
    "what_a_lambda_draws": """
        def gen(order):
            for i in range(len(order)):
                yield [names[order[i]]]
        ds = tf.data.Dataset.from_generator(lambda: gen(np.random.permutation(40)), tf.int64, (None,))
    """,
}
ONCE = {
    "one_that_shuffles_only_when_it_is_made_above": """
        batches = Batches(names)
        def gen():
            for i in range(len(batches)):
                yield batches[i]
        ds = tf.data.Dataset.from_generator(gen, tf.int64, (None,))
    """,
    "an_object_that_draws_nothing": """
        class Rows:
            def __init__(self, names):
                self.names = list(names)
            def __len__(self):
                return len(self.names)
            def __getitem__(self, index):
                return [self.names[index]]
        def gen():
            rows = Rows(names)
            for i in range(len(rows)):
                yield rows[i]
        ds = tf.data.Dataset.from_generator(gen, tf.int64, (None,))
    """,
    "what_a_partial_drew": """
        import functools
        def gen(order):
            for i in range(len(order)):
                yield [names[order[i]]]
        ds = tf.data.Dataset.from_generator(functools.partial(gen, np.random.permutation(40)), tf.int64, (None,))
    """,
}


@pytest.mark.parametrize("name", IN_EACH_PASS)
def test_what_differs_from_pass_to_pass_is_made_in_each_pass(tmp_path, name):
    text = HEAD + BATCHES + textwrap.dedent(IN_EACH_PASS[name])
    fix = paste(tmp_path, text)
    assert "num_parallel_calls=tf.data.AUTOTUNE" in fix
    for program in (text, pasted(text, fix)):
        names: dict = {}
        exec(compile(program, "program.py", "exec"), names)
        first, second = ([int(part) for one in names["ds"] for part in one] for _ in range(2))
        assert sorted(first) == sorted(second) == list(range(40))
        assert first != second


@pytest.mark.parametrize("name", ONCE)
def test_what_is_the_same_in_each_pass_is_made_once(tmp_path, name):
    text = HEAD + BATCHES + textwrap.dedent(ONCE[name])
    after = pasted(text, paste(tmp_path, text))
    assert "from_generator" not in after
    names: dict = {}
    exec(compile(after, "program.py", "exec"), names)
    first, second = ([int(part) for one in names["ds"] for part in one] for _ in range(2))
    assert sorted(first) == list(range(40))
    assert first == second


@pytest.mark.parametrize("kept", ["self.last = index", "self.seen.append(index)"])
def test_an_object_whose_elements_leave_something_is_left_alone(tmp_path, kept):
    changed = BATCHES.replace("return self.__load", f"{kept}; return self.__load")
    text = HEAD + changed + textwrap.dedent(IN_EACH_PASS["an_object_that_shuffles"])
    assert paste(tmp_path, text) == ""


SLOW = """
import time
import numpy as np
import tensorflow as tf

def load(i):
    time.sleep(0.02)
    return np.full((4,), i, np.float32)

def gen():
    for i in range(40):
        yield load(i)

ds = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((4,), tf.float32)).batch(2)
for epoch in range(2):
    for batch in ds:
        time.sleep(0.003)
"""


@pytest.mark.slow
def test_a_loop_that_waits_for_a_generator_is_told_at_its_line_with_the_map(tmp_path, monkeypatch):
    monkeypatch.setattr(Facts, "least_ns", lambda self, idle_ns: idle_ns)  # beside other tests, too
    path = tmp_path / "slow.py"
    path.write_text(SLOW, encoding="utf-8")
    with pfd.record(tmp_path / "slow.pfrec") as recording:
        exec(compile(SLOW, str(path), "exec"), {})
    found = recording.findings(select=["input-bound", "doctor-trouble"])
    recording.close()
    assert [(one.rule, one.line) for one in found] == [("input-bound", 12)]
    assert "the generator gen, which gives one element at a time" in found[0].message
    assert "cache" not in found[0].fix
    after = pasted(SLOW, found[0].fix)
    assert "tf.data.Dataset.range(40).map(at_index, num_parallel_calls=tf.data.AUTOTUNE).batch(2)" in after
    before, _ = elements(SLOW)
    now, _ = elements(after)
    np.testing.assert_array_equal(before, now)


@pytest.mark.parametrize(("drawn", "said"), [("np.random.normal()", True), ("np.sqrt(i)", False)])
def test_that_elements_draw_in_another_order_is_said(tmp_path, drawn, said):
    text = HEAD + textwrap.dedent(f"""
        def gen():
            for i in range(4):
                yield i + {drawn}
        ds = tf.data.Dataset.from_generator(gen, tf.float64, ())
    """)
    fix = paste(tmp_path, text)
    assert ("random numbers are drawn in another order" in fix) == said
    assert len(elements(pasted(text, fix))[0]) == 4
