"""A model of the user's own train_step and without `call`: validation and evaluate run test_step, which calls it."""

from __future__ import annotations

import ast
import re
import textwrap

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, is_tape, names
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_SAID = re.compile(r"Model (\w+) does not have a `call\(\)` method implemented")
_VALIDATES = ("validation_data", "validation_split")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a class has train_step, and Keras runs its own test_step, which needs `call`."""
    said, spot, statement = _SAID.search(situation.message), situation.last, situation.statement
    if said is None or spot is None or statement is None:
        return None
    found = [one for one in calls(statement) if _validates(one)]
    for file, source in situation.sources() if found else ():
        for one in ast.walk(source.tree):
            if not isinstance(one, ast.ClassDef) or one.name != said[1]:
                continue
            methods = {each.name: each for each in one.body if isinstance(each, ast.FunctionDef)}
            step = methods.get("train_step")
            if step is None or "test_step" in methods or "call" in methods:
                return None
            by = "evaluate" if found[0].func.attr == "evaluate" else "validation"  # type: ignore[attr-defined]
            cause = (
                f"{one.name} has a train_step of its own and no test_step: {by} runs Keras' own, which calls the "
                f"model, and {one.name} has no call."
            )
            edit = _edit(file, source, step)
            advice = "" if edit else "Write a test_step: what train_step computes, without the tape and the gradients."
            return Explanation(RULE, spot.file, found[0].lineno, cause, edit, advice)
    return None


def _validates(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name == "evaluate" or (name == "fit" and any(one.arg in _VALIDATES for one in call.keywords))


def _edit(file: str, source: Source, step: ast.FunctionDef) -> Edit | None:
    """A test_step with the lines of train_step that compute what it returns."""
    blanks = indent_of(source.lines[step.lineno - 1])
    lines: list[str] = []
    left: set[str] = set()
    tapes = [one for one in ast.walk(step) if isinstance(one, ast.With) and is_tape(one)]
    if len(tapes) != 1 or tapes[0] not in step.body or step.body[0].lineno == step.lineno:
        return None
    left |= {one.id for item in tapes[0].items for one in ast.walk(item) if isinstance(one, ast.Name)
             and isinstance(one.ctx, ast.Store)}  # fmt: skip
    inside = indent_of(source.lines[step.body[0].lineno - 1])
    for one in [part for each in step.body for part in (each.body if each is tapes[0] else [each])]:
        text = source.lines[one.lineno - 1 : one.end_lineno]
        if left & set(names(one)) or "optimizer" in ast.unparse(one):
            left |= {
                name.id for name in ast.walk(one) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
            if isinstance(one, ast.Return):
                return None
            continue
        lines += textwrap.indent(textwrap.dedent("\n".join(text)), inside).split("\n")
    if not isinstance(step.body[-1], ast.Return):
        return None
    head = f"{blanks}def test_step({ast.unparse(step.args)}):"
    first = min([step.lineno, *(one.lineno for one in step.decorator_list)])
    return Edit(file, first, first - 1, (head, *lines))
