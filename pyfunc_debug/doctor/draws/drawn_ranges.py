"""From where to where a draw of random numbers goes, as far as its line says that in numbers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted

_WHOLE = ("int", "int8", "int16", "int32", "int64", "uint8")
_FRACTIONS = ("rand", "random", "random_sample", "ranf", "sample")


@dataclass(frozen=True)
class Drawn:
    """A draw: its ends, both of which it takes if it is of whole numbers; without the upper one otherwise.

    Attributes:
      call: The call.
      low, high: The ends.
      whole: Whether it gives whole numbers.
      many: Whether it gives an array.
      upper: The argument that is the upper end; None where it is not written.
      closed: Whether the upper end, as it is written, counts.
    """

    call: ast.Call
    low: float
    high: float
    whole: bool
    many: bool = False
    upper: ast.expr | None = None
    closed: bool = False


def drawn(own: Source, known: Mapping[str, str], call: ast.Call) -> Drawn | None:
    """The range of a draw of NumPy's, Python's or TensorFlow's; None for what is none, or has no written ends.

    Args:
      own: The file.
      known: What it imports.
      call: A call in it.
    """
    if any(one.arg is None for one in call.keywords) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    module, _, name = _full(own, known, call.func).rpartition(".")
    if module == "tensorflow.random":
        return _of_tensorflow(call) if name == "uniform" else None
    if module not in ("numpy.random", "random"):
        return None
    python = module == "random"
    if name in _FRACTIONS:
        plain = not call.args and not call.keywords
        return Drawn(call, 0, 1, whole=False) if plain and (name in ("random", "rand") or not python) else None
    if name == "uniform":
        low, high = argument(call, 0, "low" if not python else "a"), argument(call, 1, "high" if not python else "b")
        many = not python and _is_sized(call)
        if python and (low is None or high is None):
            return None
        ends = _number(low, 0.0), _number(high, 1.0)
        return None if None in ends or many else Drawn(call, ends[0] or 0.0, ends[1] or 0.0, whole=False)
    if name == "choice":
        return _of_one(call, python)
    if name in ("randint", "integers", "randrange"):
        return _of_whole(call, name, python)
    return None


def _of_whole(call: ast.Call, name: str, python: bool) -> Drawn | None:
    closed = python and name == "randint"
    if any(one.arg == "endpoint" for one in call.keywords) or (name == "randrange" and len(call.args) > 2):
        return None
    low, high = argument(call, 0, "a" if closed else "low"), argument(call, 1, "b" if closed else "high")
    if isinstance(high, ast.Constant) and high.value is None:
        return None
    if high is None:
        low, high = None, low
    ends = _number(low, 0.0), _number(high, None)
    if ends[0] is None or ends[1] is None or (closed and low is None):
        return None
    last = ends[1] if closed else ends[1] - 1
    upper = high if isinstance(high, ast.expr) else None
    many = not python and _is_sized(call)
    return Drawn(call, ends[0], last, True, many, upper, closed) if last >= ends[0] else None


def _of_one(call: ast.Call, python: bool) -> Drawn | None:
    """`choice([0])`."""
    given = call.args[0] if call.args else None
    if isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) == 1:
        value = _number(given.elts[0], None)
        many = len(call.args) > 1 or bool(call.keywords)
        return Drawn(call, value, value, True, many) if value is not None and not (many and python) else None
    return None


def _of_tensorflow(call: ast.Call) -> Drawn | None:
    shape, dtype = argument(call, 0, "shape"), argument(call, 3, "dtype")
    low, high = argument(call, 1, "minval"), argument(call, 2, "maxval")
    kind = "float32" if dtype is None else pastes.last_name(dtype) if isinstance(dtype, ast.expr) else ""
    ends = _number(low, 0.0), _number(high, 1.0)
    many = not isinstance(shape, (ast.List, ast.Tuple)) or bool(shape.elts)
    if ends[0] is None or ends[1] is None or not kind:
        return None
    if kind in _WHOLE:
        if high is None:
            return None
        return Drawn(call, ends[0], ends[1] - 1, True, many, high) if ends[1] > ends[0] else None
    return Drawn(call, ends[0], ends[1], False, many) if "float" in kind and not many else None


def _is_sized(call: ast.Call) -> bool:
    return len(call.args) > 2 or any(one.arg == "size" for one in call.keywords)


def _full(own: Source, known: Mapping[str, str], func: ast.expr) -> str:
    """`numpy.random.integers` of `rng.integers`, where the file makes `rng` as a generator."""
    head, _, rest = dotted(func).partition(".")
    if head in known:
        return f"{known[head]}.{rest}".rstrip(".").replace("tensorflow.compat.v2", "tensorflow")
    made = pastes.assigned(own.tree, head) if rest and "." not in rest else []
    names = {pastes.last_name(one.func) if isinstance(one, ast.Call) else "" for one in made}
    if names and names <= {"default_rng", "RandomState"}:
        return f"numpy.random.{rest}"
    return f"random.{rest}" if names == {"Random"} else ""


def _number(node: object, default: float | None) -> float | None:
    """A number that is written out, perhaps with a sign."""
    if node is None:
        return default
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    known = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return sign * float(node.value) if isinstance(node, ast.Constant) and known else None  # type: ignore[arg-type]
