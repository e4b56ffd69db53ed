"""Writes to a TensorArray whose result nothing in the graph reads: the value is not in what is read later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.interception.names import private
from pyfunc_debug.program.frames import user_frames
from pyfunc_debug.records import Frame

_MOST_OPS = 20_000
_MOST_GRAPHS = 100


def unread_writes(graph: Any) -> Iterator[Frame]:
    """The user's lines of such writes, in a graph and in those of its loops and branches."""
    seen: set[int] = set()
    todo = [graph]
    while todo and len(seen) < _MOST_GRAPHS:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        todo.extend(private.nested_graphs(one))
        every = one.get_operations()
        given = {id(each) for each in getattr(one, "outputs", ())}
        for op in every if len(every) <= _MOST_OPS else ():
            if op.type != "TensorListSetItem" or op.outputs[0].consumers() or id(op.outputs[0]) in given:
                continue
            yield from user_frames(op.traceback)[-1:]
