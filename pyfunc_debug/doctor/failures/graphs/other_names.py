"""Names of NumPy's and PyTorch's asked of TensorFlow (`tf.mean`, `x.view(3, 2)`), and names that are misspelled."""

from __future__ import annotations

import ast
import difflib
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, method_calls, of_package

RULE = "argument"
_OF_TENSOR = re.compile(r"(?:^|['.])(?:EagerTensor|SymbolicTensor|ResourceVariable)'? object has no attribute '(\w+)'")
_OF_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_OF_OBJECT = re.compile(r"^'([\w.]+)' object has no attribute '(\w+)'")
_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_UNKNOWN = re.compile(r"^name '(\w+)' is not defined")
_METHODS = {
    "view": "{tf}.reshape({x}, {shape})", "reshape": "{tf}.reshape({x}, {shape})", "flatten": "{tf}.reshape({x}, [-1])",
    "ravel": "{tf}.reshape({x}, [-1])", "unsqueeze": "{tf}.expand_dims({x}, {a})",
    "permute": "{tf}.transpose({x}, {shape})",
    "T": "{tf}.transpose({x})", "float": "{tf}.cast({x}, {tf}.float32)", "double": "{tf}.cast({x}, {tf}.float64)",
    "long": "{tf}.cast({x}, {tf}.int64)", "int": "{tf}.cast({x}, {tf}.int32)", "astype": "{tf}.cast({x}, {a})",
    "type": "{tf}.cast({x}, {a})", "detach": "{tf}.stop_gradient({x})", "contiguous": "{x}", "cuda": "{x}",
    "clamp": "{tf}.clip_by_value({x}, {a})", "clip": "{tf}.clip_by_value({x}, {a})", "mm": "{tf}.matmul({x}, {a})",
    "matmul": "{tf}.matmul({x}, {a})", "abs": "{tf}.abs({x})", "sqrt": "{tf}.sqrt({x})", "exp": "{tf}.exp({x})",
    "log": "{tf}.math.log({x})", "pow": "{tf}.pow({x}, {a})", "mean": "{tf}.reduce_mean({x}{more})",
    "sum": "{tf}.reduce_sum({x}{more})", "max": "{tf}.reduce_max({x}{more})", "min": "{tf}.reduce_min({x}{more})",
    "prod": "{tf}.reduce_prod({x}{more})", "argmax": "{tf}.argmax({x}{more})", "argmin": "{tf}.argmin({x}{more})",
    "squeeze": "{tf}.squeeze({x}{more})", "dim": "len({x}.shape)", "size": "{x}.shape",
    "softmax": "{tf}.nn.softmax({x}{more})",
}  # fmt: skip
"""Methods of NumPy's arrays and PyTorch's tensors, and TensorFlow's expressions for them."""
_FUNCTIONS = {
    "mean": "reduce_mean", "average": "reduce_mean", "reduce_avg": "reduce_mean",
    "sum": "reduce_sum", "max": "reduce_max", "amax": "reduce_max",
    "min": "reduce_min", "amin": "reduce_min", "prod": "reduce_prod", "any": "reduce_any", "all": "reduce_all",
    "std": "math.reduce_std", "var": "math.reduce_variance", "log": "math.log", "log1p": "math.log1p",
    "arange": "range", "cat": "concat", "concatenate": "concat", "clip": "clip_by_value", "clamp": "clip_by_value",
    "array": "constant", "asarray": "convert_to_tensor", "tensor": "constant", "from_numpy": "convert_to_tensor",
    "power": "pow", "absolute": "abs", "full": "fill", "randn": "random.normal", "rand": "random.uniform",
    "relu": "nn.relu", "softmax": "nn.softmax", "mm": "matmul", "unsqueeze": "expand_dims", "permute": "transpose",
    "isnan": "math.is_nan", "isfinite": "math.is_finite", "isinf": "math.is_inf", "count_nonzero": "math.count_nonzero",
    "dot": "tensordot", "cumsum": "math.cumsum", "top_k": "math.top_k", "in_top_k": "math.in_top_k",
}  # fmt: skip
"""Functions of NumPy's and PyTorch's, and where TensorFlow has them."""
_OTHER_ARGUMENTS = {"dot", "randn", "rand"}
_OF_ARRAYS = frozenset({
    "view", "reshape", "flatten", "ravel", "T", "astype", "clip", "mean", "sum", "max", "min", "prod", "argmax",
    "argmin", "squeeze", "size",
})  # fmt: skip
"""Those of the methods that arrays have too."""
_IMPORTS = {
    "np": "import numpy as np", "tf": "import tensorflow as tf", "pd": "import pandas as pd", "cv2": "import cv2",
    "plt": "import matplotlib.pyplot as plt", "keras": "from tensorflow import keras",
}  # fmt: skip
_NEAR = 0.85


