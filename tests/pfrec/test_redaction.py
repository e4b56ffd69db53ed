"""A redacted copy holds none of the secrets that its recording holds, in no byte, and every command reads it."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import shutil
import socket
import struct
import sys

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from pyfunc_debug.pfrec import redaction
from pyfunc_debug.pfrec.checks import tables

SOURCE = """
import tensorflow as tf

# COMMENTED-SECRET
IMAGES = "RELATIVE-SECRET/images"


def body(x, name):
    print("PRINTED-" + "SECRET", x)
    if x > 2:
        raise ValueError(f"RAISED-{'SECRET'} {name} in {__file__}")
    return x * 2


@tf.function
def step(x, name, mode):
    return tf.py_function(body, [x, name], tf.float64)
"""
TENSOR, PRINTED, RAISED, PYTHON, FOLDER, HOST, CWD, ARGUMENT, RELATIVE = (
    f"{name}-SECRET"
    for name in ("TENSOR", "PRINTED", "RAISED", "PYTHON", "FOLDER", "HOST", "CWD", "ARGUMENT", "RELATIVE")
)
"""Put together here: a recording holds the text of this file too."""
NUMBER = 1 + 0.2345678901234567
SECRETS = {
    "values": [TENSOR.encode(), base64.b64encode(TENSOR.encode()), struct.pack("<d", NUMBER), b"%.4f" % (NUMBER - 5e-5),
               PRINTED.encode(), RAISED.encode(), PYTHON.encode()],
    "sources": [b"COMMENTED-SECRET", RAISED.encode(), b"raise ValueError", b"tf.py_function(body"],
    "paths": [FOLDER.encode(), HOST.encode(), CWD.encode(), RELATIVE.encode()],
    "args": [ARGUMENT.encode()],
}  # fmt: skip
SHOWN = [["show"], ["show", "--all", "--json"], ["show", "--node", "*"], ["show", "--call", "1"], ["show", "--gil"],
         ["show", "--call", "2"], ["show", "--function", "*"], ["doctor", "--fail-on", "never"]]  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    import tensorflow as tf

    folder = tmp_path_factory.mktemp(FOLDER)
    (folder / CWD).mkdir()
    (folder / "train.py").write_text(SOURCE)
    path = tmp_path_factory.mktemp("recorded") / "train.pfrec"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / CWD)
        patch.setattr(sys, "argv", [str(folder / "train.py"), f"--token={ARGUMENT}", f"{RELATIVE}/a.png"])
        patch.setattr(socket, "gethostname", lambda: HOST)
        spec = importlib.util.spec_from_file_location("train_of_secrets", folder / "train.py")
        train = importlib.util.module_from_spec(spec)
        with pfd.record(path, values="full", lines=True):
            spec.loader.exec_module(train)
            stop = pfd.break_on("body", log="x, name")
            train.step(tf.constant(NUMBER, tf.float64), tf.constant(TENSOR), PYTHON)
            with pytest.raises(tf.errors.OpError):
                train.step(tf.constant(3.0, tf.float64), tf.constant(TENSOR), PYTHON)
            stop.remove()
    return path


@pytest.mark.parametrize("kinds", [*SECRETS, "all"])
def test_no_byte_of_the_copy_is_a_secret_and_every_command_reads_it(recorded, tmp_path, kinds, capsys):
    copy = tmp_path / "copy.pfrec"
    assert main(["export", str(recorded), "--format", "pfrec", "--redact", kinds, "-o", str(copy)]) == 0
    before, after = recorded.read_bytes(), copy.read_bytes()
    for kind in SECRETS if kinds == "all" else [kinds]:
        for secret in SECRETS[kind]:
            assert secret in before, "it was planted"
            assert secret not in after
    capsys.readouterr()
    for command in SHOWN:
        assert main([command[0], str(copy), *command[1:]]) == 0, command
    assert main(["export", str(copy), "--format", "chrome", "-o", str(tmp_path / "copy.json")]) == 0
    assert main(["report", str(copy), "-o", str(tmp_path / "copy.html")]) == 0
    said = capsys.readouterr().out
    assert ("its command line" in said) == (kinds not in ("args", "all"))
    assert ("names, types, shapes and times only" in said) == (kinds == "all")
    assert main(["diff", str(recorded), str(copy)]) in (0, 1)
    seen = capsys.readouterr()
    assert "damaged" not in seen.err + seen.out
    with contextlib.closing(pfd.open(copy)) as recording:
        assert [call.status for call in recording.calls()] == ["ok", "error"]
        assert recording.meta["redacted"] == (sorted(SECRETS) if kinds == "all" else [kinds])


def test_calls_and_gradient_calls_stay_apart_in_the_sums(tmp_path):
    import tensorflow as tf

    x = tf.constant(3.0)
    with pfd.record(tmp_path / "two.pfrec", gil=False) as recording, tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(lambda x: tf.py_function(lambda x: x * x, [x], tf.float32))(x)
        tape.gradient(y, x)
    recording.export(tmp_path / "copy.pfrec", "pfrec", redact=["args"])
    with contextlib.closing(pfd.open(tmp_path / "copy.pfrec")) as copy:
        assert [(kind, calls) for kind, calls in copy.reader.rows("SELECT kind, calls FROM summary ORDER BY kind")] == [
            ("forward", 1), ("gradient", 1)
        ]  # fmt: skip


def test_without_redactions_the_copy_is_the_recording(recorded, tmp_path):
    recording = pfd.open(recorded)
    recording.export(tmp_path / "copy.pfrec", "pfrec")
    copy = pfd.open(tmp_path / "copy.pfrec")
    for table in tables():
        rows = [sorted(one.reader.rows(f"SELECT * FROM {table}"), key=repr) for one in (recording, copy)]
        assert rows[0] == rows[1], table
    for one in (recording, copy):
        one.close()


def test_text_that_nobody_said_anything_about_is_left_out(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(redaction, "NAMES", redaction.NAMES - {("node", "body")})
    with contextlib.closing(pfd.open(recorded)) as recording:
        recording.export(tmp_path / "copy.pfrec", "pfrec", redact=["args"])
    with contextlib.closing(pfd.open(tmp_path / "copy.pfrec")) as copy:
        assert [node.body for node in copy.nodes()] == [redaction.GONE]


def test_a_redaction_that_is_not_known_is_refused_and_nothing_is_written(recorded, tmp_path, capsys):
    shutil.copy(recorded, tmp_path / "train.pfrec")
    assert main(["export", str(tmp_path / "train.pfrec"), "--format", "pfrec", "--redact", "value"]) == 2
    assert "redact='value' is not one of values, sources, paths, args" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "train.pfrec"), "--format", "pfrec", "--redact", "all", "-o",
                 str(tmp_path / "train.pfrec")]) == 2  # fmt: skip
    assert [one.name for one in tmp_path.iterdir()] == ["train.pfrec"]
