"""Generators that scale images to [0, 1] and make whole numbers of them: the elements are black."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, returned
from pyfunc_debug.doctor.bodies.float_casts import in_floats
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.generators.declared_dtypes import declared_dtypes
from pyfunc_debug.doctor.generators.whole_casts import WholeCast, whole_cast
from pyfunc_debug.records import Finding, Node

NAMES = ("lost-fraction",)
_LEAST_CALLS = 2
_MOST_ONES = 0.02
"""The share of ones that pixels of 255 may have: masks and drawings have more."""
_MEANT = re.compile(r"mask|seg|thresh|binar|label|edge|truth|target|annot|(?:\b|_)gts?(?:\b|_)|bool|bits?\b", re.I)
"""Words of arrays that are 0 and 1, or 0 and 255, with reason."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator."""
    groups: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for node, _ in facts.generators.values():
        groups.setdefault((node.body, node.file, node.line), []).append(node)
    for nodes in groups.values():
        tree = facts.tree(nodes[0].file)
        function = _function(facts, nodes[0], tree) if tree is not None else None
        if function is not None and tree is not None:
            found = next((one for one in _of_parts(facts, nodes, tree, function) if one is not None), None)
            if found is not None:
                yield found


def _function(facts: Facts, node: Node, tree: ast.Module) -> ast.FunctionDef | None:
    """The function that gives the elements: of `lambda: gen(6)`, that which it calls."""
    found = facts.function(node)
    if isinstance(found, ast.Lambda) and isinstance(found.body, ast.Call) and isinstance(found.body.func, ast.Name):
        name = found.body.func.id
        called = [one for one in pastes.walk(tree, ast.FunctionDef) if one.name == name]
        found = called[0] if len(called) == 1 else None
    return found if isinstance(found, ast.FunctionDef) else None


def _of_parts(facts: Facts, nodes: Sequence[Node], tree: ast.Module, function: Definition) -> Iterator[Finding | None]:
    parts = _parts(function)
    for position, part in enumerate(parts):
        seen = returned(facts, nodes, position)
        if len(seen) < _LEAST_CALLS or not all(_is_black(one) for one in seen):
            continue
        cast = whole_cast(tree, function, part)
        if cast is None or _MEANT.search(" ".join(map(ast.unparse, (part, cast.node)))):
            continue
        black = all(one.high == 0 for one in seen)
        if black or (cast.known and position == 0 and len(parts) > 1):
            yield _finding(facts, nodes, (position, len(parts)), seen, cast)


def _parts(function: Definition) -> list[ast.expr]:
    """The values of the only `yield`, or of what `__getitem__` returns, flat, in the order of tf.nest."""
    yields = [one.value for one in code.own_nodes(function) if isinstance(one, ast.Yield) and one.value is not None]
    gives = yields or pastes.returns(function)
    return _flat(gives[0]) if len(gives) == 1 else []


def _flat(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.Tuple):
        return [part for one in value.elts for part in _flat(one)]
    if isinstance(value, ast.Dict):
        pairs = [(one.value, part) for one, part in zip(value.keys, value.values) if isinstance(one, ast.Constant)]
        if len(pairs) < len(value.keys):
            return []
        return [part for _, one in sorted(pairs, key=lambda pair: str(pair[0])) for part in _flat(one)]
    return [value]


def _is_black(one: Given) -> bool:
    """Whether an array of several numbers has nothing but 0, and hardly a 1."""
    few = one.high == 0 or (one.high == 1 and not one.inside and one.mean is not None and one.mean < _MOST_ONES)
    return math.prod(one.shape) > 1 and one.low == 0 and few


def _finding(
    facts: Facts, nodes: Sequence[Node], place: tuple[int, int], seen: list[Given], cast: WholeCast
) -> Finding:
    node, (position, count) = nodes[0], place
    own, black = pastes.source(facts, node.file), all(one.high == 0 for one in seen)
    which = f" as value {position + 1}" if count > 1 else ""
    text, image = ast.unparse(cast.node), ast.unparse(cast.image)
    if cast.dtype is None:
        told = f"{text} divides without a fraction"
    elif cast.node is cast.image:
        told = f"line {cast.dtype.lineno} makes an array of whole numbers, which cuts the fractions of {text}"
    else:
        told = f"{text} makes whole numbers of {image}, which cuts the fractions"
    division = cast.dtype is None
    kept = own.text(cast.node).replace("//", "/") if division else f"keep {image} in floats in line {cast.node.lineno}"
    declared = "" if all(_is_of_keras(facts, one) for one in nodes) else ", and declare float32 in from_generator"
    return Finding(
        NAMES[0], "error" if black and cast.known else "warning", node.id, (seen[0].call,),
        f"{facts.name(node)} gave {'only zeros' if black else 'nothing but 0, and a few 1,'}{which}, as far as was "
        f"looked at, in all {len(seen):,} recorded calls: {told}. What is less than 1 becomes 0",
        _fix(facts, nodes, position, cast) or f"{kept}{declared}",
        node.file, cast.node.lineno, several(one.id for one in nodes),
        (f"call #{seen[0].call}: {facts.outputs(seen[0].call)}",),
        confidence="measured" if cast.known and black else "likely",
    )  # fmt: skip


def _fix(facts: Facts, nodes: Sequence[Node], position: int, cast: WholeCast) -> str:
    """The cast in floats, and the datasets that declare them."""
    file = nodes[0].file
    own, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow")
    pieces: dict[ast.expr, str] = {}
    if cast.dtype is None and isinstance(cast.node, ast.BinOp):
        pieces[cast.node] = f"{own.atom(cast.node.left)} / {own.text(cast.node.right)}"
    elif cast.dtype is not None:
        is_cast = isinstance(cast.node, ast.Call) and pastes.last_name(cast.node.func) == "cast"
        written = isinstance(cast.dtype, ast.Constant) or (isinstance(cast.dtype, ast.Attribute) and cast.known)
        if isinstance(cast.node, ast.Call) and cast.dtype is cast.node.func and not written:
            return ""
        pieces[cast.dtype] = in_floats(own.text(cast.dtype)) if written else (
            f"{tf}.float32" if is_cast and tf else '"float32"'
        )  # fmt: skip
    for node in nodes:
        if _is_of_keras(facts, node):
            continue
        made = pastes.dataset_call(facts, node)
        if made is None or made[0] != file:
            return ""
        if "float" in returned(facts, [node], position)[0].dtype:
            continue
        dtypes = declared_dtypes(own, made[1])
        if dtypes is None or len(dtypes) != len(node.tout):
            return ""
        pieces[dtypes[position]] = f"{tf}.float32" if tf else '"float32"'
    return pastes.all_replaced(facts, file, pieces)


def _is_of_keras(facts: Facts, node: Node) -> bool:
    """Whether Keras made the dataset, and declares what the first batch has: no line of the user's declares it."""
    return not any(
        pastes.last_name(one.func) == "from_generator"
        for frame in node.stack for one in pastes.around(facts.tree(frame.file), frame.line, ast.Call)
    )  # fmt: skip
