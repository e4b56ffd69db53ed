"""Bytes that are read otherwise than they were written: decode_raw of a serialized tensor, parse_tensor of raw ones.

What wrote them is in the bytes themselves: those of the tensor, or of the first record of the file.
"""

from __future__ import annotations

import ast
import re
import sys
from contextlib import suppress

from pyfunc_debug.doctor.failures.datasets.first_records import features
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, refused, value_of
from pyfunc_debug.doctor.failures.reading.shapes import refused_reshape
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, bytes_of, calls, lookup

RULE = "structure"
_UNEVEN = re.compile(r"Input to DecodeRaw has length \d+ that is not a multiple of \d+")
_NO_TENSOR = "Could not parse `serialized` as TensorProto"
_IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the bytes say what wrote them, and the line reads them as something else."""
    message = situation.message
    if _UNEVEN.search(message) is None and _NO_TENSOR not in message and refused_reshape(message) is None:
        return None
    found = [one for place in refused(situation) if (one := _told(place, situation)) is not None]
    return found[0] if len({(one.file, one.line) for one in found}) == 1 else None


def _told(place: Refused, situation: Situation) -> Explanation | None:
    source = place.spot.source
    block = source.block(place.statement) or [place.statement]
    readers = [one for part in block for one in calls(part) if _reader(one)]
    own = [one for one in readers if one in calls(place.statement)]
    if not own and _NO_TENSOR not in situation.message and _UNEVEN.search(situation.message) is None:
        own = [one for one in readers if one.lineno < place.statement.lineno]  # the reshape below is what failed
    if not own:
        return None
    kind, data = _reader(own[0]), _bytes(own[0], place, situation)
    if data is None:
        return None
    wrote, new = _written(data, kind)
    if not wrote:
        return None
    tf, text = alias(place.spot, "tensorflow"), place.text
    pieces: dict[ast.expr, str] = {}
    for one in readers:
        again, given = (data if one is own[0] else _bytes(one, place, situation)), _given(one)
        if again is None or given is None or _reader(one) != kind or _written(again, kind)[0] != wrote:
            continue
        dtype = argument(one, 1, "out_type")
        asked = text(dtype) if dtype is not None else f"{tf}.uint8"
        written = new.format(tf=tf, given=text(given), asked=asked)
        wanted = dotted(dtype).rpartition(".")[2]
        cast = new.startswith("{tf}.io.parse") and wanted and not written.endswith(f".{wanted})")
        pieces[one] = f"{tf}.cast({written}, {asked})" if cast else written
    takes = "raw numbers" if kind == "decode_raw" else "what tf.io.serialize_tensor wrote"
    cause = f"{short(text(_given(own[0]) or own[0]), 40)} holds {wrote}: {kind} takes {takes}."
    edit = Edit(place.spot.file, *source.kept_lines(pieces))
    return Explanation(RULE, place.spot.file, own[0].lineno, cause, edit)


def _given(call: ast.Call) -> ast.expr | None:
    return argument(call, 0, "serialized" if _reader(call) == "parse_tensor" else "input_bytes")


def _reader(call: ast.Call) -> str:
    """Which of the two functions a call calls; empty for another."""
    name = dotted(call.func).rpartition(".")[2]
    return name if name in ("decode_raw", "parse_tensor") else ""


def _bytes(call: ast.Call, place: Refused, situation: Situation) -> bytes | None:
    """The bytes that a call is given: those of its tensor, or of the feature of that name in the first record."""
    given = _given(call)
    if given is None:
        return None
    owner = lookup(given.value, place.spot) if isinstance(given, ast.Subscript) else None
    key = given.slice.value if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant) else None
    data = bytes_of(owner.get(key)) if isinstance(owner, dict) else bytes_of(value_of(given, place.spot))
    if data is not None or not isinstance(key, str):
        return data
    for record in features(situation):
        values = list(record[key].bytes_list.value) if key in record else []
        if len(values) == 1:
            return bytes(values[0])
    return None


def _written(data: bytes, reader: str) -> tuple[str, str]:
    """What wrote some bytes, and the call that reads them; empty where the reader is right, or nothing is known."""
    image = next((name for mark, name in _IMAGES.items() if data.startswith(mark)), "")
    if image:
        return f"a {image.upper()} image", f"{{tf}}.io.decode_{image}({{given}})"
    tensor = _tensor(data)
    if reader == "parse_tensor" and not tensor:
        return "raw bytes, as numpy's tobytes() gives them", "{tf}.io.decode_raw({given}, {asked})"
    if reader == "decode_raw" and tensor:
        return (
            f"a tensor of {tensor} that tf.io.serialize_tensor wrote",
            f"{{tf}}.io.parse_tensor({{given}}, {{tf}}.{tensor})",
        )
    return "", ""


def _tensor(data: bytes) -> str:
    """The dtype of the tensor that some bytes are; empty where they are none."""
    tensorflow = sys.modules["tensorflow"]
    with suppress(Exception):
        found = type(tensorflow.make_tensor_proto(0)).FromString(data)
        dtype = tensorflow.dtypes.as_dtype(found.dtype)
        sizes = [one.size for one in found.tensor_shape.dim]
        if (
            found.tensor_content
            and len(found.tensor_content) == dtype.size * tensorflow.TensorShape(sizes).num_elements()
        ):
            return str(dtype.name)
        return str(dtype.name) if found.dtype and not found.tensor_content and found.ByteSize() == len(data) else ""
    return ""
