"""`random.shuffle` of a NumPy array with rows: some rows are there twice behind it, and others are gone.

Python's shuffle swaps two entries at a time. Rows of an array are views: what was saved of the first one changes, as
the second is written over it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

NAMES = ("doubled-rows",)
_SIZED = ("rand", "randn")
"""Functions whose arguments are the sizes."""
_SHAPED = ("zeros", "ones", "empty", "random", "normal", "uniform", "randint", "random_sample", "standard_normal")
_TWO_AXES = ("vstack", "column_stack", "eye", "meshgrid", "c_")
_KEEPS = ("astype", "copy", "round", "clip")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call."""
    for file in facts.files:
        own = pastes.source(facts, file)
        known = imports(own)
        for call in pastes.walk(own.tree, ast.Call):
            head, _, last = dotted(call.func).rpartition(".")
            full = f"{known.get(head, '')}.{last}" if head else known.get(last, "")
            name = dotted(call.args[0]) if len(call.args) == 1 else ""
            made = _made(own, call, name) if full == "random.shuffle" and name else None
            if made is None or not _has_rows(made):
                continue
            text, np = own.text(call.args[0]), pastes.module(facts, file, "numpy") or "np"
            yield Finding(
                NAMES[0], "error", None, (),
                f"{own.text(call)} swaps rows of an array, which are views of it: as one is written over the other, "
                f"what was kept of the other changes, too. Some rows of {text} are there twice behind it, and others "
                "are lost",
                pastes.written(pastes.replaced(facts, file, {call.func: f"{np}.random.shuffle"}))
                or f"{np}.random.shuffle({text})",
                file, call.lineno, evidence=(f"line {made.lineno}: {facts.line(file, made.lineno)}",),
                confidence="likely",
            )  # fmt: skip


def _made(own: Source, call: ast.Call, name: str) -> ast.expr | None:
    """What the last assignment above a call, in its function or else in the file, gives a name."""
    functions = [one for one in own.around(call) if isinstance(one, ast.FunctionDef)]
    scopes: list[ast.FunctionDef | ast.Module] = [*functions, own.tree]
    for scope in scopes:
        if isinstance(scope, ast.FunctionDef) and name in code.parameters(scope):
            return None
        made = [
            one for one in _nodes(scope)
            if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [name]
        ]  # fmt: skip
        if made:
            above = [one for one in made if one.lineno < call.lineno]
            return max(above, key=lambda one: one.lineno).value if above else None
    return None


def _nodes(scope: Definition | ast.Module) -> Iterator[ast.AST]:
    return code.own_nodes(scope)


def _has_rows(value: ast.expr) -> bool:
    """Whether an expression makes an array of two axes or more, as it is written."""
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Subscript) and dotted(value.value).endswith(".c_")
    last = dotted(value.func).rpartition(".")[2] or getattr(value.func, "attr", "")
    if isinstance(value.func, ast.Attribute) and last in _KEEPS:
        return _has_rows(value.func.value)
    given = value.args
    if last == "reshape":
        sizes = (
            given if isinstance(value.func, ast.Attribute) and not dotted(value.func).startswith("np.") else given[1:]
        )
        return len(sizes) > 1 or (len(sizes) == 1 and _several(sizes[0]))
    if last in _SIZED:
        return len(given) > 1
    if last in _SHAPED:
        sized = [*given, *(word.value for word in value.keywords if word.arg in ("size", "shape"))]
        return any(_several(one) for one in sized)
    if last in ("array", "asarray") and given:
        rows = given[0].elts if isinstance(given[0], (ast.List, ast.Tuple)) else []
        return bool(rows) and all(isinstance(one, (ast.List, ast.Tuple)) for one in rows)
    return last in _TWO_AXES


def _several(node: ast.expr) -> bool:
    return isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1
