"""A mapped function takes another number of arguments than the dataset's elements have parts."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import element_spec
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "symbolic-value"
_MAPS = ("map", "filter", "flat_map", "interleave")
_BY = {"bucket_by_sequence_length": "element_length_func", "group_by_window": "key_func"}
"""Methods whose function gives one number of each element."""
_LIKE = 0.8
"""How like another a name is that is taken for a typo of it."""


def explain(situation: Situation) -> Explanation | None:
    """Dataset.map gives a function one argument for each component of a tuple: `f() takes 1 ... but 2 were given`."""
    found = re.search(
        r"(?:tf__)?(<lambda>|\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given", situation.message
    )
    missing = re.search(r"(?:tf__)?(<lambda>|\w+)\(\) missing (\d+) required positional argument", situation.message)
    spot = situation.last
    if spot is None or situation.kind != "TypeError" or not (found or missing):
        return None
    match = found or missing
    assert match is not None
    statement = spot.statement
    if statement is None:
        return None
    for one in calls(statement):
        if not isinstance(one.func, ast.Attribute) or one.func.attr not in (*_MAPS, *_BY):
            continue
        given = argument(one, 0, _BY.get(one.func.attr, "map_func"))
        name = given.attr if isinstance(given, ast.Attribute) else dotted(given)
        function = _definition(spot, match[1])
        held = given is not None and function is not None and getattr(lookup(given, spot), "__name__", "") == match[1]
        if given is None or (name != match[1] and not held and not isinstance(given, ast.Lambda)):
            continue
        text = spot.source.text(given)
        named = (match[1] if held else name) or "the lambda"
        bound = isinstance(given, ast.Attribute) and function is not None
        own = bound and function is not None and len(function.args.args) > len(parameters(function))
        takes, gets = (int(found[2]) - own, int(found[3]) - own) if found else (0, 0)
        if takes == 1:
            edit, advice, sure = None, "", True
            if isinstance(given, ast.Lambda):
                others = [f"other{index}" for index in range(2, gets + 1)]
                unset = _unset(given, spot)
                sure = not unset
                listed = ", ".join([*parameters(given), *(unset if len(unset) == len(others) else others)])
                taken = parameters(given)[:1]
                if taken and _takes_parts(given, taken[0]):
                    listed = f"*{taken[0]}"
                body = spot.source.text(given.body)
                if dotted(given.body) in parameters(given):  # it hands on the element as it is
                    listed = f"*{dotted(given.body)}"
                elif one.func.attr == "map" and taken and "*" not in listed and not unset and not _is_whole(given.body):
                    listed, body = f"{taken[0]}, *others", f"({body}, *others)"
                edit = wrapping.replace_expression(spot, given, f"lambda {listed}: {body}")
            else:
                keys, new = _keys(spot, match[1]), f"lambda *parts: {text}(parts)"
                if len(keys) == gets:
                    new = f"lambda *parts: {text}(dict(zip(({', '.join(map(repr, keys))}), parts)))"
                elif function is not None and not _takes_apart(function):
                    first = parameters(function)[0]
                    new = f"lambda {first}, *others: ({text}({first}), *others)"
                edit = wrapping.replace_expression(spot, given, new) if len(keys) in (0, gets) else None
                if edit is None and keys:
                    advice = f'{named} reads {parameters(function)[0]}["{keys[0]}"]: make the dataset of a dict.'  # type: ignore[arg-type]
            cause = (
                f"Dataset.{one.func.attr} calls {named} with {gets} arguments, one for each component of the "
                f"dataset's tuples, but it takes 1."
            )
            return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "measured" if sure else "likely")
        spec = element_spec(situation, spot) if missing else None
        nested = _nested(spec)
        taken = parameters(given) if isinstance(given, ast.Lambda) else parameters(function) if function else []
        if missing and nested and len(taken) == sum(nested) and len(nested) > 1:
            names = [f"part{index}" if count == 1 else f"pair{index}" for index, count in enumerate(nested)]
            handed = ", ".join(f"*{name}" if count > 1 else name for name, count in zip(names, nested))
            inner = f"({text})" if isinstance(given, ast.Lambda) else text
            cause = (
                f"Dataset.{one.func.attr} calls {named} with {len(nested)} arguments, the parts of an element, and one "
                "of these is a tuple: enumerate and zip nest them. The paste hands on what is in it."
            )
            edit = wrapping.replace_expression(spot, given, f"lambda {', '.join(names)}: {inner}({handed})")
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        if missing and nested and len(nested) > 1:
            cause = f"Dataset.{one.func.attr} calls {named} with {len(nested)} arguments, the parts of an element."
            return Explanation(RULE, spot.file, spot.line, cause, None, f"Let {named} take {len(nested)}.")
        if missing and taken and type(spec) is dict and set(taken) <= set(spec):
            listed = ", ".join(f'parts["{one}"]' for one in taken)
            text = f"({text})" if isinstance(given, ast.Lambda) else text
            cause = f"Dataset.{one.func.attr} calls {named} with one argument, as the dataset's elements are dicts."
            edit = wrapping.replace_expression(spot, given, f"lambda parts: {text}({listed})")
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        if missing:
            cause = (
                f"Dataset.{one.func.attr} calls {named} with one argument, the whole element: only the components of a "
                f"tuple come as arguments of their own. The element is not a tuple."
            )
            return Explanation(
                RULE,
                spot.file,
                spot.line,
                cause,
                None,
                f"Make {named} take one argument, or zip the datasets: tf.data.Dataset.zip((a, b)).",
            )
    return None


def _unset(function: ast.Lambda, spot: Spot) -> list[str]:
    """What a lambda reads that is not there: those parts of an element that it does not take.

    A name like one that is set is a typo, but for one of many: `label` beside `labels`.
    """
    read = dict.fromkeys(one for one in names(function.body) if one not in parameters(function))
    known = {*spot.variables, *spot.module}
    unset = [one for one in read if one not in known and one not in vars(builtins)]
    near = [one for one in unset if difflib.get_close_matches(one, known - {f"{one}s", f"{one}es"}, 1, _LIKE)]
    return [] if near else unset


def _nested(spec: Any) -> list[int]:
    """How many parts each part of a tuple has; empty of other elements."""
    return [len(one) if type(one) is tuple else 1 for one in spec] if type(spec) is tuple else []


def _definition(spot: Spot, name: str) -> ast.FunctionDef | None:
    """The one function of a name in a file."""
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return found[0] if len(found) == 1 else None


def _is_whole(body: ast.expr) -> bool:
    """Whether a lambda says all parts of the new element: of anything else the other parts go with it."""
    return isinstance(body, (ast.Tuple, ast.List, ast.Dict))


def _takes_parts(function: ast.Lambda, name: str) -> bool:
    """Whether a lambda reads its argument by its parts only, `pair[0]`: it takes it for a tuple."""
    reads = [one for one in ast.walk(function.body) if isinstance(one, ast.Name) and one.id == name]
    parts = [
        one for one in ast.walk(function.body) if isinstance(one, ast.Subscript) and dotted(one.value) == name
        and isinstance(one.slice, ast.Constant) and type(one.slice.value) is int
    ]  # fmt: skip
    return bool(parts) and len(parts) == len(reads) and len({one.slice.value for one in parts}) > 1  # type: ignore[attr-defined]


def _takes_apart(function: ast.FunctionDef) -> bool:
    """Whether a function unpacks its first argument, or takes one of its parts."""
    first = parameters(function)[:1]
    for one in ast.walk(function):
        several = isinstance(one, ast.Assign) and isinstance(one.targets[0], (ast.Tuple, ast.List))
        if several and dotted(one.value) in first:  # type: ignore[attr-defined]
            return True
        if isinstance(one, ast.Subscript) and dotted(one.value) in first and not isinstance(one.slice, ast.Slice):
            return True
    return False


def _keys(spot: Spot, name: str) -> list[str]:
    """The texts by which the one function of a name takes its first argument apart, in their order."""
    function = _definition(spot, name)
    if function is None:
        return []
    names = parameters(function)
    items = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Subscript) and dotted(one.value) in names[:1] and isinstance(one.slice, ast.Constant)
    ] if names else []  # fmt: skip
    items.sort(key=lambda one: (one.lineno, one.col_offset))
    return list(dict.fromkeys(one.slice.value for one in items if isinstance(one.slice.value, str)))  # type: ignore[attr-defined]
