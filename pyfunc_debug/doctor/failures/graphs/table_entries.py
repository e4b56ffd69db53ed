"""Keys and values of a lookup table that do not make one: a key twice, other counts, a default of another dtype."""

from __future__ import annotations

import ast
import re
from collections import Counter

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import indent_of, short

RULE = "structure"
_TWICE = re.compile(r"HashTable has different value for same key\. Key (.+?) has (\S+) and trying to add value (\S+)")
_COUNTS = re.compile(r"Expected shape \[(\d+)\] for value, got \[(\d+)\]")
_DEFAULT = re.compile(r"Cannot convert (-?\d+) to EagerTensor of dtype string")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line gives the table's keys and values."""
    if (said := _TWICE.search(situation.message)) is not None:
        return each(situation, _twice, said[1], said[2], said[3])
    if (said := _COUNTS.search(situation.message)) is not None:
        return each(situation, _counts, int(said[1]), int(said[2]))
    return each(situation, _default) if _DEFAULT.search(situation.message) else None


def _given(place: Refused) -> tuple[ast.expr, ast.expr] | None:
    """Keys and values that the line's initializer gets, or one that a name of the line got."""
    found = place.calls_of("KeyValueTensorInitializer")
    if not found:
        made = [
            one.value for one in ast.walk(place.spot.source.tree)
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and one.lineno < place.spot.line
            and "KeyValueTensorInitializer" in ast.unparse(one.value.func)
        ]  # fmt: skip
        found = made if len(made) == 1 else []
    keys, values = (argument(found[0], 0, "keys"), argument(found[0], 1, "values")) if len(found) == 1 else (None, None)
    return (keys, values) if keys is not None and values is not None else None


def _twice(place: Refused, key: str, first: str, second: str) -> Explanation | None:
    """`KeyValueTensorInitializer(labels, range(len(labels)))` of labels that come back."""
    given = _given(place)
    if given is None:
        return None
    keys, values = given
    known = evaluation.computed(keys, place.spot)
    if not isinstance(known, (list, tuple)) or not all(type(one) in (str, int) for one in known):
        return None
    counts = Counter(map(str, known))
    name = place.text(keys)
    if counts[key] < 2:
        return None
    cause = f"{short(name, 30)} has {key!r} {counts[key]} times, for {first} and for {second}: a key has one value."
    source, by_length = place.spot.source, f"len({name})" in place.text(values)
    top = source.statement(keys.lineno)
    if isinstance(keys, ast.Name) and by_length and top is not None:
        blanks = indent_of(source.lines[top.lineno - 1])
        own = "each_once" if name != "each_once" else "once"
        every: dict[ast.expr, str] = {
            one: own
            for part in (keys, values)
            for one in ast.walk(part)
            if isinstance(one, ast.Name) and one.id == name
        }
        begin, end, lines = source.kept_lines(every)
        if begin != top.lineno:
            return place.told(cause, {}, "Give each key once.")
        edit = Edit(place.spot.file, begin, end, (f"{blanks}{own} = list(dict.fromkeys({name}))", *lines))
        cause += " dict.fromkeys keeps each once."
        return Explanation(RULE, place.spot.file, keys.lineno, cause, edit, "", "likely")
    return place.told(cause, {}, "Give each key once.")


def _counts(place: Refused, keys: int, values: int) -> Explanation | None:
    given = _given(place)
    one, other = (shape_at(part, place.spot) for part in given) if given is not None else (None, None)
    if given is None or (one is not None and one != (keys,)) or (other is not None and other != (values,)):
        return None
    names = [short(place.text(part), 30) for part in given]
    longer = names[0] if keys > values else names[1]
    cause = f"{names[0]} has {keys:,} keys, and {names[1]} {values:,} values: each key takes one."
    return place.told(cause, {}, f"Leave out of {longer} what has no partner, or write what is missing in the other.")


def _default(place: Refused) -> Explanation | None:
    """`StaticHashTable(init, -1)` of texts."""
    found = place.calls_of("StaticHashTable", "MutableHashTable", "DenseHashTable")
    default = argument(found[0], 1, "default_value") if len(found) == 1 else None
    value = evaluation.computed(default, place.spot) if default is not None else None
    if default is None or type(value) is not int:
        return None
    cause = f"the values of this table are text, and {value}, which stands for a key that is missing, is a number."
    return place.told(cause, {default: f'"{value}"'}, measured=True)
