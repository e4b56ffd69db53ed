"""Losses and gradients that are not finite: what training functions give, and `GradientTape.gradient` in eager code.

Only what Python gets anyway is read, small and on the CPU; nothing is added to a graph.
"""

from __future__ import annotations

import math
import re
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyfunc_debug.events import SESSION_RUN, Notice, Observer, RunFacts
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.program.frames import own_frame, user_frames

_EACH = 64
"""Results of a function or line that are looked at; of those after them each `_NTH` is."""
_NTH = 16
_KEPT = 32
"""Numbers before the first that is not finite."""
_LARGEST = 100_000
"""Numbers of a gradient."""
_LARGEST_ARRAY = 20_000_000
_MOST_ARRAYS = 20
_APPLIES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "AssignSub", "ScatterSub")
_FLOATS = ("bfloat16", "float32", "float64")  # float16 is trained with a scale by which gradients overflow at times


class NotFinite:
    """Watches what training gives.

    Args:
      names: TensorFlow's.
      observer: Who is notified.
      user_line: Gives the user's file and line for one of AutoGraph's code.
    """

    def __init__(
        self, names: TensorFlowNames, observer: Observer, user_line: Callable[[str, int], tuple[str, int]]
    ) -> None:
        self._names = names
        self._observer = observer
        self._user_line = user_line
        self._counts: dict[Any, int] = {}
        self._places: dict[str, list[int]] = {}
        self._before: dict[Any, deque[float]] = {}
        self._told: set[Any] = set()
        self._here = threading.local()  # .run: the newest one, whose results are in an Optional

    def get_value(self, original: Any) -> Any:
        """The replacement of `Optional.get_value`: Keras' steps give their losses and metrics in one."""

        def get_value(self_: Any, name: Any = None) -> Any:
            try:
                found = original(self_, name)
            except BaseException as error:
                drop_our_frame(error)
                raise
            run, self._here.run = getattr(self._here, "run", None), None
            if run is not None:
                try:
                    if self._look(run, _losses(found), sys._getframe(1)):
                        self._metrics(run, found, sys._getframe(1))
                except Exception as trouble:
                    self._observer.trouble("looking at what a step gave", trouble)
            return found

        return get_value

    def ran(self, run: RunFacts, outputs: Any) -> None:
        """A run has ended, with these tensors."""
        if run.kind != "forward" or run.function is None or run.name in self._told or not outputs:
            return  # None is what a function gives that has no results
        if len(outputs) == 1 and outputs[0].dtype.name == "variant":
            self._here.run = run
        else:
            self._look(run, outputs, sys._getframe(2))

    def _look(self, run: RunFacts, outputs: Sequence[Any], frame: types.FrameType) -> bool:
        """Looks at losses, unless this run is left out; returns whether they are there and finite."""
        name = run.name
        if name in self._told or not self._looks(name) or run.function is None or self._is_asynchronous():
            return False
        places = self._places.get(name)
        if places is None:
            places = self._places[name] = [place for place, one in enumerate(outputs) if _is_number(one)]
        for place in places if len(outputs) > max(places, default=0) else ():
            value = float(outputs[place])
            before = self._before.setdefault((name, place), deque(maxlen=_KEPT))
            if math.isfinite(value):
                before.append(value)
                continue
            self._told.add(name)
            self._tell(run, run.function, frame, "loss", value, before)
            return False
        return bool(places)

    def _metrics(self, run: RunFacts, logs: Any, frame: types.FrameType) -> None:
        """Looks at the metrics beside losses that are finite: the mean over an epoch is NaN if one batch's is."""
        for name, one in logs.items():
            key = (run.name, name)
            if run.function is None or key in self._told or "loss" in str(name) or not _is_number(one):
                continue
            value = float(one)
            if math.isnan(value):
                self._told.add(key)
                self._tell(run, run.function, frame, f"metric {name}", value, ())

    def _tell(
        self, run: RunFacts, function: Any, frame: types.FrameType, what: str, value: float, before: Iterable[float]
    ) -> None:
        user = own_frame(frame)
        where = None if user is None else self._user_line(user.f_code.co_filename, user.f_lineno)
        self._observer.notice(
            Notice.NOT_FINITE, None, None, what=what, run=run.id, function=function.name,
            made=(function.file, function.line), value=str(value), before=list(before),
            count=self._counts[run.name], file=where[0] if where else None, line=where[1] if where else None,
            arrays=_with_nan(user), sources=[one for one in (where and where[0], function.file) if one],
        )  # fmt: skip

    def gradient(self, target: Any, sources: Any, found: Any, frame: types.FrameType) -> None:
        """A tape was asked in a frame for sources, and gave this for a target: looked at in eager code only.

        An infinite number that depends on no variable, and whose gradients are finite, is not taken for a loss: that
        is how functions with a gradient of their own are tried.
        """
        flat = self._names.nest.flatten(target)
        if len(flat) != 1 or not hasattr(flat[0], "numpy"):
            return
        user = own_frame(frame)
        if user is None:
            return
        where = self._user_line(user.f_code.co_filename, user.f_lineno)
        if where in self._told or not self._looks(where) or self._is_asynchronous():
            return
        value = float(flat[0]) if _is_number(flat[0]) else None
        before = self._before.setdefault(where, deque(maxlen=_KEPT))
        if value is None or math.isfinite(value):
            bad = [one for one in self._names.nest.flatten(found) if one is not None and _has_nan(one)]
            if not bad:
                before += [] if value is None else [value]
                return
        elif not any(hasattr(one, "assign") for one in self._names.nest.flatten(sources)) and not any(
            one is not None and _has_nan(one) for one in self._names.nest.flatten(found)
        ):
            return
        self._told.add(where)
        self._observer.notice(
            Notice.NOT_FINITE, None, None, what="gradient" if value is None or math.isfinite(value) else "loss",
            function=user.f_code.co_name, made=None, value=None if value is None else str(value),
            before=list(before), count=self._counts[where], file=where[0], line=where[1], arrays=_with_nan(user),
            sources=[where[0]],
        )  # fmt: skip

    def fetched(self, graph: Any, fetches: Any, found: Any, frame: types.FrameType) -> None:
        """A session gave this for its fetches: the number of which a graph takes the gradient is a loss."""
        pairs = [
            (asked, one) for asked, one in _pairs(fetches, found)
            if type(one).__module__ == "numpy" and type(one).__name__ in _FLOATS and hasattr(asked, "op")
        ]  # fmt: skip
        user = own_frame(frame) if pairs else None
        if user is None:
            return
        where = self._user_line(user.f_code.co_filename, user.f_lineno)
        if where in self._told or not self._looks(where):
            return
        for tensor, one in pairs:
            value, key = float(one), (where, tensor.name)
            before = self._before.setdefault(key, deque(maxlen=_KEPT))
            if math.isfinite(value):
                before.append(value)
            elif _is_minimized(graph, tensor):
                self._told.add(where)
                self._observer.notice(
                    Notice.NOT_FINITE, None, None, what="loss", function=SESSION_RUN, made=None, value=str(value),
                    before=list(before), count=self._counts[where], file=where[0], line=where[1],
                    arrays=_with_nan(user), sources=[where[0], *_sources_of(tensor)],
                )  # fmt: skip
                return

    def _is_asynchronous(self) -> bool:
        """Whether results may still be in the making: to read them would wait for them."""
        return bool(getattr(self._names.context_module, "is_async", bool)())

    def _looks(self, key: Any) -> bool:
        """Whether this result is one of those that are looked at."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return count <= _EACH or count % _NTH == 0


def _pairs(fetches: Any, found: Any) -> list[tuple[Any, Any]]:
    """What a session was asked for, with what it gave for each, where both are lists, dicts or one thing."""
    if isinstance(fetches, dict) and isinstance(found, dict):
        return [pair for key in fetches for pair in _pairs(fetches[key], found.get(key))]
    if isinstance(fetches, (list, tuple)) and isinstance(found, (list, tuple)) and len(fetches) == len(found):
        return [pair for asked, one in zip(fetches, found) for pair in _pairs(asked, one)]
    return [(fetches, found)]


def _is_minimized(graph: Any, tensor: Any) -> bool:
    """Whether ops of a graph are the gradient of a tensor, and change variables."""
    own = re.compile(rf"(?:^|/)gradients(?:_\d+)?/{re.escape(tensor.op.name)}_grad/")
    ops = graph.get_operations()
    return any(own.search(op.name) for op in ops) and any(op.type.startswith(_APPLIES) for op in ops)


def _sources_of(tensor: Any) -> list[str]:
    """The file of the user's line that made a tensor."""
    return [one.file for one in user_frames(tensor.op.traceback or ())[-1:]]


