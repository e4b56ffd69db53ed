"""Names of files that Keras 2 wrote weights and models to, and Keras 3 does not: their end says what is written."""

from __future__ import annotations

import ast
import os
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "older-api"
_WEIGHTS = re.compile(
    r"file(?:path|name)(?: provided)? must end in `\.weights\.h5`.*Received: filepath=(.*)$", re.DOTALL
)
_MODEL = re.compile(r"filepath provided must end in `\.keras`.*Received: filepath=(.*)$", re.DOTALL)
_SAVED = re.compile(r"Invalid filepath extension for saving\..*Received: filepath=(.*?)\.?$", re.DOTALL)
_FORMAT = "The `save_format` argument is deprecated in Keras 3"
_NO_FOLDER = re.compile(r"No such file or directory: '([^']+\.(?:keras|h5))'|name = '([^']+\.h5)', errno = 2,")
_ENDS = re.compile(r"(?:\.weights)?\.(?:h5|hdf5|ckpt|keras|tf)$")
_FOLDER = re.compile(r"/+$")
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras refused the name of a file to write."""
    spot, text = situation.last, situation.message
    statement = situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if situation.kind == "FileNotFoundError":
        return _without_folder(spot, statement, text)
    if _FORMAT in text:
        return _formatted(spot, statement)
    for pattern, end, what in (
        (_WEIGHTS, ".weights.h5", "Keras 3 writes weights into one file, whose name ends in .weights.h5."),
        (_MODEL, ".keras", "Keras 3 writes a whole model into one file, whose name ends in .keras."),
        (_SAVED, ".keras", "Keras 3 writes a model into one file, whose name ends in .keras."),
    ):
        found = pattern.search(text)
        if found is not None:
            also = f" A SavedModel for serving is written by {_owner(spot, statement)}.export." * (pattern is _SAVED)
            return _renamed(spot, statement, found[1].strip(), end, what + also)
    return None


def _owner(spot: Spot, statement: ast.stmt) -> str:
    found = [one.func for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr == "save"]
    return spot.source.text(found[0].value) if found else "model"


def ended(name: str, end: str) -> str:
    """A file's name with another end: `cp.ckpt`, `weights.h5` and `model/` with `.weights.h5`."""
    return _ENDS.sub("", _FOLDER.sub("", name)) + end


def _renamed(spot: Spot, statement: ast.stmt, name: str, end: str, cause: str) -> Explanation | None:
    """The name as it is written, wherever the program has it: what is saved is loaded by it."""
    source = spot.source
    written = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value
        and (one.value == name or name.endswith(f"/{one.value}")) and not _in_text(source.parent(one))
    ]  # fmt: skip
    advice = f"Let the name end in {end}."
    line = min(one.lineno for one in calls(statement)) if any(True for _ in calls(statement)) else spot.line
    if not written or written[-1].lineno - written[0].lineno > _FARTHEST:
        return Explanation(RULE, spot.file, line, cause, None, advice)
    edits: list[Edit] = []
    for place in sorted({one.lineno for one in written}):
        pieces: dict[ast.expr, str] = {
            one: repr(ended(str(one.value), end)).replace("'", '"') for one in written if one.lineno == place
        }
        placed = source.replaced(pieces)
        if placed is None or placed[0] != placed[1]:
            return Explanation(RULE, spot.file, line, cause, None, advice)
        edits.append(Edit(spot.file, placed[0], placed[1], (placed[2],)))
    edit = edits[0] if len(edits) == 1 else together(edits, source.lines)
    return Explanation(RULE, spot.file, line, cause, edit)


def _without_folder(spot: Spot, statement: ast.stmt, text: str) -> Explanation | None:
    """`model.save("models/a.keras")` where there is no folder of that name."""
    found = _NO_FOLDER.search(text)
    folder = os.path.dirname(found[1] or found[2]) if found is not None else ""
    called = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in ("save", "save_weights")]
    if not folder or os.path.isdir(folder) or len(called) != 1:
        return None
    first, last = spot.source.span(statement)
    lines = spot.source.lines[first - 1 : last]
    indent = indent_of(lines[0])
    made = (f"{indent}import os", f'{indent}os.makedirs("{folder}", exist_ok=True)')
    own = spot.module.get("os") is os
    cause = f"There is no folder {folder}. Keras 2 made it for a model or for weights, and Keras 3 does not."
    return Explanation(RULE, spot.file, statement.lineno, cause, Edit(spot.file, first, last, (*made[own:], *lines)))


def _in_text(node: ast.AST | None) -> bool:
    """Whether a constant is a part of an f-string, or stands alone as a docstring does."""
    return isinstance(node, (ast.JoinedStr, ast.Expr))


def _formatted(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`model.save("x", save_format="tf")`."""
    source = spot.source
    found = [one for one in calls(statement) if any(word.arg == "save_format" for word in one.keywords)]
    call = found[0] if len(found) == 1 else None
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    owner = source.text(call.func.value)
    end = ".weights.h5" if dotted(call.func).endswith("save_weights") else ".keras"
    rest = [source.text(one) for one in call.args]
    first = call.args[0] if call.args else None
    name = lookup(first, spot) if isinstance(first, ast.Name) else getattr(first, "value", None)
    if isinstance(first, ast.Constant) and isinstance(name, str) and not name.endswith((end, ".h5")):
        rest[0] = f'"{ended(name, end)}"'
    rest += [source.text(one) for one in call.keywords if one.arg != "save_format"]
    placed = source.replaced({call: f"{source.text(call.func)}({', '.join(rest)})"})
    cause = f"Keras 3 has no save_format: the end of the name says what is written, {end} or .h5."
    if end == ".keras":
        cause += f" A SavedModel for serving is written by {owner}.export."
    edit = Edit(spot.file, placed[0], placed[1], (placed[2],)) if placed is not None else None
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Leave save_format out.")
