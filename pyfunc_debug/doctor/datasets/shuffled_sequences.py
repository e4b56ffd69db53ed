"""Predictions of a Sequence of the user's own that shuffles its rows as an epoch ends, matched with its labels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.shuffled_flows import Made, SideBySide, are_matched, predictions
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

_SHUFFLES = re.compile(r"\b(?:shuffle|permutation)\(self\.(\w+)")
_MADE = re.compile(r"self\.(\w+) = [^\n]*\b(?:permutation|shuffle|sample)\(")
_LABELS = re.compile(r"^y$|^y_|_y$|label|true|target|truth", re.IGNORECASE)


def check(facts: Facts, rule: str, made_of: Made, side_by_side: SideBySide) -> Iterator[Finding]:
    """One finding a line that predicts.

    Args:
      facts: The recording.
      rule: The rule's name.
      made_of: Variables, and what a file computes of them.
      side_by_side: The variables in each of the things that a file takes position by position.
    """
    for file, _, call, results in predictions(facts):
        tree, given = facts.tree(file), call.args[0]
        made = pastes.behind_name(tree, given)
        order = _shuffled(tree, made) if isinstance(made, ast.Call) and isinstance(given, ast.Name) else ""
        if not order or not isinstance(made, ast.Call) or not isinstance(given, ast.Name):
            continue
        labels = {one.id for one in pastes.walk(made, ast.Name) if _LABELS.search(one.id)}
        of_own = {
            target.id for one in pastes.walk(tree, ast.Assign) if _reads(one.value, given.id)
            for target in one.targets if isinstance(target, ast.Name)
        }  # fmt: skip
        if are_matched(tree, results, {given.id, *labels, *of_own} - results, made_of, side_by_side):
            yield _finding(facts, rule, file, call, made, order)


def _shuffled(tree: ast.Module | None, made: ast.Call) -> str:
    """The attribute that a class shuffles as an epoch ends; "" where it keeps its order."""
    kind = next((one for one in pastes.walk(tree, ast.ClassDef) if one.name == ast.unparse(made.func)), None)
    if kind is None or "False" in ast.unparse(made):
        return ""
    ends = [one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name == "on_epoch_end"]
    text = ast.unparse(ends[0]) if ends else ""
    found = _SHUFFLES.search(text) or _MADE.search(text)
    return found[1] if found is not None and _is_on(kind) else ""


def _is_on(kind: ast.ClassDef) -> bool:
    """Whether a class shuffles where nothing says otherwise."""
    for one in kind.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            return "shuffle=False" not in ast.unparse(one.args).replace(" ", "")
    return True


def _reads(value: ast.expr, name: str) -> bool:
    """Whether an expression takes labels of the Sequence: `test.labels[:n]`."""
    return any(ast.unparse(one.value) == name and _LABELS.search(one.attr) for one in pastes.walk(value, ast.Attribute))


def _finding(facts: Facts, rule: str, file: str, call: ast.Call, made: ast.Call, order: str) -> Finding:
    own = pastes.source(facts, file)
    given, kind = own.text(call.args[0]), own.text(made.func)
    asks = "shuffle" in own.text(made) or any(
        isinstance(one, ast.arg) and one.arg == "shuffle" for one in pastes.walk(facts.tree(file), ast.arg)
    )
    fix = f"a {kind} that does not shuffle, for predict"
    if asks and "shuffle" not in own.text(made):
        fix = f"{own.with_argument(made, 'shuffle=False')} for predict"
    return Finding(
        rule, "error", None, (),
        f"what predict gives of {given} does not fit to its labels by position: {kind}.on_epoch_end shuffles "
        f"self.{order}, by which its batches are taken, and the labels stand in the order of the arrays",
        fix, file, call.lineno, evidence=("both are compared, or paired, by their positions",), confidence="likely",
    )  # fmt: skip
