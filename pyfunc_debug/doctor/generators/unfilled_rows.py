"""Arrays of a whole batch that a shorter last slice does not fill: its other rows are zeros, of class 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.generators.batches import Batches, Seen

_MAKES = {"zeros", "empty"}
_ALL = re.compile(r"ceil|\+ 1\b|-\(-")
"""A `__len__` that counts the last batch, too."""
_PAIR = 2
"""Values of a batch: a third has the weights, which may leave the padding out; rows alone are not trained on."""
_LEAST, _CLOSE, _FEW = 2, 0.25, 0.5
"""Rows of zeros, at least; how near their number is to a whole one; those that other batches have at most."""


def of_last(facts: Facts, batches: Batches) -> Seen | None:
    """The same number of rows is zeros in some batches, and a slice that ends with the data fills the arrays."""
    rows, values = _rows_of_zeros(batches), _values(batches.function)
    if rows is None or len(values) == 1 or len(values) > _PAIR or not _is_counted(facts, batches):
        return None
    own = pastes.source(facts, batches.file)
    found = next(_filled(facts, own, batches), None)
    if found is None:
        return None
    part, made, line = found
    count, some = rows
    text = own.text(part)
    declared = "output_signature" in "\n".join(facts.code(batches.file))
    fix = pastes.all_replaced(facts, batches.file, {
        one: f"{own.atom(one)}[:len({text})]" for one in values
    }) if values and not declared and all(isinstance(one, (ast.Name, ast.Call)) for one in values) else ""  # fmt: skip
    sliced = pastes.behind_name(batches.function, part)
    return Seen(
        f"{some:,} of the {len(batches.each):,} batches that {batches.function.name} gave have {count} rows of zeros: "
        f"{own.text(sliced)} has fewer rows at the end of the data, and line {made} makes an array of a whole batch",
        fix or f"give the first len({text}) rows of each array", line,
        (f"line {made}: {facts.line(batches.file, made)}",),
    )  # fmt: skip


def _values(function: ast.FunctionDef) -> list[ast.expr]:
    """The two parts of what a generator yields once, or `__getitem__` returns once; none where it is something else."""
    yields = [one.value for one in code.own_nodes(function) if isinstance(one, ast.Yield) and one.value is not None]
    gives = yields or pastes.returns(function)
    return gives[0].elts if len(gives) == 1 and isinstance(gives[0], (ast.Tuple, ast.List)) else []


def _rows_of_zeros(batches: Batches) -> tuple[int, int] | None:
    """How many rows of zeros some batches have, and how many these are; None where the others have some, too."""
    sizes = {one.shape[0] if one.shape else 0 for batch in batches.each for one in batch}
    if len(sizes) != 1 or len({len(one) for one in batches.each}) != 1:
        return None
    size, shares = sizes.pop(), [batch[0].zeros for batch in batches.each]
    known = [one * size for one in shares if one is not None]
    some = [one for one in known if one > _FEW]
    if len(known) < len(shares) or not some or len(some) * 2 > len(known):
        return None
    count = round(min(some))
    near = all(abs(one - count) < _CLOSE for one in some)
    return (count, len(some)) if near and _LEAST <= count < size else None


def _is_counted(facts: Facts, batches: Batches) -> bool:
    """Whether the last, shorter batch is asked for: by the `__len__` beside a `__getitem__`."""
    if batches.function.name != "__getitem__":
        return True
    own = pastes.source(facts, batches.file)
    holder = own.parent(batches.function)
    lengths = [one for one in getattr(holder, "body", ()) if getattr(one, "name", "") == "__len__"]
    return any(_ALL.search(ast.unparse(one)) for one in lengths)


def _filled(facts: Facts, own: Source, batches: Batches) -> Iterator[tuple[ast.expr, int, int]]:
    """The slice of rows by which an array is filled, the line that makes the array, and that which fills it."""
    function = batches.function
    for made, loop, rows in _loops(function):
        if _is_slice(function, rows):
            yield rows, made, loop.lineno
    holder = own.parent(function)
    methods = {
        f"self.{one.name}": one for one in getattr(holder, "body", ())
        if isinstance(one, ast.FunctionDef) and one is not function
    }  # fmt: skip
    for call in pastes.walk(function, ast.Call):
        method = methods.get(ast.unparse(call.func))
        given = dict(zip(code.parameters(method)[1:], call.args)) if method is not None else {}
        for made, loop, rows in _loops(method) if method is not None else ():
            part = given.get(rows.id) if isinstance(rows, ast.Name) else None
            if part is not None and _is_slice(function, part):
                yield part, made, loop.lineno


def _loops(function: ast.FunctionDef) -> Iterator[tuple[int, ast.For, ast.expr]]:
    """Loops that fill arrays row by row: the line that makes such an array, the loop, and what it goes through."""
    made = {
        one.targets[0].id: one.lineno for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Call)
        and pastes.last_name(one.value.func) in _MAKES
    }  # fmt: skip
    for loop in code.own_nodes(function):
        called = loop.iter if isinstance(loop, ast.For) else None
        if not isinstance(loop, ast.For) or not isinstance(called, ast.Call) or not called.args:
            continue
        rows, kind = called.args[0], ast.unparse(called.func)
        if kind == "range" and len(called.args) == 1 and isinstance(rows, ast.Call) and rows.args:
            kind = "enumerate" if ast.unparse(rows.func) == "len" else ""
            rows = rows.args[0]
        target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        if kind != "enumerate" or not isinstance(target, ast.Name):
            continue
        for one in ast.walk(loop):
            stored = one.targets[0] if isinstance(one, ast.Assign) else None
            if isinstance(stored, ast.Subscript) and isinstance(stored.value, ast.Name) and stored.value.id in made:
                first = stored.slice.elts[0] if isinstance(stored.slice, ast.Tuple) else stored.slice
                if isinstance(first, ast.Name) and first.id == target.id:
                    yield made[stored.value.id], loop, rows
                    break


def _is_slice(function: ast.FunctionDef, rows: ast.expr) -> bool:
    """Whether rows are a slice, or what a list comprehension makes of one: `[self.ids[k] for k in indexes]`."""
    made = pastes.behind_name(function, rows)
    if isinstance(made, ast.ListComp) and len(made.generators) == 1 and not made.generators[0].ifs:
        made = pastes.behind_name(function, made.generators[0].iter)
    return isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Slice)
