"""A body that returns a tuple in its tuple, `return (left, right), label`: an op has a flat list of outputs."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.made_values import made_dtype
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    failed_node,
    return_value,
    site_spot,
    user_nodes,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, read
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, shape_of
from pyfunc_debug.interception.names.private import converted_result

RULE = "output-contract"
_LOOPS = re.compile(r"[Ii]terating over a symbolic|[Cc]annot iterate over")
_TAKES = re.compile(r"expects (\d+) (?:named )?input\(s\).* but it received 1 input tensors", re.DOTALL)
_MOST = 8
_NEAR = 14
"""Lines of a paste that changes the body, too."""

Structure = list[int]
"""How many values stand in each place of what a body returns; 0 where it is one value itself."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tuple in what a body returned is why the program failed."""
    if situation.body:
        return _of_call(situation)
    if _LOOPS.search(situation.message):
        return _of_names(situation)
    takes = _TAKES.search(situation.message)
    return _of_model(situation, int(takes[1])) if takes is not None else None


def _of_call(situation: Situation) -> Explanation | None:
    """TensorFlow failed as it made one array, or tensor, of the values in the inner tuple."""
    returned, failed = converted_result(situation.inner.__traceback__)
    if not isinstance(returned, (list, tuple)) or not _is_several(failed):
        return None
    node = failed_node(situation)
    place = next((at for at, one in enumerate(returned) if one is failed), None)
    sizes = [len(one) if _is_several(one) else 0 for one in returned]
    if node is None or place is None or len(returned) != len(node.tout) or max(sizes) > _MOST:
        return None
    shapes = ", ".join(f"{dtype_of(one)}{list(shape_of(one) or ())}" for one in failed)
    made = "tensor" if node.kind == "py_function" else "array"
    cause = (
        f"{node.opening} returned a {type(failed).__name__} of {len(failed)} ({shapes}) as value {place + 1}: "
        f"{node.kind} makes one {made} of each value, as an op has flat outputs, and these do not fit into one."
    )
    dtypes: list[str] = []
    for one, size, declared in zip(returned, sizes, node.tout):
        dtypes += [_dtype(part, declared, node.kind) for part in (one if size else [one])]
    return _explained(situation, node, cause, sizes, dtypes)


def _is_several(value: Any) -> bool:
    """Whether a value is a plain tuple or list of arrays or tensors: several values."""
    return type(value) in (tuple, list) and len(value) > 1 and all(shape_of(one) is not None for one in value)


def _dtype(value: Any, declared: str, kind: str) -> str:
    """The dtype that Tout has to say for a value that a body returned."""
    of_python = isinstance(value, (bool, int, float))
    own = made_dtype(value) or declared
    if kind != "py_function":  # NumPy's floats have 64 bits
        return "float64" if type(value) is float else own
    floats = own.startswith("float") and declared.startswith("float") and type(value).__module__ == "numpy"
    return declared if of_python or floats else own


def _of_names(situation: Situation) -> Explanation | None:
    """`(a, b), c = tf.py_function(...)`: Python loops over one tensor for the inner names, at trace."""
    spot, statement = situation.last, situation.statement
    if spot is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple):
        return None
    elements = statement.targets[0].elts
    sizes = [len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in elements]
    nodes = [node for node in user_nodes(situation) if node.site == (spot.file, statement.lineno)]
    if not nodes or nodes[0].call() is not statement.value or not len(elements) == len(sizes) == len(nodes[0].tout):
        return None
    if _written(nodes[0]) != sizes or not any(sizes):
        return None
    node, place = nodes[0], next(at for at, size in enumerate(sizes) if size)
    cause = (
        f"{node.opening} returns {sizes[place]} values in one, but an op has flat outputs: Tout declares one "
        f"{node.tout[place]} for them, so {spot.source.text(elements[place])} loops over one tensor at trace."
    )
    return _explained(situation, node, cause, sizes, _spread(node, sizes))


def _spread(node: Node, sizes: Structure) -> list[str]:
    """The dtypes that Tout says, each for all values of its place."""
    return [dtype for size, dtype in zip(sizes, node.tout) for _ in range(size or 1)]


def _of_model(situation: Situation, takes: int) -> Explanation | None:
    """A model of several inputs got one tensor, which is to be the inner tuple."""
    found: dict[tuple[str, int] | None, Node] = {}
    for node in user_nodes(situation):
        sizes = _written(node)
        if len(sizes) == len(node.tout) and sizes[:1] == [takes] and takes > 1:
            found.setdefault(node.site, node)
    if len(found) != 1:
        return None
    node = next(iter(found.values()))
    function, sizes = node.function(), _written(node)
    value = return_value(function) if function is not None else None
    if not isinstance(value, (ast.Tuple, ast.List)):
        return None
    values = read(node.file or "").text(value.elts[0])
    cause = (
        f"{node.opening} returns {takes} values in one, {values}, but an op has flat "
        f"outputs: Tout declares one {node.tout[0]} for them, so the model gets 1 tensor for {takes} inputs."
    )
    return _explained(situation, node, cause, sizes, _spread(node, sizes))


def _written(node: Node) -> Structure:
    """The structure that a body's only `return` says."""
    function = node.function()
    value = return_value(function) if function is not None else None
    if not isinstance(value, (ast.Tuple, ast.List)):
        return []
    return [len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in value.elts]


# -- the paste


