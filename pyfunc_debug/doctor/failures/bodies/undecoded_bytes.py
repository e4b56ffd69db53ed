"""`np.frombuffer` of a whole file, PNG or JPEG or .npy: its bytes are a format's, and not yet the numbers in it."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, bytes_of, calls, lookup

_IMAGES = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"BM": "BMP"}
_OTHERS = {b"\x93NUMPY": ".npy", b"PK\x03\x04": "zip or .npz", b"\x1f\x8b": "gzip", b"\x89HDF": "HDF5", b"RIFF": "WAV"}
_SAID = ("cannot reshape array of size", "buffer size must be a multiple of element size", "could not be broadcast")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the body failed on numbers that are the bytes of such a file."""
    spot = situation.last
    if spot is None or not situation.body or not any(one in situation.message for one in _SAID):
        return None
    within = spot.function if spot.function is not None else spot.source.tree
    for call in calls(within):
        if dotted(call.func).rpartition(".")[2] not in ("frombuffer", "fromstring") or not call.args:
            continue
        given = call.args[0]
        content = _content(given, spot)
        kinds = {**_IMAGES, **_OTHERS}
        kind = next((name for begin, name in kinds.items() if content is not None and content.startswith(begin)), "")
        if not kind:
            continue
        text = spot.source.text(given)
        cause = f"{text} is the content of a {kind} file, which is packed: frombuffer takes its bytes for the numbers."
        tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
        new = ""
        if kind in _IMAGES.values():
            new = f"{tf}.io.decode_image({text}, expand_animations=False).numpy()"
            cause += " decode_image unpacks it."
        elif kind == ".npy":
            new = f'{np}.load(__import__("io").BytesIO({text}))'
        edit = edit_of(spot.file, spot.source.replaced({call: new})) if new else None
        advice = "" if edit else f"Read it with what opens {kind} files."
        return Explanation(RULE, spot.file, call.lineno, cause, edit, advice)
    return None


def _content(node: ast.expr, spot: Spot) -> bytes | None:
    """The bytes that a name stands for, or an eager tensor's."""
    inside = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    return bytes_of(lookup(inside, spot))
