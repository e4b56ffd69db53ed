"""`show --follow` prints each finding once, as it appears, and ends with the recording."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug import cli
from pyfunc_debug.cli.follow import follow


def ratio(a, b):
    return (a / b).astype(np.float32)


def test_findings_appear_while_the_program_runs_and_once_each(tmp_path, capsys):
    path = str(tmp_path / "train.pfrec")
    seen = []
    recording = pfd.record(path, gil=False).start()
    one = tf.constant([1.0])
    step = tf.function(lambda b: tf.numpy_function(ratio, [one, b], tf.float32))

    def meanwhile(seconds):
        """What the program does between two looks."""
        seen.append(capsys.readouterr().out)
        looks = len(seen)
        if looks == 4:
            recording.stop()
        else:
            step(tf.constant([float(looks % 2)]))
            recording.reader.rows("SELECT 1")  # writes what is queued

    with np.errstate(all="ignore"):
        assert follow(pfd.open(path), 80, meanwhile) == 0
    seen.append(capsys.readouterr().out)
    assert [text.count("[inf-born]") for text in seen] == [0, 0, 1, 0, 0]
    assert seen[2].startswith("after 2 calls:\n")
    assert seen[-1] == "complete, 3 calls, 1 findings\n"


def test_a_complete_recording_is_told_at_once(tmp_path, capsys):
    path = str(tmp_path / "train.pfrec")
    with pfd.record(path, gil=False):
        tf.numpy_function(ratio, [tf.constant([1.0]), tf.constant([2.0])], tf.float32)
    assert cli.main(["show", path, "--follow"]) == 0
    assert capsys.readouterr().out == "complete, 1 calls, 0 findings\n"


def test_the_users_interrupt_ends_it(tmp_path, capsys):
    path = str(tmp_path / "train.pfrec")

    def interrupted(seconds):
        raise KeyboardInterrupt

    with pfd.record(path, gil=False):
        assert follow(pfd.open(path), 80, interrupted) == 0
