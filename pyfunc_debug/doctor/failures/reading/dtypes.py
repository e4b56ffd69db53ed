"""A guess at what a Python function or expression returns: the dtypes for `Tout`. Reads source, runs nothing."""

from __future__ import annotations

import ast
import itertools
import re
from typing import Any

from pyfunc_debug.doctor.failures.reading.made_values import DTYPES, made_dtype, made_return
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_symbolic, item, lookup, root_is

_FIRST = {
    "broadcast_to", "concat", "concatenate", "expand_dims", "gather", "pad", "repeat", "reshape", "reverse", "roll",
    "slice", "split", "squeeze", "stack", "tile", "transpose", "unstack",
}  # fmt: skip
"""Functions that keep the dtype of what they are given first: the rest are sizes and places."""
KERNELS = {"float": "float32", "double": "float64", "half": "float16", "int64": "int64", "int32": "int32"}
"""What TensorFlow's texts of ops call a dtype, and its name in Python."""
_KNOWN = {*DTYPES, "string"}
_TEXT = {
    "decode", "lower", "upper", "strip", "join", "read", "replace", "format", "basename", "dirname", "splitext", "sub",
}  # fmt: skip
_SAME = {
    "numpy", "copy", "flip", "fliplr", "flipud", "rot90", "sort", "reshape", "ravel", "flatten",
    "transpose", "clip", "abs",
    "asarray", "array", "roll", "squeeze", "expand_dims", "concatenate", "stack", "where", "maximum", "minimum", "pad",
    "max", "min", "sum", "tile", "repeat", "ascontiguousarray", "cumsum", "round", "square", "diff", "identity",
}  # fmt: skip
_SUMS = {"sum", "cumsum"}
"""NumPy adds integers in 64 bits."""
_FLOATS = {
    "mean", "std", "var", "sqrt", "exp", "log", "log1p", "sin", "cos", "tan", "tanh", "median", "norm", "percentile",
    "rand", "randn", "normal", "uniform", "linspace", "float", "corrcoef", "average",
}  # fmt: skip
_FILLED = {"zeros", "ones", "empty", "eye", "identity"}
_IMAGES = {"imread", "imdecode"}
_WHOLE = {"len", "index", "int", "argmax", "argmin", "argsort", "count_nonzero", "bincount", "ord", "hash"}


_SPECTRA = {"stft", "rfft", "rfft2d", "rfft3d"}
"""Ops that make complex numbers of real ones."""
_OPS = {
    **dict.fromkeys(("decode_png", "decode_jpeg", "decode_image", "decode_bmp", "decode_gif"), "uint8"),
    **dict.fromkeys(("read_file", "encode_png", "encode_jpeg", "serialize_tensor", "as_string"), "string"),
    **dict.fromkeys(("resize_with_pad", "to_number", "one_hot", "per_image_standardization"), "float32"),
    **dict.fromkeys(("shape", "size", "rank", "length", "unicode_decode"), "int32"),
    **dict.fromkeys(("to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong"), "int64"),
}  # fmt: skip
"""Ops whose result has a dtype of its own, where they are not asked for another one."""
_NARROW = {"uint8", "int8", "uint16", "int16"}
"""Whole numbers that TensorFlow divides as float32 (`tf.math.truediv`), and NumPy as float64."""
_NEAREST = re.compile(r"nearest", re.IGNORECASE)
_DRAWN = {"choice", "permutation", "randint"}
_LOOKED_AT = 1000


