"""A callback of the user's that does nothing: it sets its own `stop_training`, or has a method that nobody calls."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

_STOPS = "stop_training"
_CALLED = (
    *(f"on_{what}_{when}" for what in ("epoch", "batch", "train", "test", "predict") for when in ("begin", "end")),
    *(f"on_{what}_batch_{when}" for what in ("train", "test", "predict") for when in ("begin", "end")),
)
"""What Keras calls of a callback."""
_OTHER = (
    ("start", "begin"),
    ("starts", "begin"),
    ("begins", "begin"),
    ("ends", "end"),
    ("finish", "end"),
    ("stop", "end"),
)
_NEAR = 0.9


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a class that a program makes a callback of.

    Args:
      facts: The recording.
      rule: The rule's name.
    """
    for file in facts.files:
        tree = facts.tree(file)
        made = {pastes.last_name(one.func) for one in pastes.walk(tree, ast.Call)}
        for holder in pastes.walk(tree, ast.ClassDef):
            if holder.name not in made or not _is_of_keras(holder, tree):
                continue
            yield from _stops_itself(facts, rule, file, holder, tree)
            yield from _misnamed(facts, rule, file, holder, tree)


def _asks(tree: ast.AST | None) -> bool:
    """Whether a file asks somebody's `stop_training`, also by its name as a text."""
    asked = any(isinstance(one.ctx, ast.Load) for one in pastes.walk(tree, ast.Attribute) if one.attr == _STOPS)
    return asked or any(one.value == _STOPS for one in pastes.walk(tree, ast.Constant))


def _is_of_keras(holder: ast.ClassDef, tree: ast.AST | None) -> bool:
    """Whether a class is a callback of Keras', and not of another library with hooks of other names."""
    bases = [ast.unparse(one) for one in holder.bases]
    if len(bases) != 1 or bases[0].rpartition(".")[2] != "Callback":
        return False
    imported = [
        one.module or ""
        for one in pastes.walk(tree, ast.ImportFrom)
        if any(part.name == "Callback" for part in one.names)
    ]
    if bases[0] == "Callback":
        own = any(one.name == "Callback" for one in pastes.walk(tree, ast.ClassDef))
        return not own and bool(imported) and all("keras" in one for one in imported)
    return "keras" in bases[0] or bases[0] == "callbacks.Callback"


def _stops_itself(facts: Facts, rule: str, file: str, holder: ast.ClassDef, tree: ast.AST | None) -> Iterator[Finding]:
    if any(_asks(facts.tree(one)) for one in facts.files):
        return
    inside = [one for one in pastes.walk(holder, ast.Attribute) if one.attr == _STOPS]
    own = [one for one in inside if isinstance(one.value, ast.Name)]
    if not own or any(isinstance(one.value, ast.Attribute) for one in inside):
        return
    names = {one.value.id for one in own if isinstance(one.value, ast.Name)}
    first = [one.args.args[0].arg for one in pastes.walk(holder, ast.FunctionDef) if one.args.args]
    if not names <= set(first):
        return
    edits = [
        pastes.replaced(facts, file, {one.value: f"{pastes.text_of(facts, file, one.value)}.model"}) for one in own
    ]
    yield Finding(
        rule, "warning", None, (),
        f"{holder.name} sets its own stop_training, which nobody asks: Keras asks that of the model, and training goes "
        "on",
        pastes.written(*edits), file, own[0].lineno,
    )  # fmt: skip


def _misnamed(facts: Facts, rule: str, file: str, holder: ast.ClassDef, tree: ast.AST | None) -> Iterator[Finding]:
    methods = [one for one in holder.body if isinstance(one, ast.FunctionDef)]
    used = {one.attr for file in facts.files for one in pastes.walk(facts.tree(file), ast.Attribute)}
    used |= {one.value for one in pastes.walk(tree, ast.Constant) if isinstance(one.value, str)}
    for method in methods:
        new = _meant(method.name)
        if not new or method.name in used or any(one.name == new for one in methods):
            continue
        line = facts.source(file)[method.lineno - 1]
        edit = Edit(file, method.lineno, method.lineno, (line.replace(method.name, new, 1),))
        yield Finding(
            rule, "warning", None, (),
            f"nobody calls {holder.name}.{method.name}: Keras calls {new}",
            pastes.written(edit), file, method.lineno,
        )  # fmt: skip


def _meant(name: str) -> str:
    """Which of Keras' names a method was meant to have; "" for none."""
    if not name.startswith("on_") or name in _CALLED:
        return ""
    head, _, last = name.rpartition("_")
    other = dict(_OTHER).get(last.lower())
    if other is not None and f"{head}_{other}" in _CALLED:
        return f"{head}_{other}"
    near = difflib.get_close_matches(name.lower(), _CALLED, 1, _NEAR)
    return near[0] if near else ""
