"""List comprehensions over tensors, which AutoGraph does not convert: unrolled over a known length, else tf.map_fn."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.evaluation import apart, evaluated, given_names
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    Described,
    alias,
    dtype_of,
    is_symbolic,
    lookup,
    root_is,
    shape_of,
    symbolic_parts,
)  # fmt: skip
from pyfunc_debug.program import syntax

Comprehension = ast.ListComp | ast.GeneratorExp
_REDUCED = ("reduce_mean", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "convert_to_tensor", "shape")
_MOST = 64
"""How many parts are taken apart at most: each is a part of the graph."""
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def in_graph(spot: Spot, node: Comprehension, over: str = "") -> Edit | None:
    """A comprehension over tensors, so that a graph has it.

    Args:
      spot: The frame that it failed in.
      node: The comprehension.
      over: What it is to go through, as text, where that is not what stands there: a size that only the run knows.

    Returns:
      The parts taken apart while the function is traced, where their number is known; else tf.map_fn, and the lines
      that use the list, which is then a tensor. None where one of them needs a list, or the dtype is not known.
    """
    loop, tf = node.generators[0], alias(spot, "tensorflow")
    if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func).endswith(".unstack"):
        return None  # what failed is inside
    if loop.ifs:
        return _masked(spot, node, loop, tf)
    counted, parts = _parts(loop.iter)
    if not over and all((_length(one, spot) or _MOST + 1) <= _MOST for one in parts):
        new = {one: f"{tf}.unstack({spot.source.text(one)})" for one in parts if symbolic_parts(one, spot)}
        found = spot.source.replaced(dict(new))
        return edit_of(spot.file, found)
    if len(node.generators) > 1 or any(isinstance(one, Comprehension) for one in ast.walk(node.elt)):
        return None  # map_fn takes no lists of lists
    if over and (counted or len(parts) > 1):
        return None
    return _mapped(spot, node, [over] if over else [spot.source.text(one) for one in parts], parts, counted)


def over_range(spot: Spot, value: ast.expr) -> tuple[Edit | None] | None:
    """What goes through `tf.range(n)` in place of a comprehension over `range(n)`, for a tensor n; None for others."""
    for one in ast.walk(value):
        if not isinstance(one, Comprehension) or len(one.generators) > 1:
            continue
        given = one.generators[0].iter
        if isinstance(given, ast.Call) and dotted(given.func) == "range" and symbolic_parts(given, spot):
            over = f"{alias(spot, 'tensorflow')}.{spot.source.text(given)}"
            return (None if one.generators[0].ifs else in_graph(spot, one, over),)
    return None


def with_sizes(spot: Spot, node: ast.AST, pieces: dict[ast.expr, str]) -> Edit | None:
    """The comprehension in an expression that goes through as many as a size says which only the run knows.

    Args:
      spot: The frame that it failed in.
      node: The expression.
      pieces: What is to stand for parts of it.
    """
    for one in ast.walk(node):
        over = one.generators[0].iter if isinstance(one, Comprehension) else None
        inside = [part for part in pieces if over is not None and any(part is inner for inner in ast.walk(over))]
        if isinstance(one, Comprehension) and over is not None and inside:
            text = spot.source.text(over)
            for part in inside:
                text = text.replace(spot.source.text(part), pieces[part], 1)
            return in_graph(spot, one, text)
    return None


def keyed(node: ast.AST, pieces: dict[ast.expr, str]) -> bool:
    """Whether a dict or a set is made of as many as a size says: a graph has none of an unknown length."""
    made = (one for one in ast.walk(node) if isinstance(one, (ast.DictComp, ast.SetComp)))
    return any(part is inner for one in made for inner in ast.walk(one) for part in pieces)


def _parts(node: ast.expr) -> tuple[bool, list[ast.expr]]:
    """Whether a loop counts, and what it goes through: the parts of `zip` and `enumerate`, or one."""
    if isinstance(node, ast.Call) and not node.keywords and node.args:
        if dotted(node.func) == "zip":
            return False, list(node.args)
        if dotted(node.func) == "enumerate" and len(node.args) == 1:
            return True, [node.args[0]]
    return False, [node]


def _length(node: ast.expr, spot: Spot) -> int | None:
    """How many parts a tensor has, where the trace knows."""
    value = lookup(node, spot)
    if is_symbolic(value):
        shape = shape_of(value)
        return shape[0] if shape else None
    if isinstance(value, (list, tuple)):
        return len(value)
    parts = symbolic_parts(node, spot)
    tree, marks = _named(node, parts), _marks(parts)
    given = given_names(tree, spot, dict.fromkeys(marks))
    if given is None:
        return None

    def length() -> int | None:
        import tensorflow as tf

        with tf.Graph().as_default():  # of what the trace knows too: shapes, and values that are the same in each run
            values = {mark: _stand_in(parts[name]) for mark, name in zip(marks, parts)}
            found = evaluated(tree, {**given, **values})
        if isinstance(found, (list, tuple)):
            return len(found)
        shape = shape_of(found)
        return shape[0] if shape else None

    return apart(length)


def _stand_in(tensor: Any) -> Any:
    """A tensor of another graph with the dtype and the shape of one, and its value where the trace knows that."""
    import tensorflow as tf

    known = tf.get_static_value(tensor) if not isinstance(tensor, Described) else tensor.known
    if known is not None:
        return tf.constant(known, dtype_of(tensor))
    return tf.compat.v1.placeholder(dtype_of(tensor), shape_of(tensor))


def _marks(parts: dict[str, object]) -> list[str]:
    return [f"tensor_{number}" for number in range(len(parts))]


def _named(node: ast.expr, parts: dict[str, object]) -> ast.expr:
    """An expression with a name of its own for each of its tensors."""
    known = dict(zip(parts, _marks(parts)))

    class Named(ast.NodeTransformer):
        def visit(self, one: ast.AST) -> ast.AST:
            text = ast.unparse(one) if isinstance(one, ast.expr) else ""
            return syntax.expression(known[text]) if text in known else super().visit(one)

    return Named().visit(syntax.expression(ast.unparse(node)))  # type: ignore[return-value]


def _mapped(spot: Spot, node: Comprehension, over: list[str], parts: list[ast.expr], counted: bool) -> Edit | None:
    """The comprehension as tf.map_fn, and what uses its list."""
    loop, source, tf = node.generators[0], spot.source, alias(spot, "tensorflow")
    if any(isinstance(lookup(one, spot), (list, tuple)) for one in parts):
        return None  # map_fn takes a list for a structure of tensors
    kinds = [_row(one, spot) for one in parts]
    if counted:
        over, kinds = [f"{tf}.range({tf}.shape({over[0]})[0])", *over], [Described("int32", ()), *kinds]
    targets = [loop.target] if len(over) == 1 else getattr(loop.target, "elts", [])
    if len(targets) != len(over) or not all(isinstance(one, ast.Name) for one in targets):
        return None
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    inside = dataclasses.replace(spot, variables={**spot.variables, **dict(zip(names, kinds))})
    assigned = assignments(spot.function) if spot.function is not None else {}
    dtype = Guess(inside, {name: one for name, one in assigned.items() if name not in names}).of(node.elt)
    if dtype is None and "float" not in kinds[0].dtype:
        return None
    body = source.text(node.elt)
    if len(over) > 1:
        places = {name: f"row[{place}]" for place, name in enumerate(names)}

        class Parts(ast.NodeTransformer):
            def visit_Name(self, one: ast.Name) -> ast.AST:
                return syntax.expression(places[one.id]) if one.id in places else one

        body = ast.unparse(Parts().visit(syntax.expression(body)))
    head = f"lambda {names[0]}: {body}, {over[0]}" if len(over) == 1 else f"lambda row: {body}, ({', '.join(over)})"
    same = len(over) == 1 and dtype in (None, f"{tf}.{kinds[0].dtype}")
    made = f"{tf}.map_fn({head}{'' if same else f', fn_output_signature={dtype}'})"
    pieces = _with_uses(spot, node, made, tf)
    if pieces is None:
        return None
    if len(pieces) == 1:
        return wrapping.replace_expression(spot, *next(iter(pieces.items())))
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(spot.file, first, last, source.spliced(pieces, first, last))


def _row(node: ast.expr, spot: Spot) -> Described:
    """What one round of a loop over an expression gets."""
    value = lookup(node, spot)
    if is_symbolic(value):
        shape = shape_of(value)
        return Described(dtype_of(value), shape[1:] if shape else None)
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "range":
        return Described("int32", ())
    guessed = Guess(spot).of(node)
    return Described(guessed.rpartition(".")[2] if guessed is not None else "", None)


def _with_uses(spot: Spot, node: Comprehension, made: str, tf: str) -> dict[ast.expr, str] | None:
    """The tensor in the place of the list, also where the list is used; None where a list is needed."""
    source = spot.source
    outer = source.parent(node)
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        name = outer.targets[0].id
        pieces: dict[ast.expr, str] = {node: made}
        function = spot.function
        for one in own_nodes(function) if function is not None else ():
            if isinstance(one, ast.Name) and one.id == name and one.lineno > outer.lineno:
                if not isinstance(one.ctx, ast.Load):
                    break
                use = _use(spot, one, name, tf)
                if use is None:
                    return None
                pieces |= {use[0]: use[1]} if use[0] is not one else {}
        return pieces
    use = _use(spot, node, made, tf)
    return None if use is None else {use[0]: use[1]}


def _use(spot: Spot, node: ast.expr, text: str, tf: str) -> tuple[ast.expr, str] | None:
    """What stands for a use of a list, where it is a tensor of all the parts."""
    around = spot.source.parent(node)
    if isinstance(around, ast.Subscript) and around.value is node:
        return None if isinstance(around.slice, ast.Tuple) else (node, text)
    if isinstance(around, (ast.Return, ast.Assign)):
        return node, text
    if not isinstance(around, ast.Call) or around.args[:1] != [node]:
        return None
    rest = [*around.args[1:], *(one.value for one in around.keywords if one.arg in ("axis", None))]
    axis = rest[0].value if rest and isinstance(rest[0], ast.Constant) else None if rest else 0
    called = dotted(around.func).rpartition(".")[2]
    if isinstance(around.func, ast.Name) and called == "sum" and not rest:
        return around, f"{tf}.reduce_sum({text}, 0)"
    if not root_is(around.func, spot, "tensorflow"):
        return None
    if called == "stack" and isinstance(axis, int):
        return around, text if axis == 0 else f"{tf}.experimental.numpy.moveaxis({text}, 0, {axis})"
    if called == "add_n":
        return around, f"{tf}.reduce_sum({text}, 0)"
    if called == "concat" and axis == 0 and text.isidentifier():
        return around, f"{tf}.reshape({text}, {tf}.concat([[-1], {tf}.shape({text})[2:]], 0))"
    return (node, text) if called in _REDUCED else None


def _masked(spot: Spot, node: Comprehension, loop: ast.comprehension, tf: str) -> Edit | None:
    """`[v for v in x if v > 1]` as `tf.boolean_mask(x, x > 1)`: a comparison with numbers, of each of a vector."""
    test, over = loop.ifs[0], spot.source.text(loop.iter)
    shape = shape_of(spot.value(over))
    plain = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _ORDERS)
    if not plain or len(loop.ifs) > 1 or len(node.generators) > 1 or shape is None or len(shape) != 1:
        return None
    left, right = test.left, test.comparators[0]  # type: ignore[attr-defined]
    number = isinstance(right, ast.Constant) or dotted(right) not in ("", dotted(loop.target))
    if not all(isinstance(one, ast.Name) for one in (node.elt, loop.target, left)) or not number:
        return None
    if not dotted(node.elt) == dotted(left) == dotted(loop.target):
        return None
    kept = f"{over} {spot.source.text(test)[len(dotted(left)) :].strip()}"
    return wrapping.replace_expression(spot, node, f"{tf}.boolean_mask({over}, {kept})")
