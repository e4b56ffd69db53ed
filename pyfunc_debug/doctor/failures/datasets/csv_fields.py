"""A field of a CSV file that is not a number: a header, a word for what is missing, a fraction for a whole number."""

from __future__ import annotations

import ast
import os
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.files import first_line
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "structure"
_INVALID = re.compile(
    r"Field (\d+) in record \d* ?is not a valid (float|double|int32|int64): (.*?)\s*(?:\[\[|\[Op:|$)", re.DOTALL
)
_MISSING = re.compile(r"Field (\d+) is required but missing in record")
_NONE = ("na", "n/a", "nan", "null", "none", "?", "-", "missing", "--", "nil", ".")
_FRACTION = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?|[-+]?\d+\.\d*")
_ZEROS = {"float32": "0.0", "float64": "0.0", "int32": "0", "int64": "0", "string": '""'}
_READERS = ("decode_csv", "CsvDataset")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if it is known what the field is, and how the reader takes it."""
    invalid, missing = _INVALID.search(situation.message), _MISSING.search(situation.message)
    if situation.last is None or (invalid is None and missing is None):
        return None
    for file, source in situation.sources():
        found = [one for one in calls(source.tree) if dotted(one.func).rpartition(".")[2] in _READERS and one.args]
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        if len(found) != 1:
            continue
        if invalid is not None:
            return _invalid(spot, file, source, found[0], int(invalid[1]), invalid[2], invalid[3])
        return _absent(spot, file, source, found[0], int(missing[1])) if missing is not None else None
    return None


def _invalid(
    spot: Spot, file: str, source: Source, call: ast.Call, place: int, kind: str, field: str
) -> Explanation | None:
    reader, opened = dotted(call.func).rpartition(".")[2], call
    if reader == "decode_csv":
        lines = [one for one in calls(source.tree) if dotted(one.func).endswith("TextLineDataset") and one.args]
        opened = lines[0] if len(lines) == 1 else call
    path = evaluation.computed(opened.args[0], spot) if opened.args else None
    header = first_line(path)
    said = f"field {place} of a line is {short(repr(field), 30)}, which is not a {kind}"
    if header is not None and field and field in _fields(header, place) and not _skips(source, opened):
        cause = f"{said}: it is of the first line of {_name(path)}, which names the columns."
        if reader == "CsvDataset":
            return _edited(file, source, call, source.with_argument(call, "header=True"), cause)
        if opened is not call:
            return _edited(file, source, opened, f"{source.text(opened)}.skip(1)", cause)
        return None
    default = _default(call, place)
    if default is not None and kind.startswith("int") and _FRACTION.fullmatch(field):
        new = _as_float(source.text(default), alias(spot, "tensorflow"))
        cause = f"{said}. The default {source.text(default)} makes it a column of {kind}."
        if new is None:
            return None
        pieces = dict.fromkeys(_alike(call, default, source), new)
        return Explanation(RULE, file, default.lineno, cause, edit_of(file, source.replaced(pieces)), "", "likely")
    if field.strip().lower() in _NONE and argument(call, 9, "na_value") is None:
        zero = _zero(source.text(default)) if default is not None else None
        if reader == "CsvDataset" and (default is None or zero is None):
            return None  # without a default the field is required
        what = "the default of the column" if zero is None else f"{zero}, a default,"
        cause = f"{said}. With na_value={field!r} {what} stands for it."
        pieces = {default: f"[{zero}]"} if zero is not None and default is not None else {}
        edit = source.ended(call, f"na_value={_quoted(field)}", pieces=pieces)
        first, last = call.lineno, call.end_lineno or call.lineno
        return Explanation(RULE, file, first, cause, edit_of(file, (first, last, "\n".join(edit))), "", "likely")
    return None


def _absent(spot: Spot, file: str, source: Source, call: ast.Call, place: int) -> Explanation | None:
    """`CsvDataset(name, [tf.int32, tf.float32])` of a file with an empty field."""
    default = _default(call, place)
    zero = _zero(source.text(default)) if default is not None else None
    if default is None or zero is None:
        return None
    own = source.text(default)
    cause = f"field {place} of a line is empty, and {own} says that each line has it. A default stands for it."
    return _edited(file, source, default, f"[{zero}]", cause)


def _edited(file: str, source: Source, node: ast.expr, new: str, cause: str) -> Explanation:
    return Explanation(RULE, file, node.lineno, cause, edit_of(file, source.replaced({node: new})), "", "likely")


def _default(call: ast.Call, place: int) -> ast.expr | None:
    """What record_defaults has for a column; also of `[0] * 3`, which has one for all."""
    given = argument(call, 1, "record_defaults")
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult):
        given, place = given.left, 0
    elements = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    starred = any(isinstance(one, ast.Starred) for one in elements)
    return elements[place] if place < len(elements) and not starred else None


def _alike(call: ast.Call, default: ast.expr, source: Source) -> list[ast.expr]:
    """All the defaults, where they are the same: the columns become one tensor."""
    given = argument(call, 1, "record_defaults")
    elements = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    return list(elements) if len({source.text(one) for one in elements}) == 1 else [default]


def _zero(text: str) -> str | None:
    """`0.0` of `tf.float32`."""
    return _ZEROS.get(text.rpartition(".")[2]) if "." in text and not text[0].isdigit() else None


def _as_float(text: str, tf: str) -> str | None:
    """`[0.0]` of `[0]`, `tf.float32` of `tf.int32`."""
    if text.rpartition(".")[2] in ("int32", "int64"):
        return f"{tf}.float32"
    number = text.strip("[]")
    return text.replace(number, f"{number}.0") if number.lstrip("-").isdigit() else None


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text else repr(text)


def _name(path: Any) -> str:
    return os.path.basename(str(path[0] if isinstance(path, (list, tuple)) else path))


def _fields(line: str, place: int) -> list[str]:
    parts = [part for separator in (",", ";", "\t") for part in line.split(separator)[place : place + 1]]
    return [part.strip('"') for part in parts]


def _skips(source: Source, opened: ast.Call) -> bool:
    """Whether lines are left out already."""
    if any(one.arg == "header" for one in opened.keywords):
        return True
    return any(isinstance(one.func, ast.Attribute) and one.func.attr == "skip" for one in calls(source.tree))