def _losses(logs: Any) -> list[Any]:
    """Of what a step of Keras' gives."""
    return [one for name, one in logs.items() if "loss" in str(name)] if isinstance(logs, dict) else []


def _is_number(tensor: Any) -> bool:
    """Whether a value is an eager tensor of one float, on the CPU."""
    dtype = getattr(getattr(tensor, "dtype", None), "name", "")
    return dtype in _FLOATS and hasattr(tensor, "numpy") and tensor.shape.rank == 0 and "CPU" in str(tensor.device)


def _has_nan(tensor: Any) -> bool:
    """Whether a gradient is an eager tensor that holds NaN; one of a few numbers, on the CPU."""
    import numpy as np

    tensor = getattr(tensor, "values", tensor)  # of IndexedSlices
    if getattr(getattr(tensor, "dtype", None), "name", "") not in _FLOATS or not hasattr(tensor, "numpy"):
        return False
    if (tensor.shape.num_elements() or 0) > _LARGEST or "CPU" not in str(tensor.device):
        return False
    return bool(np.isnan(np.asarray(tensor.numpy(), np.float32)).any())


def _with_nan(frame: types.FrameType | None) -> Sequence[tuple[str, int, int]]:
    """The arrays of a frame and its module that hold NaN: their names, the rows with NaN, and all rows."""
    import numpy as np

    found: list[tuple[str, int, int]] = []
    if frame is None:
        return found
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if type(value) is not np.ndarray or value.dtype.kind != "f" or not 0 < value.size <= _LARGEST_ARRAY:
            continue
        rows = np.isnan(value.reshape(len(value) if value.ndim else 1, -1)).any(axis=1)
        if rows.any() and len(found) < _MOST_ARRAYS:
            found.append((name, int(rows.sum()), rows.size))
    return found
