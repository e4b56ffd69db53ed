"""Programs that are run with the recorder, and what it prints done to their text, as a user would do it."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

import pyfunc_debug as pfd

_INSTRUCTION = re.compile(r"^(?:  )?(Put above|Replace(?: lines)?) \S+?:(\d+)(?: to (\d+))?(?: by)?:\n", re.MULTILINE)
_TOLD = "pyfunc-debug: "


def parts(text: str) -> Iterator[tuple[str, str]]:
    """What begins with `=== head` in a text: the heads, and the lines up to the next one."""
    for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = part.partition("\n")
        yield head, rest


def pastes(told: str) -> bool:
    """Whether an explanation or a fix has lines to paste."""
    return _INSTRUCTION.search(f"{told}\n") is not None


def pasted(text: str, told: str) -> str:
    """A file with what an explanation, or a fix of a finding, says done to it."""
    head, *edits = _INSTRUCTION.split(told.removesuffix("\n") + "\n")
    assert edits, told
    assert not head or head.startswith(_TOLD), told
    lines = text.split("\n")
    for verb, first, last, new in zip(edits[::4], edits[1::4], edits[2::4], edits[3::4]):  # last lines first
        end = int(first) - 1 if verb.startswith("Put") else int(last or first)
        lines[int(first) - 1 : end] = new.removesuffix("\n").split("\n")
    return "\n".join(lines)


def run(path: Path, names: dict[str, object] | None = None):
    """What the program raised, what was printed on stderr, and the recording; its globals are put into `names`."""
    error, told = None, io.StringIO()
    names = {} if names is None else names
    names["__name__"] = "__main__"
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        recording = pfd.record(gil=False)
        recording.__enter__()
        try:
            exec(compile(path.read_text(), str(path), "exec"), names)
        except Exception as raised:
            # as if the program had been started: with a frame of this file, the tests would be read as a part of it
            error = raised.with_traceback(raised.__traceback__ and raised.__traceback__.tb_next)
        finally:
            recording.__exit__(type(error) if error else None, error, error and error.__traceback__)
    tf.compat.v1.reset_default_graph()  # a map_fn whose function fails leaves the device of variables in it
    text = told.getvalue()
    return error, text[text.rindex(_TOLD) :].rstrip("\n") if _TOLD in text else "", recording
