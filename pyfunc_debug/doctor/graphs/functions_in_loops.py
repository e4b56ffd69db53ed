"""tf.functions that are made in a loop, read its names, and are traced when it is over."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.layers_in_loops import loops_read
from pyfunc_debug.records import Function, GraphTrace


def traced_behind(facts: Facts) -> Iterator[tuple[str, ast.FunctionDef | ast.Lambda, int, int, list[str]]]:
    """The functions of which several tf.functions were made in a loop, and none was traced or called in it.

    Yields:
      File, function, the loop's line, how many tf.functions there are, and the loop's names that it reads.
    """
    traces: dict[int, list[GraphTrace]] = defaultdict(list)
    for trace in facts.traces:
        traces[trace.function].append(trace)
    for one in facts.functions.values():
        objects = {trace.object for trace in traces[one.id]} - {None}
        if one.origin != "user" or one.kind != "tf.function" or one.file is None or len(objects) < 2:
            continue
        tree, function = facts.tree(one.file), facts.definition(one.file, one.line)
        if tree is None or not isinstance(function, (ast.FunctionDef, ast.Lambda)):
            continue
        lines = _called(facts, one, traces[one.id])
        found: dict[int, list[str]] = {}
        for loop, read in loops_read(tree, function):
            own = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
            if lines and not any(file == one.file and line in own for file, line in lines):
                found[loop.lineno] = read
        if found:
            every = [name for read in found.values() for name in read]
            yield one.file, function, min(found), len(objects), list(dict.fromkeys(every))


def _called(facts: Facts, function: Function, traces: list[GraphTrace]) -> list[tuple[str, int]]:
    """The lines on the stacks of a function's runs; none where a trace was not for the run that came next."""
    rows = facts.reader.rows(
        "SELECT r.trace, r.start_ns, s.frames FROM run r LEFT JOIN stack s ON s.id = r.site "
        "WHERE r.kind = 'forward' AND r.function = ? ORDER BY r.start_ns", (function.id,),
    )  # fmt: skip
    first: dict[int, int] = {}
    for trace, start, _ in rows:
        first.setdefault(trace, start)
    order = sorted(traces, key=lambda one: one.start_ns)
    for one, following in zip(order, [*order[1:], None]):
        ran = first.get(one.id)
        if ran is None or (following is not None and ran > following.start_ns):
            return []  # as `get_concrete_function` does it, which may be in the loop
    if any(frames is None for *_, frames in rows):
        return []
    return [(file, line) for *_, frames in rows for file, line, *_ in json.loads(frames)]
