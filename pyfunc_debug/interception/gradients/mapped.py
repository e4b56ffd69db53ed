"""Gradients of the user's that `tf.vectorized_map` drops: it turns `@tf.custom_gradient` into a plain identity.

What it vectorizes becomes new ops (parallel_for/pfor.py). The op that carries a custom gradient has a converter, which
forgets the gradient, and a node has none: it runs in a loop of its own, element by element. A gradient through that
loop is TensorFlow's own: nothing for a numpy_function, the body's tape for a py_function.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.graphs.library import PYFUNC_OPS, python_ops
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.tokens import token_of
from pyfunc_debug.program.frames import is_tensorflow, is_user, user_frames

_FALLBACK = "pfor.py"
_FARTHEST = 5000


class MappedGradients:
    """Watches the gradients of loops, and what is mapped.

    Args:
      names: TensorFlow's.
      observer: Who is notified of a gradient that is not used.
    """

    def __init__(self, names: TensorFlowNames, observer: Observer) -> None:
        self._names = names
        self._observer = observer
        self._reported: set[str] = set()
        # By graph: names of the ops that results come from, and dtypes. A tensor would keep its graph alive.
        self._mapped: weakref.WeakKeyDictionary[Any, list[tuple[tuple[str, ...], str | None]]] = (
            weakref.WeakKeyDictionary()
        )

    def mapped(self, original: Any) -> Any:
        """The replacement of what `vectorized_map` calls in a graph: keeps the results."""

        def pfor(*args: Any, **kwargs: Any) -> Any:
            try:
                found = original(*args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                ends = tuple(one.op.name for one in self._names.nest.flatten(found) if hasattr(one, "op"))
                self._mapped.setdefault(self._names.ops.get_default_graph(), []).append((ends, _dtypes(found)))
            except Exception as trouble:
                self._observer.trouble("looking at a vectorized_map", trouble)
            return found

        return private.as_it_is(pfor)

    def loop_gradient(self, original: Any) -> Any:
        """The replacement of the gradient of a loop in a graph."""

        def gradient(op: Any, *grads: Any) -> Any:
            try:
                self._look(op.outputs[0].op)
            except Exception as trouble:
                self._observer.trouble("looking for a gradient of vectorized_map", trouble)
            try:
                return original(op, *grads)
            except BaseException as error:
                drop_our_frame(error)
                raise

        return gradient

    def _look(self, loop: Any) -> None:
        if "/pfor/" not in loop.name or _FALLBACK not in _files(loop):
            return
        for copy in private.loop_body(loop).get_operations():
            if copy.type not in PYFUNC_OPS:
                continue
            token = token_of(copy)
            if token not in self._reported and any(_has_own_gradient(one) for one in _made(copy, loop.graph, token)):
                self._reported.add(token)
                site = user_frames(loop.traceback)[-1:]
                self._observer.notice(
                    Notice.MAPPED_GRADIENT, token, None, file=site[0].file if site else None,
                    line=site[0].line if site else None, result=self._result(loop),
                )  # fmt: skip

    def _result(self, loop: Any) -> str | None:
        """What the function that is mapped returns, as map_fn wants to know it; None where that is not known."""
        for place, graph in enumerate(_around(loop.graph)):
            results = list(self._mapped.get(graph, ()))
            if place == 0:  # in a function that is mapped, the loop is in the graph of that function
                results = [one for one in results if _leads(loop, one[0])]
            if results:
                return results[0][1] if len(results) == 1 else None
        return None


def _files(op: Any) -> set[str]:
    return {os.path.basename(entry.filename) for entry in op.traceback or ()}


def _around(graph: Any) -> list[Any]:
    """A graph, and those that it is made in, innermost first."""
    found = [graph]
    while getattr(found[-1], "outer_graph", None) is not None:
        found.append(found[-1].outer_graph)
    return found


def _made(copy: Any, graph: Any, token: str) -> Iterator[Any]:
    """The ops that the user's code made of a node, of which a loop has a copy."""
    for _, op in python_ops(*_around(graph)):
        if op is not copy and token_of(op) == token and _FALLBACK not in _files(op):
            yield op


def _has_own_gradient(op: Any) -> bool:
    """Whether a function of the user's under `tf.custom_gradient` made an op: not one of TensorFlow's own."""
    entries = list(op.traceback or ())
    for place, entry in enumerate(entries):
        if entry.name == private.CUSTOM_GRADIENT and is_tensorflow(entry.filename):
            further = [one.filename for one in entries[place + 1 :] if f"{os.sep}autograph{os.sep}" not in one.filename]
            if further and is_user(further[0]):
                return True
    return False


def _leads(op: Any, ends: Sequence[str]) -> bool:
    """Whether some ops of its graph depend on an op."""
    todo, seen = [op.graph.get_operation_by_name(name) for name in ends], set[int]()
    while todo and len(seen) < _FARTHEST:
        one = todo.pop()
        if one is op:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            todo.extend(each.op for each in one.inputs)
    return False


def _dtypes(result: Any) -> str | None:
    """`(tf.float32, tf.int64)` for a pair of tensors; None for what is none of the plain structures of them."""
    if hasattr(result, "dtype") and hasattr(result, "op"):
        return f"tf.{result.dtype.name}"
    if type(result) in (tuple, list):
        parts = [_dtypes(one) for one in result]
        end = "," if len(parts) == 1 and type(result) is tuple else ""
        left, right = "()" if type(result) is tuple else "[]"
        return None if None in parts else f"{left}{', '.join(map(str, parts))}{end}{right}"
    if type(result) is dict:
        named = {key: _dtypes(one) for key, one in result.items()}
        whole = None not in named.values() and all(isinstance(key, str) for key in named)
        return f"{{{', '.join(f'{key!r}: {one}' for key, one in named.items())}}}" if whole else None
    return None
