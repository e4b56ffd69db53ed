"""The threads of a recording: the pool that each belongs to, and from when to when it was busy.

TensorFlow's pools make threads when they need them: each iteration of a dataset may come with new ones, and a program
may start a thread an epoch. A reader wants to see "the threads of tf.data", not a hundred of them.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import Array, Columns
from pyfunc_debug.analysis.facts import ProgramFacts

Json = dict[str, Any]
_CPP = "TF-"
"""How program/threads.py names threads that Python did not make."""
_NUMBERED = re.compile(r"Thread-\d+(?: \((?P<target>.+)\))?|(?P<executor>.*Executor)-\d+_\d+")
"""Names that Python gives to threads without one: `Thread-7 (evaluate)`, `ThreadPoolExecutor-2_0`."""


def threads(connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns) -> list[Json]:
    """One entry a thread: `id`, `name`, `pool`, `python`, and `first_ns` and `last_ns` of what it did.

    `last_ns` is None while something of it is under way. A thread is tf.data's if most of its calls are of nodes in
    tf.data's functions, else it is of the inter-op pool, which runs the nodes of all other graphs. Threads that Python
    made (`python`) have a pool, the name of their function, where several of that name have none of their own.
    """
    first, last, data, calls = _sums(facts, columns)
    targets = {number: target(name) for number, name in facts.threads.items()}
    often = Counter(name for name in targets.values() if name)
    made = [number for number, name in targets.items() if name and often[name] > 1]
    if made:
        _widen(connection, columns.origin_ns, made, first, last, calls)
    result = []
    for number, name in sorted(facts.threads.items()):
        called = bool(calls[number])
        pool = targets[number] if number in made else None
        if name.startswith(_CPP):
            pool = "tf.data" if 2 * data[number] > calls[number] else "inter-op"
        result.append(
            {
                "id": number,
                "name": name,
                "pool": pool,
                "python": not name.startswith(_CPP),
                "first_ns": int(first[number]) if called else None,
                "last_ns": int(last[number]) if called and last[number] >= 0 else None,
            }
        )
    return result


def target(name: str) -> str:
    """What a thread runs, by the name that Python gave it; empty if somebody named it.

    `Thread-7 (evaluate)` gives evaluate, `Thread-7` Thread, `ThreadPoolExecutor-2_0` ThreadPoolExecutor.
    """
    found = _NUMBERED.fullmatch(name)
    return (found["target"] or found["executor"] or "Thread") if found else ""


def _widen(
    connection: sqlite3.Connection, origin_ns: int, made: list[int], first: Array, last: Array, calls: Array
) -> None:
    """Python's threads start runs and trace graphs as well, and may call no body themselves."""
    spans = connection.execute(
        "SELECT thread, min(start_ns), max(start_ns + duration_ns), count(*), count(duration_ns) FROM"
        " (SELECT thread, start_ns, duration_ns FROM run UNION ALL SELECT thread, start_ns, duration_ns FROM trace)"
        " GROUP BY thread"
    )
    for thread, start, end, all_of_them, ended in spans:
        if thread not in made:
            continue
        first[thread] = min(first[thread], start - origin_ns)
        last[thread] = -1 if last[thread] < 0 or ended < all_of_them else max(last[thread], end - origin_ns)
        calls[thread] += all_of_them


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
