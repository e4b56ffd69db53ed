"""`flow_from_dataframe` on a table whose columns it does not take, or whose names are not those of the files."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.flows import flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.failures.reading.symbols import lookup, method_calls
from pyfunc_debug.doctor.failures.reading.tables import is_frame, valued

RULE = "structure"
_LABELS = re.compile(r'^If class_mode="(\w+)", y_col="(.+?)" column values must be (?:type string|strings)')
_FILES = re.compile(r"^All values in column x_col=(.+?) must be strings")
_NO_BATCH = "The PyDataset has length 0"
_METHOD = "flow_from_dataframe"
_CLASSES = ("categorical", "binary", "sparse")
_LOOKED_AT = 5_000
"""Rows whose files are looked for: all of them are to be there."""
_PLAIN = ("int64", "int32", "uint8", "bool", "float64", "float32")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a column is the reason, or the files that it names."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    labels, files = _LABELS.search(said), _FILES.search(said)
    if labels is not None or files is not None:
        found = [one for one in method_calls(statement, _METHOD) if _table(spot, one) is not None]
        column = labels[2] if labels is not None else files[1] if files is not None else ""
        return _as_text(spot, found[0], column, labels[1] if labels else "") if len(found) == 1 else None
    return _without_files(situation) if _NO_BATCH in said else None


def _table(spot: Spot, call: ast.Call) -> Any:
    """The table that a call got."""
    node = argument(call, 0, "dataframe")
    value = valued(node, spot) if node is not None else None
    return value if is_frame(value) else None


def _as_text(spot: Spot, call: ast.Call, column: str, mode: str) -> Explanation | None:
    """Numbers where Keras wants text: class numbers as labels, numbers as names of files."""
    table = _table(spot, call)
    if column not in table.columns or (kind := str(table[column].dtype)) not in _PLAIN:
        return None
    if mode:
        cause = (
            f'the column "{column}" has numbers ({kind}), and class_mode="{mode}" makes classes of names: of texts. '
            'A class_mode of "raw" takes the numbers as they are.'
        )
        return _told(spot, call, cause, {column: ""})
    cause = f'the column "{column}" has numbers ({kind}) where {_METHOD} wants the names of the files.'
    end = _missing_end(table[column], _folder(spot, call))
    cause += f" The files are there with {end} behind the number." if end else ""
    if not end:
        advice = 'Make the names of the files of it, with their end, as by .astype(str) + ".jpg".'
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    labels, asked = argument(call, 3, "y_col"), argument(call, 99, "class_mode")
    also = labels.value if isinstance(labels, ast.Constant) else None
    counted = asked is None or (isinstance(asked, ast.Constant) and asked.value in _CLASSES)
    columns = {column: end}
    if counted and isinstance(also, str) and also in table.columns and str(table[also].dtype) in _PLAIN:
        cause += f' "{also}" is to be text, too: of that classes are made.'
        columns[also] = ""
    return _told(spot, call, cause, columns)


def _told(spot: Spot, call: ast.Call, cause: str, columns: dict[str, str]) -> Explanation | None:
    """The call with columns of its table as texts, each with an end behind it."""
    node = argument(call, 0, "dataframe")
    if node is None:
        return None
    text = spot.source.atom(node)
    if all(one.isidentifier() for one in columns):
        whole = {
            one: f'{text}["{one}"].astype(str){f""" + "{end}" """.rstrip() if end else ""}'
            for one, end in columns.items()
        }
        new = f"{text}.assign({', '.join(f'{name}={value}' for name, value in whole.items())})"
    elif not any(columns.values()):
        new = f"{text}.astype({{{', '.join(f'{one!r}: str' for one in columns)}}})"
    else:
        return Explanation(RULE, spot.file, call.lineno, cause, None, "Make such texts of the column first.")
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _folder(spot: Spot, call: ast.Call) -> str:
    node = argument(call, 1, "directory")
    value = (lookup(node, spot) or computed(node, spot)) if node is not None else ""
    return str(value) if isinstance(value, (str, os.PathLike)) and type(value).__module__ != "__main__" else ""


def _missing_end(column: Any, folder: str) -> str | None:
    """The end that all files have and their names in the table have not: ".jpg"."""
    if len(column) > _LOOKED_AT:
        return None
    ends: Counter[str] = Counter()
    there: dict[str, set[str]] = {}
    for one in column.tolist():
        place, name = os.path.split(os.path.join(folder, str(one)))
        if place not in there:
            there[place] = _names(place)
        ends.update({end for end in (".jpg", ".jpeg", ".png", ".bmp", ".tif") if name + end in there[place]})
    best = ends.most_common(1)
    return best[0][0] if best and best[0][1] == len(column) else None


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder or "."))
    except OSError:
        return set()


def _without_files(situation: Situation) -> Explanation | None:
    """A flow that found no file by the names of its table: Keras warned, and fails where batches are asked."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        for name in dict.fromkeys(names(statement)) if statement is not None else ():
            flow = flow_of(ast.Name(name, ast.Load()), spot)
            if flow is None or flow.method != _METHOD or flow.held.get("samples") != 0 or flow.call is None:
                continue
            table, x_col = _table(spot, flow.call), argument(flow.call, 2, "x_col")
            column = x_col.value if isinstance(x_col, ast.Constant) else "filename" if x_col is None else None
            if table is None or not isinstance(column, str) or column not in table.columns or not len(table):
                return None
            return _absent(spot, flow.call, table[column], column, flow.held.get("directory"))
    return None


def _absent(spot: Spot, call: ast.Call, column: Any, name: str, folder: object) -> Explanation | None:
    folder = str(folder) if isinstance(folder, (str, os.PathLike)) else ""
    first = os.path.join(folder, str(column.iloc[0]))
    end = _missing_end(column, folder)
    if end is not None:
        cause = (
            f'the names in the column "{name}" have no end, as {str(column.iloc[0])!r}, and the files have: '
            f"{end}. {_METHOD} found none of them."
        )
        return _told(spot, call, cause, {name: end})
    if os.path.isfile(first):
        return None
    place = os.path.dirname(first) or "."
    what = "is not there" if os.path.isdir(place) else f"is not there, as there is no folder {place!r}"
    known = sorted(_names(place))[:3]
    cause = f'{_METHOD} found none of the files: {first!r}, of the first row of the column "{name}", {what}.'
    shown = f"That folder has {', '.join(map(repr, known))}. " if known else ""
    advice = f"{shown}directory and the column together must be the names of the files."
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
