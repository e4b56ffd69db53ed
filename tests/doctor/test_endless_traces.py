"""A loop of Python's over a dataset, in a graph that is traced, is told while it goes on, and to who interrupts it."""

from __future__ import annotations

import _thread
import contextlib
import io
import sys
import threading

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.doctor.failures.pastes.explanation import is_instruction
from tests.doctor.pasting import pasted, pastes
from tests.limits import HANG_S

TQDM = """
class tqdm:
    def __init__(self, iterable, limit=None, **options):
        self.iterable, self.limit = iterable, limit
    def __iter__(self):
        for count, x in enumerate(self.iterable):
            if count == self.limit:
                raise KeyboardInterrupt
            yield x
"""
HEAD = """import tensorflow as tf
from tqdm import tqdm
ds = tf.data.Dataset.range(20).map(lambda x: tf.cast(x, tf.float32)).batch(2)
w = tf.Variable(1.0)
"""
LOOP = """
@tf.function
def train(data):
    total = 0.0
    for x in {}:
        total += tf.reduce_sum(x) * w
    return total
out = float(train(ds))
"""
METHOD = """
class Trainer:
    def __init__(self, data):
        self.data = data
    @tf.function
    def epoch(self):
        total = 0.0
        for step, batch in enumerate(tqdm(self.data.take(10), desc="epoch")):
            total += tf.reduce_sum(batch) * w
        return total
trainer = Trainer(ds)
out = float(trainer.epoch())
"""
COMPREHENSION = """
@tf.function
def train(data):
    return tf.add_n([tf.reduce_sum(x) * w for x in data])
out = float(train(ds))
"""
GENERATOR = """
def batches(data):
    for x in data:
        yield x * 1.0
@tf.function
def train(data):
    total = 0.0
    for x in batches(data):
        total += tf.reduce_sum(x) * w
    return total
out = float(train(ds))
"""
COLLECTED = """
@tf.function
def train(data):
    losses = []
    for x in tqdm(data):
        losses.append(tf.reduce_sum(x) * w)
    return tf.add_n(losses)
out = float(train(ds))
"""
BOUNDED = """
import itertools
@tf.function
def train(data):
    total = 0.0
    for x in itertools.islice(data, 150):
        total += tf.reduce_sum(x) * w
    raise KeyboardInterrupt
train(ds.repeat())
"""


@pytest.fixture
def progress(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "tqdm.py").write_text(TQDM)
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("tqdm", None)


def interrupted(path, **options):
    """What is printed where a program is interrupted.

    Between the making of an op and of its Python object an interrupt becomes a SystemError at the end of the trace, in
    one of five traces without us, too: TensorFlow 2.21 asks the iterator's ops for that object (dataset_ops.py).
    """
    told = io.StringIO()
    recording = pfd.record(gil=False, **options)
    with contextlib.redirect_stderr(told), pytest.raises((KeyboardInterrupt, SystemError)), recording:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    return told.getvalue(), recording


def stack_of_main():
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None:
        yield frame
        frame = frame.f_back


# An interrupt that falls into a callback of the garbage collector or a finalizer is lost there: the next one ends it.
@pytest.mark.filterwarnings("ignore:(?s).*KeyboardInterrupt:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("program", "paste"),
    [
        (LOOP.format("tqdm(data)"), True),
        (LOOP.format("list(data)"), True),
        (LOOP.format("tqdm(list(data.take(10)))"), True),
        (METHOD, True),
        (COMPREHENSION, False),
        (GENERATOR, False),
        (COLLECTED, False),
    ],
)
def test_it_is_told_while_it_goes_on_and_the_paste_ends_it(program, paste, told, progress, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + program)

    ended = threading.Event()

    def end():
        told.wait()
        while not ended.is_set():  # TensorFlow may lose one: the loop then goes on, and a person presses Ctrl-C again
            if any(frame.f_code.co_filename == str(path) for frame in stack_of_main()):
                _thread.interrupt_main()
            ended.wait(5.0)

    ending = threading.Thread(target=end)
    ending.start()
    try:
        printed, recording = interrupted(path, hang_after=0.3)
    finally:
        ended.set()
        ending.join(HANG_S)
    assert len(told.texts) == 1, "told once"
    assert "pyfunc-debug: program.py:" in told.texts[0]
    assert "runs while the graph is traced" in " ".join(told.texts[0].split())
    assert "pyfunc-debug:" not in printed, "nor again at the interrupt"
    head = told.texts[0].split("\n")
    assert len(head[: next((at for at, one in enumerate(head) if is_instruction(one.strip())), 6)]) <= 6
    (finding,) = recording.findings(select=["autograph"])
    assert finding.evidence == ("the program failed with a graph trace that did not end",)
    assert pastes(told.texts[0]) is paste
    if paste:
        names = {"__name__": "__main__"}
        text = pasted(path.read_text(), told.texts[0])
        path.write_text(text)
        exec(compile(text, str(path), "exec"), names)
        assert names["out"] == 190.0


def test_it_is_told_to_who_interrupts_it(progress, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + LOOP.format("tqdm(data, limit=60)"))
    printed, recording = interrupted(path)
    assert "`for ... in tqdm(data, limit=60)` is a loop of Python's" in " ".join(printed.split())
    assert recording.findings(select=["autograph"])


def test_it_is_told_where_tensorflow_loses_the_interrupt(progress, tmp_path):
    path = tmp_path / "program.py"
    called = "try:\n    train(ds)\nexcept KeyboardInterrupt:\n    raise SystemError('lost')\n"
    path.write_text((HEAD + LOOP.format("tqdm(data, limit=60)")).replace("out = float(train(ds))\n", called))
    printed, _ = interrupted(path)
    assert "`for ... in tqdm(data, limit=60)` is a loop of Python's" in " ".join(printed.split())


@pytest.mark.parametrize("program", [LOOP.format("tqdm(data, limit=9)"), BOUNDED])
def test_a_loop_that_was_meant_to_be_unrolled_is_not_told(program, progress, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + program)
    printed, recording = interrupted(path)
    assert "pyfunc-debug:" not in printed
    assert not recording.findings(select=["autograph"])
