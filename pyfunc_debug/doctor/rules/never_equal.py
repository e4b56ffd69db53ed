"""A body that looks for a class at the wrong place of a path: `path.split("/")[1] == "dog"` of "data/train/dog/1.png".

The comparison is done again with the recorded texts. It has to be False for all of them, and the word has to stand in
some, and not in all, as a folder's name does above all of them.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding

NAMES = ("never-equal",)
_LEAST_TEXTS = 6
_MOST_TEXTS = 2000
_METHODS = ("decode", "lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "replace")
_PATHS = {
    "basename": os.path.basename,
    "dirname": os.path.dirname,
    "splitext": os.path.splitext,
    "split": os.path.split,
}
_PARTS = ("name", "stem", "suffix", "parent", "parts")


class _UnknownError(Exception):
    """What this does not follow."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or node.file is None:
            continue
        compares = [one for one in code.own_nodes(function) if isinstance(one, ast.Compare) and len(one.ops) == 1]
        asked = [(one, *found) for one in compares if (found := _sides(one)) is not None]
        words = Counter(word for _, _, word in asked)
        asked = [one for one in asked if words[one[2]] == 1]  # else another place is asked, too
        texts = _texts(facts, [one.id for one in group]) if asked else []
        if len({text for given, _ in texts for text in given.values()}) < _LEAST_TEXTS:
            continue
        for compare, side, word in asked:
            with suppress(_UnknownError, LookupError, TypeError, ValueError, AttributeError):
                values = [(_value(function, side, given), call) for given, call in texts]
                never = _never(compare, values, word, texts)
                if never is not None:
                    value, call, text = never
                    own = pastes.source(facts, node.file)
                    yield Finding(
                        NAMES[0], "error", node.id, (call,),
                        f"{own.text(compare)} is False in all {len(texts):,} recorded calls of {facts.name(node)}, "
                        f"and {word!r} stands in some: in call #{call} {own.text(side)} is {value!r}, of {text!r}",
                        _fix(facts, node.file, function, side, word, texts), node.file, compare.lineno,
                        several(one.id for one in group),
                        (f"line {compare.lineno}: {facts.line(node.file, compare.lineno)}",),
                    )  # fmt: skip
                    break


def _sides(compare: ast.Compare) -> tuple[ast.expr, str] | None:
    """What is looked at, and the word: of `part == "dog"`, `"dog" == part` and `"dog" in parts`."""
    left, right, op = compare.left, compare.comparators[0], compare.ops[0]
    if isinstance(op, (ast.Eq, ast.In)) and isinstance(left, ast.Constant) and isinstance(left.value, str):
        return right, left.value
    if isinstance(op, ast.Eq) and isinstance(right, ast.Constant) and isinstance(right.value, str):
        return left, right.value
    return None


def _texts(facts: Facts, nodes: list[int]) -> list[tuple[dict[str, str], int]]:
    """The texts of each recorded call by its parameters, where they were kept as a whole."""
    found: dict[int, dict[str, str]] = {}
    for call, path, text in facts.reader.rows(
        "SELECT v.call, v.path, v.text FROM value v JOIN call c ON c.id = v.call WHERE c.node IN "
        f"({', '.join(map(str, nodes))}) AND c.kind = 'forward' AND v.role = 'input' AND v.dtype = 'string' "
        f"AND v.shape = '[]' ORDER BY v.call LIMIT {_MOST_TEXTS}"
    ):
        shown = re.fullmatch(r"string\[\] ('.*'|\".*\")", str(text))
        if shown is None or "…" in shown[1] or "..." in shown[1]:
            return []
        found.setdefault(call, {})[path] = ast.literal_eval(shown[1])
    return [(given, call) for call, given in found.items()]


