"""TensorFlow's ops written in NumPy, for a body that is given arrays: by their arguments, as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

_KEPT = "{input_tensor}[, axis={axis}][, keepdims={keepdims}]"
_REDUCED = "input_tensor axis keepdims"
_TWINS: dict[str, tuple[str, str]] = {
    "pow": ("x y", "np.power({x}, {y})"), "add": ("x y", "({x} + {y})"), "subtract": ("x y", "({x} - {y})"),
    "multiply": ("x y", "({x} * {y})"), "divide": ("x y", "({x} / {y})"), "truediv": ("x y", "({x} / {y})"),
    "scalar_mul": ("scalar x", "({scalar} * {x})"), "maximum": ("x y", "np.maximum({x}, {y})"),
    "minimum": ("x y", "np.minimum({x}, {y})"), "matmul": ("a b", "np.matmul({a}, {b})"),
    **{one: ("x", f"np.{one}({{x}})") for one in (
        "ceil", "floor", "round", "sqrt", "square", "exp", "log", "log1p", "abs", "sign", "sin", "cos", "tan", "tanh",
    )},
    "sigmoid": ("x", "(1 / (1 + np.exp(-({x}))))"), "nn.relu": ("features", "np.maximum({features}, 0)"),
    **{f"reduce_{one}": (_REDUCED, f"np.{one}({_KEPT})") for one in (
        "sum", "mean", "max", "min", "prod", "any", "all",
    )},
    "argmax": ("input axis", "np.argmax({input}, axis={axis|0})"),
    "argmin": ("input axis", "np.argmin({input}, axis={axis|0})"),
    "cast": ("x dtype", "np.asarray({x}).astype({dtype})"),
    **dict.fromkeys(("constant", "convert_to_tensor"), ("value dtype", "np.asarray({value}[, {dtype}])")),
    "identity": ("input", "np.copy({input})"), "stop_gradient": ("input", "np.asarray({input})"),
    "reshape": ("tensor shape", "np.reshape({tensor}, {shape})"),
    "transpose": ("a perm", "np.transpose({a}[, {perm}])"),
    "expand_dims": ("input axis", "np.expand_dims({input}, {axis})"),
    "squeeze": ("input axis", "np.squeeze({input}[, axis={axis}])"),
    "concat": ("values axis", "np.concatenate({values}, axis={axis})"),
    "stack": ("values axis", "np.stack({values}[, axis={axis}])"),
    "tile": ("input multiples", "np.tile({input}, {multiples})"),
    "reverse": ("tensor axis", "np.flip({tensor}, {axis})"),
    "where": ("condition x y", "np.where({condition}, {x}, {y})"),
    "clip_by_value": ("t clip_value_min clip_value_max", "np.clip({t}, {clip_value_min}, {clip_value_max})"),
    "zeros_like": ("input", "np.zeros_like({input})"), "ones_like": ("input", "np.ones_like({input})"),
    "fill": ("dims value", "np.full({dims}, {value})"), "shape": ("input", "np.shape({input})"),
    "gather": ("params indices", "np.take({params}, {indices}, axis=0)"),
    "greater": ("x y", "({x} > {y})"), "less": ("x y", "({x} < {y})"), "equal": ("x y", "({x} == {y})"),
    "logical_and": ("x y", "np.logical_and({x}, {y})"), "logical_or": ("x y", "np.logical_or({x}, {y})"),
    "logical_not": ("x", "np.logical_not({x})"), "linalg.inv": ("input", "np.linalg.inv({input})"),
    "linalg.det": ("input", "np.linalg.det({input})"),
}  # fmt: skip
_NAMES = {"keep_dims": "keepdims", "reduction_indices": "axis", "dim": "axis"}
"""What TensorFlow 1 calls some arguments."""
_DTYPE = re.compile(r"^[\w.]+\.(float16|float32|float64|int8|uint8|int16|int32|int64)$")


def in_numpy(op: str, call: ast.Call, text: Callable[[ast.expr], str], numpy: str) -> str | None:
    """The call of an op in NumPy; None where there is no such function, or its arguments are others.

    Args:
      op: The op's name behind its module: "reduce_sum", "math.log".
      call: The call.
      text: What an argument is written as.
      numpy: How the program calls NumPy.
    """
    taken, written = _TWINS.get(op.removeprefix("math."), ("", ""))
    names = taken.split()
    if not written or len(call.args) > len(names) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    given = dict(zip(names, map(text, call.args)))
    for one in call.keywords:
        name = _NAMES.get(one.arg or "", one.arg or "")
        if name == "name":
            continue
        if name not in names:
            return None
        given[name] = text(one.value)
    dtype = _DTYPE.match(given.get("dtype", ""))
    if "dtype" in given:
        if dtype is None:
            return None
        given["dtype"] = f"np.{dtype[1]}"
    new = re.sub(r"\[([^\]]*)\{(\w+)\}\]", lambda one: f"{one[1]}{given[one[2]]}" if one[2] in given else "", written)
    new = re.sub(r"\{(\w+)\|(\w+)\}", lambda one: given.get(one[1], one[2]), new)
    if any(one not in given for one in re.findall(r"\{(\w+)\}", written) if f"{{{one}}}]" not in written):
        return None
    new = re.sub(r"\bnp\.", f"{numpy}.", new)
    return re.sub(r"\{(\w+)\}", lambda one: given[one[1]], new)
