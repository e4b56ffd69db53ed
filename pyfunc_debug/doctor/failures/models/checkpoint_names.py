"""A checkpoint by another name than it has: its folder, the name without its number, a variable by its attribute."""

from __future__ import annotations

import ast
import os
import re
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, method_calls

RULE = "file-read"
_OPENED = re.compile(
    r"Unable to open table file (.+?): .*Is a directory|Failed to find any matching files for (.+?)(?:\s+Please|\s*$)",
    re.DOTALL,
)
_KEY = re.compile(r"Key (\S+) not found in checkpoint")
_STATE = re.compile(r'model_checkpoint_path: "([^"]+)"')
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_RESTORES = ("restore", "read")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the file that was meant is there, or the name that the checkpoint has."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    if (said := _KEY.search(situation.message)) is not None:
        return _named(spot, statement, said[1]) or _restored(situation, spot, statement, said[1])
    opened = _OPENED.search(situation.message)
    given = [one.args[0] for one in method_calls(statement, *_RESTORES) if one.args]
    return _found(spot, given[0], opened[1] or opened[2]) if opened is not None and len(given) == 1 else None


def _found(spot: Spot, given: ast.expr, name: str) -> Explanation | None:
    """The newest checkpoint of the folder that was given, or of that in which the file would be."""
    is_folder = os.path.isdir(name)
    folder = name if is_folder else os.path.dirname(name)
    newest = _newest(folder)
    if newest is None or not (is_folder or newest.startswith(f"{os.path.basename(name)}-")):
        return None
    tf, text = alias(spot, "tensorflow"), spot.source.text(given)
    if is_folder:
        cause = f"{short(text, 30)} is a folder, and restore takes a checkpoint in it, as {newest}. "
        cause += "latest_checkpoint gives the newest one's name."
        new = f"{tf}.train.latest_checkpoint({text})"
    else:
        cause = f"save() puts a number behind the name: there is {newest}, and no {os.path.basename(name)}. "
        cause += "latest_checkpoint gives the newest."
        known = type(spot.value("os")).__name__ == "module" and not isinstance(given, ast.Constant)
        new = f"os.path.dirname({text})" if known else f'"{folder or "."}"'
        new = f"{tf}.train.latest_checkpoint({new})"
    return Explanation(
        RULE, spot.file, given.lineno, cause, edit_of(spot.file, spot.source.replaced({given: new})), "", "likely"
    )


def _newest(folder: str) -> str | None:
    """The name of a folder's newest checkpoint, as TensorFlow wrote it down; None where it is not there."""
    with suppress(OSError, UnicodeDecodeError), open(os.path.join(folder, "checkpoint"), encoding="utf-8") as file:
        found = _STATE.search(file.read())
        name = os.path.basename(found[1]) if found is not None else ""
        return name if os.path.isfile(os.path.join(folder, f"{name}.index")) else None
    return None


def _named(spot: Spot, statement: ast.stmt, key: str) -> Explanation | None:
    """`reader.get_tensor("v")` where the checkpoint has "v/.ATTRIBUTES/VARIABLE_VALUE"."""
    for call in method_calls(statement, "get_tensor"):
        reader = lookup(call.func.value, spot)  # type: ignore[attr-defined]
        if type(reader).__name__ != "CheckpointReader" or not call.args:
            continue
        names = sorted(reader.get_variable_to_shape_map())
        plain = [one for one in names if one.endswith(_VALUE)]
        fitting = [one for one in plain if one == f"{key}{_VALUE}"]
        fitting = fitting or [
            one for one in plain if one.removesuffix(_VALUE).rpartition("/")[2] == key.rpartition("/")[2]
        ]
        shown = ", ".join(one.removesuffix(_VALUE) for one in plain if "OBJECT_GRAPH" not in one)
        cause = (
            f"a checkpoint names a variable by its place in the object that was saved. Here are: {short(shown, 60)}, "
            f"each with {_VALUE} behind."
        )
        if len(fitting) == 1:
            edit = edit_of(spot.file, spot.source.replaced({call.args[0]: f'"{fitting[0]}"'}))
            return Explanation(RULE, spot.file, call.lineno, cause, edit)
        return Explanation(RULE, spot.file, call.lineno, cause, None, "Write one of these.") if plain else None
    return None


def _restored(situation: Situation, spot: Spot, statement: ast.stmt, key: str) -> Explanation | None:
    """`Saver().restore(sess, path)` of a variable of another name than the checkpoint has."""
    found = [one for one in method_calls(statement, "restore") if len(one.args) == 2]
    inside = [
        one.f_locals for one in frames(situation.error.__traceback__)
        if "save_path" in one.f_locals and one.f_code.co_filename.endswith("training/saver.py")
    ]  # fmt: skip
    path = inside[-1]["save_path"] if inside else None
    if len(found) != 1 or type(path) is not str or not os.path.isfile(f"{path}.index"):
        return None
    from tensorflow import train

    shapes = train.load_checkpoint(path).get_variable_to_shape_map()
    if key in shapes or not shapes:
        return None
    cause = (
        f"the graph has a variable {key}, and the checkpoint has none of this name. It has "
        f"{short(', '.join(sorted(shapes)), 80)}. A Saver restores by names."
    )
    advice = 'Make the variable by the name that it was saved under, or map it: Saver({"name in the file": variable}).'
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
