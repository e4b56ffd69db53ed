"""A Python generator's lines inside `while True`: one that ends is used up after a pass, and Keras makes no new one."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit

_LONGEST = 24
"""Lines that are pasted."""
_CHANGES = {"append", "extend", "insert", "pop", "popleft", "remove", "add", "update", "clear", "send"}
"""Methods after which a loop's next pass finds another object."""
_USED_UP = {"iter", "zip", "map", "filter", "enumerate", "reversed", "open", "reader", "DictReader", "islice", "chain"}
"""What makes an iterator, which has one pass."""


def made_by(tree: ast.AST | None, data: ast.expr) -> ast.FunctionDef | None:
    """The user's generator function whose call makes the data; None where it is something else."""
    made = made_of(tree, data)
    functions = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
    called = functions.get(pastes.last_name(made.func)) if isinstance(made, ast.Call) else None
    return called if called is not None and _yields(called) else None


def made_of(tree: ast.AST | None, data: ast.expr) -> ast.expr | None:
    """What the newest assignment of a file gives to a name; any other expression as it is."""
    if not isinstance(data, ast.Name):
        return data
    found = [
        one.value for one in pastes.walk(tree, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == data.id for target in one.targets)
    ]  # fmt: skip
    return found[-1] if found else None


def for_ever(facts: Facts, file: str, function: ast.FunctionDef) -> str:
    """The generator's loop, with what it changes or uses up, inside `while True`: what stands before is done once."""
    own = list(code.own_nodes(function))
    first = next((place for place, one in enumerate(function.body) if _yields(one)), None)
    if first is None or any(isinstance(one, ast.Return) for one in own):
        return ""
    counted = _counted(function.body[first])
    resets = [_set_by_init(facts, file, function, one) for one in counted]
    if "" in resets:
        return ""
    changed = {name for one in function.body[first:] for name in _changed(one)}
    for place in range(first - 1, -1, -1):
        if _sets(function.body[place], changed):
            first = place
            changed |= _changed(function.body[place])
    begin, end = function.body[first].lineno, function.body[-1].end_lineno or function.body[-1].lineno
    lines = facts.source(file)[begin - 1 : end]
    if len(lines) > _LONGEST or any(isinstance(one, ast.Constant) and _is_long_text(one) for one in own):
        return ""
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    back = (f"{indent}    {one}" for one in resets)
    new = (f"{indent}while True:", *back, *(f"    {line}" if line.strip() else line for line in lines))
    return pastes.written(Edit(file, begin, end, new))


def _counted(loop: ast.stmt) -> list[str]:
    """What a `while` asks for and changes in an object, as `self.at`: without its first value it is over at once."""
    if not isinstance(loop, ast.While):
        return []
    asked = {ast.unparse(one) for one in ast.walk(loop.test) if isinstance(one, ast.Attribute)}
    every = (one for one in ast.walk(loop) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
    return sorted({ast.unparse(one) for one in every} & asked)


def _set_by_init(facts: Facts, file: str, function: ast.FunctionDef, name: str) -> str:
    """`self.at = 0` as the `__init__` of the generator's class has it; "" where it sets no number."""
    holder = pastes.source(facts, file).parent(function)
    made = [
        one for part in getattr(holder, "body", ()) if isinstance(part, ast.FunctionDef) and part.name == "__init__"
        for one in pastes.walk(part, ast.Assign) if [ast.unparse(target) for target in one.targets] == [name]
    ]  # fmt: skip
    return ast.unparse(made[0]) if len(made) == 1 and isinstance(made[0].value, ast.Constant) else ""


def _yields(node: ast.AST) -> bool:
    inside = code.own_nodes(node) if isinstance(node, ast.FunctionDef) else ast.walk(node)
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in inside)


def _is_long_text(node: ast.Constant) -> bool:
    """Whether a text goes over several lines, which indentation would change."""
    return isinstance(node.value, (str, bytes)) and (node.end_lineno or node.lineno) > node.lineno


def _changed(statement: ast.stmt) -> set[str]:
    """Names that a statement sets or changes in place, and those of iterators that it reads."""
    found = code.stored_names(statement)
    for one in ast.walk(statement):
        if isinstance(one, ast.For) and isinstance(one.iter, ast.Name):
            found.add(one.iter.id)
        if not isinstance(one, ast.Call):
            continue
        changes = isinstance(one.func, ast.Attribute) and one.func.attr in _CHANGES
        if changes and isinstance(one.func.value, ast.Name):  # type: ignore[attr-defined]
            found.add(one.func.value.id)  # type: ignore[attr-defined]
        if ast.unparse(one.func) == "next" and one.args and isinstance(one.args[0], ast.Name):
            found.add(one.args[0].id)
    return found


def _sets(statement: ast.stmt, changed: set[str]) -> bool:
    """Whether a statement gives such a name a number, an empty list, or an iterator: its value at the loop's begin."""
    if not isinstance(statement, ast.Assign) or not code.stored_names(statement) & changed:
        return False
    value = statement.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(
        isinstance(one, (ast.Constant, ast.List, ast.Dict, ast.GeneratorExp))
        or (isinstance(one, ast.Call) and (pastes.last_name(one.func) in _USED_UP or not one.args))
        for one in parts
    )
