"""A recorded call runs again on its recorded inputs, outside of the graph, alone or under the debugger."""

from __future__ import annotations

import contextlib
import io
import json
import random
import runpy
import sqlite3
import sys

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.api.breakpoints import debug
from pyfunc_debug.pfrec.redaction import redact
from tests import forked

STATE = [0]


def scale(x, by):
    inside = by * 2
    return x * inside


def join(words, one):
    STATE[0] += 1
    assert isinstance(one, bytes)
    words[0] = b"changed"
    return np.array([words[1] + one])


def count(x):
    STATE[0] += 1
    return np.float32(STATE[0]) + x


def refuse(x):
    secret = 41 + 1
    raise ValueError(f"not {secret}")


@tf.function
def program(x, words):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(scale, [x, 3.0], tf.float32)
    return tape.gradient(y, x), tf.numpy_function(join, [words, words[0]], tf.string)


WORDS = tf.constant(["a", "b"])


@pytest.fixture
def recording():
    with pfd.record(values="full", gil=False) as recording:
        program(tf.constant([1.0, 2.0]), WORDS)
        tf.function(lambda x: tf.numpy_function(count, [x], tf.float32))(tf.constant(1.0))
        with pytest.raises(tf.errors.OpError) as failure:
            tf.function(lambda x: tf.py_function(refuse, [x], tf.float32))(tf.constant(1.0))
    yield recording  # the program still has its exception, and with it the frames
    del failure


def one(recording, node, kind="forward"):
    (call,) = [call for call in recording.calls(node) if call.kind == kind]
    return call


@pytest.fixture
def typed(monkeypatch, capsys):
    """Types lines at prompts; then calls `debug` and returns what was said."""

    def run(call, *lines):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        capsys.readouterr()
        debug(call)
        return capsys.readouterr().out

    return run


def test_a_body_returns_again_what_it_returned(recording):
    (out,) = one(recording, "scale").replay()
    np.testing.assert_array_equal(out, np.array([6.0, 12.0], np.float32))
    call = one(recording, "join")
    before = STATE[0]
    assert one(recording, "join").replay()[0].tolist() == [b"ba"]
    assert STATE[0] == before + 1, "its effects happen again"
    assert call.inputs[0].array().tolist() == [b"a", b"b"], "what it changes is its own"


def test_the_failure_of_a_body_comes_out(recording):
    with pytest.raises(ValueError, match="not 42"):
        one(recording, "refuse").replay()


def test_nothing_of_it_is_recorded():
    with pfd.record(values="full", gil=False) as recording:
        program(tf.constant([1.0, 2.0]), WORDS)
        call = one(recording, "scale")
        call.replay()
        assert len(list(recording.calls("scale"))) == 2, "the call and its gradient"


def test_the_debugger_stops_at_the_bodys_first_line(recording, typed):
    def mine(frame, event, arg):
        return None

    sys.settrace(mine)
    try:
        said = typed(one(recording, "scale"), "p float(by)", "n", "p float(inside)", "n", "n", "n", "n")
        assert sys.gettrace() is mine
    finally:
        sys.settrace(None)
    assert "-> inside = by * 2" in said
    assert "3.0" in said
    assert "6.0" in said
    assert "returned what was recorded" in said
    assert said.count("> /") == 3, "the two lines and the return, nothing of TensorFlow's"
    assert "--Call--" not in said


def test_a_numpy_body_stops_too_and_what_differs_is_said(recording, typed):
    said = typed(one(recording, "count"), "p x, type(x).__name__", "c")
    assert "'float32')" in said, "what TensorFlow gives it: a scalar"
    assert "returned something else than was recorded" in said


def test_quitting_ends_it_there(recording, typed):
    before = STATE[0]
    said = typed(one(recording, "count"), "q")
    assert STATE[0] == before
    assert "returned" not in said
    assert "BdbQuit" not in said


