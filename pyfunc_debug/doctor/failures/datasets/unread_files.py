"""The name of a file where an op decodes the file's bytes: `decode_png(path)` without `read_file`."""

from __future__ import annotations

import ast
import os
import re

from pyfunc_debug.doctor.failures.datasets.broken_images import file_names
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, bytes_of, lookup

RULE = "file-read"
_SAID = re.compile(
    r"Unknown image file format|Input is empty|Invalid (?:PNG|GIF|BMP|WebP|JPEG) data|jpeg::Uncompress failed"
    r"|Header mismatch: Expected RIFF|Incomplete BMP"
)
_DECODE = re.compile(r"decode_(?:image|jpeg|png|gif|bmp|webp|and_crop_jpeg|wav)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what an op decodes is the name of a file that is there."""
    if not _SAID.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        for call in _decoding(statement) if statement is not None else ():
            name = _text(lookup(call.args[0], spot))
            if name is not None and os.path.isfile(name):
                return _told(spot.file, spot.source, call, name, spot)
    names = [] if situation.body else file_names(situation)
    there = [one for one in names if os.path.isfile(one)]
    for file, source in situation.sources() if there and len(there) == len(names) else ():
        for call in _decoding(source.tree):
            if _is_element(call, source):
                return _told(file, source, call, there[0], situation.last)
    return None


def _decoding(node: ast.AST) -> list[ast.Call]:
    return [
        one for one in ast.walk(node)
        if isinstance(one, ast.Call) and one.args and _DECODE.fullmatch(dotted(one.func).rpartition(".")[2])
    ]  # fmt: skip


def _is_element(call: ast.Call, source: Source) -> bool:
    """Whether a function that a map takes decodes its own parameter, as it is given."""
    function = source.function(call.lineno)
    lambdas = [one for one in source.around(call) if isinstance(one, ast.Lambda)]
    function = lambdas[0] if lambdas else function
    given = call.args[0]
    if function is None or not isinstance(given, ast.Name) or given.id not in parameters(function):
        return False
    name = getattr(function, "name", None)
    mapped = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "map" and one.args
    ]  # fmt: skip
    taken = any(one.args[0] is function or (name and dotted(one.args[0]) == name) for one in mapped)
    stored = any(isinstance(one, ast.Name) and one.id == given.id and isinstance(one.ctx, ast.Store)
                 for one in ast.walk(function))  # fmt: skip
    return taken and not stored


def _text(value: object) -> str | None:
    """The text of a str, bytes, or an eager tensor of one."""
    data = bytes_of(value)
    return data.decode("utf-8", "replace") if data is not None else value if type(value) is str else None


def _told(file: str, source: Source, call: ast.Call, name: str, spot: Spot | None) -> Explanation:
    given = source.text(call.args[0])
    op = dotted(call.func)
    tf = alias(spot, "tensorflow") if spot is not None else "tf"
    edit = edit_of(file, source.replaced({call.args[0]: f"{tf}.io.read_file({given})"}))
    shown = "/".join(name.split(os.sep)[-2:])
    cause = (
        f"{given} is the name of a file ({shown}), and {op} takes the bytes that are in the file. read_file gives them."
    )
    return Explanation(RULE, file, call.lineno, cause, edit)
