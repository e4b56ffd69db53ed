"""A tf.function that is defined again in each call of the function around it, or each round of a loop: defined once.

What it reads of the function or loop around it becomes its arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.built_once import CHANGES
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of

_OF_TENSORS = {"shape", "dtype"}
_PYTHON = {"len", "range", "int", "float", "str", "print", "zip", "enumerate", "isinstance", "sum", "min", "max"}
"""Functions of Python that do something else with a tensor, or not at all."""


def around(source: Source, own: ast.FunctionDef) -> tuple[ast.stmt, list[str]] | None:
    """The function or loop that defines a function again and again, and the names that it reads of it."""
    holders = [one for one in source.around(own) if isinstance(one, (ast.FunctionDef, ast.For, ast.While))]
    functions = [one for one in holders if isinstance(one, ast.FunctionDef)]
    if not holders:
        return None
    holder = functions[0] if functions else holders[-1]
    if isinstance(holder, ast.FunctionDef):
        bound = code.local_names(holder)
    else:
        bound = {
            one.id for one in ast.walk(holder)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and own not in source.around(one)
        }  # fmt: skip
    local = code.local_names(own)
    read = [
        one.id for one in ast.walk(own)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in bound and one.id not in local
    ]  # fmt: skip
    order = [*(code.parameters(holder) if isinstance(holder, ast.FunctionDef) else []), *read]
    return holder, [one for one in dict.fromkeys(order) if one in read and one != own.name]


def with_arguments(
    facts: Facts, file: str | None, own: ast.FunctionDef, changing: Mapping[str, str] | None = None
) -> str:  # fmt: skip
    """The lines that define it once, and call it with what it read; "" where tensors cannot stand for all of it.

    Args:
      facts: The recording.
      file: Its file.
      own: The function.
      changing: Parameters of it that get another number each time, and their dtypes: as tensors one graph serves all.
    """
    source = pastes.source(facts, file)
    found = around(source, own)
    if file is None or found is None or not found[1]:
        return ""
    holder, read = found
    above = _place(source, holder)
    calls = _calls(source, holder, own)
    head = own.body[0].lineno > own.lineno and len(own.decorator_list) == 1
    plain = not own.args.defaults and not own.args.vararg and not own.args.kwarg and not own.args.kwonlyargs
    numbers = _numbers(holder) if isinstance(holder, ast.FunctionDef) else set()
    tensors = [one for one in read if one not in numbers and not (one == "self" and _keeps_its_state(source, holder))]
    if calls is None or not head or not plain or not _as_tensors(source, own, tensors):
        return ""
    if "input_signature" in ast.unparse(own.decorator_list[0]) or _taken(source, own.name, own):
        return ""
    lines = source.lines[pastes.first_line(own) - 1 : own.end_lineno or own.lineno]
    indent, to = indent_of(lines[0]), indent_of(source.lines[above - 1])
    if not all(line.startswith(indent) or not line.strip() for line in lines):
        return ""
    parameters = ", ".join([*(ast.unparse(one) for one in (*own.args.posonlyargs, *own.args.args)), *read])
    returns = f" -> {ast.unparse(own.returns)}" if own.returns is not None else ""
    made = [f"{to}{line.removeprefix(indent)}".rstrip() for line in lines]
    at = own.lineno - pastes.first_line(own)
    until = own.body[0].lineno - pastes.first_line(own)
    made[at:until] = [f"{to}def {own.name}({parameters}){returns}:"]
    word = "function" if isinstance(holder, ast.FunctionDef) else "loop"
    gap = [""] * (2 if isinstance(holder, ast.FunctionDef) else 1)
    pieces: dict[ast.expr, str] = {
        one: f"{own.name}({', '.join([*_given(facts, file, own, one, changing or {}), *read])})" for one in calls
    }
    edits = pastes.each_replaced(facts, file, pieces)
    return pastes.written(
        Edit(file, pastes.first_line(own), own.end_lineno or own.lineno,
             (f"{indent}# {own.name} is defined once, above the {word}",)),
        Edit(file, above, above - 1, (*made, *gap)),
        *edits,
    )  # fmt: skip


def _given(facts: Facts, file: str, own: ast.FunctionDef, call: ast.Call, changing: Mapping[str, str]) -> list[str]:
    """What a call passes, with numbers that change as tensors."""
    text, tf = pastes.source(facts, file).text, pastes.module(facts, file, "tensorflow") or "tf"
    return [
        f"{tf}.constant({text(one)}, {tf}.{changing[name]})" if name in changing else text(one)
        for name, one in zip(code.parameters(own), call.args)
    ]


def in_words(facts: Facts, file: str | None, own: ast.FunctionDef) -> str:
    """What to do where there is no paste."""
    found = around(pastes.source(facts, file), own)
    if found is None:
        return ""
    holder, read = found
    where = f"outside of {holder.name}" if isinstance(holder, ast.FunctionDef) else "above the loop"
    given = f", with {', '.join(read)} as its arguments" if read else ""
    return f"define {own.name} once, {where}{given}"


def _place(source: Source, holder: ast.stmt) -> int:
    """The line above which it goes: that of the function or loop, or of the class that the function is a method of."""
    outer: ast.stmt = holder
    while isinstance(found := source.parent(outer), ast.ClassDef):
        outer = found
    return pastes.first_line(outer)


def _calls(source: Source, holder: ast.stmt, own: ast.FunctionDef) -> list[ast.Call] | None:
    """Its calls, all with as many values as it takes; None where it is used in another way."""
    found = []
    for one in ast.walk(holder):
        if isinstance(one, ast.Name) and one.id == own.name and isinstance(one.ctx, ast.Load):
            call = source.parent(one)
            if not isinstance(call, ast.Call) or call.func is not one or call.keywords:
                return None
            if len(call.args) != len(code.parameters(own)) or any(isinstance(part, ast.Starred) for part in call.args):
                return None
            found.append(call)
    return found if 0 < len(found) <= pastes.MOST else None


def _as_tensors(source: Source, own: ast.FunctionDef, read: list[str]) -> bool:
    """Whether all that it reads may be tensors: asked for nothing that only an object or an array has."""
    for one in ast.walk(own):
        if not isinstance(one, ast.Name) or one.id not in read:
            continue
        for part in source.around(one):
            if part is own:
                break
            if isinstance(part, ast.Attribute) and part.value is one and part.attr not in _OF_TENSORS:
                return False
            if isinstance(part, ast.Call) and part.func is one:
                return False
            if isinstance(part, ast.Call) and part.func is not one:
                head = ast.unparse(part.func).partition(".")[0]
                if head in ("np", "numpy", "math", "random") or ast.unparse(part.func) in _PYTHON:
                    return False
            if isinstance(part, (ast.JoinedStr, ast.Nonlocal, ast.FunctionDef, ast.Lambda)):
                return False
            if isinstance(part, ast.Subscript) and one in ast.walk(part.slice):
                return False
    return True


def _keeps_its_state(source: Source, holder: ast.stmt) -> bool:
    """Whether `self` of a method has what `__init__` gave it: a graph keeps what it read of it at trace."""
    parent = source.parent(holder)
    if not isinstance(parent, ast.ClassDef) or getattr(holder, "name", "__init__") == "__init__":
        return False
    kept = {one.attr for one in ast.walk(parent) if isinstance(one, ast.Attribute) and dotted(one.value) == "self"}
    made = [
        part for one in parent.body if getattr(one, "name", "") == "__init__" for part in ast.walk(one)
    ]  # fmt: skip
    return not any(_changed(one) in kept for one in code.all_nodes(source.tree) if one not in made)


def _changed(node: ast.AST) -> str:
    """The attribute that something sets, or changes in its place: `self.x = 1`, `self.x[0] = 1`, `self.x.append(1)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        return dotted(node.func.value).rpartition(".")[2]
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return dotted(node.value).rpartition(".")[2]
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return node.attr
    return ""


def _numbers(holder: ast.FunctionDef) -> set[str]:
    """Parameters that are numbers by default: as an argument each stays Python's, and is the same in most calls."""
    given = holder.args
    pairs = [*zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults))]
    pairs += [(name, value) for name, value in zip(given.kwonlyargs, given.kw_defaults) if value is not None]
    return {
        name.arg for name, value in pairs
        if isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
        and not any(isinstance(one, ast.Name) and one.id == name.arg and isinstance(one.ctx, ast.Store)
                    for one in ast.walk(holder))
    }  # fmt: skip


def _taken(source: Source, name: str, own: ast.FunctionDef) -> bool:
    return any(
        (isinstance(one, ast.FunctionDef) and one.name == name and one is not own)
        or (isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store))
        for one in ast.walk(source.tree)
    )


__all__ = ["around", "in_words", "with_arguments"]
