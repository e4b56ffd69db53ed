"""Bytes that are read as another dtype than they were written with: there are twice as many values, or a quarter."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each
from pyfunc_debug.doctor.failures.reading.shapes import refused_reshape
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup

RULE = "structure"
_READERS = ("decode_raw", "frombuffer", "fromstring", "fromfile")
_SMALLEST, _LARGEST = 1e-30, 1e15
_OF_TEXTS = "'out_type' has DataType string"
_PARTIAL = "buffer size must be a multiple of element size"
_SIZES = {
    "uint8": 1, "int8": 1, "float16": 2, "int16": 2, "uint16": 2, "float32": 4, "int32": 4, "float64": 8, "int64": 8,
}  # fmt: skip
_FLOATS, _WHOLE = {2: "float16", 4: "float32", 8: "float64"}, {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if all bytes make the values that the shape asks for, as another dtype."""
    found = refused_reshape(situation.message)
    if _PARTIAL in situation.message:
        return _partial(situation)
    if found is None:
        return _texts(situation) if _OF_TEXTS in situation.message else None
    have, wanted = found
    for file, source in situation.sources():
        spot = next((one for one in reversed(situation.spots) if one.file == file), situation.last)
        around: ast.AST = source.tree
        if situation.body and spot is not None and spot.function is not None:
            around = spot.function
        read = _readers(around)
        if len(read) == 1 and spot is not None and wanted:
            return _explanation(read[0], source, spot, file, (have, wanted))
    return each(situation, _of_line, have, wanted) if wanted else None


def _partial(situation: Situation) -> Explanation | None:
    """`np.frombuffer(data, np.float32)` of 10 bytes."""
    spot, statement = situation.last, situation.statement
    read = _readers(statement) if statement is not None else []
    if spot is None or len(read) != 1 or not read[0].args:
        return None
    dtype = argument(read[0], 1, "dtype")
    name = dotted(dtype).rpartition(".")[2] if dtype is not None else "float64"
    if name not in _SIZES:
        return None
    data = lookup(read[0].args[0], spot)
    text, size = short(spot.source.text(read[0].args[0]), 40), _SIZES[name]
    has = f"has {len(data)} bytes" if isinstance(data, bytes) else "has some bytes more or less"
    cause = f"{text} {has}, and {name} takes {size} for each number: they were written with another dtype, or with "
    cause += "a header."
    fits = [one for one in _SIZES if isinstance(data, bytes) and len(data) % _SIZES[one] == 0 and _SIZES[one] < size]
    advice = f"Read them as they were written{f' ({fits[0]} would fit)' if fits else ''}; offset= leaves a header out."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _readers(around: ast.AST) -> list[ast.Call]:
    return [one for one in calls(around) if dotted(one.func).rpartition(".")[2] in _READERS]


def _of_line(place: Refused, have: int, wanted: int) -> Explanation | None:
    """Of several readers the one that the line reshapes, in it or by its name."""
    own, source = place.spot.function, place.spot.source
    shaped = place.calls_of("reshape")
    tensor = argument(shaped[0], 0, "tensor") if len(shaped) == 1 else None
    made: list[ast.AST] = [
        one.value for one in (ast.walk(own) if own is not None else ())
        if isinstance(one, ast.Assign) and isinstance(tensor, ast.Name) and tensor.id in map(dotted, one.targets)
    ]  # fmt: skip
    around = made[0] if len(made) == 1 else tensor
    read = _readers(around) if around is not None else []
    return _explanation(read[0], source, place.spot, place.spot.file, (have, wanted)) if len(read) == 1 else None


def _texts(situation: Situation) -> Explanation | None:
    """`tf.io.decode_raw(x, tf.string)`: it has no strings to give."""
    spot, statement = situation.last, situation.statement
    read = [one for one in calls(statement) if dotted(one.func).endswith("decode_raw")] if statement is not None else []
    if spot is None or len(read) != 1:
        return None
    cause = "decode_raw makes numbers of bytes, and out_type cannot be a string. One text needs no decoding."
    advice = (
        "Of an array of texts, write each to the list, `value=[one.encode() for one in texts]`, and read "
        f"{alias(spot, 'tensorflow')}.io.VarLenFeature({alias(spot, 'tensorflow')}.string)."
    )
    return Explanation(RULE, spot.file, read[0].lineno, cause, None, advice)


def _named(source: Source, size: int, but: str) -> str | None:
    """The one dtype of as many bytes that the file names elsewhere, as it does where it writes them."""
    words = {one.attr for one in ast.walk(source.tree) if isinstance(one, ast.Attribute)}
    words |= {one.value for one in ast.walk(source.tree) if isinstance(one, ast.Constant) and type(one.value) is str}
    found = [one for one, bytes_ in _SIZES.items() if bytes_ == size and one in words and one != but]
    return found[0] if len(found) == 1 else None


def _is_likely(data: bytes, kind: str) -> bool:
    """Whether bytes, read as such a dtype, are numbers as programs have them: those of another dtype seldom are."""
    import numpy as np

    values = np.frombuffer(data[: len(data) // _SIZES[kind] * _SIZES[kind]], kind).astype(float)
    sizes = np.abs(values[values != 0])
    return bool(np.isfinite(values).all() and (sizes < _LARGEST).all() and (sizes > _SMALLEST).all())


def _explanation(call: ast.Call, source: Source, spot: Spot, file: str, sizes: tuple[int, int]) -> Explanation | None:
    have, wanted = sizes
    dtype = argument(call, 1, "out_type" if dotted(call.func).endswith("decode_raw") else "dtype")
    text = dtype.value if isinstance(dtype, ast.Constant) else dotted(dtype)
    name = str(text).rpartition(".")[2] if dtype is not None else "float64"
    size, rest = divmod(have * _SIZES.get(name, 0), wanted)
    floats = "float" in name
    kind = (_FLOATS if floats and size > 1 else _WHOLE).get(size)
    if name in ("uint8", "int8"):
        kind = {**_FLOATS, 2: "int16"}.get(size)
    named = _named(source, size, name)
    data = lookup(call.args[0], spot) if call.args else None
    both = [one for one in (named, kind, _FLOATS.get(size), _WHOLE.get(size)) if one is not None and one != name]
    if isinstance(data, (bytes, memoryview)):
        kind = next((one for one in both if _is_likely(bytes(data), one)), kind)
    else:
        kind = named if named is not None and (not floats or "float" in named) else kind
    if rest or kind is None or kind == name:
        return None
    if isinstance(data, bytes) and len(data) != have * _SIZES[name]:
        return None  # a part of it is asked for
    cause = (
        f"{have} values of {name} are {have * _SIZES[name]} bytes, and {wanted} are asked for: of {size} byte"
        f"{'s' * (size > 1)} each, as {kind} has. So they were written, if the shape is right."
    )
    np, tensors = alias(spot, "numpy"), dotted(call.func).endswith("decode_raw")
    module = alias(spot, "tensorflow") if tensors else np
    pieces: dict[ast.expr, str] = {dtype: f"{module}.{kind}"} if dtype is not None else {}
    new = source.text_with(call, pieces) if pieces else source.with_argument(call, f"{module}.{kind}")
    if floats:  # what follows may count on it
        new = f"{module}.cast({new}, {module}.{name})" if tensors else f"{new}.astype({np}.{name})"
    edit = edit_of(file, source.replaced({call: new}))
    return Explanation(RULE, file, call.lineno, cause, edit, "", "likely") if edit is not None else None