def _explained(situation: Situation, node: Node, cause: str, sizes: Structure, dtypes: list[str]) -> Explanation | None:
    spot, call = site_spot(node, situation), node.call()
    if spot is None or call is None or node.site is None:
        return None
    cause += f" Return the {len(dtypes)} side by side, and put them together again in the graph."
    advice = f"Return {len(dtypes)} values without the inner tuple, with a Tout of {len(dtypes)} dtypes."
    tf = alias(spot, "tensorflow")
    tout = f"[{', '.join(f'{tf}.{one}' for one in dtypes)}]"
    edit = _edit(node, spot, call, sizes, tout)
    return Explanation(RULE, *node.site, cause, edit, "" if edit is not None else advice)


def _edit(node: Node, spot: Spot, call: ast.Call, sizes: Structure, tout: str) -> Edit | None:
    function, declared, source = argument(call, 0, "func"), argument(call, 2, "Tout"), node.source
    if function is None or declared is None:
        return None
    statement = source.parent(call)
    pieces: dict[ast.expr, str] = {declared: tout}
    behind: list[Edit] = []
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        named = _named(spot, statement, statement.targets[0], sizes)
        if named is None:
            return None
        pieces[statement.targets[0]], behind = named
    own, flat = [], _flat_return(node, sizes)
    if isinstance(function, ast.Lambda) and flat is not None:
        pieces[flat[0]] = flat[1]
    elif flat is not None and node.file == spot.file and abs(flat[0].lineno - call.lineno) < _NEAR:
        own = [edit_of(spot.file, source.replaced(dict([flat])))]
    else:
        text = source.text(function)
        out = ", ".join(f"*out[{at}]" if size else f"out[{at}]" for at, size in enumerate(sizes))
        text = f"({text})" if isinstance(function, ast.Lambda) else text
        pieces[function] = f"lambda *x: (lambda out: [{out}])({text}(*x))"
    if statement is None or not isinstance(statement, ast.Assign) or statement.targets[0] not in pieces:
        packed = ", ".join(f"({', '.join(['0'] * size)})" if size else "0" for size in sizes)
        new = f"{alias(spot, 'tensorflow')}.nest.pack_sequence_as(({packed}), {source.text_with(call, pieces)})"
        pieces = {call: new}
    edits = [one for one in (*own, *behind, edit_of(spot.file, source.replaced(pieces))) if one is not None]
    lines = [line for one in edits for line in range(one.first, one.last + 1)]
    if len(set(lines)) < len(lines):
        return None  # two in one line
    whole = together(edits, source.lines)
    return replace(whole, lines=tuple(line for line in whole.lines if line.strip()))  # a blank one would end the paste


def _named(
    spot: Spot, statement: ast.Assign, target: ast.Tuple | ast.List, sizes: Structure
) -> tuple[str, list[Edit]] | None:
    """The names that take the flat values, and the line behind that puts them together."""
    source, block = spot.source, spot.source.block(statement)
    if [len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in target.elts] == sizes:  # `(a, b), c = ...`
        inner = [one.elts if isinstance(one, ast.Tuple) else [one] for one in target.elts]
        return ", ".join(source.text(one) for part in inner for one in part), []
    if len(target.elts) != len(sizes) or not all(isinstance(one, ast.Name) for one in target.elts) or block is None:
        return None
    around = next((one for one in source.around(statement) if isinstance(one, ast.FunctionDef)), source.tree)
    taken, flat, packs = set(names(around)), [], {}
    for one, size in zip(target.elts, sizes):
        name = source.text(one)
        glue = "_" if any(f"{name}{at + 1}" in taken for at in range(size)) else ""
        parts = [f"{name}{glue}{at + 1}" for at in range(size)]
        flat += parts or [name]
        if size:
            packs[name] = f"({', '.join(parts)})"
    below = block[block.index(statement) + 1 :]
    if any(isinstance(one, ast.Attribute) and dotted(one.value) in packs for each in below for one in ast.walk(each)):
        return None  # `x.set_shape(...)`: a tuple has no shape
    after = below[0] if below else None
    uses = [one for one in ast.walk(after) if isinstance(one, ast.Name) and one.id in packs] if after else []
    if isinstance(after, ast.Return) and len(uses) == len(packs):
        edit = edit_of(spot.file, source.replaced({one: packs[one.id] for one in uses}))
        return ", ".join(flat), [edit] if edit is not None else []
    line = source.lines[statement.lineno - 1]
    blanks = line[: len(line) - len(line.lstrip())]
    end = (statement.end_lineno or statement.lineno) + 1
    lines = tuple(f"{blanks}{name} = {text}" for name, text in packs.items())
    return ", ".join(flat), [Edit(spot.file, end, end - 1, lines)]


def _flat_return(node: Node, sizes: Structure) -> tuple[ast.expr, str] | None:
    """What the body's only `return` gives, and its text without the inner tuple; None where others call the body."""
    function, source = node.function(), read(node.file or "")
    value = return_value(function) if function is not None else None
    if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(sizes):
        return None
    name = getattr(function, "name", "")
    if sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(source.tree)) > 1:
        return None
    flat: list[str] = []
    for one, size in zip(value.elts, sizes):
        if isinstance(one, (ast.Tuple, ast.List)) and len(one.elts) == size:
            flat += map(source.text, one.elts)
        else:
            flat.append(f"*{source.atom(one)}" if size else source.text(one))
    first = value.elts[0]
    bracketed = (value.lineno, value.col_offset) != (first.lineno, first.col_offset)
    return value, f"({', '.join(flat)})" if bracketed else ", ".join(flat)
