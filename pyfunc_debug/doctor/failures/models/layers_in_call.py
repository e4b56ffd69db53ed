"""Layers that a layer or a model makes in its `call`: new ones, with new variables, each time that it is traced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, of_keras

RULE = "variable-in-function"
_MOST = 30
"""Lines from the end of __init__ to the last that changes."""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line that failed makes a layer and calls it."""
    for spot in reversed(situation.spots):
        function, statement = spot.function, spot.source.statement(spot.line)
        owner = spot.variables.get("self")
        if not isinstance(function, ast.FunctionDef) or statement is None or not is_layer(owner):
            continue
        here = [one for one in _made(function, spot) if one in set(calls(statement))]
        if here:
            return _explanation(spot, function, here[0])
    return None


def _made(function: ast.FunctionDef, spot: Spot) -> Iterator[ast.Call]:
    """Calls that make a layer which is called at once: `Conv2D(8, 3)(x)`."""
    for one in calls(function):
        made = one.func
        if isinstance(made, ast.Call) and _is_class(made.func, spot):
            yield made


def _is_class(node: ast.expr, spot: Spot) -> bool:
    value: Any = spot.value(dotted(node).partition(".")[0])
    for part in dotted(node).split(".")[1:]:
        value = getattr(value, part, None)
    return isinstance(value, type) and of_keras(value, "Layer")


def _explanation(spot: Spot, function: ast.FunctionDef, made: ast.Call) -> Explanation:
    source = spot.source
    cause = (
        f"`{short(source.text(made), 40)}` makes a layer, and with it variables, each time that {function.name} is "
        "traced: only the first trace may make them, and each would have others. Made in __init__ it is one layer, "
        "which is trained."
    )
    edit = _in_init(spot, function)
    advice = "" if edit is not None else "Make it in __init__, as an attribute of self, and call that here."
    return Explanation(RULE, spot.file, made.lineno, cause, edit, advice)


def _in_init(spot: Spot, function: ast.FunctionDef) -> Edit | None:
    """All layers of the method, made at the end of __init__."""
    source = spot.source
    holder = source.parent(function)
    init = next(
        (one for one in getattr(holder, "body", ()) if isinstance(one, ast.FunctionDef) and one.name == "__init__"),
        None,
    )
    made = sorted(_made(function, spot), key=lambda one: (one.lineno, one.col_offset))
    if init is None or not isinstance(holder, ast.ClassDef) or init.lineno > function.lineno:
        return None
    local = {one.arg for one in function.args.args} - {"self"}
    local |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for one in made:
        if any(isinstance(part, _LOOPS) for part in source.around(one)) or local & set(names(one)):
            return None
    taken = {one.attr for one in ast.walk(holder) if isinstance(one, ast.Attribute)}
    last = init.body[-1]
    blanks = indent_of(source.lines[last.lineno - 1])
    added, pieces = list[str](), dict[ast.expr, str]()
    for one in made:
        name = _attribute(dotted(one.func).rpartition(".")[2], taken)
        taken.add(name)
        added.append(f"{blanks}self.{name} = {source.text(one)}")
        pieces[one] = f"self.{name}"
    first, end = min(one.lineno for one in made), max(one.end_lineno or one.lineno for one in made)
    line = (last.end_lineno or last.lineno) + 1
    if end - line > _MOST:
        return None
    edits = [Edit(spot.file, line, line - 1, tuple(added)),
             Edit(spot.file, first, end, source.spliced(pieces, first, end))]  # fmt: skip
    return together(edits, source.lines)


def _attribute(kind: str, taken: set[str]) -> str:
    """`batch_normalization` for BatchNormalization; with a number where that is taken."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", kind).lower()
    return next(one for one in (name, *(f"{name}_{number}" for number in range(2, 99))) if one not in taken)


__all__ = ["explain"]
