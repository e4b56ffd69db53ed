"""A recorded call becomes a pytest file that runs its body again, and fails when the body does something else."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sqlite3
import sys

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from tests import forked

BODIES = """
import functools
import random

import numpy as np
import tensorflow as tf


class Mine(Exception):
    pass


class Augmenter:
    def __init__(self, by):
        self.by = by

    def run(self, x):
        return x * self.by

    @staticmethod
    def flip(x):
        return -x


def double(x):
    return x * 2


def two(x, by):
    return x * by, tf.size(x, tf.int64)


def words(some, one):
    assert isinstance(one, bytes)
    return np.array([one + b"!", some[1]])


def half(x):
    return x * 2


def brief(x):
    return x * 2


def nothing(x):
    assert x.shape == (2, 3)


def count(x):
    return x.astype(np.int64).sum()


def fraction(x):
    return (x + 1j).astype(np.complex64)


def refuse(x):
    raise ValueError(f'not {float(x)} "quoted"')


def own(x):
    raise Mine(f"{object()}")


def text(x):
    return "text"


def scaled(by):
    from math import sqrt

    def body(x):
        return (x * by * sqrt(4)).astype(np.float32)

    return body


def applied(made):
    def inner(x):
        return made(x)

    return inner


def bound(by, x, plus=0.0):
    return np.float32(by * x[0, 0] + plus)


def three(x):
    return [x, x]


def drawn(x):
    return x + np.float32(np.random.random())


def drawn_twice(x):
    return (x + random.gauss(0, 1) + np.random.normal()).astype(np.float32)


def drawn_fresh(x):
    return x + np.float32(np.random.default_rng().random())