def _value(function: Definition, node: ast.expr, given: Mapping[str, str], deep: int = 8) -> object:
    """What an expression is for the texts of one call."""
    if not deep:
        raise _UnknownError
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -ast.literal_eval(node.operand)
    if isinstance(node, ast.Name):
        stores = [
            one for one in code.own_nodes(function)
            if isinstance(one, (ast.stmt, ast.comprehension, ast.NamedExpr)) and node.id in code.stored_names(one)
        ]  # fmt: skip
        before = [one for one in stores if getattr(one, "lineno", node.lineno) < node.lineno]
        if not before and node.id in given:
            return given[node.id].encode()
        last = before[-1] if before else None
        if isinstance(function, ast.Lambda) or any(one not in function.body for one in before):
            raise _UnknownError  # in one branch only
        if not isinstance(last, ast.Assign) or not isinstance(last.targets[0], ast.Name) or len(stores) > len(before):
            raise _UnknownError
        return _value(function, last.value, given, deep - 1)
    if isinstance(node, ast.Subscript):
        at = ast.literal_eval(node.slice) if not isinstance(node.slice, ast.Slice) else None
        if at is None:
            raise _UnknownError
        return _value(function, node.value, given, deep - 1)[at]  # type: ignore[index]
    if isinstance(node, ast.Attribute):
        if dotted(node) in ("os.sep", "os.path.sep"):
            return os.sep
        owner = _value(function, node.value, given, deep - 1)
        if isinstance(owner, PurePosixPath) and node.attr in _PARTS:
            return getattr(owner, node.attr)
    if isinstance(node, ast.Call) and not node.keywords:
        return _called(function, node, given, deep)
    raise _UnknownError


def _called(function: Definition, node: ast.Call, given: Mapping[str, str], deep: int) -> object:
    name, owner = pastes.last_name(node.func), node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is not None and dotted(owner) in ("os.path", "path") and name in _PATHS and len(node.args) == 1:
        return _PATHS[name](_value(function, node.args[0], given, deep - 1))  # type: ignore[operator]
    if name in ("Path", "PurePath", "PurePosixPath") and len(node.args) == 1:
        return PurePosixPath(str(_as_text(_value(function, node.args[0], given, deep - 1))))
    if owner is None:
        raise _UnknownError
    value = _value(function, owner, given, deep - 1)
    if name == "numpy" and isinstance(value, bytes):
        return value
    if name not in _METHODS or not isinstance(value, (str, bytes)):
        raise _UnknownError
    return getattr(value, name)(*(_value(function, one, given, deep - 1) for one in node.args))


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise _UnknownError
    return value


def _never(
    compare: ast.Compare, values: list[tuple[object, int]], word: str, texts: list[tuple[dict[str, str], int]]
) -> tuple[object, int, str] | None:  # fmt: skip
    """The value of a call whose text has the word as one of its parts, where the comparison holds in no call."""
    looks_in = isinstance(compare.ops[0], ast.In)
    for value, _ in values:
        if looks_in and not isinstance(value, (str, list, tuple)):
            return None
        if not looks_in and not isinstance(value, str):
            return None
        if (word in value) if looks_in else (word == value):  # type: ignore[operator]
            return None
    stands = re.compile(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])") if word else None
    found = [
        (value, call, text) for (value, call), (given, _) in zip(values, texts) for text in given.values()
        if stands is not None and stands.search(text)
    ]  # fmt: skip
    return found[0] if 0 < len({call for _, call, _ in found}) < len(values) else None


def _fix(
    facts: Facts, file: str, function: Definition, side: ast.expr, word: str, texts: list[tuple[dict[str, str], int]]
) -> str:
    """The place at which the word stands in all texts that have it, counted from the end; else words."""
    part = pastes.behind_name(function, side)
    words = f"the part of the text in which {word!r} stands"
    if not isinstance(part, ast.Subscript) or isinstance(part.slice, ast.Slice):
        return words
    places: set[int] = set()
    for given, _ in texts:
        parts = _value(function, part.value, given)
        if isinstance(parts, list) and word in parts:
            places.add(parts.index(word) - len(parts))
    return pastes.written(pastes.replaced(facts, file, {part.slice: str(places.pop())})) if len(places) == 1 else words