def test_a_failed_call_opens_at_its_frames_and_runs_again_when_they_are_gone(recording, typed):
    failed = one(recording, "refuse")
    said = typed(failed, "p secret", "q")
    assert "runs again" not in said
    assert "42" in said
    with pfd.record(gil=False):
        pass  # the failures of the last recording are forgotten
    said = typed(failed, "c", "p secret + 1", "q")
    assert "runs again" in said
    assert "-> secret = 41 + 1" in said
    assert "ValueError: not 42" in said
    assert "43" in said, "the frame of the second failure"


def test_another_recordings_failure_of_that_number_is_not_opened(typed):
    def other(x):
        raise TypeError("other")

    def run(body):
        with pfd.record(values="full", gil=False) as recording, pytest.raises(tf.errors.OpError):
            tf.function(lambda x: tf.py_function(body, [x], tf.float32))(tf.constant(1.0))
        return recording

    failed = one(run(refuse), "refuse")
    assert failed.id == one(run(other), "*other").id
    assert "TypeError" not in typed(failed, "c", "q")


@pytest.mark.parametrize(
    ("values", "node", "words"),
    [
        ("summary", "scale", r"its inputs 'x', 'by' were not kept in full. Record with values=\"full\" \(%%"),
        ("sample", "scale", r"its input 'x' was not kept in full"),
        ({"scale": "full", "*": "shape"}, "join", r"its inputs 'words', 'one' were not kept in full"),
    ],
)
def test_inputs_that_were_not_kept_are_named(values, node, words):
    with pfd.record(values=values, gil=False) as recording:
        program(tf.range(1e5), WORDS)
    with pytest.raises(pfd.NotKeptError, match=f"cannot run again: {words}"):
        one(recording, node).replay()


def test_a_gradient_call_names_its_forward_call(recording):
    gradient = one(recording, "scale", "gradient")
    with pytest.raises(pfd.NotKeptError, match=f"replay its forward call, #{gradient.forward}"):
        gradient.replay()


def test_a_body_that_is_gone_is_said():
    with pfd.record(values="full", gil=False) as recording:
        tf.numpy_function(count, [tf.constant(1.0)], tf.float32)
    with pytest.raises(pfd.NotKeptError, match="does not exist any more"):
        one(recording, "count").replay()


def test_of_eager_calls_from_one_line_only_the_first_ones_closure_is_known():
    def times(by):
        return lambda x: x * by

    bodies = [times(2.0), times(3.0)]
    with pfd.record(values="full", gil=False) as recording:
        for body in bodies:
            tf.py_function(body, [tf.constant(4.0)], tf.float32)
    first, second = recording.calls()
    assert first.replay() == [8.0]
    with pytest.raises(pfd.NotKeptError, match=r"call #2 is one of several eager calls of .* from one line"):
        second.replay()
    assert second.replay(function=bodies[1]) == [12.0]


