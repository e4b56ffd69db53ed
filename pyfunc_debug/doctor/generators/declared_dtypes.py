"""The dtypes that a call of `from_generator` declares, as they are written."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted

_DEPTH = 3


def declared_dtypes(own: Source, call: ast.Call) -> list[ast.expr] | None:
    """The dtypes of its elements, flat; None where the source does not show them.

    Args:
      own: The file that holds it.
      call: The call of `from_generator`.
    """
    return _dtypes(own, argument(call, 4, "output_signature") or argument(call, 1, "output_types"), 0)


def _dtypes(own: Source, given: ast.expr | None, depth: int) -> list[ast.expr] | None:
    if given is None or depth > _DEPTH:
        return None
    if isinstance(given, ast.Name):
        made = own.given_to(given.id)
        return _dtypes(own, made[0], depth + 1) if len(made) == 1 else None
    parts: list[ast.expr] = []
    if isinstance(given, (ast.Tuple, ast.List)):
        parts = given.elts
    elif isinstance(given, ast.Dict):
        keys = [one.value if isinstance(one, ast.Constant) else None for one in given.keys]
        if not all(isinstance(one, str) for one in keys):
            return None
        parts = [value for _, value in sorted(zip(map(str, keys), given.values), key=lambda pair: pair[0])]
    elif isinstance(given, ast.Call):
        dtype = argument(given, 1, "dtype") if pastes.last_name(given.func) == "TensorSpec" else None
        return None if dtype is None else [dtype]
    else:
        written = isinstance(given, ast.Constant) and isinstance(given.value, str)
        return [given] if written or dotted(given).rpartition(".")[2].startswith(("int", "uint", "float")) else None
    found = [_dtypes(own, one, depth + 1) for one in parts]
    return None if any(one is None for one in found) else [part for one in found if one is not None for part in one]