def of_pytorch(situation: Situation) -> Explanation | None:
    """The explanation, if a tensor was asked for a method of PyTorch's that arrays of NumPy's do not have either."""
    spot, statement = situation.last, situation.statement
    said = _OF_TENSOR.search(situation.message) if situation.kind == "AttributeError" else None
    if said is None or spot is None or statement is None:
        return None
    asked = [one for one in method_calls(statement, said[1]) if said[1] not in _OF_ARRAYS or _counts(one)]
    return _of_tensor(spot, statement, said[1]) if len(asked) == 1 else None


def _counts(call: ast.Call) -> bool:
    """Whether `x.view(-1, 4)` is given sizes, as PyTorch's is: NumPy's takes a dtype."""
    first = call.args[0] if call.args else None
    plain = ast.unparse(first).lstrip("-") if first is not None else ""
    return call.func.attr == "view" and (plain.isdigit() or ".shape" in plain or len(call.args) > 1)  # type: ignore[attr-defined]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if TensorFlow, or the program itself, has nearly what was asked for."""
    spot, statement, message = situation.last, situation.statement, situation.message
    if spot is None or statement is None:
        return None
    if situation.kind == "AttributeError":
        tensor, module = _OF_TENSOR.search(message), _OF_MODULE.search(message)
        if tensor is not None:
            return _of_tensor(spot, statement, tensor[1])
        if module is not None:
            return _of_module(spot, statement, module[1], module[2])
        thing = _OF_OBJECT.search(message)
        return _of_object(spot, statement, thing[1].rpartition(".")[2], thing[2]) if thing is not None else None
    if situation.kind == "ImportError" and (missing := _NOT_IMPORTED.search(message)) is not None:
        return _imported(spot, statement, missing[1], missing[2])
    unknown = _UNKNOWN.search(message) if situation.kind == "NameError" else None
    return _of_name(spot, statement, unknown[1]) if unknown is not None else None


