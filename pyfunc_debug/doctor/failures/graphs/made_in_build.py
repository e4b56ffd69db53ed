"""A tensor that a layer's `build` makes and keeps: it is of the graph that is traced meanwhile, and of no other."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.gradients import built_values
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_keras, is_symbolic

RULE = "leaked-tensor"
_MADE = re.compile(r'File "([^"]+)", line (\d+), in (\w+)\n')
_SYMBOLIC = re.compile(r"'SymbolicTensor' object has no attribute|Cannot convert a symbolic|_datatype_enum")
"""What an op or NumPy says of a tensor of a graph, where values are."""
_MOST = 4
"""Lines of the statement that are pasted."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a tensor is used in another graph, or eagerly."""
    if situation.body:
        return None
    text = situation.text
    found = _out_of_scope(text, situation) if "is out of scope" in text else None
    if found is None and _SYMBOLIC.search(situation.message):
        found = _used_eagerly(situation)
    if found is None:
        return None
    spot, statement = found
    source, first, last = spot.source, statement.lineno, statement.end_lineno or statement.lineno
    layer = next((one for one in source.around(statement) if isinstance(one, ast.ClassDef)), None)
    computed = built_values.computed(layer) if layer is not None else []
    if layer is not None and statement in computed:  # outside of all graphs it would have no gradient
        return built_values.told(spot.file, source, layer, computed, RULE, "This one is a tensor of another graph.")
    name = dotted(statement.targets[0])
    cause = (
        f"`{short(source.text(statement).split(chr(10))[0], 40)}` ran in build, once, while a graph was traced: {name} "
        "is a tensor of that graph, which no other graph and no eager code can use. In an init_scope it is made "
        "outside of all graphs, with values."
    )
    if last - first >= _MOST:
        return Explanation(RULE, spot.file, first, cause, None, "Make it in __init__, or under tf.init_scope().")
    blanks = indent_of(source.lines[first - 1])
    head = f"{blanks}with {alias(spot, 'tensorflow')}.init_scope():"
    lines = (head, *(f"    {one}" for one in source.lines[first - 1 : last]))
    return Explanation(RULE, spot.file, first, cause, Edit(spot.file, first, last, lines))


def _out_of_scope(text: str, situation: Situation) -> tuple[Spot, ast.Assign] | None:
    """The line of `build` that TensorFlow names as the last of the user's that made the tensor."""
    files = {one.file: one for one in situation.spots}
    made = [(file, int(line), name) for file, line, name in _MADE.findall(text) if file in files]
    if not made or made[-1][2] != "build":
        return None
    file, line, _ = made[-1]
    return _kept(Spot(file, line, {}, files[file].module, ""), line)


def _used_eagerly(situation: Situation) -> tuple[Spot, ast.Assign] | None:
    """The line of `build` that keeps the only tensor of a graph among a layer's attributes."""
    for spot in reversed(situation.spots):
        given = [spot.value(name) for name in parameters(spot.function)] if spot.function is not None else []
        if any(map(is_symbolic, given)) or not any(type(one).__name__ == "EagerTensor" for one in given):
            continue  # the graph that it belongs to may be built here
        layer = spot.variables.get("self")
        held = [name for name, one in getattr(layer, "__dict__", {}).items() if is_symbolic(one) and not is_keras(one)]
        if len(held) != 1:
            continue
        for function in ast.walk(spot.source.tree):
            if not isinstance(function, ast.FunctionDef) or function.name != "build":
                continue
            for one in ast.walk(function):
                if isinstance(one, ast.Assign) and dotted(one.targets[0]) == f"self.{held[0]}":
                    return _kept(Spot(spot.file, one.lineno, {}, spot.module, ""), one.lineno)
    return None


def _kept(spot: Spot, line: int) -> tuple[Spot, ast.Assign] | None:
    statement = spot.source.statement(line)
    if not isinstance(statement, ast.Assign) or not dotted(statement.targets[0]).startswith("self."):
        return None
    return spot, statement
