"""A text that Python makes of a symbolic tensor: `f"{i:04d}.png"` fails at trace, `f"{i}.png"` names no file at run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes import as_python, texts_in_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.pastes.texts_in_ops import Tensor
from pyfunc_debug.doctor.failures.pastes.traced_text import explained
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, as_read, read
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_keras, shape_of, symbolic_parts

RULE = "symbol-in-text"
_FORMAT = re.compile(
    r"unsupported format string passed to \w*Tensor\.__format__|%d format: a .*number is required, not \w*Tensor"
    r"|must be real number, not \w*Tensor"
)
_NAME = re.compile(r"Tensor\(\"[^\"]*\", shape=")
_MISSING = {"NotFoundError", "FileNotFoundError", "KeyError"}
"""What is raised of a name that nothing has."""
_PARTS = {"IndexError", "ValueError"}
"""What is raised of parts that a name has not, and of a text that does not say a number or is not in a list."""
_Text = tuple[str, Source, ast.expr, list[dict[str, Any]]]
"""The file, its source, the expression and the notices of the tensors in it."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if this is why the program failed."""
    if situation.kind == "TypeError" and not situation.body and _FORMAT.search(situation.message):
        return _formatted(situation)
    if situation.kind in _MISSING and not situation.body and _NAME.search(situation.message):
        return _named(list(_repeated(situation)), situation)
    if situation.kind in _PARTS and not situation.body and situation.last is not None:
        return _named(list(_at(situation.last, situation)), situation)
    return None


def _formatted(situation: Situation) -> Explanation | None:
    """A number's format, asked of a tensor without a value: the same text by ops, where these take it."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or spot.function is None:
        return None
    for text in texts_in_ops.texts_at(spot.source, spot.line):
        parts = symbolic_parts(text, spot)
        if not parts or any(map(is_keras, parts.values())):
            continue
        tensors = {name: Tensor(dtype_of(one), _rank(one)) for name, one in parts.items()}
        tf = alias(spot, "tensorflow")
        pieces = texts_in_ops.pieces_in_ops(spot.source, spot.function, text, tensors, tf)
        if pieces:
            edit = edit_of(spot.file, spot.source.replaced(pieces))
            return explained(situation, spot, statement, parts, edit)
    return None


def _rank(tensor: Any) -> int | None:
    shape = shape_of(tensor)
    return None if shape is None else len(shape)


def _named(found: list[_Text], situation: Situation) -> Explanation | None:
    """A file or a key by the name of a tensor: the recording knows which line made a text of one."""
    if len(found) != 1:
        return None
    file, own, text, noticed = found[0]
    function = own.function(text.lineno)
    if function is None:
        return None
    names = [called for one in noticed for called in one["names"]]
    module = next((one.module for one in situation.spots if one.file == file), {})
    tf = alias(Spot(file, text.lineno, {}, module, ""), "tensorflow")
    cause = texts_in_ops.cause(own.text(text), getattr(function, "name", "the lambda"), (*names, "a tensor")[0])
    pieces = texts_in_ops.pieces_in_ops(own, function, text, texts_in_ops.tensors(noticed), tf)
    edit = edit_of(file, own.replaced(pieces)) if pieces else None
    sure = True
    if edit is None and situation.last is not None and situation.last.function is function:
        wrap = as_python.best(situation)  # Python itself looks for that name, as the graph is built
        edit, sure = (wrap.edit, wrap.sure) if wrap is not None else (None, True)
    words = "" if edit is not None else f"{texts_in_ops.advice(tf)}."
    return Explanation(RULE, file, text.lineno, f"{cause}.", edit, words, "measured" if sure else "likely")


def _repeated(situation: Situation) -> Iterator[_Text]:
    """The texts whose words the failure repeats."""
    for one in _texts(situation):
        if all(word in situation.message for word in _words(one[2])):
            yield one


def _at(spot: Spot, situation: Situation) -> Iterator[_Text]:
    """The texts in the line that failed: `str(path).split("/")[-2]` has no such part."""
    for one in _texts(situation):
        if one[0] == spot.file and one[2].lineno <= spot.line <= (one[2].end_lineno or 0):
            yield one


def _texts(situation: Situation) -> Iterator[_Text]:
    """The texts of tensors' names, with their files and the recording's notices."""
    found: dict[tuple[str, int, int], _Text] = {}
    for (facts,) in situation.rows("SELECT facts FROM notice WHERE rule = 'printed-symbol'"):
        noticed = json.loads(facts)
        file, line = as_read(str(noticed["file"]), int(noticed["line"]))
        own = read(file)
        for text in texts_in_ops.texts_at(own, line):
            key = (file, text.lineno, text.col_offset)
            found.setdefault(key, (file, own, text, []))[3].append(noticed)
    yield from found.values()


def _words(text: ast.expr) -> Iterator[str]:
    """What a text surely has of its own: the constants of an f-string."""
    for one in ast.walk(text):
        if isinstance(one, ast.JoinedStr):
            yield from (str(part.value) for part in one.values if isinstance(part, ast.Constant))
