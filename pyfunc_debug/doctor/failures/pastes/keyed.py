"""A dict that is asked for a tensor of several places: its value is an array, which cannot be a key. Each place can."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import edit_of
from pyfunc_debug.doctor.failures.pastes.map_fn_signatures import declared, map_fn, with_signature
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, lookup

_KINDS = {int: "int64", float: "float32", str: "string", bool: "bool", bytes: "string"}
"""The dtypes of values of dicts, as the other pastes declare them."""


def of_each(spot: Spot, asked: tuple[ast.expr, ast.expr, ast.Name]) -> wrapping.Wrap | None:
    """`table[x]` as a py_function that looks up each place of `x`."""
    part, table, key = asked
    tf, np, source = alias(spot, "tensorflow"), alias(spot, "numpy"), spot.source
    held, name, tensor = lookup(table, spot), key.id, spot.value(key.id)
    kinds = {type(one) for one in held.values()}
    dtype = _KINDS.get(kinds.pop()) if len(kinds) == 1 else None
    if dtype is None:
        return None
    own = dtype_of(tensor)
    decoded = "key.decode()" if own == "string" and any(isinstance(one, str) for one in held) else "key"
    plain = isinstance(part, ast.Subscript) and decoded == "key"
    look = f"{source.text(table)}.__getitem__" if plain else f"lambda key: {_with_key(part, key, decoded, source)}"
    body = f"lambda {name}: {np}.vectorize({look})({name}.numpy())"
    call = map_fn(part, spot)
    said = declared(call)
    if call is not None and said is None and own[:3] == dtype[:3]:  # what map_fn takes for granted
        dtype = own
    tout = source.text(said) if said is not None else f"{tf}.{dtype}"
    new = f"{tf}.ensure_shape({tf}.py_function({body}, [{name}], {tout}), {name}.shape)"
    if call is None or said is not None or dtype == own:
        edit = edit_of(spot.file, source.replaced({part: new}))
    else:
        edit = with_signature(spot, call, part, new, tout)
    return None if edit is None else wrapping.Wrap(edit, True)


def _with_key(part: ast.expr, key: ast.Name, text: str, source: Source) -> str:
    """The text of `table[x]` with another key."""
    whole, start = source.text(part), key.col_offset - part.col_offset
    return f"{whole[:start]}{text}{whole[start + len(key.id) :]}"
