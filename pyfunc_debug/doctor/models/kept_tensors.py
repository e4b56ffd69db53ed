"""A metric that adds up in a plain attribute: a graph begins each step with what stood there while it was traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

_MADE = ("constant", "zeros", "convert_to_tensor")


def kept_tensors(facts: Facts, file: str, owner: str, function: ast.FunctionDef, steps: int) -> Iterator[Finding]:
    """The first line of a method that gives an attribute a value made of its old one.

    Args:
      facts: The recording.
      file: The file of the class.
      owner: The class' and the method's name.
      function: The method.
      steps: How often Keras ran its graph.
    """
    holders = pastes.around(facts.tree(file), function.lineno, ast.ClassDef)[-1:]
    every = [one for holder in holders for one in ast.walk(holder) if isinstance(one, ast.Assign)]
    for one in function.body:
        name = ast.unparse(one.targets[0]) if isinstance(one, ast.Assign) and len(one.targets) == 1 else ""
        if not name.startswith("self.") or name.count(".") != 1 or not isinstance(one, ast.Assign):
            continue
        own = [part for part in every if name in [ast.unparse(target) for target in part.targets]]
        others = [part for part in own if part is not one]
        read = any(ast.unparse(part) == name for part in ast.walk(one.value) if isinstance(part, ast.Attribute))
        if not read or not others or not all(len(part.targets) == 1 and _is_start(part.value) for part in others):
            continue
        yield Finding(
            "trace-only", "warning", None, (),
            f"line {one.lineno} of {owner} adds up in Python's {name!r}. Keras runs its steps in a graph: each of its "
            f"{steps:,} steps began with what stood there while Keras traced them, and nothing was added up",
            _fix(facts, file, name, one, others), file, one.lineno,
            evidence=(f"line {one.lineno}: {pastes.text_of(facts, file, one)}",), confidence="likely",
        )  # fmt: skip
        return


def _is_start(value: ast.expr) -> bool:
    """`0.0`, `tf.constant(0.0)`, `tf.zeros([])`: what it begins with."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _MADE
    return code.is_number(value)


def _fix(facts: Facts, file: str, name: str, change: ast.Assign, others: list[ast.Assign]) -> str:
    """A variable in its place: made in __init__, assigned elsewhere."""
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    made = [one for one in others if _function_of(facts, file, one) == "__init__"]
    pieces = [
        (one, f"{name}.assign({pastes.text_of(facts, file, one.value)})")
        for one in [change, *others]
        if one not in made
    ]
    if len(made) == 1:
        first = made[0]
        pieces.append((first, f"{name} = {tf}.Variable({pastes.text_of(facts, file, first.value)}, trainable=False)"))
    edits = [_line(facts, file, one, text) for one, text in pieces] if len(made) == 1 else []
    return pastes.written(*edits) or f"{name} = {tf}.Variable(0.0, trainable=False)  # in __init__; then {name}.assign"


def _line(facts: Facts, file: str, old: ast.Assign, text: str) -> Edit | None:
    lines = pastes.lines_of(facts, file, old.lineno)
    return None if lines is None else Edit(file, old.lineno, old.end_lineno or old.lineno, (f"{lines[0]}{text}",))


def _function_of(facts: Facts, file: str, node: ast.AST) -> str:
    around = pastes.around(facts.tree(file), getattr(node, "lineno", 0), ast.FunctionDef)
    return around[-1].name if around else ""
