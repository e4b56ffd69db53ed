"""A program that fails by a trap of the field is told why under its traceback, and the paste makes it run."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from IPython.core.interactiveshell import InteractiveShell

import jupyter_ext
import pyfunc_debug as pfd
from pyfunc_debug import cli
from pyfunc_debug.doctor.failures.ops.slopes import NAME
from pyfunc_debug.doctor.failures.pastes.explanation import is_instruction
from pyfunc_debug.doctor.rules.failed_programs import NAMES
from tests import forked
from tests.doctor.pasting import parts, pasted, pastes, run
from tests.limits import HANG_S
from tests.share import shared

FOLDER = Path(__file__).parent / "failing"
_ROUNDS = 3
"""A program may have more than one trap: each is told when it is reached."""


def programs():
    """Name, the rule that is expected, and what a test is given: the source and what is expected."""
    for file in sorted(FOLDER.glob("*.txt")):
        for head, rest in parts(file.read_text()):
            source, _, expected = rest.partition("\n--- ")
            yield f"{file.stem}-{head.split()[0]}", expected.split()[0], (source + "\n", expected.strip())


def apply(told: str, path: Path) -> bool:
    """Does what the printed text says; whether there was something to paste."""
    if pastes(told):
        path.write_text(pasted(path.read_text(), told))
    return pastes(told)


IN_OPS = {
    "whole-schedule_of_a_table_with_an_end": (
        "place = tf.minimum(tf.cast(step, tf.int32), len(self.table) - 1)", "return tf.gather(self.table, place)",
    ),
    "whole-schedule_of_a_list_in_epochs": (
        "epoch = tf.minimum(tf.cast(step, tf.int32) // 2, 2)", "return tf.gather(rates, epoch) * 0.5",
    ),
    "whole-rate_by_a_variable": ("lr = tf.gather(rates, tf.cast(step, tf.int32) // 2)",),
    "whole-table_of_a_module": ("return tf.gather(self.table, tf.minimum(tf.cast(step, tf.int32), 4)) * 2.0",),
}  # fmt: skip
"""What is read by the step, and the lines that read it by ops: all of it can be."""
IN_STEPS = "whole-schedule_that_chooses_by_the_step"
"""Not all of this one can be."""


def test_programs_that_are_looked_at_more_closely_are_there_and_have_lines_to_paste():
    expected = {name: told for name, _, (_, told) in programs()}
    closely = [name for name in expected if "-chain_" in name or name.startswith("losses-")]
    assert len(closely) > 20
    assert [name for name in (*closely, *IN_OPS, IN_STEPS) if expected[name] not in NAMES] == []


@pytest.mark.parametrize("switch", ["disable_v2_behavior", "disable_eager_execution", "disable_control_flow_v2"])
def test_no_program_switches_off_what_the_next_one_needs(switch):
    assert [name for name, _, (source, _) in programs() if f"{switch}(" in source] == []


BEHIND_A_TRAINED_LAYER = """
import numpy as np
import tensorflow as tf
def ordered(x):
    values = x.numpy()
    order = np.lexsort((values[:, 0], values[:, 1]))
    if order[0] > 0:
        return tf.constant(values[order])
    return x
