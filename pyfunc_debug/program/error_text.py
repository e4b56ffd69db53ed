"""One line for an exception, and the user's line that it came from.

TensorFlow and AutoGraph put their own words first ("Graph execution error:", "in user code:", the op's stack), wrap
what a body raised, and decorate messages with names of devices and ops. What happened stands somewhere below.
"""

from __future__ import annotations

import re

from pyfunc_debug.program.frames import failure_frames, is_generated, is_user

_LONGEST = 200
_FRAME = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+), in ')
_WORDS = re.compile(r"\n    (?=\w*(?:Error|Exception|Warning)\w*: )")
_NOT_THE_CAUSE = re.compile(r"\s*$|Graph execution error|Detected at node|Node: |\t|\s+\S|\d+ root error|\s*\(\d+\) ")
_DECORATION = re.compile(r"\{\{function_node [^}]*\}\}\s*|\s*\[Op:[^\]]*\]|\s+name:\s*\S*$")


def is_interrupt(name: str, message: str) -> bool:
    """Whether an exception is Ctrl-C's, as pybind11 tells of one that came while a session of TensorFlow failed, too.

    Args:
      name: Name of the exception's type.
      message: Its text.
    """
    return name == "KeyboardInterrupt" or (name == "RuntimeError" and "REPLACED BY KeyboardInterrupt" in message)


def error_text(error: BaseException) -> tuple[str, str | None]:
    """What happened, as `Type: first line`, and where.

    Args:
      error: Any exception. When it is TensorFlow's for one that a body raised, that one is described.

    Returns:
      The text, and `file.py:12` of the innermost of the user's lines, or None where it is not known.
    """
    error = getattr(error, "pyfunc_exception", None) or error
    name, lines = type(error).__name__, str(error).strip().splitlines()
    if not lines:
        return name, _source_line(error, [])
    if lines[0].startswith("in user code"):  # AutoGraph: frames by four spaces, then `Type: message`
        text = next((line for line in lines[1:] if re.match(r"    \S", line) and not _FRAME.match(line)), lines[0])
        return text.strip()[:_LONGEST], _source_line(error, lines)
    if lines[0].startswith("Graph execution error"):
        lines_of_cause = [line for line in lines if not _NOT_THE_CAUSE.match(line)]
        return _undecorated(name, lines_of_cause or lines), _source_line(error, lines)
    return _undecorated(name, lines), _source_line(error, [])


def kept_text(error: BaseException, most: int) -> str:
    """An exception's text, with what happened in it: AutoGraph says that behind all of its frames."""
    text = str(error)
    if len(text) <= most or not text.startswith("in user code"):
        return text[:most]
    words = list(_WORDS.finditer(text))
    end = text[words[-1].start() :][: most // 2] if words else ""
    return text[: most - len(end)] + end


def plain(line: str) -> str:
    """A line of an exception's text without the names of ops and functions that TensorFlow puts around it."""
    return _DECORATION.sub("", line).strip()


def _undecorated(name: str, lines: list[str]) -> str:
    return f"{name}: {plain(lines[0])}"[:_LONGEST]


def _source_line(error: BaseException, lines: list[str]) -> str | None:
    """The last user frame that the text names; else that of the traceback."""
    frames = [(match["file"], int(match["line"])) for match in map(_FRAME.match, lines) if match]
    frames = [frame for frame in frames if is_user(frame[0])]
    if not frames:
        frames = [frame[:2] for frame in failure_frames(error.__traceback__) if not is_generated(frame[0])]
    return f"{frames[-1][0].rpartition('/')[2]}:{frames[-1][1]}" if frames else None
