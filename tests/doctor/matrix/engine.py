"""Runs a program of a matrix, pastes what is printed into it, and compares it with the truth.

Each run is a child, forked from a process that has imported TensorFlow and has run nothing yet: what one leaves behind
in TensorFlow, Keras or AutoGraph reaches no other.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug import doctor
from tests.doctor.matrix.places import DEF, PLACES
from tests.doctor.pasting import parts, pasted, pastes, run
from tests.limits import HANG_S

FOLDER = Path(__file__).parent
ROUNDS = 3
OK, RUNS, NARROW = "ok", "runs", "float32"
"""Mended by what was pasted; right as it is; mended, with float32 for NumPy's float64."""
BAD = ("WRONG", "paste fails", "silent", "no paste", "alarm", "piece fails")
"""What is printed with its program. Silent: it ran with another result, and nothing to paste was said.

Alarm: it ran with the right result, and an error or a warning was said. Piece fails: there is no truth to compare with.
"""
_TEXT = {"O", "S", "U"}
"""Kinds of NumPy's dtypes: a tensor of text is an array of bytes."""


@dataclass(frozen=True)
class Program:
    """A program of a matrix.

    Attributes:
      piece: Its name.
      place: Where the piece was put; "" in matrices without places.
      text: The program.
      truth: The program that is run eagerly.
      above: How many lines all programs of the matrix begin with.
    """

    piece: str
    place: str
    text: str
    truth: str
    above: int


@dataclass
class Outcome:
    """What became of a program: the verdict, what was said and the text in each round, and what differs."""

    verdict: str = ""
    rounds: list[tuple[str, str]] = field(default_factory=list)
    difference: str = ""


def warm() -> None:
    """Imports what most programs use, before the children are forked."""
    _ = tf.keras, tf.data, pfd.record, doctor.names


def programs(name: str) -> Iterator[Program]:
    """All programs of a matrix. What its file begins with is above each of them."""
    text = (FOLDER / f"{name}.txt").read_text()
    above = text.partition("=== ")[0]
    for head, rest in parts(text):
        piece, _, truth = rest.partition("--- truth\n")
        texts = above + piece, above + (truth or piece)
        if DEF in piece:
            for where, place in PLACES.items():
                if where == "layer" and "state" in piece:
                    continue  # Keras calls it more often than once for a batch
                yield Program(head, where, place.put(texts[0]), texts[1] + place.truth, above.count("\n"))
        else:
            yield Program(head, "", *texts, above.count("\n"))


def outcome(program: Program) -> Outcome:
    """Runs a program until it is right, or nothing more can be done."""
    found = Outcome()
    wanted = _forked(lambda: _eager(program.truth))
    if isinstance(wanted, str):
        found.verdict, found.difference = "piece fails", wanted
        return found
    text = program.text
    for number in range(ROUNDS + 1):
        given = _forked(lambda text=text: _recorded(text))
        if isinstance(given, str):  # the process has died
            found.difference, told, serious, result = given, "", "", None
            failed = True
        else:
            error, told, serious, result = given
            failed = bool(error)
            found.difference = error or (differs(wanted, result) or "")
        found.rounds.append((told, text))
        if not found.difference:
            found.verdict = ("alarm" if serious else RUNS) if number == 0 else OK
            return found
        if number == ROUNDS or not pastes(told):
            narrow = not failed and differs(wanted, result, narrow=True) is None
            worse = "paste fails" if failed else NARROW if narrow else "WRONG"
            found.verdict = worse if number else "no paste" if failed else "silent"
            return found
        text = pasted(text, told)
    return found


def _forked(work: Callable[[], Any]) -> Any:
    """What it gives in a child; as text, why it gave nothing."""
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            with os.fdopen(ours, "wb") as file:
                pickle.dump(work(), file)
            code = 0
        finally:
            os._exit(code)
    os.close(ours)
    received = bytearray()
    with os.fdopen(theirs, "rb") as file:
        while select.select([file], [], [], HANG_S)[0]:
            some = os.read(file.fileno(), 1 << 16)
            if not some:
                break
            received += some
        else:
            os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return pickle.loads(received) if code == 0 else f"the process ended with {code}"


