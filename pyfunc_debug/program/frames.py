"""Which lines are the user's: stacks without frames of TensorFlow, Keras, Jupyter, the standard library and ours."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.records import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIBRARIES = (
    "tensorflow", "keras", "tf_keras", "tf_slim", "IPython", "ipykernel", "ipykernel_launcher", "ipywidgets",
    "traitlets", "tornado", "zmq", "jupyter_client", "nbclient", "debugpy", "pluggy", "_pytest", "pytest", "coverage",
    "xdist", "execnet",
)  # fmt: skip
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
_OURS = tuple(os.path.join(_ROOT, name) + os.sep for name in ("pyfunc_debug", "jupyter_ext"))
_STDLIB = tuple({sysconfig.get_path(key) + os.sep for key in ("stdlib", "platstdlib")})
_SITE = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_EXECNET = f"{os.sep}execnet{os.sep}"
_LAUNCHERS = tuple(
    f"{os.sep}{folder}{os.sep}{name}"
    for folder in ("bin", "Scripts")
    for name in ("pyfunc-debug", "pytest", "py.test", "ipython", "jupyter", "jupyter-lab", "coverage")
)
"""Scripts that pip makes: their `sys.exit(main())` is nobody's line."""
_REMEMBERED = 4096
_DEMO = _OURS[0] + "demo" + os.sep


@functools.lru_cache(maxsize=4096)
def is_tensorflow(filename: str) -> bool:
    """Whether code of this file belongs to TensorFlow or Keras themselves."""
    return any(f"{site}{name}{os.sep}" in filename for site in _SITE for name in ("tensorflow", "keras", "tf_keras"))


@functools.lru_cache(maxsize=4096)
def is_keras(filename: str) -> bool:
    """Whether code of this file belongs to Keras, also to one that TensorFlow brings along."""
    inside = os.path.join("tensorflow", "python", "keras") + os.sep
    return is_tensorflow(filename) and any(
        f"{site}{name}" in filename for site in _SITE for name in (f"keras{os.sep}", f"tf_keras{os.sep}", inside)
    )


def is_generated(filename: str) -> bool:
    """Whether a file was written by AutoGraph."""
    return "__autograph_generated_file" in filename


@functools.lru_cache(maxsize=4096)
def is_user(filename: str) -> bool:
    """Whether a line of this file is shown to the user as theirs.

    Other packages in site-packages count as the user's: a library author debugs their own.
    """
    if filename.startswith(_OURS):
        return filename.startswith(_DEMO)  # the demo is a user's program that happens to be shipped
    if filename.startswith("<"):
        return filename.startswith(("<ipython-input", "<stdin", "<string"))
    if filename.endswith(_LAUNCHERS):
        return False
    for site in _SITE:
        _, found, rest = filename.rpartition(site)
        if found:
            return rest.split(os.sep, 1)[0].removesuffix(".py") not in _LIBRARIES
    return not filename.startswith(_STDLIB)


def is_installed(filename: str) -> bool:
    """Whether a file belongs to an installed package, TensorFlow or another; frames of Cython name their source."""
    return filename.endswith((".pyx", ".pxd")) or any(site in filename for site in _SITE)


Site = tuple[str, int, str]
"""File, line and function of one of the user's frames."""


def caller() -> Site | None:
    """The innermost user frame of this thread; None if there is none. Some 5 us, half a microsecond a frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_user(code.co_filename):
            return code.co_filename, frame.f_lineno, code.co_name
        frame = frame.f_back
    return None


def direct_caller(frame: FrameType | None, between: tuple[str, ...], farthest: int = 40) -> tuple[str, int] | None:
    """The user's file and line of a frame, or of one further out with nothing but files of some folders between."""
    for _ in range(farthest):
        if frame is None:
            return None
        file = frame.f_code.co_filename
        if is_user(file):
            return file, frame.f_lineno
        if not file.startswith(between):
            return None
        frame = frame.f_back
    return None


def own_caller() -> Site | None:
    """The same, but a line of an installed package only where there is no other."""
    frame = own_frame(sys._getframe(1))
    return caller() if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def own_frame(frame: FrameType | None) -> FrameType | None:
    """A frame of a file of the user's own, no installed package's: this one, or the nearest further out."""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user(file) and not is_installed(file):
            return frame
        frame = frame.f_back
    return None


def is_called_by(part: str) -> bool:
    """Whether a file whose path holds a text is among this thread's frames."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if part in frame.f_code.co_filename.replace("\\", "/"):
            return True
        frame = frame.f_back
    return False


_Place = tuple[int, CodeType, int, Site]


class RepeatedCaller:
    """`caller()` for what is called again and again, from one line most of the time: then it takes 1 us.

    It remembers by key how deep the frame was and looks there first. The instruction is compared and not the line,
    which takes longer to work out. Were the same instruction to lead to the same key on a way of the same length
    through code of the user's, the line would be that of the outer of the two frames.
    """

    def __init__(self) -> None:
        self._known: dict[Any, _Place] = {}
        self._places: dict[_Place, _Place] = {}  # a program that makes functions in a loop has one place for them all

    def __call__(self, key: Any) -> Site | None:
        """The innermost user frame of this thread."""
        known = self._known.get(key)
        if known is not None:
            try:
                frame = sys._getframe(known[0])
                if frame.f_lasti == known[2] and frame.f_code is known[1]:
                    return known[3]
            except ValueError:  # the stack is not as deep
                pass
        return self._walk(key)

    def _walk(self, key: Any) -> Site | None:
        depth = 0
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if is_user(code.co_filename):
                site = code.co_filename, frame.f_lineno, code.co_name
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                    self._places.clear()
                place = depth, code, frame.f_lasti, site
                self._known[key] = self._places.setdefault(place, place)
                return site
            frame = frame.f_back
            depth += 1
        return None


def line_text(filename: str, line: int) -> str:
    """The source line, stripped; empty when it is not available."""
    return linecache.getline(filename, line).strip()


def user_frames(entries: Iterable[Any]) -> tuple[Frame, ...]:
    """User frames of a stack of TensorFlow (`op.traceback`) or of `traceback`, in the order given.

    A lambda that AutoGraph converts has two there, with one frame of AutoGraph's between them. A worker of
    pytest-xdist's begins with a `python -c` of execnet's, which is nobody's line.
    """
    found: list[Frame] = []
    outer, scoped = None, False
    for entry in entries:
        at = entry.filename, entry.lineno, entry.name
        if is_user(entry.filename):
            if not (scoped and at == outer):
                found.append(_frame(*at[:2], entry.name or "<lambda>", entry.line or line_text(*at[:2])))
            outer, scoped = at, False
        else:
            scoped = entry.name == "with_function_scope"
            if found and _EXECNET in entry.filename:
                found = [one for one in found if one.file != "<string>"]
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def _frame(file: str, line: int, function: str, text: str) -> Frame:
    """One object for equal frames: thousands of nodes are made by the same lines."""
    return Frame(file, line, function, text)


def failure_frames(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    """(file, line, function) of the user frames of an exception, outermost first. Reads no source: cheap."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_user(code.co_filename):
            found.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return found


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """The same traceback without the frames that are not the user's; None if none is."""
    entries = []
    while traceback is not None:
        if is_user(traceback.tb_frame.f_code.co_filename):
            entries.append(traceback)
        traceback = traceback.tb_next
    found: TracebackType | None = None
    for entry in reversed(entries):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found
