"""The threads of a recording: the pool of TensorFlow's that each belongs to, and how long its calls were under way.

TensorFlow's pools make threads when they need them: each iteration of a dataset may come with new ones. A reader wants
to see "the threads of tf.data", not a hundred of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import Array, Columns
from pyfunc_debug.analysis.facts import ProgramFacts

Json = dict[str, Any]
_CPP = "TF-"
"""How program/threads.py names threads that Python did not make."""


def threads(facts: ProgramFacts, columns: Columns) -> list[Json]:
    """One entry a thread: `id`, `name`, `pool` (None of Python's own), `first_ns` and `last_ns` of its calls.

    `last_ns` is None while one of its calls runs. A thread is tf.data's if most of its calls are of nodes in tf.data's
    functions, else it is of the inter-op pool, which runs the nodes of all other graphs.
    """
    first, last, data, calls = _sums(facts, columns)
    result = []
    for number, name in sorted(facts.threads.items()):
        called = bool(calls[number])
        pool = None
        if name.startswith(_CPP):
            pool = "tf.data" if 2 * data[number] > calls[number] else "inter-op"
        result.append(
            {
                "id": number,
                "name": name,
                "pool": pool,
                "first_ns": int(first[number]) if called else None,
                "last_ns": int(last[number]) if called and last[number] >= 0 else None,
            }
        )
    return result


def _sums(facts: ProgramFacts, columns: Columns) -> tuple[Array, Array, Array, Array]:
    """By thread: begin of the first call, end of the last (-1 while one runs), calls in tf.data, all calls."""
    size = max([0, *facts.threads, int(columns.thread.max(initial=0))]) + 1
    first = np.full(size, np.iinfo(np.int64).max)
    last = np.zeros(size, np.int64)
    np.minimum.at(first, columns.thread, columns.begin)
    np.maximum.at(last, columns.thread, columns.end)
    last[columns.thread[columns.end < 0]] = -1
    of_data = [
        node.id
        for node in facts.nodes.values()
        if node.function in facts.functions and facts.functions[node.function].kind == "tf.data"
    ]
    calls = np.bincount(columns.thread, minlength=size)
    data = np.bincount(columns.thread[np.isin(columns.node, of_data)], minlength=size)
    return first, last, data, calls
