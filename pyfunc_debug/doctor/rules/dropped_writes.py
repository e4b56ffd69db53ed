"""A TensorArray whose `write` gives a new one that nobody takes: in a graph the value is then not written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("dropped-write",)
_METHODS = ("write", "unstack", "scatter", "split")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line, of tf.functions that were traced and of functions that tf.data traced."""
    traced = {trace.function for trace in facts.traces}
    seen: set[tuple[str | None, int]] = set()
    for number, function in facts.functions.items():
        if number not in traced or function.origin != "user":
            continue
        definition = facts.definition(function.file, function.line)
        if definition is None:
            continue
        arrays = {
            target.id for one in pastes.walk(definition, ast.Assign) for target in one.targets
            if isinstance(target, ast.Name) and isinstance(one.value, ast.Call)
            and pastes.last_name(one.value.func) == "TensorArray"
        }  # fmt: skip
        for one in pastes.walk(definition, ast.Expr) if arrays else ():
            called = one.value.func if isinstance(one.value, ast.Call) else None
            owner = called.value if isinstance(called, ast.Attribute) and called.attr in _METHODS else None
            if not isinstance(owner, ast.Name) or owner.id not in arrays or (function.file, one.lineno) in seen:
                continue
            seen.add((function.file, one.lineno))
            text = pastes.text_of(facts, function.file, one.value)
            yield Finding(
                "dropped-write", "warning", None, (),
                f"`{text}` gives a new TensorArray, and {function.name.rpartition('.')[2]} does not take it: in a "
                f"graph {owner.id} stays as it was, without the value",
                pastes.written(pastes.replaced(facts, function.file, {one.value: f"{owner.id} = {text}"})),
                function.file, one.lineno,
            )  # fmt: skip
