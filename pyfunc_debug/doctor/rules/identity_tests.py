"""`if found is True:` in what is traced: a tensor is neither True nor False, so that one branch alone is traced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding, Function

NAMES = ("identity-test",)
_OPS = re.compile(
    r"equal|not_equal|less|less_equal|greater|greater_equal|reduce_\w+|logical_\w+|cast|constant|math\.\w+|strings\.regex_\w+"
)
"""Functions of TensorFlow's that give tensors."""
_DTYPE = r"(?:u?int\d+|float\d+|bfloat16|bool|string)(?:\[|,|\))"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a test, of functions that were traced."""
    told: set[tuple[str | None, int, int]] = set()
    for function in facts.functions.values():
        own = facts.definition(function.file, function.line) if function.origin == "user" else None
        if not isinstance(own, ast.FunctionDef):
            continue
        for test in _tests(own):
            place = (function.file, test.lineno, test.col_offset)
            if place not in told and _is_tensor(facts, function, own, test.left, 0):
                told.add(place)
                yield _finding(facts, function, test)


def _tests(function: ast.FunctionDef) -> Iterator[ast.Compare]:
    """Comparisons `x is True`, `x is not False` of a function."""
    for one in code.own_nodes(function):
        if isinstance(one, ast.Compare) and len(one.ops) == 1 and isinstance(one.ops[0], (ast.Is, ast.IsNot)):
            other = one.comparators[0]
            if isinstance(other, ast.Constant) and isinstance(other.value, bool):
                yield one


def _is_tensor(facts: Facts, function: Function, own: ast.FunctionDef, value: ast.expr, depth: int) -> bool:
    """Whether an expression is a tensor while the function is traced: by what made it, or what it was called with."""
    tf = pastes.module(facts, function.file, "tensorflow")
    if isinstance(value, ast.Call):
        name = dotted(value.func)
        if tf is not None and name.startswith(f"{tf}.") and _OPS.fullmatch(name.removeprefix(f"{tf}.")):
            return True
        return any(
            one.kind == "tf.function"
            and one.origin == "user"
            and one.file == function.file
            and one.name.rpartition(".")[2] == name
            for one in facts.functions.values()
        )  # what a tf.function gives in another's trace is a tensor, whatever it returns
    if isinstance(value, ast.Compare) and not isinstance(value.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return _is_tensor(facts, function, own, value.left, depth)
    if not isinstance(value, ast.Name) or depth > 2:
        return False
    stored = [one for one in code.own_nodes(own) if isinstance(one, ast.stmt) and value.id in code.stored_names(one)]
    if value.id in code.parameters(own):
        traces = [one.signature for one in facts.traces if one.function == function.id]
        return not stored and bool(traces) and all(re.search(rf"\b{value.id}: {_DTYPE}", one) for one in traces)
    made = [one.value for one in stored if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)]
    whole = bool(made) and len(made) == len(stored)
    return whole and all(_is_tensor(facts, function, own, one, depth + 1) for one in made)


def _finding(facts: Facts, function: Function, test: ast.Compare) -> Finding:
    text = pastes.text_of(facts, function.file, test)
    own = pastes.source(facts, function.file).atom(test.left)
    positive = isinstance(test.ops[0], ast.Is) == getattr(test.comparators[0], "value", None)
    always = isinstance(test.ops[0], ast.IsNot)
    edit = pastes.replaced(facts, function.file, {test: own if positive else f"not {own}"})
    return Finding(
        NAMES[0], "error", None, (),
        f"`{text}` is always {always} in {function.name}: `is` asks whether two are the same object of Python's, and "
        "a tensor is neither True nor False. It was decided while the graph was traced; without `is`, the graph "
        "decides by the value",
        pastes.written(edit) or f"write it without `is`: {own if positive else f'not {own}'}",
        function.file, test.lineno,
    )  # fmt: skip
