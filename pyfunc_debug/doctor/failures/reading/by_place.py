"""Calls whose arguments are given by name, read as if they were given by place: `fit(x=a, y=b)` as `fit(a, b)`."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.reading.callables import taken
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import calls

_OF_METHODS = {
    "fit": ("x", "y"), "evaluate": ("x", "y"), "predict": ("x",), "compile": ("optimizer", "loss"),
    "train_on_batch": ("x", "y"), "test_on_batch": ("x", "y"), "predict_on_batch": ("x",),
    "map": ("map_func",), "flat_map": ("map_func",), "interleave": ("map_func",), "batch": ("batch_size",),
    "padded_batch": ("batch_size", "padded_shapes"), "shuffle": ("buffer_size",), "repeat": ("count",),
    "take": ("count",), "skip": ("count",), "filter": ("predicate",), "prefetch": ("buffer_size",),
    "apply_gradients": ("grads_and_vars",),
    "gradient": ("target", "sources"), "jacobian": ("target", "sources"), "minimize": ("loss", "var_list"),
    "watch": ("tensor",), "set_shape": ("shape",), "write": ("index", "value"),
}  # fmt: skip
"""Of objects that no name of the frames stands for."""


def by_place(source: Source, situation: Situation) -> Situation:
    """Makes arguments without a place of such that have one, from the first on, where the called one is known."""
    spot = situation.last
    if spot is None:
        return situation
    for call in calls(source.tree):
        if not call.keywords or any(isinstance(one, ast.Starred) for one in call.args):
            continue
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        places = taken(call, spot) or _OF_METHODS.get(method, ())
        while call.keywords and len(call.args) < len(places):
            wanted = places[len(call.args)]
            given = next((one for one in call.keywords if one.arg == wanted), None)
            if given is None:
                break
            call.keywords.remove(given)
            call.args.append(given.value)
    return situation
