"""Tables of pandas with columns of text among those of numbers, given to `fit` or to a dataset.

`df.values` of such a table is one array of Python objects, of which no tensor can be made.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, extends_keras, is_ndarray, lookup
from pyfunc_debug.doctor.failures.reading.tables import is_frame, of_values, valued

RULE = "mixed-dtypes"
_SAID = re.compile(r"Invalid dtype: (?:object|str)|Unsupported object type|could not convert string to float")
_FIXED = re.compile(r"(?:Input|input_shape|input_dim|shape)\s*=?\s*\(*\s*(?:shape\s*=\s*\(*\s*)?\d")
"""A model that says how many columns it takes."""
_MOST = 30
"""More texts than these are not classes."""
_LOOKED_AT = 10_000


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives such a table away."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    for call in calls(statement):
        if dotted(call.func) == "dict":  # each column is a tensor of its own: told where that dict is given away
            continue
        for one in (*call.args, *(keyword.value for keyword in call.keywords)):
            for part in one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one]:
                own = extends_keras(kind) if isinstance(kind := lookup(call.func, spot), type) else False
                found = _explained(part, spot, own)
                if found is not None:
                    return found
    return None


def _explained(part: ast.expr, spot: Spot, own: bool) -> Explanation | None:
    """What to say of one argument.

    Args:
      part: The argument.
      spot: The failing frame.
      own: Whether a class of the user's gets it, which asks the table for its columns by their names.
    """
    if isinstance(part, ast.Call) and dotted(part.func) == "dict" and len(part.args) == 1:
        return _lists(part, part.args[0], spot) or _gaps(part.args[0], spot)
    array, table = _array(part, spot), _table(part, spot)
    if array is not None:
        made = _made(array, spot)
        place, inside = made if made is not None else (part, None)
        table = _table(inside, spot) if inside is not None else None
    elif (inside := of_values(part)) is not None and (table := _table(inside, spot)) is not None:
        place, array = part, None
    elif table is not None:
        place, inside = _split(part, spot), None
    else:
        return None
    columns = _columns(table) if table is not None else _columns_of(array)
    if not columns:
        return None
    text, source = spot.source.text, spot.source
    shown = ", ".join(f"{name} ({value!r})" for name, value, _ in columns[:3]) + (", ..." if len(columns) > 3 else "")
    one = f"Column {shown} is" if len(columns) == 1 else f"Columns {shown} are"
    if all(kind == "bool" for *_, kind in columns):
        one, rest = f"{one} of bools", " As floats all of it is one array."
    elif all(kind == "numbers" for *_, kind in columns):
        one, rest = f"{one} numbers as text", " As floats all of it is one array."
    elif any(kind in ("numbers", "other") for *_, kind in columns):
        what = "it" if len(columns) == 1 else "them"
        advice = f"Make numbers of {what} first, or leave {what} out."
        return Explanation(
            RULE, spot.file, place.lineno, f"{one} not of numbers only, and a tensor has one dtype.", None,
            f'{advice} pd.to_numeric(..., errors="coerce") of a column makes NaN of what is not one.',
        )  # fmt: skip
    else:
        one, rest = f"{one} text", ""
    whole = "an array of objects" if table is None or inside is not None else "a table of several"
    cause = f"{one}, and a tensor has one dtype: {short(text(part), 40)} is {whole}."
    value = text(inside) if inside is not None else text(place)
    if not rest:
        if any(kind == "many" for *_, kind in columns):
            advice = "Leave out what is another text in each row; or give it to a StringLookup and an Embedding."
            return Explanation(RULE, spot.file, place.lineno, cause, None, advice)
        if table is None or (inside is None and not isinstance(place, (ast.Name, ast.Attribute, ast.Subscript))):
            return Explanation(
                RULE, spot.file, place.lineno, cause, None, "Make numbers of them first: pd.get_dummies."
            )
        pd = alias(spot, "pandas")
        pd = "pd" if pd == "pandas" and spot.value("pandas") is None else pd
        names = [name for name, *_ in columns]
        if own or _FIXED.search("\n".join(source.code)):
            listed = "{" + ", ".join(f'"{name}": {pd}.factorize({value}["{name}"])[0]' for name in names) + "}"
            value = f"{value}.assign(**{listed})"
            rest = " factorize gives each text a number."
        else:
            value = f"{pd}.get_dummies({value})"
            rest = " get_dummies makes a column of 0 and 1 of each text."
    ending = ""
    if inside is not None and isinstance(place, (ast.Attribute, ast.Call)):
        ending = text(place)[len(text(inside)) :]
    new = f'{value}{ending}.astype("float32")'
    edit = edit_of(spot.file, source.replaced({place: new}))
    return Explanation(RULE, spot.file, place.lineno, f"{cause}{rest}", edit)


def _lists(part: ast.expr, inside: ast.expr, spot: Spot) -> Explanation | None:
    """`dict(df)` with a column of lists: stacked where all have one length, else ragged."""
    table = _table(inside, spot)
    if table is None:
        return None
    held = {str(name): table[name].tolist()[:_LOOKED_AT] for name in table.columns}
    listed = {
        name: {len(one) for one in values} for name, values in held.items()
        if values and all(type(one) in (list, tuple) or (is_ndarray(one) and one.ndim == 1) for one in values)
    }  # fmt: skip
    if not listed:
        return None
    tf, text = alias(spot, "tensorflow"), spot.source.text(inside)
    made = [
        f'"{name}": {text}["{name}"].tolist()' if len(lengths) == 1
        else f'"{name}": {tf}.ragged.constant({text}["{name}"].tolist())'
        for name, lengths in listed.items()
    ]  # fmt: skip
    name, lengths = next(iter(listed.items()))
    how = "of one length each: as a list of lists it is one array"
    if len(lengths) > 1:
        how = f"of {min(lengths)} to {max(lengths)} values: a ragged tensor keeps rows of any length"
    cause = f"Column {name} has a list in each row, {how}. A column of objects becomes no tensor."
    edit = edit_of(spot.file, spot.source.replaced({part: f"{{**{spot.source.text(part)}, {', '.join(made)}}}"}))
    return Explanation(RULE, spot.file, part.lineno, cause, edit)


def _gaps(inside: ast.expr, spot: Spot) -> Explanation | None:
    """`dict(df)` with columns of text, in which NaN stands for what is not there: a float."""
    table = _table(inside, spot)
    if table is None:
        return None
    texts = [name for name, _, held in _columns(table) if held in ("text", "many", "numbers")]
    gaps = [name for name in texts if table[name].isna().any()]
    if not gaps:
        return None
    text = spot.source.text(inside)
    listed = ", ".join(f'"{name}": ""' for name in gaps)
    named = f"Column {gaps[0]} has" if len(gaps) == 1 else f"Columns {short(', '.join(gaps), 40)} have"
    cause = f"{named} texts, and NaN where there is none: a float, and a tensor has one dtype. fillna puts texts there."
    edit = edit_of(spot.file, spot.source.replaced({inside: f"{text}.fillna({{{listed}}})"}))
    return Explanation(RULE, spot.file, inside.lineno, cause, edit)


def _table(node: ast.expr, spot: Spot) -> Any:
    """The table that an expression is, where that is known without running it."""
    value = valued(node, spot)
    return value if is_frame(value) else None


def _array(node: ast.expr, spot: Spot) -> Any:
    """The array of objects, with two axes, that a name has."""
    value = lookup(node, spot)
    fits = is_ndarray(value) and value.dtype == object and value.ndim == 2
    return value if fits and 0 < value.size <= 100 * _LOOKED_AT else None


def _made(array: Any, spot: Spot) -> tuple[ast.expr, ast.expr] | None:
    """The one line that made an array of objects of as many columns: what it is assigned, and the table in that."""
    found = []
    for one in ast.walk(spot.source.tree):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or one.lineno >= spot.line:
            continue
        inside, value = of_values(one.value), _array(one.targets[0], spot)
        if inside is not None and value is not None and value.shape[1] == array.shape[1]:
            found.append((one.value, inside))
    return found[0] if len(found) == 1 else None


def _split(part: ast.expr, spot: Spot) -> ast.expr:
    """A table in a call of train_test_split, where it is split; else where it is given."""
    for one in ast.walk(spot.source.tree):
        if not isinstance(one, ast.Assign) or not isinstance(one.targets[0], ast.Tuple) or one.lineno >= spot.line:
            continue
        whole = one.value.args[0] if isinstance(one.value, ast.Call) and one.value.args else None
        named = [dotted(each) for each in one.targets[0].elts]
        if isinstance(whole, ast.Name) and dotted(part) in named[:2] and is_frame(lookup(whole, spot)):
            return whole
    return part


_Column = tuple[str, Any, str]


def _columns(table: Any) -> list[_Column]:
    """The columns of a table that are not numbers: names, a value, and what they hold."""
    numbers = [kind.kind for kind in table.dtypes if hasattr(kind, "kind")]
    found = []
    for name, kind in zip(table.columns, table.dtypes):
        if getattr(kind, "kind", "O") in "iuf":
            continue
        values = table[name].dropna().tolist()[:_LOOKED_AT]
        if values and (getattr(kind, "kind", "O") != "b" or set(numbers) != {"b"}):
            held = _held(values)
            other = next((one for one in values if type(one) is str and not _is_number(one)), values[0])
            found.append((str(name), other if held == "other" else values[0], held))
    texts = [one for one in found if one[2] != "bool"]
    return texts or found


def _columns_of(array: Any) -> list[_Column]:
    """The same of an array."""
    found = []
    for place in range(array.shape[1]):
        values = [one for one in array[:_LOOKED_AT, place].tolist() if one is not None and one == one]
        held = _held(values) if values else ""
        if held and not all(type(one) in (int, float) for one in values):
            found.append((str(place), values[0], held))
    texts = [one for one in found if one[2] != "bool"]
    return texts or found


def _held(values: list[Any]) -> str:
    """What the values of a column are."""
    if all(isinstance(one, bool) for one in values):
        return "bool"
    if not all(type(one) is str for one in values):
        return "other"
    numbers = sum(map(_is_number, values))
    if numbers == len(values):
        return "numbers"
    return "other" if numbers * 2 > len(values) else "many" if len(set(values)) > _MOST else "text"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
