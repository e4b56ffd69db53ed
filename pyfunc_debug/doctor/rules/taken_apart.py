"""Two datasets that are parts of one, read side by side: each runs the one's shuffle, or its draws, on its own.

`x = ds.map(lambda x, y: x)` and `y = ds.map(lambda x, y: y)`, and then `zip(x, y)`: the parts match no more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.zips import listed_arguments, zips
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

NAMES = ("shuffled-apart",)
_DRAWS = re.compile(r"(?:^|\.)(?:random|rng)\.(?!seed|set_seed|default_rng|RandomState|Generator)\w+$")
_DEEP = 30


@dataclass
class _Way:
    """How a dataset was made: the calls, the last first, and the names that it had on the way."""

    calls: list[ast.Call] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """The variable that held what the calls from a place on made, by that place."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that reads them side by side."""
    sites = {
        (str(loop["site"][0]), int(loop["site"][1])) for loop in facts.meta.get("inputs") or [] if loop["site"]
    }  # fmt: skip
    for file in facts.files:
        own = pastes.source(facts, file)
        plain = [one for one in pastes.walk(own.tree, ast.Call) if ast.unparse(one.func) == "zip"]
        read = [one for one in plain if (file, one.lineno) in sites]
        for call in (*read, *zips(facts.tree(file))):
            found = _found(facts, file, own, call, call in read)
            if found is not None:
                yield found


def _found(facts: Facts, file: str, own: Source, call: ast.Call, plain: bool) -> Finding | None:
    given = call.args if plain else listed_arguments(call)
    ways = [_way(own, one, call) for one in given]
    if len(ways) != 2 or not all(one.calls for one in ways):
        return None
    first, other = ways
    shared = next((place for place, one in enumerate(first.calls) if one in other.calls), None)
    if shared is None:
        return None
    start = other.calls.index(first.calls[shared])
    draws = _draws(own, first.calls[shared:], plain)
    if draws is None:
        return None
    what, line = draws
    names = " and ".join(own.text(one) for one in given)
    base = first.names.get(shared) or other.names.get(start)
    fix = ""
    if base and _selects(first.calls[:shared], 0) and _selects(other.calls[:start], 1) and plain:
        fix = pastes.written(pastes.replaced(facts, file, {call: base}))
    return Finding(
        NAMES[0], "error", None, (),
        f"{names} are parts of one dataset, and are read side by side: each goes through {what} (line {line}) on its "
        "own. The parts of a pair come from different elements",
        fix or "read the one dataset, whose elements are the pairs: `for x, y in ds:`", file, call.lineno,
        evidence=(f"line {line}: {facts.line(file, line)}",),
    )  # fmt: skip


def _way(own: Source, value: ast.expr, before: ast.Call) -> _Way:
    """The calls that made a dataset, also of variables, and of a function of the file with one return."""
    found = _Way()
    scope: ast.AST = next((one for one in own.around(before) if isinstance(one, ast.FunctionDef)), own.tree)
    line = before.lineno
    for _ in range(_DEEP):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            found.calls.append(value)
            if ast.unparse(value.func.value).endswith("Dataset"):
                return found
            value = value.func.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            made = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == ast.unparse(value.func)]
            results = pastes.returns(made[0]) if len(made) == 1 else []
            if len(results) != 1 or value.args or value.keywords:
                return _Way()
            scope, value, line = made[0], results[0], results[0].lineno
        elif isinstance(value, ast.Name):
            assigned = [
                one for one in code.own_nodes(scope) if isinstance(one, ast.Assign)  # type: ignore[arg-type]
                and (one.end_lineno or one.lineno) < line and [dotted(each) for each in one.targets] == [value.id]
            ]  # fmt: skip
            last = max(assigned, key=lambda one: one.lineno, default=None)
            if last is None:
                return _Way()
            if not isinstance(scope, ast.FunctionDef) or scope in list(own.around(before)):
                found.names.setdefault(len(found.calls), value.id)
            value, line = last.value, last.lineno
        else:
            return _Way()
    return _Way()


def _draws(own: Source, calls: list[ast.Call], plain: bool) -> tuple[str, int] | None:
    """What the shared part does at random, and its line; None where it does not, or a cache behind keeps it."""
    for one in calls:
        name, words = pastes.last_name(one.func), [ast.unparse(word) for word in one.keywords]
        end = one.func.end_lineno or one.lineno
        if name == "cache":
            return None
        if name == "shuffle" and plain and "reshuffle_each_iteration=False" not in words:
            return "its shuffle", end
        if name == "list_files" and plain and "shuffle=False" not in words:
            return "the shuffle of list_files", end
        draw = _drawing(own, one.args[0]) if name in ("map", "from_generator") and one.args else None
        if draw is not None:
            return f"the draws of {name}", draw.lineno
    return None


def _drawing(own: Source, given: ast.expr, deep: int = 3) -> ast.Call | None:
    """The draw of a function that a map is given, or of the functions that it names."""
    function: ast.AST | None = given if isinstance(given, ast.Lambda) else None
    if isinstance(given, ast.Name):
        made = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == given.id]
        function = made[0] if len(made) == 1 else None
    if function is None:
        return None
    for one in pastes.walk(function, ast.Call):
        if _DRAWS.search(ast.unparse(one.func)):
            return one if isinstance(function, ast.FunctionDef) and _of_all(function) else None
    names = [one for one in pastes.walk(function, ast.Name) if isinstance(one.ctx, ast.Load) and deep]
    return next((found for one in names if (found := _drawing(own, one, deep - 1)) is not None), None)


def _of_all(function: ast.FunctionDef) -> bool:
    """Whether two of the values that a function returns are made with what it draws: flips of an image and its mask."""
    drawn: set[str] = set()
    for _ in range(_DEEP):
        before = len(drawn)
        for one in code.own_nodes(function):
            if isinstance(one, (ast.Assign, ast.AugAssign)) and _is_drawn(one.value, drawn):
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                drawn |= {name for target in targets for name in code.stored_names(target)}
            elif isinstance(one, ast.If) and _is_drawn(one.test, drawn):
                drawn |= {name for part in (*one.body, *one.orelse) for name in code.stored_names(part)}
        if len(drawn) == before:
            break
    return any(
        isinstance(one, (ast.Tuple, ast.List)) and sum(_is_drawn(part, drawn) for part in one.elts) > 1
        for one in pastes.returns(function)
    )


def _is_drawn(node: ast.AST, drawn: set[str]) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in drawn)
        or (isinstance(one, ast.Call) and bool(_DRAWS.search(ast.unparse(one.func))))
        for one in ast.walk(node)
    )


def _selects(calls: list[ast.Call], place: int) -> bool:
    """`map(lambda x, y: x)` alone: one of two parts."""
    if len(calls) != 1 or pastes.last_name(calls[0].func) != "map" or len(calls[0].args) != 1:
        return False
    given = calls[0].args[0]
    names = [one.arg for one in given.args.args] if isinstance(given, ast.Lambda) else []
    return isinstance(given, ast.Lambda) and len(names) == 2 and ast.unparse(given.body) == names[place]
