"""What is told of the line of a body that raised."""

from __future__ import annotations

import pytest
import tensorflow as tf

import pyfunc_debug as pfd

PROGRAM = """
import tensorflow as tf


def load(path):
    raise OSError(path[:3])


def named(path):
    path = path.numpy().decode()
    name = path.rpartition("/")[2]
    return load(name + ".npy")


tf.py_function(named, [tf.constant("folder/secret")], tf.float32)
"""


@pytest.mark.parametrize("values", ["summary", "none"])
def test_texts_are_shown_with_those_of_the_line_that_called_it_where_values_are_kept(values, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    recording = pfd.record(values=values, gil=False)
    with pytest.raises(tf.errors.UnknownError), recording:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    [told] = [one for one in recording.findings() if one.rule == "body-raised"]
    said = " ".join(told.evidence)
    kept = "in line 6: path is 'secret.npy'" in said
    above = "in line 12, which called it: path is 'folder/secret', name is 'secret'" in said
    assert (kept, above) == (values == "summary",) * 2
    assert ("path is str of 10" in said) == (values == "none")


OBJECT = """
import tensorflow as tf


class Loader:
    def __init__(self, scale="2", limit=None):
        self.scale = scale
        self.limit = limit

    def read(self, image):
        raise OSError(f"{self.scale} {self.limit}")

    def body(self, image):
        if self.scale:
            return self.read(image)


list(tf.data.Dataset.range(1).map(lambda i: tf.py_function(Loader().body, [i], tf.float32)))
"""


def test_what_the_line_reads_of_an_object_is_shown_and_nothing_that_autograph_added(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(OBJECT)
    recording = pfd.record(gil=False)
    with pytest.raises(tf.errors.UnknownError), recording:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    [told] = [one for one in recording.findings() if one.rule == "body-raised"]
    said = " ".join(told.evidence)
    assert "self.scale is '2', self.limit is None" in said
    assert "do_return" not in said