class Guess:
    """Guesses dtypes in one of the user's frames.

    Args:
      spot: The frame: it knows the dtypes of symbolic variables.
      assigned: What the function's names are assigned, where `of` is asked for a part of it.
      seen: Names that are being looked at: a function that calls itself says nothing.
    """

    def __init__(
        self, spot: Spot, assigned: dict[str, ast.expr] | None = None, seen: frozenset[str] = frozenset()
    ) -> None:
        self._spot = spot
        self._tf = alias(spot, "tensorflow")
        self._seen = set(seen)
        self._assigned = assigned or {}
        self._steps: dict[str, list[ast.expr]] = {}
        self.lists = False
        """Whether `returned` met a list: for one dtype, a py_function takes the first of it and drops the rest."""

    def returned(self, function: Function) -> tuple[list[str | None], bool]:
        """What a function returns.

        Returns:
          One text such as `tf.float32` a value, None where nothing is known; and whether it returns a tuple.
        """
        made = made_return(function, self._spot)
        if made is not None and not isinstance(made, tuple) and (kind := made_dtype(made)) is not None:
            self.lists = isinstance(made, list)
            return [f"{self._tf}.{kind}"], False
        if isinstance(function, ast.Lambda):
            value: ast.expr | None = function.body
        else:
            self._assigned, self._steps = assignments(function), _steps(function)
            found = [one for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]
            value = found[-1].value if found else None
        if value is None:
            return [], True
        if isinstance(value, ast.Name) and isinstance(self._assigned.get(value.id), ast.Tuple):
            value = self._assigned[value.id]
        if isinstance(value, (ast.Tuple, ast.List)) and (isinstance(value, ast.Tuple) or len(value.elts) > 1):
            return [self.of(one) for one in value.elts], True
        return [self.of(value)], False

    def of(self, node: ast.expr) -> str | None:
        """The dtype of an expression, as it is written: `tf.float32`."""
        found = self._of(node)
        return None if found is None else f"{self._tf}.{found}"

    def _of(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Constant):
            return {str: "string", bytes: "string", bool: "bool", int: "int64", float: "float32"}.get(type(node.value))
        if isinstance(node, (ast.List, ast.Tuple)):
            return next((found for found in map(self._of, node.elts) if found is not None), None)
        if isinstance(node, ast.JoinedStr):
            return "string"
        if isinstance(node, (ast.Compare, ast.BoolOp)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return "bool"
        if isinstance(node, ast.UnaryOp):
            return self._of(node.operand)
        if isinstance(node, ast.BinOp):
            return self._both(node)
        if isinstance(node, ast.IfExp):
            return self._of(node.body)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Attribute):
            return dtype_of(lookup(node, self._spot)) or None if is_symbolic(lookup(node, self._spot)) else None
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _name(self, node: ast.Name) -> str | None:
        value = self._spot.value(node.id)
        steps = self._steps.get(node.id, [])
        if len(steps) > 1:  # `x = decode(x)`, `x = resize(x)`: each takes what the one before made
            self._steps[node.id] = steps[:-1]
            found = self._of(steps[-1])
            self._steps[node.id] = steps
            if found is not None:
                return found
        if node.id in self._assigned and node.id not in self._seen:
            self._seen.add(node.id)
            found = self._of(self._assigned[node.id])
            self._seen.discard(node.id)
            if found is not None:
                return found
        if is_symbolic(value):
            return dtype_of(value)
        return _of_value(value)

    def _both(self, node: ast.BinOp) -> str | None:
        left, right = (None if isinstance(one, ast.Constant) else self._of(one) for one in (node.left, node.right))
        found = next((one for one in (left, right) if one is not None and "float" in one), left or right)
        if found is None and isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            found = self._of(node.left)
        if isinstance(node.op, ast.Div) and found is not None and ("int" in found or found == "bool"):
            return "float32" if found in _NARROW and self._is_op(node) else "float64"
        constants = [one.value for one in (node.left, node.right) if isinstance(one, ast.Constant)]
        if found is not None and "int" in found and any(isinstance(one, float) for one in constants):
            return "float64"
        return found

    def _is_op(self, node: ast.expr) -> bool:
        """Whether an expression is computed by TensorFlow's ops, as far as it says so itself."""
        for one in ast.walk(node):
            made = one
            if isinstance(one, ast.Name):
                made = (self._steps.get(one.id) or [self._assigned.get(one.id, one)])[-1]
            if isinstance(made, ast.Call):
                return root_is(made.func, self._spot, "tensorflow")
        return False

    def _item(self, node: ast.Subscript) -> str | None:
        value = lookup(node.value, self._spot)
        if isinstance(value, (dict, list, tuple)) and value:
            asked = item(value, node.slice.value) if isinstance(node.slice, ast.Constant) else None
            return _of_value(asked) if asked is not None else _of_all(value)
        if isinstance(node.value, ast.Name) and isinstance(self._assigned.get(node.value.id), ast.Call):
            called: Any = self._assigned[node.value.id]
            if dotted(called.func).endswith("loads"):
                return None
        return self._of(node.value)

    def _call(self, node: ast.Call) -> str | None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        table = lookup(node.func.value, self._spot) if isinstance(node.func, ast.Attribute) else None
        if name in ("get", "setdefault", "pop") and type(table) is dict and table:
            key = node.args[0] if node.args else None
            asked = item(table, key.value) if isinstance(key, ast.Constant) else None
            return _of_value(asked) if asked is not None else _of_all(table)
        for one in (*node.args, *(keyword.value for keyword in node.keywords)):
            given = dotted(one).rpartition(".")[2] or (one.value if isinstance(one, ast.Constant) else "")
            if given in _KNOWN:
                return str(given)
        if name in _KNOWN and name != "bool":
            return name
        if name in ("isnan", "any", "all", "bool", "startswith", "endswith", "exists", "isfile"):
            return "bool"
        if name in _IMAGES:
            return "uint8"
        if name in ("open", "fromarray"):
            return "uint8"
        if name in _TEXT or name == "str":
            return "string"
        whole = [type(one.value) is int for one in node.args if isinstance(one, ast.Constant)]
        if name in _DRAWN and root_is(node.func, self._spot, "numpy") and node.args:
            first = node.args[0]
            if name == "randint" or type(getattr(first, "value", None)) is int:  # of `range(n)`
                return "int64"
        if name in _WHOLE or (name == "arange" and all(whole) and len(whole) == len(node.args) > 0):
            return "int64"
        if name in _FILLED and root_is(node.func, self._spot, "numpy"):
            return None if len(node.args) > 1 or node.keywords else "float64"
        if name in _FIRST and node.args and any(root_is(node.func, self._spot, one) for one in ("tensorflow", "numpy")):
            return self._of(node.args[0])
        operands = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]
        found = next((dtype for dtype in map(self._of, operands) if dtype is not None), None)
        if name in _SUMS and found is not None and not root_is(node.func, self._spot, "tensorflow"):
            return {"bool": "int64", "i": "int64", "u": "uint64"}.get(found if found == "bool" else found[0], found)
        if name in _SAME:
            return found
        if name in _FLOATS:
            return (
                found
                if found is not None and "float" in found
                else "float64"
                if root_is(node.func, self._spot, "numpy")
                else "float32"
            )
        if root_is(node.func, self._spot, "tensorflow"):
            if name == "resize" and not _NEAREST.search(ast.unparse(node)):
                return "float32"
            return self._op(name, [one for one in operands if not isinstance(one, ast.Constant)] or operands)
        layer = lookup(node.func, self._spot)
        computed = getattr(layer, "compute_dtype", None) if callable(layer) else None
        return computed if isinstance(computed, str) else self._own(name)

    def _op(self, name: str, operands: list[ast.expr]) -> str | None:
        """What an op gives: mostly the dtype of its tensors, and never that of a size or an axis beside them."""
        if name in _OPS:
            return _OPS[name]
        found = next((dtype for dtype in map(self._of, operands) if dtype is not None), None)
        if name in _SPECTRA:
            return {"float32": "complex64", "float64": "complex128"}.get(found or "")
        return found

    def _own(self, name: str) -> str | None:
        """What the one function of this name in the user's file returns."""
        found = [
            one for one in ast.walk(self._spot.source.tree)
            if isinstance(one, ast.FunctionDef) and one.name == name and name not in self._seen
        ]  # fmt: skip
        if len(found) != 1:
            return None
        there = Spot(self._spot.file, found[0].lineno, {}, self._spot.module, "")
        inner = Guess(there, seen=frozenset({*self._seen, name}))
        dtypes, _ = inner.returned(found[0])
        return dtypes[0].rpartition(".")[2] if len(dtypes) == 1 and dtypes[0] is not None else None


