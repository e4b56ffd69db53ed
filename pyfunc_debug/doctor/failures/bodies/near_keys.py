"""A key that a dict lacks, where it has nearly the same: without folder, spaces or extension, as a number."""

from __future__ import annotations

import ast
import collections
import os.path
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.tables import is_frame, is_table, valued

_PLAIN = (str, int, float, bytes, bool)
_DICTS = (dict, collections.defaultdict, collections.OrderedDict)
_MOST = 200_000
"""Keys that are looked through."""
_WIDEST = 50
"""Letters of what is asked."""
_FORMS = 20
"""Extensions, and lengths of numbers with zeros in front, that are tried."""
_CASE = "they differ in upper and lower case"
_STEM = "os.path.splitext(os.path.basename({}))[0]"
_Way = tuple[Any, str, str]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body looked up a key of which a dict has another form."""
    if not situation.data or situation.kind != "KeyError" or situation.last is None or not situation.inner.args:
        return None
    spot, key = situation.last, _plain(situation.inner.args[0])
    found = _asked(spot, key) if type(key) in (str, int, float) else None
    if found is None:
        return None
    node, owner, keys = found
    for near, text, how in ways(key, keys):
        edit = in_place(spot, {node: text.format(spot.source.atom(node))}) if near in keys else None
        if edit is not None:
            return Explanation(
                RULE, spot.file, spot.line,
                f"{short(owner, _WIDEST)} has no key {short(repr(key), 40)}, but has {short(repr(near), 40)}: {how}.",
                edit, "", "likely",
            )  # fmt: skip
    outer = spot.source.parent(node)
    if isinstance(outer, ast.Subscript) and is_table(valued(outer.value, spot)):
        return None  # rows of a table: others know more of them
    return _absent(spot, key, node, owner, keys)


def _absent(spot: Spot, key: str | float, node: ast.expr, owner: str, keys: frozenset[Any]) -> Explanation | None:
    """A key of which a dict has no form: what it has, and how one asks for what may not be there."""
    if owner.endswith(".loc"):  # a table's rows: others know more of them
        return None
    some = sorted(keys, key=str)[:3]
    listed = short(", ".join(map(repr, some)), 60) + (", ..." if len(keys) > len(some) else "")
    cause = (
        f"{short(owner, _WIDEST)} has no key {short(repr(key), 40)}. It has {len(keys):,} "
        f"key{'s' * (len(keys) > 1)}: {listed}{'.' * (not listed.endswith('...'))}"
    )
    got = f"{short(owner, _WIDEST)}.get({short(spot.source.text(node), 30)}, ...)"
    advice = f"Give it that key; or ask {got} with a value that stands for all others."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _asked(spot: Spot, key: Any) -> tuple[ast.expr, str, frozenset[Any]] | None:
    """The key's expression, the text of what is asked, and its keys, where the line asks one thing that lacks it."""
    statement = spot.statement
    found: list[tuple[ast.expr, str, frozenset[Any]]] = []
    sure: list[tuple[ast.expr, str, frozenset[Any]]] = []
    others = 0
    for one in ast.walk(statement) if statement is not None else ():
        if not isinstance(one, ast.Subscript) or not isinstance(one.ctx, ast.Load):
            continue
        asked = one.slice.elts[0] if isinstance(one.slice, ast.Tuple) and one.slice.elts else one.slice
        known = asked.value if isinstance(asked, ast.Constant) else _plain(_value(asked, spot))
        if isinstance(asked, ast.Slice) or (known is not None and (type(known) not in _PLAIN or known != key)):
            continue
        keys = _keys(one.value, spot)
        if keys and key not in keys and not isinstance(asked, ast.Constant):
            found.append((asked, spot.source.text(one.value), keys))
            sure += found[-1:] if known is not None else []
        elif _value(one.value, spot) is None:  # a dict that is not known may be what lacks the key
            others += 1
    if len(sure) == 1:  # it would have failed with this key
        return sure[0]
    return found[0] if len(found) == 1 and not others else None


def _keys(node: ast.expr, spot: Spot) -> frozenset[Any] | None:
    """The keys of a dict, or of a table's rows (`df.loc`), of Python's own types: others may run the user's code."""
    rows = node.value if isinstance(node, ast.Attribute) and node.attr == "loc" else None
    value = table = _value(node if rows is None else rows, spot)
    if is_table(table) and (rows is not None or not is_frame(table)) and len(table) <= _MOST:
        value = dict.fromkeys(table.index.tolist())
    if type(value) not in _DICTS or len(value) > _MOST:
        return None
    keys = [_plain(one) for one in list(value)]
    return frozenset(keys) if all(type(one) in _PLAIN for one in keys) else None


def _value(node: ast.expr, spot: Spot) -> Any:
    """What an expression stands for, also `self.table[kind]`, of a list, a tuple or a dict; None where it is not known.

    Its parts are looked up: nothing of the user's runs.
    """
    value = valued(node, spot)
    if value is not None or not isinstance(node, ast.Subscript):
        return value
    owner, key = _value(node.value, spot), node.slice
    at = _plain(key.value if isinstance(key, ast.Constant) else _value(key, spot))
    if type(owner) in _DICTS and type(at) in _PLAIN:
        return dict.get(owner, at)
    return owner[at] if type(owner) in (list, tuple) and type(at) is int and -len(owner) <= at < len(owner) else None


def _plain(value: Any) -> Any:
    """A number or text of NumPy's as Python's own."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def ways(key: str | float, keys: frozenset[Any]) -> Iterator[_Way]:
    """Other forms of a key: the form, the text that makes it of the key's, and what is said of it."""
    texts = sorted(one for one in keys if isinstance(one, str))
    if not isinstance(key, str):
        yield str(key), "str({})", "the key is a number, and its keys are texts"
        yield from _with_zeros(key, "str({})", texts) if isinstance(key, int) else ()
        return
    yield key.strip(), "{}.strip()", "there are spaces or line ends around the key"
    if key.strip().lstrip("+-").isdigit():
        yield int(key), "int({})", "the key is a text, and its keys are numbers"
        yield from _with_zeros(key, "{}", texts)
    yield key.lower(), "{}.lower()", _CASE
    yield key.upper(), "{}.upper()", _CASE
    name = os.path.basename(key)
    stem = os.path.splitext(name)[0]
    yield name, "os.path.basename({})", "the key has its folder before it"
    yield stem, _STEM, "the key has its folder or its extension"
    yield key.rpartition("\\")[2], '{}.rpartition("\\\\")[2]', "the key has its folder before it"
    for ending in sorted({os.path.splitext(one)[1] for one in texts} - {""})[:_FORMS]:
        yield key + ending, f'{{}} + "{ending}"', "its keys have an extension"
        yield stem + ending, f'{_STEM} + "{ending}"', "its keys have no folder, or another extension"


def _with_zeros(key: str | int, text: str, texts: list[str]) -> Iterator[_Way]:
    """`"0007"` of "7"."""
    for width in sorted({len(one) for one in texts})[:_FORMS]:
        yield str(key).zfill(width), f"{text}.zfill({width})", "its keys have zeros in front"