layers = tf.keras.layers
before = [layers.Dense(4)][:BEFORE]
model = tf.keras.Sequential([layers.Input((4,)), *before, layers.Lambda(ordered, output_shape=(4,)), layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((4, 4), "float32"), np.ones((4, 1), "float32"), batch_size=2, verbose=0)
"""


EAGER_ARRAY = """
import tensorflow as tf
array = tf.TensorArray(tf.float32, size=3)
@tf.function
def fill(i, x):
    return array.write(i, x).stack()
fill(tf.constant(1), tf.constant(2.0))
"""


def test_a_tensor_array_of_eager_code_is_the_cause_and_no_bool(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(EAGER_ARRAY)
    told = run(path)[1]
    assert "array is a TensorArray that was made outside" in told
    assert "bool" not in told


@pytest.mark.parametrize("before", [0, 1])
def test_run_eagerly_is_not_offered_for_numpy_behind_a_layer_that_is_trained(before, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(BEHIND_A_TRAINED_LAYER.replace("BEFORE", str(before)))
    told = run(path)[1]
    assert ("run_eagerly=True" in told) is not bool(before)
    assert ("NumPy has no gradient there." in told) is bool(before)


@pytest.mark.parametrize(
    ("source", "expected"), [pytest.param(*both, id=name, marks=more) for name, both, more in shared(programs())]
)
def test_the_text_under_the_traceback_is_short_names_the_cause_and_mends_the_program(
    source, expected, tmp_path, request, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # some write files
    name = request.node.callspec.id
    chain, loss = "-chain_" in name, name.startswith("losses-")
    path = tmp_path / "program.py"
    path.write_text(source)
    error, told, recording = run(path)
    if expected == "runs":
        assert error is None
        return
    assert error is not None
    if expected == "untold":
        assert told == ""
        return
    rule, _, words = expected.partition(" ")
    assert told.startswith("pyfunc-debug: program.py:")
    own = {line.strip() for line in source.split("\n")}  # lines of the program that the paste indents
    lines = told.split("\n")
    pasted = next((place + 1 for place, line in enumerate(lines) if is_instruction(line.strip())), len(lines))
    head = lines[:pasted]
    assert len(head) <= 6 + (not words)
    assert all(len(line) <= 80 for line in head)
    whole = f"def {NAME}(" in told or "class OfEpoch(" in told  # a whole function or class, always the same
    most = 20 if whole else 12 if chain else 6
    assert len([line for line in lines[len(head) :] if line.strip() not in own]) <= most
    assert [line for line in lines[len(head) :] if re.fullmatch(r" *([\w., ]+) = \1", line)] == []  # `y = y`
    findings = recording.findings()
    finding = next(one for one in findings if one.rule == rule)
    assert sum("but Tout " in one.message for one in findings) <= 1, "the same in other words"
    lost = [one for one in findings if one.severity == "error" and "is not in this process" in one.message]
    assert rule != "serialization" or lost == [], "as above"  # a dataset of an earlier program may still fetch
    assert " ".join(finding.message.split())[:60] in " ".join(told.split()), "one source"
    assert finding.severity == "error"
    if words:
        assert not words.startswith('"') or words.strip('"') in " ".join(told.split())
        assert not apply(told, path)
        return
    assert finding.fix.split("\n")[1:] == lines[len(head) :]
    assert [line for line in IN_OPS.get(name, ()) if line not in told] == []
    assert ("run_eagerly=True" in told) or name != IN_STEPS
    assert "run_eagerly" not in told or not (loss or name.startswith("loops-") or name in IN_OPS)
    assert ".py_function(" not in told or not loss, "a loss of NumPy's is written in ops"
    for number in range(1 if chain or loss else _ROUNDS):  # those are mended at once
        assert apply(told, path), told
        mended = tmp_path / str(number) / "program.py"  # AutoGraph and TensorFlow remember code by file and line
        mended.parent.mkdir()
        path = path.rename(mended)
        names: dict[str, object] = {}
        error, told, recording = run(path, names)
        if error is None:
            assert not loss or all(np.isfinite(one).all() for one in names["model"].get_weights()), "it trains"
            return
    raise AssertionError(f"it still fails: {error}\n{told}\n{path.read_text()}")


KEPT = """
import tensorflow as tf
kept = []
@tf.function
def step(x):
    kept.append(x * 2)
    return x
for _ in range(3):
    step(tf.constant(1.0))
print(float(kept[0]) if READ else len(kept))
"""


@pytest.mark.parametrize("read", [True, False])
def test_a_line_that_the_explanation_replaces_is_not_told_once_more(read, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(KEPT.replace("READ", str(read)))
    error, _, recording = run(path)
    assert (error is not None) == read
    # Of this program: a pipeline of one before it in this process may still end.
    found = [one.rule for one in recording.findings() if one.file == str(path)]
    assert found == ["leaked-tensor" if read else "trace-only"]


LOSS_OF_NUMPY = """
import numpy as np
import keras
class Far(keras.losses.Loss):
    def call(self, y_true, y_pred):
        given = np.sort(y_pred.numpy().ravel())
        return np.float32(np.percentile(given, 90))
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", Far())
model.fit(np.ones([4, 3], "float32"), np.ones([4, 1], "float32"), verbose=0)
"""


def test_a_loss_that_numpy_computes_is_not_run_eagerly_as_nothing_of_it_has_a_gradient(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(LOSS_OF_NUMPY)
    _, told, _ = run(path)
    assert "while Keras traced call" in " ".join(told.split())
    assert "run_eagerly" not in told


LAYER_OF_A_FUNCTION = """
import tensorflow as tf
class Doubler(tf.keras.layers.Layer):
    def call(self, x):
        x = tf.constant(x, dtype=tf.float32)
        return x * 2
layer = Doubler()
@tf.function(jit_compile=True)
def compiled(x):
    return layer(x)
compiled(tf.constant([1.0]))
"""


def test_of_a_layer_in_the_users_function_is_said_who_traced_it(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(LAYER_OF_A_FUNCTION)
    assert "ran once, while compiled was traced" in " ".join(run(path)[1].split())


COMPILED = """
import numpy as np
import tensorflow as tf
def scale(x):
    return np.asarray(x) * 2
def inner(x):
    return tf.numpy_function(scale, [x], tf.float32) + 1
step = tf.function(inner, jit_compile=JIT)
for size in (2, 3):
    print("run", size)
    try:
        step(tf.zeros([size]))
    except tf.errors.InvalidArgumentError as error:
        print("XLA", "unsupported operations" in str(error))
beside = tf.function(lambda x: x * 2, jit_compile=True)
print(scale(beside(tf.ones([2]))))
"""


@pytest.mark.parametrize("jit", [True, False])
def test_that_xla_cannot_compile_a_node_is_said_once_and_before_xla_fails(jit, tmp_path, monkeypatch):
    path, said = tmp_path / "program.py", io.StringIO()
    path.write_text(COMPILED.replace("JIT", str(jit)))
    monkeypatch.setattr("sys.stderr", said)
    monkeypatch.setattr("sys.stdout", said)
    with pfd.record(gil=False):
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    lines = " ".join(said.getvalue().split())
    if not jit:
        assert "pyfunc-debug" not in lines
        return
    notice = "pyfunc-debug: program.py:7: the numpy_function of scale is in inner, which jit_compile=True asks XLA to"
    assert lines.startswith(f"run 2 {notice}"), "before its text"
    assert lines.count("pyfunc-debug") == 1
    assert lines.count("XLA True") == 2


ONE_GENERATOR = f"""
import threading
import numpy as np
import tensorflow as tf
failed = threading.Event()
def numbers():
    failed.wait({HANG_S})  # the first call is inside until the second one has asked
    while True:
        yield np.float32(1)
source = numbers()
def read(_):
    try:
        return next(source)
    except ValueError:
        failed.set()
        raise
options = tf.data.Options()
options.threading.private_threadpool_size = 4
data = tf.data.Dataset.range(4).with_options(options)
data = data.map(lambda x: tf.numpy_function(read, [x], tf.float32), num_parallel_calls=4)
list(data)
"""


def test_one_generator_for_parallel_calls_is_told_with_the_line_of_the_map(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(ONE_GENERATOR)
    error, told, recording = run(path)
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert told.startswith("pyfunc-debug: program.py:13: calls of read that ran at the same time asked one")
    assert apply(told, path)
    assert "tf.float32), num_parallel_calls=1)" in path.read_text()
    assert [one.rule for one in recording.findings() if one.severity == "error"] == ["shared-state"]


FAILING = """
import tensorflow as tf
def to_array(tensor):
    return tensor.numpy().tobytes()
def main():
    return tf.data.Dataset.range(3).map(to_array)
main()
"""


def test_in_a_terminal_it_stands_under_the_traceback_and_the_doctor_says_the_same_from_the_file(tmp_path, capsys):
    (tmp_path / "load.py").write_text(FAILING)
    ran = forked.run("-m", "pyfunc_debug", "record", "-o", "out.pfrec", "load.py", cwd=tmp_path)
    plain = forked.run("load.py", cwd=tmp_path)
    assert ran.returncode == plain.returncode == 1
    said = plain.stderr[plain.stderr.index("Traceback") :].strip()
    assert said.splitlines()[-1] in ran.stderr, "the exception itself stays as it was"
    assert ran.stderr.count("pyfunc-debug: load.py:4: ") == 1
    told = ran.stderr[ran.stderr.index("pyfunc-debug: load.py:4: ") :]
    assert ran.stderr.index("has no attribute 'numpy'") < ran.stderr.index("pyfunc-debug: load.py:4: ")
    assert "Replace load.py:6 by:" in told
    assert ran.stderr.count("Replace load.py:6 by:") == 1, "the findings at the end do not say it again"
    assert cli.main(["doctor", str(tmp_path / "out.pfrec"), "--json"]) == 1
    (finding,) = [one for one in json.loads(capsys.readouterr().out) if one["rule"] == "symbolic-value"]
    assert (finding["file"], finding["line"]) == (str(tmp_path / "load.py"), 4)
    assert "(to_array(tensor) for tensor in ds)" in finding["fix"]


NOT_CONVERTED = """
import tensorflow as tf
def both(x):
    return int(x), float(x) / 3
step = tf.function(lambda x: tf.py_function(both, [x], [tf.int32, tf.int32]))
def main():
    return step(tf.constant(4))
main()
"""


def test_what_tensorflow_did_not_convert_is_told_in_a_terminal_and_in_a_notebook_as_well(tmp_path):
    """Both change the tracebacks for debuggers, in which only TensorFlow's frames say that the body had returned."""
    (tmp_path / "load.py").write_text(NOT_CONVERTED)
    ran = forked.run("-m", "pyfunc_debug", "record", "-o", "out.pfrec", "load.py", cwd=tmp_path)
    line = "step = tf.function(lambda x: tf.py_function(both, [x], [tf.int32, tf.float32]))"
    assert "pyfunc-debug: load.py:5: both returned 1.3333333333333333 (float32) as value" in ran.stderr
    assert line in ran.stderr
    text, _ = in_a_notebook(NOT_CONVERTED)
    assert text.count("pyfunc-debug: cell [1]:5: both returned 1.3333333333333333") == 1
    assert line in text


def in_a_notebook(program, *before):
    """What a cell with this program prints, below others, and the result of one that comes after it."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "pyfunc_debug")
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            for cell in before:
                shell.run_cell(cell, store_history=True)
            shell.run_cell("%%pyfunc_trace --no-panel\n" + program.lstrip("\n"), store_history=True)
            result = shell.run_cell("1 / 0", store_history=True)
    finally:
        jupyter_ext.unload_ipython_extension(shell)
        InteractiveShell.clear_instance()
    return out.getvalue(), result


def test_in_a_notebook_it_stands_under_the_cells_traceback_with_the_cells_number():
    text, result = in_a_notebook(FAILING)
    assert text.count("pyfunc-debug: cell [1]:4: ") == 1
    assert text.index("has no attribute 'numpy'") < text.index("pyfunc-debug: cell [1]:4: ")
    assert "Replace cell [1]:6 by:" in text
    assert isinstance(result.error_in_exec, ZeroDivisionError)


def test_an_exception_that_the_program_catches_is_not_told():
    told = io.StringIO()
    with contextlib.redirect_stderr(told), pfd.record() as recording, pytest.raises(AttributeError):
        tf.data.Dataset.range(3).map(lambda x: x.numpy().tobytes())
    assert told.getvalue() == ""
    assert [one.rule for one in recording.findings() if one.severity == "error"] == []


def test_the_exception_is_the_very_same_with_its_text_and_traceback(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FAILING)
    raised = []
    for recording in (contextlib.nullcontext(), pfd.record()):
        with contextlib.redirect_stderr(io.StringIO()), pytest.raises(AttributeError) as caught, recording:
            exec(compile(path.read_text(), str(path), "exec"), {})
        raised.append(caught.value)
    one, other = raised
    assert type(one) is type(other)
    assert str(one) == str(other)
    assert vars(one).keys() == vars(other).keys()


UNFIT = """
import tensorflow as tf
def join(x, y):
    return tf.linalg.cross(x, y)
tf.data.Dataset.from_tensor_slices((tf.ones((4, 3)), tf.ones((4, 2)))).batch(2).map(join)
"""


def test_of_a_line_that_failed_at_trace_without_a_known_cause_its_names_are_said(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(UNFIT)
    error, told, recording = run(path)
    assert isinstance(error, ValueError)
    assert told == ""
    (finding,) = [one for one in recording.findings() if one.rule == "trace-failed"]
    assert finding.evidence == ("return tf.linalg.cross(x, y), where x is float32[?, 3], y is float32[?, 2]",)
    assert "{{node" not in finding.message  # the traceback above has TensorFlow's words
    assert len(finding.message) < 160
    assert "symbolic" not in finding.message  # with data it fails as well
    assert finding.fix == ""


RAISED_BY_AUTOGRAPH = """
import tensorflow as tf
@tf.function
def step(x):
    raise_it = tf.autograph.experimental.do_not_convert(tf.debugging.assert_shapes)
    words = "The first sentence of many words stands here, and it is long enough. " + "word " * 70
    raise_it([(x, (9,))], message=words)
step(tf.ones(2))
"""


def test_the_words_of_an_unknown_exception_end_with_a_sentence_at_the_users_line(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(RAISED_BY_AUTOGRAPH)
    _, told, recording = run(path)
    assert told == ""
    (finding,) = [one for one in recording.findings() if one.rule == "trace-failed"]
    assert finding.line == 7
    assert "symbolic" not in finding.message
    assert finding.message.endswith("it is long enough")


PREDICTS = """
import numpy as np
import tensorflow as tf
def keras_loss(y_true, y_pred, X, model):
    with tf.GradientTape() as tape:
        tape.watch(X)
        pred = model.predict(X)
        loss = tf.keras.losses.mean_squared_error(y_true, pred)
    return loss + tf.norm(tape.gradient(loss, X))
model2 = tf.keras.Sequential([tf.keras.Input((6, 5)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(4)])
model2.compile("sgd", lambda y_true, y_pred: keras_loss(y_true, y_pred, model2.inputs[0], model2))
model2.fit(np.ones((8, 6, 5), "float32"), np.ones((8, 4), "float32"), verbose=0)
"""


def test_nothing_is_predicted_while_an_explanation_is_looked_for(tmp_path, monkeypatch):
    """The user's model would show its progress, and what it keeps would change."""
    calls = []
    monkeypatch.setattr(tf.keras.Model, "predict", lambda *_, **__: calls.append(1))
    path = tmp_path / "program.py"
    path.write_text(PREDICTS)
    error, _, _ = run(path)
    assert error is not None
    assert calls == []
