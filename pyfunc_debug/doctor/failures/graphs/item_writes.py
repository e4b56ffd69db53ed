"""`t[0] = 1.0` of a tensor or a variable that has values, and `v += 1` of a variable: neither can be assigned so."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.pastes.value_fixes import item_assignment
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, tapes_around
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

RULE = "symbolic-value"
_FARTHEST = 20
"""Lines from the first to the last that one paste changes."""
_SAID = re.compile(r"'[\w.]*(EagerTensor|ResourceVariable)' object does not support item assignment")


_ADDED = re.compile(r"`var(?:iable)? \S*= value` with `tf\.Variable`s is not supported")
_BY = {ast.Add: "assign_add", ast.Sub: "assign_sub"}


def added(situation: Situation) -> Explanation | None:
    """The explanation, if a variable was changed by `v += 1`, also with the line of its class that makes it again."""
    spot, statement = situation.last, situation.statement
    if spot is None or not _ADDED.search(situation.message) or not isinstance(statement, ast.AugAssign):
        return None
    source, target = spot.source, spot.source.text(statement.target)
    method, value = _BY.get(type(statement.op), "assign"), source.text(statement.value)
    if method == "assign":
        value = source.augmented(statement, target)
    edits = [_line(spot, statement, f"{target}.{method}({value})")]
    cause = f"`{target}` is a variable: .{method} changes it, and no assignment of Python's."
    holder = next((one for one in source.around(statement) if isinstance(one, ast.ClassDef)), None)
    for one in ast.walk(holder) if holder is not None and target.startswith("self.") else ():
        if not isinstance(one, ast.Assign) or target not in map(source.text, one.targets):
            continue
        made, around = one.value, source.function(one.lineno)
        if not isinstance(made, ast.Call) or getattr(around, "name", "") in ("__init__", "build"):
            continue
        given = [*made.args[:1], *(part.value for part in made.keywords if part.arg in ("value", "initial_value"))]
        if dotted(made.func).rpartition(".")[2].lower() == "variable" and len(given) == 1:
            edits.append(_line(spot, one, f"{target}.assign({source.text(given[0])})"))
            cause += f" Line {one.lineno} makes another one, which a graph that is there already does not read."
    if max(one.last for one in edits) - min(one.first for one in edits) > _FARTHEST:
        edits = edits[:1]
    return Explanation(RULE, spot.file, spot.line, cause, together(edits, source.lines))


def _line(spot: Spot, statement: ast.stmt, text: str) -> Edit:
    first, last = spot.source.span(statement)
    return Edit(spot.file, first, last, (f"{indent_of(spot.source.lines[first - 1])}{text}",))


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line writes into one."""
    said, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if said is None or spot is None or situation.body or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Subscript) or (isinstance(statement, ast.Assign) and len(statement.targets) > 1):
        return None
    source, whole = spot.source, spot.source.text(target.value)
    first, last = source.span(statement)
    blanks = indent_of(source.lines[first - 1])
    value = source.text(statement.value)
    if isinstance(statement, ast.AugAssign):  # a part has no assign_add
        value = source.augmented(statement, source.text(target))
    written = f"{source.text(target)}.assign({value})"
    if said[1] == "ResourceVariable":
        cause = f"{whole} is a variable: .assign writes into a part of it, `=` does not."
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, (f"{blanks}{written}",)))
    cause = f"{whole} is a tensor, which never changes: an item of it cannot be assigned."
    scattered = _scattered(spot, statement, target)
    if scattered is not None:
        cause += " As below a new one has the value at that place."
        return Explanation(RULE, spot.file, spot.line, cause, scattered)
    taped = any(tapes_around(one.source, one.line) for one in situation.spots)
    masked = _masked(spot, statement, target) if taped else None
    if masked is not None:
        cause += " As below a new one has the value there, and the gradient goes on through the rest."
        return Explanation(RULE, spot.file, spot.line, cause, masked)
    if not isinstance(target.value, ast.Name) or taped:
        advice = f"Make {whole} a tf.Variable, and write {written}."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    cause += " A variable can change."
    made = f"{blanks}{whole} = {alias(spot, 'tensorflow')}.Variable({whole})"
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, (made, f"{blanks}{written}")))


def _masked(spot: Spot, statement: ast.stmt, target: ast.Subscript) -> Edit | None:
    """The tensor with one number in all places of an index, which NumPy reads: its gradient stays, but there."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    number = value.operand if isinstance(value, ast.UnaryOp) else value
    if not isinstance(number, ast.Constant) or not isinstance(target.value, ast.Name) or value is None:
        return None
    source, (first, last) = spot.source, spot.source.span(statement)
    blanks, tf, name = indent_of(source.lines[first - 1]), alias(spot, "tensorflow"), target.value.id
    place = source.text(target)[len(name) :]
    lines = (
        f"mask = {alias(spot, 'numpy')}.zeros({name}.shape, bool)",
        f"mask{place} = True",
        f"{name} = {tf}.where(mask, {tf}.cast({source.text(value)}, {name}.dtype), {name})",
    )
    return Edit(spot.file, first, last, tuple(f"{blanks}{one}" for one in lines))


def _scattered(spot: Spot, statement: ast.stmt, target: ast.Subscript) -> Edit | None:
    """The tensor with one other number: of a place in each of its axes."""
    index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    rank = getattr(getattr(lookup(target.value, spot), "shape", None), "rank", None)
    plain = all(
        isinstance(one, ast.Name) or (isinstance(one, ast.Constant) and type(one.value) is int) for one in index
    )
    if not plain or rank != len(index) or not isinstance(statement, ast.Assign):
        return None
    return item_assignment(spot, statement)
