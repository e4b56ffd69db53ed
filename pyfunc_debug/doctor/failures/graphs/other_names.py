"""Names of NumPy's and PyTorch's asked of TensorFlow: `tf.mean`, `x.view(3, 2)`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, method_calls, of_package

RULE = "argument"
OF_TENSOR = re.compile(r"(?:^|['.])(?:EagerTensor|SymbolicTensor|ResourceVariable)'? object has no attribute '(\w+)'")
OF_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
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


def of_pytorch(situation: Situation) -> Explanation | None:
    """The explanation, if a tensor was asked for a method of PyTorch's that arrays of NumPy's do not have either."""
    spot, statement = situation.last, situation.statement
    said = OF_TENSOR.search(situation.message) if situation.kind == "AttributeError" else None
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
    """The explanation, if TensorFlow has what was asked for by another name."""
    spot, statement, message = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.kind != "AttributeError":
        return None
    tensor, module = OF_TENSOR.search(message), OF_MODULE.search(message)
    if tensor is not None:
        return _of_tensor(spot, statement, tensor[1])
    return _of_module(spot, statement, module[1], module[2]) if module is not None else None


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
    """`tf.mean(x)`."""
    asked, new = asked_of(spot, statement, name), _FUNCTIONS.get(name)
    if new is None or not asked or module.removeprefix("tensorflow._api.v2") not in ("tensorflow", ""):
        return None
    held = spot.source.text(asked[0].value)
    joins = [one for one in calls(statement) if one.func in asked and new == "concat"]
    if any(len(one.args) < 2 and not one.keywords for one in joins):
        return Explanation(
            RULE, spot.file, spot.line, f"{held} has no {name}: it is called concat, and takes the axis too.", None,
            f"Write {held}.concat([...], axis=0).",
        )  # fmt: skip
    if name in _OTHER_ARGUMENTS:
        return Explanation(
            RULE, spot.file, spot.line, f"{held} has no {name}.", None,
            f"{held}.{new} is like it, and takes its arguments otherwise.",
        )  # fmt: skip
    pieces: dict[ast.expr, str] = dict.fromkeys(asked, f"{held}.{new}")
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    cause = f"{held} has no {name}: it is called {new}."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {held}.{new}.")


def asked_of(spot: Spot, statement: ast.stmt, name: str) -> list[ast.Attribute]:
    """The places of a statement where one package is asked for a name."""
    found = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and one.attr == name and of_package(one.value, spot) is not None
    ]  # fmt: skip
    return found if len({dotted(one) for one in found}) == 1 else []
