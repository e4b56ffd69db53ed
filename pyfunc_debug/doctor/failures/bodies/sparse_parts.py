"""A sparse tensor for a py_func or numpy_function whose body reads its parts: `sp.indices`, `sp.dense_shape`.

Its dense form has none of them. Its three tensors can be handed over, and made one value again in front of the body.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, failed_node, local_function
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

RULE = "structure"
_PARTS = ("indices", "values", "dense_shape")
_READ = frozenset(_PARTS)


def explain(spot: Spot, call: ast.Call, inp: ast.List | ast.Tuple) -> Explanation | None:
    """The explanation, if the body reads such parts of each sparse tensor in inp, and no attribute of an array."""
    body = argument(call, 0, "func")
    function = local_function(body, spot) or _method(body, spot)
    if body is None or function is None or isinstance(body, ast.Call):
        return None
    taken, plain = parameters(function), not any(isinstance(one, ast.Starred) for one in inp.elts)
    if len(taken) != len(inp.elts) or not plain:
        return None
    sparse = [place for place, one in enumerate(inp.elts) if _is_sparse(lookup(one, spot))]
    read = {place: _read(function, taken[place]) for place in sparse}
    if not sparse or not all(read.values()):
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    made: list[str] = []
    outside: list[str] = []
    inside: list[str] = []
    for place, one in enumerate(inp.elts):
        text, name = source.text(one), taken[place]
        if place not in sparse:
            made.append(name)
            inside.append(name)
            outside.append(text)
            continue
        own = [f"{name}_{part}" for part in _PARTS]
        made += own
        inside.append(f"{_value(spot, tf)}({', '.join(own)})")
        outside += [f"{text}.{part}" for part in _PARTS]
    if len({*made}) < len(made) or {*made} & {*names(body), tf}:
        return None
    called = f"({source.text(body)})" if isinstance(body, ast.Lambda) else source.text(body)
    pieces: dict[ast.expr, str] = {
        body: f"lambda {', '.join(made)}: {called}({', '.join(inside)})",
        inp: f"[{', '.join(outside)}]",
    }
    first = sparse[0]
    who = "The lambda" if isinstance(body, ast.Lambda) else short(source.text(body), 40)
    attribute = f"{taken[first]}.{read[first][0]}"
    cause = (
        f"{short(source.text(inp.elts[first]), 30)} is a SparseTensor, three tensors in one, and "
        f"{dotted(call.func).rpartition('.')[2]} takes plain ones. "
        f"{who} reads {attribute}, which a dense one has not: give it the three, made one again in front of it."
    )
    edit = edit_of(spot.file, source.replaced(pieces))
    return Explanation(RULE, spot.file, call.lineno, cause, edit) if edit is not None else None


def outside_of_graphs(situation: Situation) -> Explanation | None:
    """The explanation, if a body failed on an array that holds a sparse tensor as an object: NumPy made it of it."""
    node = failed_node(situation) if situation.body else None
    call = node.call() if node is not None else None
    inp = argument(call, 1, "inp") if call is not None else None
    if node is None or call is None or node.kind == "py_function" or not isinstance(inp, (ast.List, ast.Tuple)):
        return None
    running = [spot for spot in situation.spots if (spot.file, spot.line) == node.site and not spot.generated]
    sparse = [one for one in inp.elts if running and _is_sparse(lookup(one, running[-1]))]
    if not sparse:
        return None
    spot = running[-1]
    found = explain(spot, call, inp)
    if found is not None:
        return found
    tf, text, op = alias(spot, "tensorflow"), spot.source.text, dotted(call.func).rpartition(".")[2]
    pieces: dict[ast.expr, str] = {one: f"{tf}.sparse.to_dense({text(one)})" for one in sparse}
    cause = (
        f"{short(text(sparse[0]), 30)} is a SparseTensor, three tensors in one, and {op} takes plain ones. Outside of "
        f"graphs, {node.called} gets an array of no axes that holds the object. Pass it dense."
    )
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, call.lineno, cause, edit) if edit is not None else None


def _method(body: ast.expr | None, spot: Spot) -> Function | None:
    """The only method of the file of a name, given as `self.total`."""
    if not isinstance(body, ast.Attribute) or dotted(body.value) != "self":
        return None
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == body.attr]
    return found[0] if len(found) == 1 else None


def _is_sparse(value: Any) -> bool:
    return type(value).__name__ == "SparseTensor"


def _read(function: Function, name: str) -> list[str]:
    """The parts that a function reads of a parameter, in their order; none where it asks for any other."""
    found: list[tuple[int, int, str]] = []
    asked = {id(one.value): one.attr for one in ast.walk(function) if isinstance(one, ast.Attribute)}
    for one in ast.walk(function):
        if not isinstance(one, ast.Name) or one.id != name:
            continue
        part = asked.get(id(one))
        if not isinstance(one.ctx, ast.Load) or (part is not None and part not in _READ):
            return []
        if part is not None:
            found.append((one.lineno, one.col_offset, part))
    return [part for _, _, part in sorted(found)]


def _value(spot: Spot, tf: str) -> str:
    """The name of the class of sparse values, which is one of TensorFlow 1's."""
    direct = hasattr(spot.value(tf.partition(".")[0]), "SparseTensorValue")
    return f"{tf}.SparseTensorValue" if direct else f"{tf}.compat.v1.SparseTensorValue"
