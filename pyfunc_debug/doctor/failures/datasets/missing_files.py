"""A file that is not there by the name that a body, a map or a generator reads: where it is, or what is there."""

from __future__ import annotations

import ast
import os
import re

from pyfunc_debug.doctor.failures.bodies.file_names import text_of
from pyfunc_debug.doctor.failures.datasets.no_files import deepest, held, names_in
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import failed_node
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "file-read"
_KINDS = ("FileNotFoundError", "NotFoundError")
_SAID = re.compile(r"(?:^|[\s}])([^\s;}][^;\n}]*); No such file or directory")
_KERAS = re.compile(r"^File not found: filepath=(.+)\. Please ensure the file is an accessible")
_READS = frozenset({"read_file"})
_DEEP, _MOST = 4, 5000
"""How far files are looked for below the folder that names begin at."""
_OTHERS = ("node_modules", "site-packages", "__pycache__")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if no file has the name that was read, in the first call that read one."""
    name = _name(situation)
    if name is None or "Tensor(" in name or os.path.exists(name) or (situation.body and _passed(situation)):
        return None
    found = _found(name)
    for place in (*reversed(situation.spots), None):
        if place is None:
            read = _in_a_map(situation)
            if read is None:
                break
            file, source, given = read
        else:
            statement = place.statement
            inside = [one for call in calls(statement) for one in call.args] if statement is not None else []
            same = [one for one in inside if text_of(one, place) == name]
            if not same:
                continue
            file, source, given = place.file, place.source, same[0]
        return _told(file, source, given, name, found, in_graph=place is None)
    spot = situation.last
    return None if spot is None else Explanation(RULE, spot.file, spot.line, *_words(name, found))


def _name(situation: Situation) -> str | None:
    of_keras = _KERAS.search(situation.message) if situation.kind == "ValueError" else None
    if of_keras is not None:
        return of_keras[1]
    if situation.kind not in _KINDS:
        return None
    name = getattr(situation.inner, "filename", None)
    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    said = _SAID.search(situation.message)
    if isinstance(name, str):
        return name
    return said[1].rpartition(": ")[2] if said is not None else None  # behind what tf.data says in front of it


def _passed(situation: Situation) -> bool:
    """Whether calls of the body passed: then most files are there."""
    node = failed_node(situation)
    rows = situation.rows("SELECT count(*) FROM call WHERE node = ? AND status = 'ok'", (node.id,)) if node else []
    return bool(rows) and rows[0][0] > (1 if node is not None and node.kind == "generator" else 0)


def _in_a_map(situation: Situation) -> tuple[str, Source, ast.expr] | None:
    """What the one `read_file` of the program is given."""
    found = [
        (file, source, call.args[0]) for file, source in situation.sources() for call in source.calls_of(_READS)
        if call.args
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _found(name: str) -> tuple[str, str]:
    """("end", ".npy") of a name without its end, ("folder", "data/train") of one without its folder; else ("", "")."""
    folder, last = os.path.split(name)
    longer = [one for one in names_in(folder) if os.path.splitext(one)[0] == last and os.path.splitext(one)[1]]
    if len(longer) == 1:
        return "end", os.path.splitext(longer[0])[1]
    if os.path.isabs(name):
        return "", ""
    places, seen = [], 0
    for at, folders, files in os.walk("."):
        deep = at.count(os.sep)
        folders[:] = [one for one in folders if deep < _DEEP and one not in _OTHERS and not one.startswith(".")]
        seen += len(files) + len(folders)
        whole = os.path.normpath(os.path.join(at, name))
        if at != "." and os.path.isfile(whole):
            places.append(os.path.normpath(at))
        if seen > _MOST:
            return "", ""
    return ("folder", places[0]) if len(places) == 1 else ("", "")


def _words(name: str, found: tuple[str, str]) -> tuple[str, Edit | None, str]:
    """What is said where nothing can be pasted."""
    folder, missing = deepest(name)
    missing = missing or os.path.basename(name)
    there = [one for one in names_in(folder) if one.lower() == missing.lower()]
    cause = f"there is no file {name}: {folder or os.getcwd()} has no {missing}"
    cause += f", but {there[0]}." if there else f"{held(folder)}."
    relative = "" if os.path.isabs(name) else f" Names begin at {os.getcwd()}."
    return cause, None, f"Write {there[0]}." if there else f"Give the whole name of a file that is there.{relative}"


def _told(
    file: str, source: Source, given: ast.expr, name: str, found: tuple[str, str], in_graph: bool
) -> Explanation | None:
    kind, what = found
    text = source.text(given)
    bare = f"({text})" if isinstance(given, (ast.IfExp, ast.Lambda, ast.BoolOp)) else text
    if kind == "end":
        new = f'{bare} + "{what}"'
        cause = f"there is no file {name}, but {os.path.basename(name)}{what} is in its folder: the name needs its end."
    elif kind == "folder":
        new = f'"{what}/" + {bare}' if in_graph else f'os.path.join("{what}", {text})'
        cause = f"there is no file {name}: it is in {what}, and `{short(text, 30)}` lacks that folder. "
        cause += f"Names begin at {os.getcwd()}."
    else:
        return Explanation(RULE, file, given.lineno, *_words(name, found))
    edit = edit_of(file, source.replaced({given: new}))
    return Explanation(RULE, file, given.lineno, cause, edit, "" if edit else f"Write {new}.", "likely")
