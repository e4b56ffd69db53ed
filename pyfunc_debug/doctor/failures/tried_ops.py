"""TensorFlow's ops in the place of Python and NumPy, tried on made inputs: whether both give the same.

Only what computes is run: NumPy's, math's and TensorFlow's functions on arrays that are made here, and on plain numbers
and arrays of the user's. No function of theirs runs, and nothing that draws, reads or writes.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from pyfunc_debug.doctor.failures.situation import Spot
from pyfunc_debug.doctor.failures.source import dotted, names
from pyfunc_debug.doctor.failures.symbols import dtype_of, shape_of, symbolic_parts

_COMPUTES = ("numpy", "math", "tensorflow")
_BUILTINS = {
    "abs", "bool", "enumerate", "float", "int", "len", "list", "max", "min", "range", "reversed", "round", "sorted",
    "sum", "tuple", "zip",
}  # fmt: skip
_DOES_MORE = re.compile(
    r"(^|\.)(io|random|print|\w*py_func\w*|numpy_function|Variable|data|keras|summary|saved_model|train|function|config|"
    r"load\w*|save\w*|open\w*|file|fromfile|tofile|genfromtxt|memmap|raw_ops|debugging|distribute|cond|while_loop|map_fn|"
    r"vectorize|frompyfunc|apply_\w+|fromfunction|set_\w+|ctypeslib|f2py|test|testing|experimental\.(?!numpy)\w+)(\.|$)"
)
_SIZE, _MOST = 3, 300_000
"""For a size that is not known; and the elements of an input that is not made."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def differs(node: ast.expr, new: str, spot: Spot) -> bool:
    """Whether an expression and its text in ops give other values, or another kind of numbers, on made inputs.

    Args:
      node: The user's expression.
      new: The text in ops.
      spot: Where it ran: knows dtypes and shapes of its tensors.

    Returns:
      False too where it cannot be tried.
    """
    numpy, tensorflow = sys.modules.get("numpy"), sys.modules.get("tensorflow")
    if numpy is None or tensorflow is None:
        return False
    parts = symbolic_parts(node, spot)
    made = _names(node, new, spot, set(parts))
    if made is None or not parts or not all(name.isidentifier() for name in parts):
        return False
    try:
        old_code = compile(ast.unparse(node), "<tried>", "eval")
        new_code = compile(new, "<tried>", "eval")
        with tensorflow.init_scope(), warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if not tensorflow.executing_eagerly():
                return False
            for number in range(2):
                arrays = {name: _array(one, number, numpy) for name, one in parts.items()}
                if any(one is None for one in arrays.values()):
                    return False
                tensors = {name: tensorflow.constant(one) for name, one in arrays.items()}
                old = _first(old_code, made, (arrays, tensors))
                if old is not None and _other(old, _first(new_code, made, (tensors,)), node, numpy):
                    return True
    except Exception:  # what cannot be tried is not refuted
        return False
    return False


def _first(code: Any, made: Mapping[str, Any], given: tuple[Mapping[str, Any], ...]) -> Any:
    """What an expression gives for the first of these values that it takes; None for none of them."""
    known = {name: getattr(builtins, name) for name in (*_BUILTINS, "__import__")}  # which NumPy's methods in C ask for
    for values in given:
        try:
            return eval(code, {"__builtins__": known, **made, **values})
        except Exception:  # it takes tensors, perhaps
            continue
    return None


def _other(old: Any, new: Any, node: ast.expr, numpy: Any) -> bool:
    """Whether a result is another than the user's. None is that of ops that failed."""
    if new is None:
        return True
    try:
        before, after = (numpy.asarray(one) for one in (old, new))
    except Exception:
        return False
    if before.dtype.kind not in "biufc" or after.dtype.kind not in "biufc":
        return False
    if before.shape != after.shape:
        return True
    if type(old) not in (bool, int, float, list, tuple):  # a number of Python's takes any dtype
        kinds = ["i" if one.dtype.kind == "u" else one.dtype.kind for one in (before, after)]
        if kinds[0] != kinds[1]:
            return True
        own = any(isinstance(one, ast.Name) and one.id in ("int", "float") for one in ast.walk(node))
        if before.dtype.itemsize != after.dtype.itemsize and not own:
            return True
    return not bool(numpy.allclose(before, after, rtol=1e-3, atol=1e-5, equal_nan=True))


def _array(tensor: Any, number: int, numpy: Any) -> Any:
    """Values for a tensor, by its dtype and shape; None where these are not known or too large."""
    shape, dtype = shape_of(tensor), dtype_of(tensor)
    if shape is None:
        return None
    sizes = tuple(_SIZE if one is None else one for one in shape)
    if numpy.prod(sizes, dtype=float) > _MOST:
        return None
    random = numpy.random.default_rng(number)  # a generator of its own: the program's numbers stay its own
    if "float" in dtype:
        found = random.uniform(0.1, 0.9, sizes) if number == 0 else random.normal(size=sizes)
    elif "int" in dtype:
        found = random.integers(0, 3, sizes)
    elif dtype == "bool":
        found = random.integers(0, 2, sizes)
    else:
        return None
    return numpy.asarray(found).astype(dtype)


def _names(node: ast.expr, new: str, spot: Spot, tensors: set[str]) -> dict[str, Any] | None:
    """What the names of both texts stand for, without the tensors; None where something is more than a value."""
    found: dict[str, Any] = {}
    for tree in (node, ast.parse(new, mode="eval").body):
        for name in names(tree):
            if name in tensors or name in found:
                continue
            value = spot.value(name)
            if value is None and name in _BUILTINS:
                continue
            module = str(getattr(value, "__name__", "")) if type(value).__name__ in ("module", *_LOADERS) else ""
            if module.partition(".")[0] in _COMPUTES and module in sys.modules:
                found[name] = sys.modules[module]
            elif name == "tf" and value is None:
                found[name] = sys.modules["tensorflow"]
            elif _is_plain(value):
                found[name] = value
            else:
                return None
        for one in ast.walk(tree):
            if isinstance(one, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return None
            if isinstance(one, (ast.Attribute, ast.Name)) and _DOES_MORE.search(dotted(one)):
                return None
            if isinstance(one, ast.Attribute) and one.attr.startswith("_"):
                return None
    return found


_LOADERS = ("LazyLoader", "KerasLazyLoader", "_KerasLazyLoader")


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return type(value) in (list, tuple) and len(value) < 100 and all(map(_is_plain, value))
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return bool(value.dtype.kind in "biufc" and value.size <= _MOST)
    return value is not None and (type(value) in _PLAIN or type(value).__module__ == "numpy")
