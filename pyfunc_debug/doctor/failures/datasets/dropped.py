"""`ds.batch(32)` or `ds.map(parse)` as a statement, where the line that failed reads `ds`, which stayed as it was."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset

RULE = "dropped-dataset"
METHODS = {"map", "batch", "padded_batch", "ragged_batch", "unbatch", "shuffle", "repeat", "prefetch", "filter",
           "cache", "take", "skip", "interleave", "flat_map", "with_options"}  # fmt: skip
"""Methods that give a new dataset."""
_CHANGES = {"map", "batch", "padded_batch", "ragged_batch", "unbatch", "interleave", "flat_map"}
"""Those without which the elements have other shapes, dtypes or parts."""
_FROM_DATA = ("ValueError", "TypeError", "InvalidArgumentError", "AttributeError", "IndexError", "KeyError")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras or a loop took elements that a dropped method was to change."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or situation.kind not in _FROM_DATA:
        return None
    dropped = [one for name in _read(statement, spot) for one in _dropped(spot, statement, name)]
    if not any(method in _CHANGES for _, method in dropped):
        return None
    dropped = _beside(dropped, spot)
    first, last = dropped[0][0].lineno, dropped[-1][0].end_lineno or dropped[-1][0].lineno
    name = _owner(dropped[0][0])
    lines = list(spot.source.lines[first - 1 : last])
    for one, _ in dropped:
        line = lines[one.lineno - first]
        lines[one.lineno - first] = f"{line[: one.col_offset]}{name} = {line[one.col_offset :]}"
    methods = [f"{name}.{method}(...)" for _, method in dropped]
    said = f"{', '.join(methods[:-1])} and {methods[-1]} give" if len(methods) > 1 else f"{methods[0]} gives"
    code = short(spot.source.text(statement).partition("\n")[0], 34)
    cause = (
        f"nothing keeps the new dataset{'s' * (len(methods) > 1)} that {said}: {name} itself stays as it was. "
        f"`{code}` (line {spot.line}) reads it so."
    )
    return Explanation(RULE, spot.file, first, cause, Edit(spot.file, first, last, tuple(lines)))


def _read(statement: ast.stmt, spot: Spot) -> list[str]:
    """The datasets that Keras is given in a statement, or that a loop goes over, by their names."""
    given = [one.args[0] for one in keras_calls.fits(statement) if one.args]
    given += [word.value for one in keras_calls.fits(statement) for word in one.keywords]
    given += [statement.iter] if isinstance(statement, ast.For) else []
    names = dict.fromkeys(part.id for one in given for part in ast.walk(one) if isinstance(part, ast.Name))
    return [name for name in names if is_dataset(spot.value(name))]


def _dropped(spot: Spot, statement: ast.stmt, name: str) -> list[tuple[ast.Expr, str]]:
    """Statements above a line, of the same function, that call such a method of a dataset and drop the result."""
    function = spot.function
    nodes = [*(own_nodes(function) if function is not None else ast.walk(spot.source.tree))]
    found = [
        (one, one.value.func.attr) for one in nodes
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and isinstance(one.value.func, ast.Attribute)
        and one.value.func.attr in METHODS and _owner(one) == name and one.lineno < statement.lineno
    ]  # fmt: skip
    bound = [
        one.lineno for one in nodes
        if isinstance(one, ast.Assign) and any(getattr(part, "id", "") == name for part in one.targets)
        and not any(getattr(part, "id", "") == name for part in ast.walk(one.value))
    ]  # fmt: skip
    last = max((line for line in bound if line < statement.lineno), default=0)
    return sorted((one for one in found if one[0].lineno > last), key=lambda one: one[0].lineno)


def _owner(statement: ast.Expr) -> str:
    func = getattr(statement.value, "func", None)
    return getattr(getattr(func, "value", None), "id", "")


def _beside(dropped: list[tuple[ast.Expr, str]], spot: Spot) -> list[tuple[ast.Expr, str]]:
    """The first that changes elements, with those of the lines next to it: one paste keeps them all."""
    block = spot.source.block(dropped[0][0]) or []
    place = next(number for number, (_, method) in enumerate(dropped) if method in _CHANGES)
    first = last = place
    at = {id(one): number for number, one in enumerate(block)}
    where = [at.get(id(one), -9 * number) for number, (one, _) in enumerate(dropped)]
    while first and where[first - 1] == where[first] - 1:
        first -= 1
    while last + 1 < len(dropped) and where[last + 1] == where[last] + 1:
        last += 1
    own = _owner(dropped[place][0])
    return [one for one in dropped[first : last + 1] if _owner(one[0]) == own]
