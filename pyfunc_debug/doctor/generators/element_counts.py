"""How many elements a generator of `Dataset.from_generator` gives, as an expression, and the line that says so."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names
from pyfunc_debug.doctor.generators.generator_source import generator_of

Length = Callable[[ast.expr], int | None]
"""The length of what an expression of the generator's loop stands for; -1: it has one; None: that is not known."""
_SAME = ("enumerate", "reversed", "sorted", "list", "tuple", "tqdm", "tqdm.tqdm")
_SIZED = ("list", "tuple", "sorted", "range", "glob.glob", "os.listdir", "glob")
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try)
_MOST = 8
"""Lines of a paste."""


def count_of(own: Source, call: ast.Call, length: Length) -> str:
    """How many elements the generator of a call of `from_generator` gives, as it is written there; "" if not sure."""
    found = generator_of(own, call)
    if found is None:
        given = call.args[0] if call.args else None
        body = given.body if isinstance(given, ast.Lambda) and not given.args.args else None
        if isinstance(body, ast.Call) and dotted(body.func) == "iter" and len(body.args) == 1:
            body = body.args[0]
        return _count(own, body, length, {}) if body is not None else ""
    function = found.function
    if isinstance(function, ast.GeneratorExp):
        alone = len(function.generators) == 1 and not function.generators[0].ifs
        return _count(own, function.generators[0].iter, length, {}) if alone else ""
    yields = [one for one in ast.walk(function) if isinstance(one, (ast.Yield, ast.YieldFrom))]
    statement = own.parent(yields[0]) if len(yields) == 1 else None
    if statement is None or found.owner or any(isinstance(one, _LEAVES) for one in ast.walk(function)):
        return ""
    if isinstance(yields[0], ast.YieldFrom):
        if statement not in function.body:
            return ""
        over = yields[0].value
    else:
        loop = own.parent(statement)
        if not isinstance(loop, ast.For) or loop not in function.body or loop.orelse or statement not in loop.body:
            return ""
        over = loop.iter
    bound = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    if bound & set(names(over)):
        return ""
    return _count(own, over, length, found.given)


def _count(own: Source, value: ast.expr, length: Length, given: dict[str, ast.expr]) -> str:
    if isinstance(value, ast.Name) and value.id in given:
        value = given[value.id]
    if isinstance(value, ast.Call):
        name = dotted(value.func)
        if name in _SAME and value.args:
            return _count(own, value.args[0], length, given)
        if name == "range" and len(value.args) == 1 and not value.keywords:
            return _number(own, value.args[0], given)
        if name == "zip" and value.args and not any(isinstance(one, ast.Starred) for one in value.args):
            counts = [_count(own, one, length, given) for one in value.args]
            known = {length(one) for one in value.args}
            if not all(counts):
                return ""
            return counts[0] if len(known) == 1 and not known & {-1, None} else f"min({', '.join(counts)})"
        return ""
    if isinstance(value, (ast.Name, ast.Attribute)) and length(value) is not None:
        return f"len({own.text(value)})"
    return ""


def _number(own: Source, value: ast.expr, given: dict[str, ast.expr]) -> str:
    """`n`, `len(rows)` or `5` in `range(...)`, in the names that stand at the call."""
    if isinstance(value, ast.Name):
        value = given.get(value.id, value)
    if isinstance(value, ast.Call) and dotted(value.func) == "len" and len(value.args) == 1:
        inner = value.args[0]
        if isinstance(inner, ast.Name) and inner.id in given:
            return f"len({own.text(given[inner.id])})"
        return own.text(value) if isinstance(inner, (ast.Name, ast.Attribute)) else ""
    return own.text(value) if isinstance(value, (ast.Name, ast.Attribute, ast.Constant)) else ""


def length_in(own: Source) -> Length:
    """The same by the source alone, where a name is assigned once."""

    def length(value: ast.expr) -> int | None:
        made = [
            one.value for one in ast.walk(own.tree)
            if isinstance(one, ast.Assign) and dotted(value) in map(dotted, one.targets)
        ] if dotted(value) else []  # fmt: skip
        return -1 if len(made) == 1 and _sized(own, made[0]) else None

    return length


def _sized(own: Source, value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Tuple, ast.ListComp, ast.Dict)):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = dotted(value.func)
    if name in _SIZED or name.rpartition(".")[2] in ("split", "splitlines", "readlines", "tolist"):
        return True
    if name.partition(".")[0] in ("np", "numpy"):
        return True
    classes = [one for one in ast.walk(own.tree) if isinstance(one, ast.ClassDef) and one.name == name]
    return len(classes) == 1 and any(
        isinstance(one, ast.FunctionDef) and one.name == "__len__" for one in classes[0].body
    )


def asserted(file: str, own: Source, call: ast.Call, count: str, tf: str) -> Edit | None:
    """The line that says how many elements a dataset of a generator has, below the one that makes it."""
    statement = own.statement(call.lineno)
    says = f".apply({tf}.data.experimental.assert_cardinality({count}))"
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        target = own.text(statement.targets[0])
        if isinstance(statement.targets[0], (ast.Name, ast.Attribute)):
            below = (statement.end_lineno or statement.lineno) + 1
            indent = indent_of(own.lines[statement.lineno - 1])
            return Edit(file, below, below - 1, (f"{indent}{target} = {target}{says}",))
    edit = edit_of(file, own.replaced({call: f"{own.text(call)}{says}"}))
    return edit if edit is not None and edit.last - edit.first < _MOST else None
