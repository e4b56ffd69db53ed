"""A folder among the files that `os.listdir` gives, or a file among its folders: `.ipynb_checkpoints`, `.DS_Store`."""

from __future__ import annotations

import ast
import os

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "file-read"
_KINDS = ("IsADirectoryError", "NotADirectoryError")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator opened a folder, or listed a file."""
    spot, name = situation.last, getattr(situation.inner, "filename", None)
    if situation.kind not in _KINDS or spot is None or not situation.data:
        return None
    path = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    if not isinstance(path, str):
        return None
    folder, base = os.path.split(path.rstrip("/"))
    is_folder = situation.kind == "IsADirectoryError"
    what, wanted = ("a folder", "a file") if is_folder else ("a file", "a folder")
    found = list(_listings(situation, folder, base))
    where = "os.listdir gives all that is there"
    if len(found) == 1 and found[0][0] == spot.file:
        where = f"{short(found[0][1].text(found[0][2]), 40)} (line {found[0][2].lineno}) gives all that is there"
    cause = f"{short(repr(path), 50)} is {what}, and line {spot.line} takes it for {wanted}: {where}."
    if len(found) != 1:
        test = "os.path.isfile" if is_folder else "os.path.isdir"
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Leave out what is none: `if not {test}(...)`.")
    file, source, call = found[0]
    edit = _filtered(file, source, call, base, is_folder)
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _listings(situation: Situation, folder: str, base: str) -> list[tuple[str, Source, ast.Call]]:
    """The calls of `os.listdir` that may have given a name: of that folder, else the only one."""
    every = [
        (file, source, one) for file, source in situation.sources() for one in calls(source.tree)
        if dotted(one.func) in ("os.listdir", "listdir")
    ]  # fmt: skip
    same = [
        (file, source, one) for file, source, one in every
        if one.args and isinstance(one.args[0], ast.Constant) and _is(one.args[0].value, folder)
    ]  # fmt: skip
    named = [
        found for found in every if found[2].args and _value(situation, found[2].args[0]) in (folder, f"{folder}/")
    ]
    unknown = [
        found for found in every
        if not found[2].args or not (isinstance(found[2].args[0], ast.Constant) or _value(situation, found[2].args[0]))
    ]  # fmt: skip
    return same or named or (unknown if len(unknown) == 1 else [])


def _is(value: object, folder: str) -> bool:
    return isinstance(value, str) and os.path.normpath(value) == os.path.normpath(folder or ".")


def _value(situation: Situation, node: ast.expr) -> str | None:
    """The text that a name of a frame, or of its module, stands for."""
    for spot in situation.spots:
        value = spot.value(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, str):
            return value.rstrip("/")
    return None


def _filtered(file: str, source: Source, call: ast.Call, base: str, is_folder: bool) -> Edit | None:
    """The call with a condition, also that of a comprehension over it."""
    given = source.text(call.args[0]) if call.args else '"."'
    outer = next((one for one in source.around(call) if isinstance(one, ast.ListComp)), None)
    loop = outer.generators[0] if outer is not None and len(outer.generators) == 1 else None
    hidden = base.startswith(".")
    test = f"os.path.{'isfile' if is_folder else 'isdir'}(os.path.join({given}, NAME))"
    test = 'not NAME.startswith(".")' if hidden else test
    if loop is not None and isinstance(loop.target, ast.Name) and not loop.ifs and call in ast.walk(loop.iter):
        new = f"{source.text(loop.iter)} if {test.replace('NAME', loop.target.id)}"
        return edit_of(file, source.replaced({loop.iter: new}))
    name = source.unused_name("name")
    return edit_of(
        file, source.replaced({call: f"[{name} for {name} in {source.text(call)} if {test.replace('NAME', name)}]"})
    )
