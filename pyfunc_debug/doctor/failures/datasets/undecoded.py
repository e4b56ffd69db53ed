"""`padded_batch` of what `read_file` gives: the bytes of image files, where decoded images were meant."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import argument, return_value
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias

_IMAGES = re.compile(r"\.(?:png|jpe?g|bmp|gif)\b", re.IGNORECASE)
_NEAR = 14
"""Lines of a paste, with those between its places."""


def explained(spot: Spot, call: ast.Call, rule: str) -> Explanation | None:
    """The explanation where the dataset of a padded_batch maps `read_file`, and the program names image files.

    Args:
      spot: The frame that failed.
      call: The call of padded_batch, of a dataset whose elements are one text each.
      rule: The doctor's rule.
    """
    source, asked = spot.source, argument(call, 1, "padded_shapes")
    before: ast.AST | None = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(before, ast.Name):
        made = [
            one.value for one in ast.walk(source.tree)
            if isinstance(one, ast.Assign) and before.id in [dotted(target) for target in one.targets]
        ]  # fmt: skip
        before = made[0] if len(made) == 1 else None
    if asked is None or not isinstance(before, ast.Call):
        return None
    is_map = isinstance(before.func, ast.Attribute) and before.func.attr == "map" and before.args
    read = _read(spot, before.args[0]) if is_map else None
    if read is None or not _IMAGES.search("\n".join(source.lines)):
        return None
    text, decode = source.text(read), f"{alias(spot, 'tensorflow')}.io.decode_image"
    new = f"{decode}({text}, expand_animations=False)"
    if not isinstance(read, ast.Call):
        new = f"lambda path: {decode}({text}(path), expand_animations=False)"
    pieces = {read: new}
    if not isinstance(asked, (ast.List, ast.Tuple)) or len(asked.elts) != 3:
        pieces[asked] = "[None, None, None]"
    lines = {one.lineno for one in pieces}
    placed = [source.replaced({one: text}) for one, text in pieces.items()]
    if len(lines) < len(pieces):
        placed = [source.replaced(pieces)]
    edits = [one for one in (edit_of(spot.file, each) for each in placed) if one is not None]
    name = dotted(read.func if isinstance(read, ast.Call) else read)
    cause = (
        f"an element of this dataset is what {name} gives: the bytes of a file as one text, without axes to pad. "
        "Decoded, an image has height, width and channels."
    )
    far = max(one.last for one in edits) - min(one.first for one in edits) > _NEAR
    advice = f"Decode it in the map: {new}." if far else ""
    edit = None if far else together(edits, source.lines)
    return Explanation(rule, spot.file, call.lineno, cause, edit, advice, "likely")


def _read(spot: Spot, given: ast.expr) -> ast.expr | None:
    """The `read_file` whose result a mapped function returns; or itself, where that is mapped."""
    if dotted(given).rpartition(".")[2] == "read_file":
        return given
    functions = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)
    ]
    function = given if isinstance(given, ast.Lambda) else functions[0] if len(functions) == 1 else None
    value = return_value(function) if function is not None else None
    if isinstance(value, ast.Name) and isinstance(function, ast.FunctionDef):
        value = assignments(function).get(value.id)
    return value if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "read_file" else None