clip = lambda v: np.clip(v, 0, 1)
bound_here = functools.partial(bound, 2, plus=3)
doubled = applied(lambda x: x * 2)
"""
GOOD = ["double", "two", "words", "brief", "nothing", "count", "fraction", "Augmenter.flip", "scaled.body", "<lambda>",
        "refuse", "own", "text", "Augmenter.run", "applied.inner", "bound", "three"]  # fmt: skip


@pytest.fixture(scope="module")
def bodies(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "bodies_of_test.py"
    path.write_text(BODIES)
    spec = importlib.util.spec_from_file_location("bodies_of_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["bodies_of_test"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bodies_of_test"]


@pytest.fixture(scope="module")
def recording(bodies):
    b = bodies

    @tf.function
    def step(x, some, big, short):
        numpy, eager = tf.numpy_function, tf.py_function
        with tf.control_dependencies([eager(b.nothing, [x], [])]):
            return [
                numpy(b.double, [x], tf.float32), eager(b.two, [x, 3.0], [tf.float32, tf.int64]),
                numpy(b.words, [some, some[0]], tf.string), numpy(b.double, [big], tf.float32),
                eager(b.brief, [short], tf.bfloat16), numpy(b.count, [x[1:, 1:]], tf.int64),
                numpy(b.fraction, [x], tf.complex64), numpy(b.Augmenter.flip, [x], tf.float32),
                numpy(b.scaled(5), [x], tf.float32), numpy(b.clip, [x], tf.float32),
                numpy(b.Augmenter(3).run, [x], tf.float32), numpy(np.sin, [x], tf.float32),
                numpy(b.doubled, [x], tf.float32), numpy(b.bound_here, [x], tf.float32),
                eager(b.three, [x], [tf.float32]), numpy(b.drawn, [x], tf.float32),
            ]  # fmt: skip

    with pfd.record(values={"half": "summary", "*": "full"}, gil=False) as recording:
        x = tf.constant([[0.1, np.nan, -np.inf], [1e-30, 5, -0.0]])
        step(x, tf.constant(["a", "bü"]), tf.ones([20, 20]), tf.constant([1.5, 2.25], tf.bfloat16))
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.function(lambda x: tf.py_function(b.half, [x], tf.float32))(x)
        tape.gradient(made, x)
        for body in (b.refuse, b.own, b.text):
            with pytest.raises(tf.errors.OpError):
                tf.function(lambda x, body=body: tf.py_function(body, [x], tf.float32))(tf.constant(1.0))
        with pytest.raises(tf.errors.OpError):
            tf.function(lambda x: tf.numpy_function(b.half, [x], tf.int32))(tf.constant(1.0))
    return recording


@pytest.fixture(scope="module")
def random_recording(bodies):
    b = bodies
    steps = [tf.function(lambda x, f=f: tf.numpy_function(f, [x], tf.float32)) for f in (b.drawn_twice, b.drawn_fresh)]
    with pfd.record(values="full", gil=False, random_state=True) as recording:
        for i in range(3):  # each of the second draws gives what the first left over
            for step in steps:  # one after the other
                step(tf.constant(float(i)))
    return recording


def of(recording, body, kind="forward"):
    """The calls of one body."""
    names = {node.id: node.body for node in recording.nodes()}
    return [call for call in recording.calls() if names[call.node] == body and call.kind == kind]


def lines(path):
    return open(path, encoding="utf-8").read()


def test_the_files_pass_with_the_program_and_fail_with_another(recording, random_recording, bodies, tmp_path):
    for folder in ("good", "other"):
        (tmp_path / folder).mkdir()
    other = BODIES
    for was, now in (
        ("x * 2", "x * 3"), ("x * by", "x - by"), ("x * self", "x - self"), ("by * x[0", "by + x[0"),
        ("[x, x", "[x + 1, x"), ('b"!"', 'b"?"'), ("assert x", "assert not x"), (".sum()", ".sum() + 1"), ("1j", "2j"),
        ("-x", "x"), ("not {", "never {"), ("Mine(f", "KeyError(f"), ('"text"', "1"),
    ):  # fmt: skip
        other = other.replace(was, now)
    (tmp_path / "others_of_test.py").write_text(other)
    names = set()
    for body in GOOD:
        for call in of(recording, body):
            path = call.to_pytest(tmp_path / "good" / f"test_{call.id}.py")
            names.add(call.id)
            if "copy of what was recorded" not in lines(path):
                text = lines(path).replace("from bodies_of_test", "from others_of_test")
                text = text.replace(f'"{bodies.__file__.rpartition("/")[0]}"', f'"{tmp_path}"')
                (tmp_path / "other" / f"test_other_{call.id}.py").write_text(text)
                if (beside := tmp_path / "good" / f"test_{call.id}.npz").exists():
                    (tmp_path / "other" / beside.name).write_bytes(beside.read_bytes())
    made = [
        call.to_pytest(tmp_path / "good" / f"test_draw_{call.id}.py") for call in of(random_recording, "drawn_twice")
    ]
    (pyproject := tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(  # as pytest-randomly does
        "import random, numpy, pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtest_call(item):\n    random.seed(0)\n    numpy.random.seed(0)\n"
    )
    ran = forked.run(
        "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-c", pyproject, "good", "other", cwd=tmp_path
    )  # fmt: skip
    passed = {int(number) for number in re.findall(r"^PASSED good/test_(\d+)\.py", ran.stdout, re.MULTILINE)}
    assert passed == names, ran.stdout[-4000:]
    assert len(names) == 18
    assert [f"PASSED good/{os.path.basename(path)}" in ran.stdout for path in made] == [True] * 3, "the numbers drawn"
    assert "PASSED other" not in ran.stdout
    assert ran.stdout.count("FAILED other") == 15
    assert "error" not in ran.stdout.splitlines()[-1]


def test_small_arrays_stand_in_the_text_and_large_ones_beside_it(recording, tmp_path):
    small, large = (call.to_pytest(tmp_path / f"test_{call.id}.py") for call in of(recording, "double"))
    assert "x = np.array([[0.1, np.nan, -np.inf], [1e-30, 5.0, -0.0]], np.float32)" in lines(small)
    assert "DATA" not in lines(small)
    name = large.rpartition("/")[2].replace(".py", ".npz")
    assert f'DATA = np.load(Path(__file__).with_name("{name}"))' in lines(large)
    assert np.load(tmp_path / name)["x"].shape == (20, 20)


def test_what_a_closure_holds_is_written_down_or_asked_for(recording, tmp_path):
    (call,) = of(recording, "scaled.body")
    text = lines(call.to_pytest(tmp_path / "test_here.py"))
    assert "by = 5\n" in text
    assert "The values of by are those of the moment in which this file was written." in text
    (call,) = of(pfd.open(recording.path), "scaled.body")
    text = lines(call.to_pytest(tmp_path / "test_elsewhere.py"))
    assert "by = None" in text
    assert "the body reads `by`, whose value is not in the recording: write it in its line" in text
    assert "pytest.skip(" in text


def test_a_method_asks_for_its_object_where_the_program_is_gone(recording, tmp_path):
    (call,) = of(recording, "Augmenter.run")
    text = lines(call.to_pytest(tmp_path / "test_here.py"))
    assert "vars(owner).update({'by': 3})" in text
    assert "The values of owner are those of the moment in which this file was written." in text
    (call,) = of(pfd.open(recording.path), "Augmenter.run")
    text = lines(call.to_pytest(tmp_path / "test_method.py"))
    assert "import Augmenter" in text
    assert "found = owner.run(x)" in text
    assert "make one in the line `owner =`; then delete this" in text


def test_an_outcome_that_may_not_come_again_is_expected_to_differ(recording, tmp_path):
    (call,) = of(pfd.open(recording.path), "drawn")
    text = lines(call.to_pytest(tmp_path / "test_drawn.py"))
    assert (
        '@pytest.mark.xfail(reason="The body draws random numbers (np.random.random()): the outcome of this call may '
        'not come again. Record with random_state=True to have them in the test.")\ndef test_drawn_call'
    ) in text


def test_a_recorded_random_state_is_in_the_test_unless_others_drew_meanwhile(random_recording, tmp_path):
    assert "xfail" not in lines(of(random_recording, "drawn_twice")[0].to_pytest(tmp_path / "test_drawn.py"))
    text = lines(of(random_recording, "drawn_fresh")[0].to_pytest(tmp_path / "test_fresh.py"))
    assert 'xfail(reason="The body draws random numbers (np.random.default_rng()): the outcome of' in text
    path = shutil.copy(random_recording.path, tmp_path / "beside.pfrec")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO thread VALUES (99, 'other', 99)")
        db.execute("UPDATE call SET end_ns = start_ns + 9e15, thread = 99 WHERE id = 1")
        db.execute("UPDATE random_state SET facts = json_replace(facts, '$.numpy[2]', 'exit()')")
    beside = pfd.open(path)
    text = lines(of(beside, "drawn_twice")[1].to_pytest(tmp_path / "test_beside.py"))
    assert "(random.gauss(0, 1)) while other calls ran, which may have drawn in between: the outcome" in text
    text = lines(of(beside, "drawn_fresh")[0].to_pytest(tmp_path / "test_changed.py"))
    assert "def recorded_random_state" not in text, "nothing of a file that somebody changed becomes code"
    beside.close()


def test_what_cannot_become_a_test_says_why(recording, tmp_path):
    path = tmp_path / "test_no.py"
    call = of(recording, "half")[0]
    with pytest.raises(pfd.NotKeptError, match=r"not all of its inputs were kept in full \(x\). Record with values"):
        call.to_pytest(path)
    (gradient,) = of(recording, "half", "gradient")
    with pytest.raises(pfd.NotKeptError, match=f"make one of its forward call, #{gradient.forward}"):
        gradient.to_pytest(path)
    (sine,) = of(recording, "sin")
    with pytest.raises(pfd.NotKeptError, match="sin is not written in Python"):
        sine.to_pytest(path)
    assert not path.exists()
    (call,) = of(recording, "count")
    with pytest.raises(pfd.CannotWriteError, match="No such file"):
        call.to_pytest(tmp_path / "nowhere" / "test.py")
