"""What an expression of NumPy's gives for made inputs of the dtypes and shapes that are known: for Tout.

Only what has no effect is evaluated: NumPy's and SciPy's functions but those that draw, read or write, the built-in
functions that compute, and methods of arrays. Its result says the dtype, and whether it is a list; its values mean
nothing.
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor.failures.situation import Spot
from pyfunc_debug.doctor.failures.source import dotted, names
from pyfunc_debug.doctor.failures.symbols import dtype_of, is_symbolic, root_is, shape_of

_COMPUTES = frozenset(
    ("abs", "all", "any", "bool", "complex", "divmod", "enumerate", "filter", "float", "int", "len", "list", "map",
     "max", "min", "pow", "range", "reversed", "round", "set", "sorted", "sum", "tuple", "zip")
)  # fmt: skip
_LIBRARIES = ("numpy", "math", "scipy")
_EFFECTS = frozenset(
    ("random", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "save", "savez", "savez_compressed", "savetxt",
     "tofile", "dump", "seterr", "setflags", "io", "sort", "fill", "put", "itemset", "resize", "partition", "ctypeslib")
)  # fmt: skip
"""Parts of dotted names: of modules and functions that draw, read or write, and of methods that change an array."""
_DTYPES = frozenset(
    ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
     "complex64", "complex128")
)  # fmt: skip
_PLAIN = (bool, int, float, complex, str, bytes, type(None), slice)
_UNKNOWN = 3
"""A size that nothing says."""
_LARGEST = 50_000
"""Elements of a made input."""


def made_value(node: ast.expr, spot: Spot, arrays: bool = False) -> Any:
    """What an expression gives, where it can be evaluated without an effect; None where it cannot, or fails.

    Args:
      node: The expression; parts of it are the symbolic tensors of the frame.
      spot: The frame, which knows their dtypes and shapes.
      arrays: Whether arrays are in the place of the tensors: eager ones else, as a py_function gives them.
    """
    return _evaluated(node, spot, {}, arrays)


def made_return(function: ast.AST, spot: Spot) -> Any:
    """What a function of assignments and one return gives for eager tensors; None where it cannot be evaluated.

    Args:
      function: The function.
      spot: Its frame, which knows dtypes and shapes of its arguments.
    """
    if isinstance(function, ast.Lambda):
        return made_value(function.body, spot)
    return made_lines(getattr(function, "body", []), spot)


def made_lines(lines: Sequence[ast.stmt], spot: Spot, wanted: ast.expr | None = None) -> Any:
    """What some assignments in a row, evaluated one after the other, make of eager tensors.

    Args:
      lines: Assignments, and perhaps a return at their end.
      spot: The frame, which knows the tensors.
      wanted: What is asked for behind them; what is returned where it is None.
    """
    made: dict[str, Any] = {}
    for line in lines:
        value = getattr(line, "value", None)
        if isinstance(line, ast.Return):
            return None if value is None else _evaluated(value, spot, made)
        if isinstance(line, ast.Expr) and isinstance(value, ast.Constant):
            continue  # a docstring
        target = line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
        found = _evaluated(value, spot, made) if isinstance(target, ast.Name) and value is not None else None
        if found is None or not isinstance(target, ast.Name):
            return None
        made[target.id] = found
    return None if wanted is None else _evaluated(wanted, spot, made)


def _evaluated(node: ast.expr, spot: Spot, made: Mapping[str, Any], arrays: bool = False) -> Any:
    if not _computes(node, spot, made):
        return None
    given: dict[str, Any] = {}
    for name in names(node):
        value = made[name] if name in made else spot.value(name)
        if is_symbolic(value):
            value = _made(dtype_of(value), shape_of(value))
            value = value.numpy() if arrays and value is not None else value
        elif value is None:
            value = getattr(builtins, name, None) if name in _COMPUTES else None
        elif name not in made and not (_is_library(value) or _is_plain(value)):
            return None
        if value is None:
            return None
        given[name] = value
    # a copy: its places in the file are the user's, and the tree is read by others
    code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(node))), "<made>", "eval")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(code, {"__builtins__": {}}, given)  # the user's own text, of this process
    except Exception:
        return None


def _computes(node: ast.AST, spot: Spot, made: Mapping[str, Any]) -> bool:
    """Whether an expression only computes."""
    bound = {one.arg for each in ast.walk(node) if isinstance(each, ast.Lambda) for one in each.args.args} | {*made}
    for one in ast.walk(node):
        if isinstance(one, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(one, ast.Attribute) and (one.attr.startswith("_") or one.attr in _EFFECTS - {"sort"}):
            return False
        if not isinstance(one, ast.Call):
            continue
        if isinstance(one.func, ast.Name):
            if one.func.id not in _COMPUTES or spot.value(one.func.id) is not None or one.func.id in bound:
                return False
        elif isinstance(one.func, ast.Attribute):
            library = any(root_is(one.func, spot, each) for each in _LIBRARIES)
            if not library and (one.func.attr in _EFFECTS or dotted(one.func).partition(".")[0] in _modules(spot)):
                return False
        else:
            return False
    return True


def _modules(spot: Spot) -> Iterable[str]:
    return (name for name, value in (*spot.module.items(), *spot.variables.items()) if _is_module(value))


def _is_module(value: object) -> bool:
    return type(value).__name__ == "module" or type(value).__name__.endswith("Loader")


def _is_library(value: object) -> bool:
    return _is_module(value) and str(getattr(value, "__name__", "")).partition(".")[0] in _LIBRARIES


def _is_plain(value: object, deep: int = 0) -> bool:
    """Whether a value is one of Python's own, or an array: nothing of it runs a user's code."""
    if type(value) in _PLAIN or type(value).__module__ == "numpy":
        return True
    if type(value) in (list, tuple) and deep < 2:
        return len(value) < _LARGEST and all(_is_plain(one, deep + 1) for one in value)  # type: ignore[arg-type, attr-defined]
    return False


def made_dtype(made: Any) -> str | None:
    """The dtype that a py_function declares for what was made: `int64`; None where it is none of TensorFlow's."""
    import numpy as np

    if made is None or isinstance(made, (dict, set)):
        return None
    if isinstance(made, str):
        return "string"
    try:
        kind = np.asarray(made).dtype.name
    except (ValueError, TypeError):  # rows of different lengths
        return None
    of_python = type(made) is float or (isinstance(made, (list, tuple)) and all(type(one) is float for one in made))
    kind = "float32" if of_python and kind == "float64" else kind
    return kind if kind in _DTYPES else None


def _made(dtype: str, shape: tuple[int | None, ...] | None) -> Any:
    """An eager tensor; None where its rank is not known, or it holds text."""
    import numpy as np
    import tensorflow as tf

    if shape is None or dtype in ("string", "resource", "variant"):
        return None
    sizes = [_UNKNOWN if size is None else size for size in shape]
    count = math.prod(sizes)
    if count > _LARGEST:
        return None
    values = (np.arange(count) % 7 + 1).reshape(sizes)
    with tf.init_scope():
        return tf.constant(values / 2 if dtype.startswith(("float", "bfloat", "complex")) else values % 2, dtype)
