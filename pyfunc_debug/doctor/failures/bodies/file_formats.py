"""A file, or a text, in another form than the line reads: JSON lines, binary pickles, text for NumPy's own, dates."""

from __future__ import annotations

import ast
import os
from datetime import datetime
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import bytes_of, calls, lookup

_BEGINS = (b"\x93NUMPY", b"PK\x03\x04")
_SEPARATORS = "-/. :T_"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a line of a body or a generator failed."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data:
        return None
    text = situation.message
    every = {dotted(one.func).rpartition(".")[2]: one for one in calls(statement)}
    if situation.kind == "JSONDecodeError":
        return _json(spot, every, text)
    whole = {dotted(one.func): one for one in calls(statement)}
    if "pickle.load" in whole and ("bytes-like object" in text or situation.kind == "UnicodeDecodeError"):
        return _pickle(spot, whole["pickle.load"], text)
    if "load" in every and ("pickled data when allow_pickle" in text or "contains pickled (object) data" in text):
        return _text_file(spot, every["load"])
    if "strptime" in every and "does not match format" in text:
        return _date(spot, every["strptime"])
    return None


def _json(spot: Spot, every: dict[str, ast.Call], said: str) -> Explanation | None:
    """`json.load(file)` of a file with one value a line, and `json.loads(line)` of an empty line."""
    if "load" in every and said.startswith("Extra data: line 2"):
        call, head = every["load"], spot.source.text(every["load"].func).removesuffix(".load")
        name = spot.source.text(call.args[0]) if call.args else "file"
        cause = "the file has one JSON value in each line, and json.load reads a file of one value."
        edit = in_place(spot, {call: f"[{head}.loads(line) for line in {name}]"})
        return Explanation(
            RULE, spot.file, spot.line, cause, edit, "" if edit else "Read it line by line: json.loads(line)."
        )
    loads = every.get("loads")
    given = loads.args[0] if loads is not None and loads.args else None
    value = origins.valued(given, spot) if given is not None else None
    line = bytes_of(value) if isinstance(bytes_of(value), bytes) else value
    if given is None or not isinstance(line, (str, bytes)):
        return None
    if not line.strip():
        loop = next((one for one in spot.source.around(given) if isinstance(one, ast.For)), None)
        cause = f"{short(spot.source.text(given), 30)} is {short(repr(line), 20)}, an empty line: no JSON is in it."
        statement = spot.statement
        if loop is None or statement is None or statement not in loop.body or not isinstance(given, ast.Name):
            return Explanation(RULE, spot.file, spot.line, cause, None, "Leave empty lines out.")
        indent = indent_of(spot.source.lines[statement.lineno - 1])
        lines = (f"{indent}if not {given.id}.strip():", f"{indent}    continue")
        edit = Edit(spot.file, statement.lineno, statement.lineno - 1, lines)
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    cause = f"{short(spot.source.text(given), 30)} is {short(repr(line), 50)}, which is not JSON: {said}."
    if b"'" in (line if isinstance(line, bytes) else line.encode()):
        cause += " JSON has double quotes."
    return Explanation(RULE, spot.file, spot.line, cause, None, "Write the file by json.dumps.")


def _modes(call: ast.Call) -> list[ast.expr]:
    return [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]


def _pickle(spot: Spot, load: ast.Call, said: str) -> Explanation | None:
    """`with open(path) as f: pickle.load(f)`."""
    source = spot.source
    name = source.text(load.args[0]) if load.args else ""
    opened = [
        item.context_expr for one in source.around(load) if isinstance(one, ast.With) for item in one.items
        if item.optional_vars is not None and source.text(item.optional_vars) == name
    ]  # fmt: skip
    opened += [load.args[0]] if load.args and isinstance(load.args[0], ast.Call) else []
    found = [one for one in opened if isinstance(one, ast.Call) and dotted(one.func) == "open"]
    if "'ascii' codec" in said:
        cause = (
            "Python 2 wrote this pickle: its texts are bytes, and pickle reads them as ASCII if nothing else is said."
        )
        edit = in_place(spot, {load: source.with_argument(load, 'encoding="latin1"')})
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else 'Pass encoding="latin1".')
    if any("b" in ast.unparse(mode).strip("'\"") for one in found for mode in _modes(one)):
        return None
    cause = "a pickle is a file of bytes, and open reads text if nothing else is said."
    if len(found) != 1 or len(found[0].args) > 2:
        return Explanation(RULE, spot.file, spot.line, cause, None, 'Open it by open(..., "rb").')
    call = found[0]
    if len(call.args) == 2:
        return Explanation(
            RULE, spot.file, spot.line, cause, edit_of(spot.file, source.replaced({call.args[1]: '"rb"'}))
        )
    edit = edit_of(spot.file, source.replaced({call: source.with_argument(call, '"rb"')}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _text_file(spot: Spot, load: ast.Call) -> Explanation | None:
    """`np.load("rows.csv")`."""
    given = load.args[0] if load.args else None
    value: Any = origins.valued(given, spot) if given is not None else None
    path = os.fsdecode(value) if isinstance(value, (str, bytes)) else ""
    if given is None or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        first = file.read(400)
    if first.startswith(_BEGINS) or b"\0" in first:
        return None
    shown = short(repr(first.split(b"\n")[0].decode("utf-8", "replace")), 40)
    cause = f"{short(repr(path), 40)} is a file of text, {shown}, and np.load reads what np.save wrote."
    head = spot.source.text(load.func).removesuffix(".load")
    comma = ', delimiter=","' if b"," in first else ""
    edit = in_place(spot, {load: f"{head}.loadtxt({spot.source.text(given)}{comma})"})
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "np.loadtxt reads it.", "likely")


def _date(spot: Spot, call: ast.Call) -> Explanation | None:
    """A date with other separators than its format."""
    if len(call.args) != 2:
        return None
    text, form = origins.valued(call.args[0], spot), origins.valued(call.args[1], spot)
    if not isinstance(text, str) or not isinstance(form, str):
        return None
    cause = f"{short(repr(text), 40)} is not written as {form!r} says."
    for old in _SEPARATORS:
        for new in _SEPARATORS:
            other = form.replace(old, new)
            if old in form and other != form and _reads(text, other):
                edit = in_place(spot, {call.args[1]: repr(other)})
                return Explanation(RULE, spot.file, spot.line, f"{cause} {other!r} does.", edit, "", "likely")
    value = lookup(call.args[0], spot)
    advice = (
        "Correct the format, or leave such texts out."
        if value is None or text.strip()
        else "It is empty: leave it out."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _reads(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True