def _eager(text: str) -> Any:
    """What a program computes without graphs; as text, why it computes nothing."""
    tf.config.run_functions_eagerly(True)
    tf.data.experimental.enable_debug_mode()
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        with contextlib.redirect_stdout(io.StringIO()), _in_a_folder():
            Path("program.py").write_text(text)
            exec(compile(text, os.path.abspath("program.py"), "exec"), names)
            return _results(names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _recorded(text: str) -> tuple[str, str, str, Any]:
    """Why a program failed, what was said with a paste, whether it was a warning or an error, what it computed."""
    names: dict[str, Any] = {}
    with _in_a_folder():
        Path("program.py").write_text(text)
        error, told, recording = run(Path("program.py").absolute(), names)
        findings = [one for one in recording.findings() if one.severity != "note"]
        if error is None:
            fixes = [one for one in findings if pastes(one.fix)]
            told = "\n".join([*(f"{one.rule}: {one.message}" for one in findings), *(one.fix for one in fixes[:1])])
            told = f"pyfunc-debug: {told}" if told else ""
        recording.close()
        failed = f"{type(error).__name__}: {error}" if error is not None else ""
        return failed, told, str(len(findings) or ""), None if failed else _results(names)


@contextlib.contextmanager
def _in_a_folder() -> Iterator[None]:
    """In a new folder, which is on the path: as a program's own is."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        yield


def _results(names: dict[str, Any]) -> Any:
    return {name: plain(names[name]) for name in ("result", "state") if name in names}


def plain(value: Any) -> Any:
    """A value without TensorFlow: arrays for tensors, the other things as they are."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, tf.RaggedTensor):
        return {"ragged": value.to_list()}
    if isinstance(value, tf.sparse.SparseTensor):
        return {"sparse": plain(tf.sparse.to_dense(value))}
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "numpy"):
        return np.asarray(value)
    if isinstance(value, tf.TensorShape):
        return value.as_list()
    return value if value is None or isinstance(value, (bool, int, float, str, bytes)) else type(value).__name__


def differs(wanted: Any, given: Any, path: str = "", narrow: bool = False) -> str | None:
    """How a value differs from what is wanted; None where it does not.

    Args:
      wanted: The truth.
      given: What was computed.
      path: Where in the results it is.
      narrow: Whether float32 may stand for float64.
    """
    here = f"{path or 'it'}: wanted {_short(wanted)}, got {_short(given)}"
    if isinstance(wanted, dict):
        if not isinstance(given, dict) or wanted.keys() != given.keys():
            return here
        return next(
            filter(None, (differs(one, given[key], f"{path}.{key}", narrow) for key, one in wanted.items())), None
        )
    if isinstance(wanted, list) and isinstance(given, list):
        if len(wanted) != len(given):
            return here
        return next(
            filter(None, (differs(*two, f"{path}[{n}]", narrow) for n, two in enumerate(zip(wanted, given)))), None
        )
    if narrow and isinstance(wanted, np.ndarray) and wanted.dtype == np.float64:
        wanted = wanted.astype(np.float32)
    arrays = isinstance(wanted, np.ndarray) and isinstance(given, np.ndarray)
    if arrays and wanted.dtype != given.dtype and not {wanted.dtype.kind, given.dtype.kind} <= _TEXT:
        return here
    if isinstance(wanted, (str, type(None))) and not isinstance(given, np.ndarray):
        return None if wanted == given else here
    if isinstance(given, (str, dict, type(None))):
        return here
    try:
        left, right = np.asarray(wanted), np.asarray(given)
    except ValueError:
        return here
    if left.shape != right.shape:
        return here
    if {left.dtype.kind, right.dtype.kind} <= _TEXT:
        return None if [_text(one) for one in left.flat] == [_text(one) for one in right.flat] else here
    if left.dtype.kind != right.dtype.kind or left.dtype.kind in _TEXT:
        return here
    return None if np.allclose(left, right, rtol=1e-4, atol=1e-5, equal_nan=True) else here


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _short(value: Any) -> str:
    kind = f"{value.dtype}{list(value.shape)} " if isinstance(value, np.ndarray) else f"{type(value).__name__} "
    return (kind + " ".join(str(value).split()))[:160]