def test_from_a_file_bodies_are_found_by_their_module_or_given(recording, tmp_path, monkeypatch):
    (tmp_path / "mended_here.py").write_text("def twice(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(tmp_path)

    @tf.function
    def graph(x):
        from mended_here import twice

        return tf.numpy_function(twice, [x], tf.float32), tf.py_function(lambda x: (x, x + 1), [x], [tf.float32] * 2)

    with pfd.record(tmp_path / "other.pfrec", values="full", gil=False):
        graph(tf.constant([1.0, 2.0]))
    del sys.modules["mended_here"]
    elsewhere = pfd.open(tmp_path / "other.pfrec")
    assert one(elsewhere, "twice").replay()[0].tolist() == [2.0, 4.0]
    assert one(elsewhere, "twice").replay(inputs={"x": [5]})[0].tolist() == [10.0]
    assert sys.modules.pop("mended_here").__file__ == str(tmp_path / "mended_here.py"), "imported, not copied"
    assert str(tmp_path) == sys.path.pop(0), "the path is as it was"
    nameless = one(elsewhere, "*lambda*")
    with pytest.raises(pfd.NotKeptError, match=rf"recording.call\({nameless.id}\).replay\(function=...\)"):
        nameless.replay()
    results = nameless.replay(function=lambda x: [x * 3, 7])
    assert [result.tolist() for result in results] == [[3.0, 6.0], 7.0]
    assert {result.dtype for result in results} == {np.dtype("float32")}, "the types of Tout"
    assert one(recording, "scale").replay(function=lambda x, by: x + by)[0].tolist() == [4.0, 5.0], "also here"
    found = one(pfd.open(recording.path), "scale").replay()[0]
    assert found.tolist() == [6.0, 12.0], "a module that is loaded is not imported again"


def test_a_program_is_not_run_for_the_body_of_a_call(tmp_path):
    (tmp_path / "program.py").write_text(
        "import tensorflow as tf\n\n\ndef twice(x):\n    return x * 2\n\n\n"
        "for i in range(1):\n    tf.numpy_function(twice, [2.0], tf.float32)\n"
    )
    with pfd.record(tmp_path / "other.pfrec", values="full", gil=False):
        runpy.run_path(str(tmp_path / "program.py"))
    call = one(pfd.open(tmp_path / "other.pfrec"), "twice")
    with pytest.raises(pfd.NotKeptError, match=r"not taken from .*program.py: importing it would run the program; .*"):
        call.replay()
    assert call.replay(function=lambda x: x * 3)[0] == 6.0


def test_with_the_recorded_random_state_the_same_comes_out_also_in_another_process(tmp_path, monkeypatch):
    (tmp_path / "noise.py").write_text(
        "import random\nimport numpy as np\n\n\ndef noise(x):\n    for _ in range(10):\n"
        "        x = x + random.random() + random.gauss(0, 1) + np.random.normal() + np.random.rand()\n"
        "    return x.astype('f4')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from noise import noise

    def seed():
        random.seed(3)
        np.random.seed(5)

    def run(calls=20):  # until both generators have made new words
        graph = tf.function(lambda x: tf.numpy_function(noise, [x], tf.float32))
        return [graph(tf.constant(float(step))).numpy() for step in range(calls)]

    path = tmp_path / "noise.pfrec"
    seed()
    plain = [*run(), random.random(), np.random.rand()]
    seed()
    with pfd.record(path, values="full", gil=False, random_state=True) as recording:
        results = run()
    assert [*results, random.random(), np.random.rand()] == plain, "nothing is drawn by recording"
    following = random.getstate(), np.random.get_state(legacy=False)
    assert [call.replay(random_state=True)[0] for call in recording.calls()] == results
    now = random.getstate(), np.random.get_state(legacy=False)
    np.testing.assert_equal(now, following)
    assert next(recording.calls()).replay()[0] != results[0]
    assert recording.sql("SELECT count(*) AS n FROM blob WHERE shape = '[624]'")[0]["n"] < 8, "words are stored once"
    lines = (
        "import sys, pyfunc_debug as pfd",
        "calls = pfd.open('noise.pfrec').calls()",
        "print([float(call.replay(random_state=True)[0]) for call in calls])",
    )
    (tmp_path / "again.py").write_text("\n".join(lines))
    again = forked.run("again.py", cwd=tmp_path)
    assert json.loads(again.stdout) == [float(result) for result in results], again.stderr
    redact(pfd.open(path).reader, str(tmp_path / "redacted.pfrec"), ["args"])
    for other in (tmp_path / "redacted.pfrec", record_of(run, tmp_path)):
        with pytest.raises(
            pfd.NotKeptError, match="random state of call #1 was not kept: record with random_state=True"
        ):
            pfd.open(other).call(1).replay(random_state=True)
    own, other = np.random.get_bit_generator(), np.random.PCG64(1)
    np.random.set_bit_generator(other)
    try:
        with pytest.raises(pfd.NotKeptError, match="global generator was PCG64 here, not MT19937"):
            recording.replay(1, random_state=True)
    finally:
        np.random.set_bit_generator(own)


def test_a_random_state_that_somebody_changed_in_the_file_is_not_set(tmp_path):
    path = tmp_path / "one.pfrec"
    with pfd.record(path, values="full", gil=False, random_state=True):
        tf.function(lambda x: tf.numpy_function(count, [x], tf.float32))(tf.constant(1.0))
    state = np.random.get_state(legacy=False)
    for facts in ('{"python": [3, 1, null], "numpy": ["MT19937", 99999, 0, 0.0]}', '{"python": [], "numpy": []}'):
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE random_state SET facts = ?", (facts,))
            db.commit()
        with pytest.raises(pfd.NotKeptError, match="cannot be set"):
            pfd.open(path).call(1).replay(function=count, random_state=True)
        np.testing.assert_equal(np.random.get_state(legacy=False), state)


def record_of(run, folder):
    with pfd.record(folder / "without.pfrec", values="full", gil=False) as recording:
        run(1)
    return recording.path


def test_without_a_value_of_its_inputs_a_call_does_not_run():
    with pfd.record(values="none", gil=False) as recording:
        tf.function(lambda x: tf.numpy_function(count, [x], tf.float32))(tf.constant(1.0))
    with pytest.raises(pfd.NotKeptError, match="no input of call #1 was recorded"):
        recording.call(1).replay()


def test_other_inputs_have_the_recorded_type_and_a_known_name(recording):
    call = next(recording.calls(node="scale"))
    [output] = call.replay(inputs={"x": [5, 6]})
    assert output.dtype == np.float32
    assert output.tolist() == [30.0, 36.0]
    with pytest.raises(pfd.BadOptionError, match="no input 'y'; there are: x, by"):
        call.replay(inputs={"y": 1})
    with pytest.raises(pfd.BadOptionError, match="cannot be float32 for 'x'"):
        call.replay(inputs={"x": "much"})


def test_reprs_read_well_and_html_is_text(recording):
    call = next(recording.calls(node="scale"))
    assert repr(call).startswith("<call #1 of scale: ok, ")
    assert "x float32[2]" in repr(call)
    assert repr(call.inputs[0]).startswith("<value x: float32[2]")
    assert "<td" in call._repr_html_()
    findings = recording.findings()
    assert repr(findings).startswith("<")
    assert repr(findings[0]) in repr(findings)
    failed = next(recording.calls(status="error"))
    node = recording.nodes()[failed.node - 1]
    assert repr(failed).startswith(f"<call #{failed.id} of {node.body}: ValueError")
    assert repr(node).startswith(f"<node {node.id}: {node.kind} {node.body} at test_replay.py:")
    assert "ValueError at test_replay.py:" in repr(failed.failure)
    assert "not 42" in findings._repr_html_()
    assert "<table" in recording._repr_html_()
    assert repr(recording)[1:-1].replace("<", "") in recording._repr_html_()


def test_calls_that_are_still_to_be_read_say_what_they_are(recording):
    calls = recording.calls(node="scale")
    assert repr(calls).startswith("<call #1 of scale: ok, ")
    assert next(calls).id == 1, "a repr takes none of them"
    assert repr(recording.calls(condition="nan(x)")) == "<calls with nan(x); list() reads them>"
    assert repr(recording.calls(node="scale", status="running")) == "<no calls>"


def test_a_recording_that_goes_on_keeps_more_of_a_node_when_it_is_told_to():
    step = tf.function(lambda x: tf.numpy_function(count, [x], tf.float32))
    with pfd.record(gil=False) as recording:
        step(tf.constant([1.0, 2.0]))
        assert recording.keep("count")
        step(tf.constant([1.0, 2.0]))
    assert [call.inputs[0].kept for call in recording.calls()] == ["", "full"]
    assert not recording.keep("count"), "it has ended"
