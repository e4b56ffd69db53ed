"""Eager tensors that a py_function's body reads in each round of a loop: each time it goes through TensorFlow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import given
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("slow-read",)
_SLOW_NS = 1_000_000
_TOTAL_NS = 200_000_000
_SHARE = 0.1
_LEAST = 3
_ROUNDS = 100
"""Fewer elements than these are not the reason, where a loop goes through the tensor."""
_NUMBERS = ("int", "float", "bool")
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_WALKS = ("enumerate", "zip", "reversed", "sorted", "list", "tuple", "sum", "map")
_SAME = ("numpy", "shape", "ndim")
"""Attributes of an eager tensor that an array has, or needs no more."""


def check(facts: Facts) -> Iterator[Finding]:
    """At most one finding a line of the user's."""
    wall = facts.wall_ns
    for group in facts.lines if wall is not None else ():
        calls, function = facts.calls_of(group), facts.function(group[0])
        if group[0].kind != "py_function" or not isinstance(function, ast.FunctionDef) or calls.count < _LEAST:
            continue
        if calls.total_ns < max(_TOTAL_NS, _SHARE * (wall or 0)) or calls.total_ns < _SLOW_NS * calls.count:
            continue
        if facts.calls_of(group, "gradient").count:
            continue  # its ops have a gradient, which an array has not
        found = _slow(facts, group, function, calls.total_ns / calls.count, calls.count)
        if found is not None:
            yield found


def _slow(facts: Facts, group: list[Node], function: ast.FunctionDef, mean: float, count: int) -> Finding | None:
    node, source = group[0], pastes.source(facts, group[0].file)
    reads = {name: found for name in code.parameters(function) if (found := _reads(function, source, name))}
    stored = {name for one in code.own_nodes(function) for name in code.stored_names(one)}
    slow: dict[str, ast.expr] = {}
    size = 0
    for name, found in reads.items():
        sizes = [one.shape for one in given(facts, group, name)]
        scalar = all(not shape for shape in sizes)
        longest = max((shape[0] for shape in sizes if shape), default=0)
        kind = next((one for one in found if not scalar or isinstance(one, ast.Call)), None)
        if name not in stored and sizes and kind is not None and (scalar or longest >= _ROUNDS):
            slow[name], size = kind, max(size, longest)
    if not slow:
        return None
    first = next(iter(slow.values()))
    shown = pastes.text_of(facts, node.file, first)
    line = first.lineno
    several = f"{size:,} elements at the most" if size else "one number"
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{node.body} reads the tensor {' and '.join(slow)} in each round of a loop (`{shown}`): each time "
        "that goes through TensorFlow, which lets the GIL go and takes it again. A value of NumPy's is read without it",
        _as_arrays(facts, node, function, source, list(slow)), node.file, line,
        evidence=(f"{count:,} calls of {mean / 1e6:.2f} ms; the tensor has {several}",),
        confidence="likely",
    )  # fmt: skip


def _reads(function: ast.FunctionDef, source: Source, name: str) -> list[ast.expr]:
    """Where a parameter is read in a loop: `int(x)`, `x.numpy()`, `x[i]`, and `x` of `for v in x`."""
    found: list[ast.expr] = []
    for one in code.own_nodes(function):
        if isinstance(one, (ast.For, ast.comprehension)) and _walks(one.iter, name):
            found.append(one.iter)
        if not isinstance(one, ast.Name) or one.id != name or not isinstance(one.ctx, ast.Load):
            continue
        holder = source.parent(one)
        read: ast.AST | None = holder
        if isinstance(holder, ast.Attribute) and holder.attr == "numpy":
            read = source.parent(holder)
        elif isinstance(holder, ast.Call) and one in holder.args:
            read = holder if dotted(holder.func) in _NUMBERS else None
        elif not isinstance(holder, ast.Subscript) or holder.value is not one:
            read = None
        if isinstance(read, (ast.Call, ast.Subscript)) and _often(source, function, read, name):
            found.append(read)
    return found


def _walks(iterated: ast.expr, name: str) -> bool:
    """`x`, `enumerate(x)`, `zip(x, y)` as what a loop goes through."""
    if isinstance(iterated, ast.Call):
        return dotted(iterated.func) in _WALKS and any(_walks(one, name) for one in iterated.args)
    return isinstance(iterated, ast.Name) and iterated.id == name


def _often(source: Source, function: ast.FunctionDef, read: ast.expr, name: str) -> bool:
    """Whether an expression is computed in many rounds of a loop: as many as the tensor has elements, or 100."""
    inner: ast.AST = read
    while inner is not function:
        outer = source.parent(inner)
        if outer is None:
            return False
        once = inner is outer.iter if isinstance(outer, (ast.For, ast.comprehension)) else False
        if isinstance(outer, ast.comprehension):  # the first one's is computed once, those behind it in each round
            whole = source.parent(outer)
            first = isinstance(whole, _LOOPS) and getattr(whole, "generators", [outer])[0] is outer
            if once and first:
                inner = whole if whole is not None else outer
                continue
        gone_over = (
            [outer.iter] if isinstance(outer, ast.For) else [one.iter for one in getattr(outer, "generators", ())]
        )
        if (
            isinstance(outer, _LOOPS)
            and not once
            and (not gone_over or any(_is_long(function, one, name, isinstance(read, ast.Call)) for one in gone_over))
        ):
            return True
        inner = outer
    return False


def _is_long(function: ast.FunctionDef, iterated: ast.expr, name: str, number: bool) -> bool:
    """Whether a loop has as many rounds as the tensor has elements; of one that reads a number, whether it may."""
    if _walks(iterated, name):
        return True
    if not isinstance(iterated, ast.Call) or dotted(iterated.func) != "range":
        return number
    made = {one.targets[0].id: one.value for one in code.own_nodes(function)
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)}  # fmt: skip
    parts = [part for one in iterated.args for part in ast.walk(made.get(getattr(one, "id", ""), one))]
    if any(isinstance(one, ast.Name) and one.id == name for one in parts):
        return True
    constants = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, int)]
    names = [one for one in parts if isinstance(one, ast.Name)]
    return bool(number and names) or max(constants, default=0) >= _ROUNDS


def _as_arrays(facts: Facts, node: Node, function: ast.FunctionDef, source: Source, slow: list[str]) -> str:
    """`x = x.numpy()` as the body's first line, and the body's `.numpy()` of what is read from it left out."""
    start = pastes.beginning(function)
    if start is None or node.file is None:
        return ""
    elements = {
        part.id for one in code.own_nodes(function) if isinstance(one, (ast.For, ast.comprehension))
        and any(_walks(one.iter, name) for name in slow)
        for part in ast.walk(one.target) if isinstance(part, ast.Name)
    }  # fmt: skip
    for one in code.own_nodes(function):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Subscript) and code.root(one.value) in slow:
            elements |= {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    pieces: dict[ast.expr, str] = {}
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Attribute):
            continue
        rooted = code.root(one)
        own = isinstance(one.value, ast.Name) and one.value.id in slow
        if own and one.attr not in _SAME:
            return ""  # a method that an array has not
        call = source.parent(one)
        if one.attr == "numpy" and rooted in {*slow, *elements} and isinstance(call, ast.Call):
            pieces[call] = source.text(one.value)
        elif rooted in elements and one.attr not in _SAME:
            return ""
    head = pastes.above(facts, node.file, start, *(f"{name} = {name}.numpy()" for name in slow))
    rest = [Edit(node.file, *source.kept_lines(pieces))] if pieces else []
    return pastes.written(head, *rest)
