"""`return` in a loop over a tensor: AutoGraph builds one loop, which has to have the value that it returns before it.

`_verify_loop_init_vars` (tensorflow/python/autograph/operators/control_flow.py) refuses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of

RULE = "autograph"
_SAID = "a return statement cannot be placed inside this TensorFlow loop"
_NAMES = ("found", "result", "returned")
_MOST = 12
"""More lines than these are not a paste."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a traced function returns from within a loop of the graph."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or _SAID not in situation.message or not isinstance(function, ast.FunctionDef):
        return None
    loop = spot.statement
    if not isinstance(loop, (ast.For, ast.While)):
        return None
    returns = list(_returns(loop.body))
    if not returns:
        return None
    head = short(spot.source.text(loop).split("\n")[0], 40)
    cause = (
        f"{function.name} returns from within the loop `{head}` (line {returns[0].lineno}), which goes over a tensor: "
        "TensorFlow builds it once, for all rounds, and it needs the value to return before the first one."
    )
    known = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    name = next((one for one in _NAMES if one not in known), "returned_value")
    given = returns[0].value
    value = spot.source.text(given) if given is not None else "None"
    advice = (
        f"`{name} = ...` above the loop, of {value}'s dtype and shape; in the loop `{name} = {value}` and `break`; "
        f"below it `return {name}`."
    )
    if value == "None":
        advice = "A graph returns tensors, never None: `break` in place of it, and a second tensor that says so."
    elif any(isinstance(one, (ast.For, ast.While)) for one in spot.source.around(loop)):
        advice = (
            f"`{name} = ...` and `done = False` above both loops; in place of the return `{name}, done = {value}, "
            f"True` and `break`; behind the inner loop `if done: break`; below both `return {name}`."
        )
    edit = _broken(spot, function, loop, returns, name)
    if edit is None:
        edit = _without_end(spot, function, loop, returns, name)
        cause += " The first one to paste is a guess." if edit is not None else ""
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)


def _returns(body: list[ast.stmt]) -> Iterator[ast.Return]:
    """Returns of a loop's own body, and of the branches in it."""
    for one in body:
        if isinstance(one, ast.Return):
            yield one
        elif isinstance(one, (ast.If, ast.With)):
            yield from _returns(one.body)
            yield from _returns(one.orelse if isinstance(one, ast.If) else [])


def _broken(
    spot: Spot, function: ast.FunctionDef, loop: ast.For | ast.While, returns: list[ast.Return], name: str
) -> Edit | None:
    """The loop that breaks off, and returns below it."""
    source, block = spot.source, spot.source.block(loop) or []
    place = block.index(loop) if loop in block else -1
    after = block[place + 1] if 0 <= place < len(block) - 1 else None
    inside = [one for one in ast.walk(loop) if isinstance(one, ast.Return)]
    if not isinstance(after, ast.Return) or after.value is None or loop.orelse or len(inside) != len(returns):
        return None
    first, last = loop.lineno, after.end_lineno or after.lineno
    stored = {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    end, lines = source.text(after.value), source.lines
    same = all(one.value is not None and source.text(one.value) == end for one in returns)
    if not same and (stored & set(names(after.value)) or any(one.value is None for one in returns)):
        return None
    if any(one.lineno != one.end_lineno or lines[one.lineno - 1].strip() != source.text(one) for one in inside):
        return None
    new = [] if same else [f"{indent_of(lines[first - 1])}{name} = {_typed(spot, loop, after.value, returns)}"]
    at = {one.lineno: one for one in returns}
    for number in range(first, after.lineno):
        line, returned = lines[number - 1], at.get(number)
        blanks = indent_of(line)
        if returned is None or returned.value is None:
            new.append(line)
        else:
            new += [f"{blanks}break"] if same else [f"{blanks}{name} = {source.text(returned.value)}", f"{blanks}break"]
    new.append(f"{indent_of(lines[after.lineno - 1])}return {end if same else name}")
    return Edit(spot.file, first, last, tuple(new)) if len(new) <= _MOST else None


def _without_end(
    spot: Spot, function: ast.FunctionDef, loop: ast.For | ast.While, returns: list[ast.Return], name: str
) -> Edit | None:
    """A loop that returns an element, or nothing at all: zeros in that case."""
    source, given = spot.source, returns[0].value
    if (
        not isinstance(loop, ast.For)
        or loop is not function.body[-1]
        or loop.orelse
        or len(returns) != 1
        or not isinstance(given, ast.Name)
        or not isinstance(loop.target, ast.Name)
        or given.id != loop.target.id
        or not isinstance(loop.iter, ast.Name)
        or source.lines[returns[0].lineno - 1].strip() != source.text(returns[0])
    ):
        return None
    tf, of, at = alias(spot, "tensorflow"), loop.iter.id, returns[0].lineno
    last, blanks = loop.end_lineno or at, indent_of(source.lines[loop.lineno - 1])
    inner = indent_of(source.lines[at - 1])
    new = (
        f"{blanks}{name} = {tf}.zeros({tf}.shape({of})[1:], {of}.dtype)",
        *source.lines[loop.lineno - 1 : at - 1],
        *(f"{inner}{name} = {given.id}", f"{inner}break"),
        *source.lines[at:last],
        f"{blanks}return {name}",
    )
    return Edit(spot.file, loop.lineno, last, new) if len(new) <= _MOST else None


def _typed(spot: Spot, loop: ast.For | ast.While, value: ast.expr, returns: list[ast.Return]) -> str:
    """The value behind the loop, as a float where it is a whole number and a part of a tensor of floats is returned."""
    text = spot.source.text(value)
    number = value.operand if isinstance(value, ast.UnaryOp) else value
    if not isinstance(number, ast.Constant) or not isinstance(number.value, int) or isinstance(number.value, bool):
        return text
    owners = [
        loop.iter.id for one in returns
        if isinstance(one.value, ast.Name) and isinstance(loop, ast.For) and isinstance(loop.target, ast.Name)
        and loop.target.id == one.value.id and isinstance(loop.iter, ast.Name)
    ]  # fmt: skip
    return f"{text}.0" if any("float" in dtype_of(spot.value(one)) for one in owners) else text