def _of_tensor(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`x.view(3, 2)` as `tf.reshape(x, (3, 2))`."""
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    if len(asked) != 1 or name not in _METHODS:
        return None
    node, source, tf = asked[0], spot.source, alias(spot, "tensorflow")
    call = source.parent(node)
    called = call if isinstance(call, ast.Call) and call.func is node else None
    given = [source.text(one) for one in called.args] if called is not None else []
    words = {str(one.arg): source.text(one.value) for one in called.keywords} if called is not None else {}
    first = called.args[0] if called is not None and called.args else None
    listed = isinstance(first, ast.Name) and isinstance(spot.value(first.id), (tuple, list))
    whole = len(given) == 1 and (listed or isinstance(first, (ast.Tuple, ast.List)))
    axis = words.pop("axis", None) or words.pop("dim", None) or (given[0] if given else None)
    template = _METHODS[name]
    fewest = 2 if name in ("clamp", "clip") else 1
    most = 99 if "{shape}" in template else 2 if fewest == 2 else 1
    if words or (called is None) != (name == "T") or ("{a}" in template and len(given) < fewest) or len(given) > most:
        return None
    if name == "size" and given:
        template = f"{{x}}.shape[{given[0]}]"
    if name in ("transpose", "permute") and not given:
        template = "{tf}.transpose({x})"
    new = template.format(
        tf=tf, x=source.text(node.value), a=", ".join(given), more=f", axis={axis}" if axis is not None else "",
        shape=given[0] if whole else f"[{', '.join(given)}]",
    )  # fmt: skip
    cause = f"{short(source.text(node.value), 40)} is a tensor of TensorFlow's, which has no {name}."
    target: ast.expr = called if called is not None else node
    edit = edit_of(spot.file, source.replaced({target: new}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.")


def _of_module(spot: Spot, statement: ast.stmt, module: str, name: str) -> Explanation | None:
    """`tf.mean(x)`, `keras.layers.Densse(4)`."""
    asked = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and one.attr == name and of_package(one.value, spot) is not None
    ]  # fmt: skip
    owner = sys.modules.get(module)
    if not asked or owner is None or len({dotted(one) for one in asked}) != 1:
        return None
    held = spot.source.text(asked[0].value)
    known = module.partition(".")[0] in ("tensorflow", "keras", "numpy")
    meant = _FUNCTIONS.get(name) if module.removeprefix("tensorflow._api.v2") in ("tensorflow", "") else None
    new = meant or (_near(name, list(vars(owner)) + _public(owner)) if known else "")
    if not new or (meant is None and len(name) < 4):
        return None
    joins = [one for one in calls(statement) if one.func in asked and meant == "concat"]
    if any(len(one.args) < 2 and not one.keywords for one in joins):
        return Explanation(
            RULE, spot.file, spot.line, f"{held} has no {name}: it is called concat, and takes the axis too.", None,
            f"Write {held}.concat([...], axis=0).",
        )  # fmt: skip
    if meant and name in _OTHER_ARGUMENTS:
        return Explanation(
            RULE, spot.file, spot.line, f"{held} has no {name}.", None,
            f"{held}.{new} is like it, and takes its arguments otherwise.",
        )  # fmt: skip
    pieces: dict[ast.expr, str] = dict.fromkeys(asked, f"{held}.{new}")
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    cause = f"{held} has no {name}: it is called {new}." if meant else f"{held} has no {name}, but {new}."
    sure: Any = "measured" if meant else "likely"
    return Explanation(
        RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {held}.{new}.", sure
    )


def _of_object(spot: Spot, statement: ast.stmt, said: str, name: str) -> Explanation | None:
    """`model.complie(...)`, `ds.prefech(1)`: of objects of TensorFlow and Keras, and the user's."""
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    if len(asked) != 1 or len(name) < 4:
        return None
    value, held = lookup(asked[0].value, spot), short(spot.source.text(asked[0].value), 40)
    kind: Any = type(value)
    if value is None and "Dataset" in said:
        kind = getattr(getattr(sys.modules.get("tensorflow"), "data", None), "Dataset", None)
    elif value is None or kind.__name__ != said:
        return None
    if not isinstance(kind, type):
        return None
    new = _near(name, [one for base in kind.__mro__ for one in vars(base)])
    if not new:
        return None
    edit = edit_of(spot.file, spot.source.replaced({asked[0]: f"{spot.source.text(asked[0].value)}.{new}"}))
    cause = f"{held} has no {name}, but {new}."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.", "likely")


def _imported(spot: Spot, statement: ast.stmt, name: str, module: str) -> Explanation | None:
    """`from tensorflow.keras.layers import Dropot`."""
    owner = sys.modules.get(module)
    new = _near(name, [*vars(owner), *_public(owner)]) if owner is not None and len(name) > 3 else ""
    if not isinstance(statement, ast.ImportFrom) or not new:
        return None
    names = [f"{new} as {one.asname or name}" if one.name == name else ast.unparse(one) for one in statement.names]
    uses = sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(spot.source.tree))
    if not uses:
        names = [one.replace(f" as {name}", "") for one in names]
    first, last = spot.source.span(statement)
    line = f"from {statement.module} import {', '.join(names)}"
    edit = edit_of(spot.file, (first, last, line))
    return Explanation(RULE, spot.file, first, f"{statement.module} has no {name}, but {new}.", edit, "", "likely")


def _of_name(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`datset` for `dataset`."""
    new = _near(name, [*spot.variables, *spot.module]) if len(name) > 3 else ""
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name]
    used = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and dotted(one.value) == name]
    line = _IMPORTS.get(name, "")
    if not line and not new and name in sys.stdlib_module_names:
        line = f"import {name}"
    if line and used:
        body = spot.source.tree.body
        imports = [one for one in body if isinstance(one, (ast.Import, ast.ImportFrom))]
        future = [one.lineno + 1 for one in imports if getattr(one, "module", "") == "__future__"]
        others = [one.lineno for one in imports if getattr(one, "module", "") != "__future__"]
        first = others[0] if others else max(future, default=1)
        added = Edit(spot.file, first, first - 1, (line,))
        return Explanation(RULE, spot.file, spot.line, f"{name} is not imported here.", added)
    if not new or not asked:
        return None
    pieces: dict[ast.expr, str] = dict.fromkeys(asked, new)
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    cause = f"Nothing has the name {name} here, but {new} is there."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.", "likely")


def _public(module: Any) -> list[str]:
    """Names that TensorFlow's and Keras' modules give only when they are asked for."""
    own = str(getattr(module, "__name__", "")).partition(".")[0] in ("tensorflow", "keras")
    return dir(module) if own else []


def _near(name: str, known: list[str]) -> str:
    """The public name that is nearest: in other letters' case, else nearly the same."""
    public = sorted({one for one in known if not one.startswith("_")} - {name})
    same = [one for one in public if one.lower() == name.lower() and one != name]
    if same:
        return same[-1]
    found = difflib.get_close_matches(name, public, 1, _NEAR)
    return found[0] if found else ""
