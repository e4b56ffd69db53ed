"""What newer Matplotlib and NumPy have no more: a canvas' `tostring_rgb`, and `np.fromstring` of bytes."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

_GONE = "has no attribute 'tostring_rgb'"
_BINARY = "The binary mode of fromstring is removed"
_READERS = ("fromstring", "frombuffer")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line asks for one of these."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    if situation.kind == "AttributeError" and _GONE in situation.message:
        return _of_canvas(spot, statement)
    return _of_bytes(spot, statement) if _BINARY in situation.message else None


def _of_canvas(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`np.frombuffer(fig.canvas.tostring_rgb(), np.uint8)`: the first three channels of `buffer_rgba`."""
    source = spot.source
    found = [one for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr == "tostring_rgb"]
    if len(found) != 1 or not isinstance(found[0].func, ast.Attribute):
        return None
    call, canvas = found[0], found[0].func.value
    held: Any = lookup(canvas, spot)
    if held is not None and not hasattr(held, "buffer_rgba"):
        return None
    around = source.parent(call)
    read = isinstance(around, ast.Call) and around.args[:1] == [call] and _last(around) in _READERS
    np, text = alias(spot, "numpy"), source.text(canvas)
    pixels = f"{np}.array({text}.buffer_rgba())[..., :3]"
    placed = source.replaced(
        {around: pixels} if read and isinstance(around, ast.Call) else {call: f"{pixels}.tobytes()"}
    )
    edit = edit_of(spot.file, placed) if np in spot.module or np in spot.variables else None
    cause = (
        f"Matplotlib has removed {short(text, 30)}.tostring_rgb. buffer_rgba gives the picture as rows, columns and "
        "four channels, R, G, B and A: [..., :3] leaves out A."
    )
    advice = "" if edit is not None else f"Write {pixels}, an array already."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _last(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _of_bytes(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`np.fromstring(raw, np.uint8)`: `np.frombuffer`, or a text's numbers with what parts them."""
    source = spot.source
    found = [one for one in calls(statement) if _last(one) == "fromstring" and one.args]
    if len(found) != 1:
        return None
    call = found[0]
    given, text = lookup(call.args[0], spot), source.text(call.args[0])
    if isinstance(given, str):
        return _of_text(spot, call, given, text)
    owner = dotted(call.func).rpartition(".")[0]
    parts = [source.text(one) for one in call.args[:3]]
    if is_ndarray(given) and given.dtype == object and not given.shape:
        parts[0] = f"{source.atom(call.args[0])}.item()"  # else its address is read
    parts += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.arg not in ("sep", None)]
    new = f"{owner}.frombuffer({', '.join(parts)})"
    if not owner or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    copied = _written(source, spot, statement)
    edit = edit_of(spot.file, source.replaced({call: f"{new}.copy()" if copied else new}))
    cause = f"NumPy's fromstring takes no bytes any more: frombuffer reads the numbers of {short(text, 30)}."
    if copied:
        cause += " Its array cannot be written to, as is done below: so it is copied."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.")


def _of_text(spot: Spot, call: ast.Call, given: str, text: str) -> Explanation:
    """`np.fromstring("1 2 3", dtype=float)`, without the blank or the comma that parts the numbers."""
    sep = "," if "," in given else " "
    cause = f"{short(text, 30)} is a text, and fromstring takes it for bytes, as no sep says what parts its numbers."
    plain = len(call.args) < 4 and not any(one.arg == "sep" for one in call.keywords)
    numbers = all(_is_number(one) for one in given.split(sep if sep == "," else None))
    new = spot.source.with_argument(call, f'sep="{sep}"')
    edit = edit_of(spot.file, spot.source.replaced({call: new})) if plain and numbers and given.strip() else None
    advice = "" if edit is not None else f'Write sep=" " for numbers in it, or {text}.encode() in frombuffer for bytes.'
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _written(source: Source, spot: Spot, statement: ast.stmt) -> bool:
    """Whether the function writes into what the statement gives a name to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = {one.id for one in targets if isinstance(one, ast.Name)}
    for one in ast.walk(spot.function if spot.function is not None else source.tree):
        target = one.target if isinstance(one, ast.AugAssign) else one
        stored = isinstance(one, ast.AugAssign) or (
            isinstance(one, ast.Subscript) and not isinstance(one.ctx, ast.Load)
        )
        while stored and isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if stored and isinstance(target, ast.Name) and target.id in kept:
            return True
    return False
