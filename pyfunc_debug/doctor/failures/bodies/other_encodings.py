"""Bytes that are not UTF-8 where Python reads text: another encoding, or something else than text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "file-read"
_NO_TEXT = {
    b"\xff\xd8\xff": "a JPEG image", b"\x89PNG": "a PNG image", b"GIF8": "a GIF image", b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip file", b"\x93NUMPY": "an array of NumPy's", b"\x89HDF": "an HDF5 file", b"%PDF": "a PDF file",
}  # fmt: skip
"""How files begin that are not text."""
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_READS = ("read_csv", "read_table", "read_json")
_AROUND = 20
"""Bytes of a word, at most, on each side of the one that is not UTF-8."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if bytes were decoded by another encoding than they were written in."""
    error, spot = situation.inner, situation.last
    if not isinstance(error, UnicodeDecodeError) or spot is None or error.encoding not in ("utf-8", "ascii"):
        return None
    data = bytes(error.object)
    kind = next((said for begins, said in _NO_TEXT.items() if data.startswith(begins)), None)
    if kind is not None:
        cause = f"what is decoded here is not text: its {len(data):,} bytes begin as {kind} does."
        return Explanation(RULE, spot.file, spot.line, cause, None, "Read it by what it is, not by `decode`.")
    encoding, word = _encoding(data, error.start)
    if encoding is None:
        return None
    cause = (
        f"this text is not {error.encoding.upper()}: its byte 0x{data[error.start]:02x} is not a letter there. "
        f"In {encoding} it reads {word!r}."
    )
    for source, call in _decoding(spot):
        new = _with_encoding(source, call, encoding)
        edit = edit_of(spot.file, source.replaced({call: new})) if new else None
        if edit is not None:
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    return Explanation(RULE, spot.file, spot.line, cause, None, f'Read it with encoding="{encoding}".', "likely")


def _encoding(data: bytes, at: int) -> tuple[str | None, str]:
    """An encoding in which the bytes are letters, and the word around the one that is not UTF-8."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark) and len(data) % 2 == 0:
            return encoding, data[:40].decode(encoding, "replace")
    first = max(at - _AROUND, 0)
    for encoding in ("cp1252", "latin-1"):
        try:
            before, after = data[first:at].decode(encoding), data[at : at + _AROUND].decode(encoding)
        except UnicodeDecodeError:
            continue
        begun = before.rpartition(" ")[2] if before.isprintable() else ""
        word = begun + next(iter(after.split()), "")
        if word and word.isprintable():
            return encoding, word
    return None, ""


def _decoding(spot: Spot) -> Iterator[tuple[Source, ast.Call]]:
    """What decodes in the line that failed; else the one call of its file that opens text."""
    source = spot.source
    statement = source.statement(spot.line)
    for call in calls(statement) if statement is not None else ():
        yield source, call
    function = spot.function
    for place in (function, source.tree):
        opened = [one for one in calls(place) if _opens(one)] if place is not None else []
        if len(opened) == 1:
            yield source, opened[0]


def _opens(call: ast.Call) -> bool:
    mode = argument(call, 1, "mode")
    text = mode is None or (isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "b" not in mode.value)
    return dotted(call.func) in ("open", "io.open", "codecs.open") and text


def _with_encoding(source: Source, call: ast.Call, encoding: str) -> str:
    """The call that decodes, in another encoding; "" of a call that does not."""
    name, said = dotted(call.func).rpartition(".")[2], f'"{encoding}"'
    named = any(one.arg in ("encoding", None) for one in call.keywords)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "decode" and not named:
        given = [said, *map(source.text, call.args[1:])]
        return f"{source.text(call.func)}({', '.join(given)})"
    if (_opens(call) and len(call.args) < 4 and not named) or (name in _READS and not named):
        return source.with_argument(call, f"encoding={said}")
    return ""
