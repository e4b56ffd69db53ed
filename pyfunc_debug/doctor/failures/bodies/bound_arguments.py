"""`partial(resize, size=(4, 4))` of `resize(size, image)`: the values come by position, the first to size as well."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_TWICE = re.compile(r"(?:([\w.<>]+)\(\) got |`)multiple values for argument '(\w+)'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a partial has set by name what a value came to by position."""
    found = _TWICE.search(situation.message)
    if found is None or situation.kind != "TypeError":
        return None
    name, twice = (found[1] or "").rpartition(".")[2].removeprefix("tf__"), found[2]
    direct = list(calls(situation.statement)) if situation.statement is not None else []
    if any(
        dotted(one.func).rpartition(".")[2] == name and any(word.arg == twice for word in one.keywords)
        for one in direct
    ):
        return None  # the line itself gives it twice
    for file, source in situation.sources():
        made = [
            one for one in calls(source.tree)
            if dotted(one.func).rpartition(".")[2] == "partial" and one.args
            and dotted(one.args[0]).rpartition(".")[2] == (name or dotted(one.args[0]).rpartition(".")[2])
            and any(word.arg == twice for word in one.keywords)
        ]  # fmt: skip
        if len(made) == 1:
            return _explanation(situation, file, source, made[0], twice)
    return None


def _explanation(situation: Situation, file: str, source: Source, made: ast.Call, twice: str) -> Explanation | None:
    body, *given = made.args
    name = dotted(body).rpartition(".")[2]
    found = [
        one for _, other in situation.sources() for one in ast.walk(other.tree)
        if isinstance(one, ast.FunctionDef) and one.name == name
    ]  # fmt: skip
    if len(found) != 1 or any(one.arg is None for one in made.keywords) or found[0].args.vararg is not None:
        return None
    taken = parameters(found[0])[len(given) :]
    named = {str(one.arg): source.text(one.value) for one in made.keywords}
    if twice not in taken:
        return None
    free = taken[: len(taken) - len(found[0].args.defaults)]
    rest = [one for one in free if one not in named]
    text, op = source.text(body), source.text(made.func)
    cause = f"partial sets {twice}= of {short(text, 30)} by name, and the values that it is called with come by "
    if taken.index(twice) >= len(rest) and not any(one in named for one in taken[: taken.index(twice)]):
        cause += f"position: there are more of them than the {len(rest)} in front of {twice}, so one comes there, too."
        return _too_many(file, source, made, cause, rest)
    cause += f"position, from {taken[0]} on: {twice} gets two."
    first = [one for one in taken if one in named][: next((n for n, one in enumerate(taken) if one not in named), None)]
    places = [taken.index(one) for one in named if one in taken and one not in first]
    if first and all(place >= len(first) + len(rest) for place in places):
        parts = [text, *map(source.text, given), *(named[one] for one in first)]
        parts += [f"{one}={value}" for one, value in named.items() if one not in first]
        new = f"{op}({', '.join(parts)})"
    elif given or not rest or {one for word in made.keywords for one in names(word.value)} & set(rest):
        return None
    else:
        parts = [f"{one}={one}" for one in rest]
        parts += [f"{one}={value}" for one, value in named.items()]
        new = f"lambda {', '.join(rest)}: {text}({', '.join(parts)})"
    edit = edit_of(file, source.replaced({made: new}))
    return None if edit is None else Explanation(RULE, file, made.lineno, cause, edit)


def _too_many(file: str, source: Source, made: ast.Call, cause: str, rest: list[str]) -> Explanation:
    """`load(path, size)` of elements (path, label): the paste hands on the label beside what it makes."""
    inside = source.parent(made)
    func = inside.func if isinstance(inside, ast.Call) else None
    edit = None
    if len(made.args) == 1 and len(rest) == 1 and isinstance(func, ast.Attribute) and func.attr == "map":
        given = ", ".join([*rest, *(f"{one.arg}={source.text(one.value)}" for one in made.keywords)])
        new = f"lambda {rest[0]}, *others: ({source.text(made.args[0])}({given}), *others)"
        edit = edit_of(file, source.replaced({made: new}))
    return Explanation(RULE, file, made.lineno, cause, edit, "" if edit else "Give it no more values than it takes.")
