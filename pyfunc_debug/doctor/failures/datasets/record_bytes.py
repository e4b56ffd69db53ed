"""Bytes that are not what the reader takes them for: compressed records, and tensors of another dtype."""

from __future__ import annotations

import ast
import os
import re

from pyfunc_debug.doctor.failures.datasets.broken_images import file_names
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.files import first_bytes, packing
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "file-read"
_RECORDS = re.compile(r"corrupted record at 0 |truncated record at 0")
_UNPACKED = re.compile(r"inflate\(\) failed with error -3")
_PARSED = re.compile(r"Type mismatch between parsed tensor \((\w+)\) and dtype \((\w+)\)")
_NAME = "TFRecordDataset"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the first bytes of a file say what it is, or TensorFlow's text the dtype that was written."""
    if (said := _PARSED.search(situation.message)) is not None:
        return each(situation, _parsed, said[1], said[2])
    packed, unpacked = _RECORDS.search(situation.message), _UNPACKED.search(situation.message)
    if situation.last is None or (packed is None and unpacked is None):
        return None
    for file, source in situation.sources():
        found = [one for one in calls(source.tree) if dotted(one.func).rpartition(".")[2] == _NAME]
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        if found:
            return _read(situation, spot, file, source, found, packed is not None) if len(found) == 1 else None
    return None


def _read(
    situation: Situation, spot: Spot, file: str, source: Source, found: list[ast.Call], packed: bool
) -> Explanation | None:
    call, names = found[0], file_names(situation)
    given = argument(call, 0, "filenames")
    value = evaluation.computed(given, spot) if given is not None else None
    names += (
        [value]
        if isinstance(value, str)
        else [one for one in value if isinstance(one, str)]
        if isinstance(value, list)
        else []
    )
    kind = argument(call, 1, "compression_type")
    for name in dict.fromkeys(names):
        head = first_bytes(name)
        packed_as = packing(head)
        if not head or (not packed_as) == packed:
            continue
        own = os.path.basename(name)
        if packed_as and kind is None:
            cause = (
                f"{own} is compressed with {packed_as}: it begins with {head[:2]!r}. The reader unpacks it if told so."
            )
            new = source.with_argument(call, f'compression_type="{packed_as}"')
            return Explanation(RULE, file, call.lineno, cause, edit_of(file, source.replaced({call: new})))
        if not packed_as and kind is not None and not packed:
            cause = f"{own} is not compressed: it begins with {head[:6]!r}, and {source.text(kind)} is asked for."
            return Explanation(RULE, file, call.lineno, cause, edit_of(file, source.replaced({kind: '""'})))
    return None


def _parsed(place: Refused, wrote: str, asked: str) -> Explanation | None:
    """`tf.io.parse_tensor(x, tf.float32)` of a tensor of int64."""
    found = place.calls_of("parse_tensor")
    given = argument(found[0], 1, "out_type") if len(found) == 1 else None
    written, wanted, tf = KERNELS.get(wrote, wrote), KERNELS.get(asked, asked), alias(place.spot, "tensorflow")
    if given is None or dotted(given).rpartition(".")[2] not in (wanted, ""):
        return None
    cause = f"the tensor was written as {written}, and {wanted} is asked for: parse_tensor converts nothing."
    new = place.spot.source.text_with(found[0], {given: f"{tf}.{written}"})
    if "string" not in (written, wanted):
        new = f"{tf}.cast({new}, {place.text(given)})"
        cause += " A cast does."
    return place.told(cause, {found[0]: new}, measured=True)
