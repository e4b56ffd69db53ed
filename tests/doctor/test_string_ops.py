"""A body of texts that is saved with a model is written with tf.strings, which gives the same; or is left alone."""

from __future__ import annotations

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug import doctor
from tests.doctor.pasting import pasted

MODEL = """
class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, texts):
        out = CALL
        out.set_shape([None])
        return out
"""
PY, NUMPY = "tf.py_function(clean, [texts], tf.string)", "tf.numpy_function(clean, [texts], tf.string)"
SLUGS = '''
def clean(texts):
    """Letters and blanks."""
    out = []
    for t in texts.numpy():
        t = t.decode().lower()
        out.append(re.sub(r"[^a-zäß ]", "", t))
    return tf.constant(out)
'''
COMPILED = """
DIGITS = re.compile(r"([0-9]+)-([0-9]+)")
def clean(values):
    return np.array([
        DIGITS.sub(r"\\2/\\g<1>", one.decode("utf-8")).replace("a.b", "\\\\") for one in values.tolist()
    ], object)
"""
MARKED = """
def clean(words):
    found = []
    for word in words:
        text = word.decode()
        mark = text.upper() + "!"
        found.append(f"<{mark}> {text}".encode())
    return np.array(found, dtype=object)
"""
EMPTY = """
def clean(texts):
    return tf.constant([re.sub("x*", "-", t.decode()) for t in texts.numpy()])
"""
AHEAD = """
def clean(texts):
    return tf.constant([re.sub(r"a(?=b)", "", t.decode()) for t in texts.numpy()])
"""
CHOSEN = """
def clean(texts):
    out = []
    for t in texts.numpy():
        if t:
            out.append(t.lower())
    return tf.constant(out)
"""
SORTED = """
def clean(texts):
    return tf.constant(sorted(t.decode() for t in texts.numpy()))
"""
TEXTS = ["Größe A.b, 12-345!", "a.b xa.b ÄÖ 1-2", "", "ABC \\ ab"]


def program(source, call):
    return f"import re\nimport numpy as np\nimport tensorflow as tf\n{source}{MODEL.replace('CALL', call)}"


def loaded(text, path):
    path.parent.mkdir()
    path.write_text(text)
    module = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), module)
    return module["Model"]()


def fix_and_result(text, folder, front="python"):
    """The fix of the finding, and what the model gave."""
    model = loaded(text, folder / "first" / "program.py")
    with pfd.record(gil=False) as recording:
        given = model.serve(tf.constant(TEXTS)).numpy().tolist()
        tf.saved_model.save(model, str(folder / "saved"), signatures=model.serve)
    (found,) = doctor.examine(recording.reader, front, select=["serialization"])
    return found.fix, given


@pytest.mark.parametrize(
    ("source", "call"), [(SLUGS, PY), (COMPILED, NUMPY), (MARKED, NUMPY)], ids=["slugs", "compiled", "marked"]
)
def test_the_pasted_ops_give_the_same_texts_after_loading(tmp_path, source, call):
    text = program(source, call)
    fix, wanted = fix_and_result(text, tmp_path)
    mended = loaded(pasted(text, fix), tmp_path / "second" / "program.py")
    assert "py_function" not in pasted(text, fix)
    tf.saved_model.save(mended, str(tmp_path / "again"), signatures=mended.serve)
    assert tf.saved_model.load(str(tmp_path / "again")).serve(tf.constant(TEXTS)).numpy().tolist() == wanted


@pytest.mark.parametrize(
    ("source", "call"), [(AHEAD, PY), (EMPTY, PY), (SORTED, PY)], ids=["lookahead", "empty", "sorted"]
)
def test_what_has_no_op_is_left_to_python(tmp_path, source, call):
    fix, _ = fix_and_result(program(source, call), tmp_path)
    assert "tf.strings" not in fix
    assert "clean runs Python at line" in fix
    assert "pyfunc_debug.graduate(clean)" in fix


def test_a_shell_is_offered_no_call_of_python(tmp_path):
    fix, _ = fix_and_result(program(SORTED, PY), tmp_path, "shell")
    assert fix.endswith("or behind, on its inputs, which are returned then")


def test_a_loop_that_chooses_is_no_rewriting_of_each_text(tmp_path):
    model = loaded(program(CHOSEN, PY), tmp_path / "first" / "program.py")
    with pfd.record(gil=False) as recording:
        tf.saved_model.save(model, str(tmp_path / "saved"), signatures=model.serve)
    (found,) = recording.findings(select=["serialization"])
    assert "tf.strings" not in found.fix


def test_blanks_of_other_scripts_are_told(tmp_path):
    source = (
        "\ndef clean(texts):\n    return np.array([re.sub(r'\\s+', ' ', t.decode()).strip() for t in texts], object)\n"
    )
    fix, _ = fix_and_result(program(source, NUMPY), tmp_path)
    assert fix.endswith("# of letters, digits and blanks only those of ASCII count")
