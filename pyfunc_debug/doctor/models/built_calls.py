"""A layer's `call` under `tf.function` that Keras traced to build it: the graph reads none of the layer's weights.

Keras builds a layer by tracing its call before the weights of the layers in it have values. `tf.function` keeps that
graph, which makes new initial values in each run (keras/src/backend/common/variables.py): nothing fails.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.replacement import definition
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.graphs.python_objects import without_decorator
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a `call` whose graphs all read no weight, one of them with an initializer's values for it."""
    traces: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for _, _, noticed in facts.notices.get(Notice.LAYER_CALL, []):
        traces[noticed["file"], noticed["line"]].append(noticed)
    said = {(one.file, one.line) for one in failures(facts, (rule,))} if traces else set()
    for (file, line), found in traces.items():
        own = {one["object"] for one in found if one.get("initial")} - {one["object"] for one in found if one["reads"]}
        function = definition(file, line)
        if (file, line) in said:
            continue  # that the program failed by it
        if not own or not facts.source(file) or not isinstance(function, ast.FunctionDef):
            continue
        edit = without_decorator(file, facts.source(file), function)
        layer = found[0]["layer"]
        yield Finding(
            rule, "error", None, (),
            f"no weight of {layer} is trained: Keras builds {layer} by tracing its call, before the weights have "
            "values, and tf.function keeps that graph. It makes new initial values each time that it runs, and reads "
            "no weight",
            pastes.written(edit) or f"leave tf.function of {layer}.call out: Keras puts it into a graph of its own",
            file, line, confidence="likely",
        )  # fmt: skip
