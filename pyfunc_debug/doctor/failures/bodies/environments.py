"""What `step` and `reset` of an environment give: five values and two since Gymnasium, four and one before.

Where a tutorial of the other time is followed, Python says how many names there are, or NumPy and TensorFlow fail on
the tuple of an observation and a dict.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import begins, dotted, indent_of, names, read, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "structure"
_UNPACKED = re.compile(r"(?:too many|not enough) values to unpack \(expected (\d)")
_PACKAGES = {"gym": (5, 2), "gymnasium": (5, 2)}
"""How many values step and reset of these give, in all versions that fail here."""
_OLD_STEP, _NEW_STEP = 4, 5


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if names were unpacked of a step or reset that gives more of them, or fewer."""
    found, spot = _UNPACKED.search(situation.message), situation.last
    statement = situation.statement
    if found is None or situation.kind != "ValueError" or spot is None or not isinstance(statement, ast.Assign):
        return None
    target, call = statement.targets[0], statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not isinstance(target, ast.Tuple):
        return None
    given = _count(lookup(call.func.value, spot), call.func.attr)
    taken, text = len(target.elts), spot.source.text
    if given is None or any(isinstance(one, ast.Starred) for one in target.elts) or int(found[1]) != taken:
        return None
    cause = f"`{short(text(call), 40)}` gives {given} values, and this line takes {taken}."
    to = [text(one) for one in target.elts]
    if call.func.attr == "step" and (taken, given) == (_OLD_STEP, _NEW_STEP):
        cause += " done of older environments is two now: the episode ended, or was cut off."
        new = [f"{to[0]}, {to[1]}, terminated, truncated, {to[3]} = {text(call)}", f"{to[2]} = terminated or truncated"]
    elif call.func.attr == "step" and (taken, given) == (_NEW_STEP, _OLD_STEP):
        cause += " It has no value for an episode that was cut off."
        new = [f"{to[0]}, {to[1]}, {to[2]}, {to[4]} = {text(call)}", f"{to[3]} = False"]
    else:
        return None
    return Explanation(RULE, spot.file, statement.lineno, cause, _edit(spot, statement, new))


def observation(situation: Situation) -> Explanation | None:
    """The explanation, if a line failed on both that `reset` gives, the observation and a dict."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    taken = {
        dotted(one.value) for one in ast.walk(_read(statement)) if isinstance(one, ast.Subscript) and _is_place(one)
    }
    read = [name for name in names(_read(statement)) if name not in taken]
    pairs = [value for name in read if _is_pair(value := spot.value(name))]
    for pair in pairs:
        for holder, made, name in _resets(situation, pair):
            text = holder.source.text
            cause = f"{name} is the tuple of the observation and a dict: that is what `{text(made.value)}` gives."
            new = [f"{name}, _ = {text(made.value)}"]
            return Explanation(RULE, spot.file, spot.line, cause, _edit(holder, made, new))
    for call in calls(_read(statement)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "reset" and not _is_unpacked(statement, call):
            owner = lookup(call.func.value, spot)
            if _count(owner, "reset") == 2:
                cause = f"`{short(spot.source.text(call), 40)}` gives a tuple of the observation and a dict."
                lines = spot.source.kept_lines({call: f"{spot.source.text(call)}[0]"})
                return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, *lines))
    return None


def _read(statement: ast.stmt) -> ast.AST:
    """What a statement computes: of a block the header alone."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    if isinstance(statement, ast.For):
        return statement.iter
    if isinstance(statement, (ast.With, ast.FunctionDef, ast.ClassDef, ast.Try)):
        return ast.Pass()
    return statement


def _is_pair(value: Any) -> bool:
    """Whether a value is a tuple of an observation and a dict."""
    return type(value) is tuple and len(value) == 2 and type(value[1]) is dict and type(value[0]) is not dict


def _is_place(node: ast.Subscript) -> bool:
    """Whether it is `state[0]`: the line knows of the tuple."""
    return isinstance(node.slice, ast.Constant) and type(node.slice.value) is int


def _is_unpacked(statement: ast.stmt, call: ast.Call) -> bool:
    return isinstance(statement, ast.Assign) and (statement.value is call)


def _resets(situation: Situation, pair: tuple[Any, ...]) -> Iterator[tuple[Spot, ast.Assign, str]]:
    """The lines `state = env.reset()` of the frames that hold a pair, with the name in which it is."""
    for spot in reversed(situation.spots):
        holding = {name for name, value in {**spot.module, **spot.variables}.items() if value is pair}
        made = [
            one for one in ast.walk(spot.source.tree)
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and len(one.targets) == 1
            and isinstance(one.value.func, ast.Attribute) and one.value.func.attr == "reset"
            and dotted(one.targets[0]) in holding and one.lineno <= spot.line
            and spot.source.function(one.lineno) in (spot.function, None)
        ]  # fmt: skip
        if made:
            yield spot, made[-1], dotted(made[-1].targets[0])


def _count(owner: Any, method: str) -> int | None:
    """How many values a method gives: of an environment's package, or of a class whose returns all say so."""
    kind = next((one for one in type(owner).__mro__ if method in vars(one)), None)
    if kind is None or method not in ("step", "reset"):
        return None
    package = _PACKAGES.get(kind.__module__.partition(".")[0])
    if package is not None:
        return package[method == "reset"]
    code = getattr(vars(kind)[method], "__code__", None)
    file, first = begins(code) if code is not None else ("", 0)
    function = read(file).function(first + 1) if code is not None else None
    if not isinstance(function, ast.FunctionDef) or function.name != method:
        return None
    counts = {len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in return_values(function)}
    return counts.pop() or None if len(counts) == 1 else None


def _edit(spot: Spot, statement: ast.stmt, lines: list[str]) -> Edit:
    first, last = spot.source.span(statement)
    blanks = indent_of(spot.source.lines[first - 1])
    return Edit(spot.file, first, last, tuple(f"{blanks}{one}" for one in lines))
