"""What a metric adds up in plain attributes, as weights: those change when the graph runs, not while it is traced."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.code import is_number
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, together
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of

_MOST = 40
"""Lines from the first to the last that changes."""
_ADDED: dict[type, str] = {ast.Add: "assign_add", ast.Sub: "assign_sub"}


def as_weights(file: str, source: Source, line: int) -> Edit | None:
    """The class with weights for the numbers that its update_state changes; None where it keeps something else.

    Args:
      file: The user's file.
      source: Its text.
      line: A line of update_state.
    """
    around = list(source.around(source.statement(line) or source.tree))
    holder = next((one for one in around if isinstance(one, ast.ClassDef)), None)
    if holder is None or not any(dotted(base).endswith("Metric") for base in holder.bases):
        return None
    methods = {one.name: one for one in holder.body if isinstance(one, ast.FunctionDef)}
    update = methods.get("update_state")
    changed = {dotted(target): one for one in ast.walk(update) for target in _targets(one)} if update else {}
    names = [one for one in changed if one.startswith("self.") and one.count(".") == 1]
    if not names or update is None or "__init__" not in methods:
        return None
    lines = list[tuple[ast.stmt, str]]()
    for name in names:
        found = _lines(source, methods, holder, name)
        if found is None:
            return None
        lines += found
    return _edited(file, source, lines)


def as_variables(file: str, source: Source, line: int, dtype: str, tf: str) -> Edit | None:
    """The class with a variable for the number that a line of a method changes; None where it keeps something else.

    Args:
      file: The user's file.
      source: Its text.
      line: The line.
      dtype: Of what it puts there.
      tf: How the file calls TensorFlow.
    """
    statement = source.statement(line)
    around = list(source.around(statement)) if statement is not None else []
    holder = next((one for one in around if isinstance(one, ast.ClassDef)), None)
    names = [dotted(one) for one in _targets(statement)] if statement is not None else []
    if holder is None or len(names) != 1 or not names[0].startswith("self.") or names[0].count(".") != 1:
        return None
    methods = {one.name: one for one in holder.body if isinstance(one, ast.FunctionDef)}
    lines = _lines(source, methods, holder, names[0], f"{tf}.Variable({{}}, trainable=False, dtype={tf}.{dtype})")
    return None if lines is None else _edited(file, source, lines)


def _edited(file: str, source: Source, lines: list[tuple[ast.stmt, str]]) -> Edit | None:
    """Statements with others in their places, as one paste; None where they stand far apart."""
    edits = [
        Edit(file, one.lineno, one.end_lineno or one.lineno, (f"{indent_of(source.lines[one.lineno - 1])}{text}",))
        for one, text in lines
    ]
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    return together(edits, source.lines) if last - first <= _MOST else None


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []


def _lines(
    source: Source, methods: dict[str, ast.FunctionDef], holder: ast.ClassDef, name: str, variable: str = ""
) -> list[tuple[ast.stmt, str]] | None:
    """All statements that give an attribute a value, and what stands in their places: a weight, or this variable."""
    found, made = list[tuple[ast.stmt, str]](), 0
    for one in ast.walk(holder):
        if name not in [dotted(target) for target in _targets(one)]:
            continue
        method = next((other for other in source.around(one) if isinstance(other, ast.FunctionDef)), None)
        alone = len(_targets(one)) == 1 and getattr(method, "name", "") in methods
        value = getattr(one, "value", None)
        if not alone or method is None or not isinstance(one, (ast.Assign, ast.AugAssign)) or value is None:
            return None
        text = source.text(value)
        if isinstance(one, ast.AugAssign):
            added = _ADDED.get(type(one.op))
            if added is None or method.name == "__init__":
                return None
            found.append((one, f"{name}.{added}({text})"))
        elif method.name == "__init__":
            if not is_number(value) or one not in method.body:
                return None
            made += 1
            if variable:
                found.append((one, f"{name} = {variable.format(text)}"))
                continue
            zero = value.value == 0
            start = '"zeros"' if zero else f"lambda shape, dtype=None: {text}"
            found.append((one, f'{name} = self.add_weight(shape=(), initializer={start}, name="{name[5:]}")'))
        elif variable or method.name == "update_state" or is_number(value):
            found.append((one, f"{name}.assign({text})"))
        else:
            return None
    return found if made == 1 else None