def _of_all(values: Any) -> str | None:
    """The dtype that all values of a dict or a list have in common, of the first of them; None where they differ."""
    every = list(itertools.islice(values.values() if isinstance(values, dict) else values, _LOOKED_AT))
    found = {_of_value(one) for one in every}
    return found.pop() if len(found) == 1 else None


def _of_value(value: Any) -> str | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    if isinstance(value, float):
        return "float32"
    if isinstance(value, (str, bytes)):
        return "string"
    found = dtype_of(value)
    return found if found in _KNOWN else None


def own_nodes(function: ast.AST) -> list[ast.AST]:
    """The nodes of a function without those of functions inside it, in their order."""
    found: list[ast.AST] = []
    for one in ast.iter_child_nodes(function):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        found.append(one)
        found.extend(own_nodes(one))
    return found


def assignments(function: ast.AST) -> dict[str, ast.expr]:
    """Names that a function assigns, and the last expression that each got."""
    found: dict[str, ast.expr] = {}
    for one in own_nodes(function):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            name = one.targets[0].id
            if name in found and name in names(one.value) and not _casts(one.value):
                continue  # `x = x / 255`: the first says more
            found[name] = one.value
    return found


def _steps(function: ast.AST) -> dict[str, list[ast.expr]]:
    """What a function assigns each of its names, one after the other."""
    found: dict[str, list[ast.expr]] = {}
    for one in own_nodes(function):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            found.setdefault(one.targets[0].id, []).append(one.value)
    return found


def _casts(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in ("astype", "cast") for one in ast.walk(node))
