"""Lines that ask a symbolic tensor for its text while a graph is built: they print its name instead of its value."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.program.frames import direct_caller, is_generated, is_user

_MOST = 200
"""Lines that are reported."""


class Texts:
    """Watches `Tensor.__str__` and `Tensor.__repr__`, which only tensors of graphs have.

    Args:
      names: TensorFlow's.
      observer: Who is notified of a line.
      user_line: Gives the user's file and line for one of AutoGraph's code.
    """

    def __init__(
        self, names: TensorFlowNames, observer: Observer, user_line: Callable[[str, int], tuple[str, int]]
    ) -> None:
        self._names = names
        self._observer = observer
        self._user_line = user_line
        self._between = (
            os.path.join(names.folder, "python", "autograph") + os.sep, os.path.dirname(logging_file()) + os.sep,
        )  # fmt: skip
        self._seen: set[tuple[str | int, ...]] = set()

    def text(self, original: Any) -> Any:
        """The replacement of `Tensor.__str__` and `Tensor.__repr__`."""

        def text(tensor: Any) -> Any:
            try:
                self._look(tensor, sys._getframe(1))
            except Exception as trouble:
                self._observer.trouble("looking at who prints a tensor", trouble)
            return original(tensor)

        return text

    def _look(self, tensor: Any, frame: FrameType | None) -> None:
        built = getattr(self._names.ops.get_default_graph(), "building_function", False)
        of = getattr(tensor, "graph", None)  # of a function that is traced no more, where none is built
        if not (built or getattr(of, "building_function", False)) or len(self._seen) >= _MOST:
            return
        at = direct_caller(frame, self._between)  # else TensorFlow's or Keras' own text, of an error perhaps
        if at is None:
            return
        if is_generated(at[0]):
            at = self._user_line(*at)
        names = _names(tensor, frame)
        if (*at, *names) not in self._seen and not is_generated(at[0]):
            self._seen.add((*at, *names))
            graph = "" if built else _outermost(of)
            rank = tensor.shape.rank if hasattr(tensor, "shape") else None
            self._observer.notice(
                Notice.PRINTED_SYMBOL, None, None, file=at[0], line=at[1], graph=graph, sources=[at[0]],
                names=list(names), dtype=str(getattr(getattr(tensor, "dtype", None), "name", "")), rank=rank,
            )  # fmt: skip


def _names(tensor: Any, frame: FrameType | None) -> tuple[str, ...]:
    """What the user's function calls the tensor."""
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return tuple(sorted(name for name, one in frame.f_locals.items() if one is tensor)) if frame is not None else ()


def _outermost(graph: Any) -> str:
    """Name of the traced function in whose graph a loop's or a branch's graph is."""
    while getattr(getattr(graph, "outer_graph", None), "building_function", False):
        graph = graph.outer_graph
    return str(getattr(graph, "name", ""))


def logging_file() -> str:
    """Where Python's logging is."""
    import logging

    return logging.__file__
