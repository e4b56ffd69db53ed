"""Ops of a loss that give NaN at some values, or whose gradient does, with bounds: logarithms, roots, choices."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.finite_slopes import outermost, values_of
from pyfunc_debug.doctor.failures.pastes.signs import Signs
from pyfunc_debug.doctor.failures.pastes.slope_bounds import Bounds
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import calls
from pyfunc_debug.doctor.text import listed

_GROWS = {"exp", "pow", "power", "sinh", "cosh", "expm1", "square"}
"""Ops whose results may be too large for a float."""
GUARDS = ("maximum", "clip_by_value", "epsilon", "eps", "1e-", "log_sigmoid", "softplus", "softmax", "exp(")
"""Words of an argument that is kept above 0."""
_LEAST = "1e-7"
_DIVIDES = "math.divide_no_nan"
_TRAIN = ("gradient", "minimize", "compute_gradients", "gradients")
_OLDER = "tensorflow.compat.v1"


def guarded(facts: Facts, file: str, scopes: Sequence[ast.AST], gradient: bool) -> dict[ast.expr, str]:
    """Expressions of some functions that may be it, and what to write for them.

    Args:
      facts: The recording.
      file: The file.
      scopes: The functions, or the block of a tape.
      gradient: Whether only the gradient is NaN: a logarithm has then no part in it.
    """
    tf = pastes.module(facts, file, "tensorflow") or pastes.module(facts, file, _OLDER)
    if tf is None:
        return {}
    spot = Spot(file, 1, {}, {}, "")
    found: dict[ast.expr, str] = {}
    for scope in scopes:
        bounds = Bounds(Signs(tf, spot, scope), scope)
        for call in calls(scope):
            large = _of_large_exp(call, tf)
            if large is not None:
                found[call] = f"{tf}.math.softplus({pastes.text_of(facts, file, large)})"
            elif dotted(call.func) == f"{tf}.where" and len(call.args) == 3:
                found |= _choice(facts, file, call, tf)
            elif not gradient and dotted(call.func) in (f"{tf}.math.log", f"{tf}.log") and len(call.args) == 1:
                text = pastes.text_of(facts, file, call.args[0])
                kept = _is_raised(call.args[0]) or any(word in text for word in GUARDS)
                if names(call.args[0]) and not kept:
                    found[call.args[0]] = f"{tf}.maximum({text}, {_LEAST})"
        for each in pastes.walk(scope, ast.BinOp):
            if isinstance(each.op, ast.Div) and all(_is_sum(one, tf) for one in (each.left, each.right)):
                left, right = (pastes.text_of(facts, file, one) for one in (each.left, each.right))
                if not any(word in right for word in GUARDS):
                    found[each] = f"{tf}.{_DIVIDES}({left}, {right})"
        for value in values_of(scope):
            for node in outermost(value, bounds, False):
                inside = set(map(id, ast.walk(node)))
                if not any(id(one) in inside or node in ast.walk(one) for one in found):
                    found[node] = bounds.text(node)[0]
    return found


def _is_sum(value: ast.expr, tf: str) -> bool:
    """Whether something is a sum, or a count, that may be 0: of a mask without an entry."""
    if isinstance(value, ast.Call) and dotted(value.func) == f"{tf}.cast" and value.args:
        value = value.args[0]
    name = dotted(value.func) if isinstance(value, ast.Call) else ""
    return name.startswith(f"{tf}.") and name.rpartition(".")[2] in ("reduce_sum", "count_nonzero")


def _of_large_exp(call: ast.Call, tf: str) -> ast.expr | None:
    """The `x` of `log(1 + exp(x))` and `log1p(exp(x))`, whose exp is infinite long before the whole is large."""
    name = dotted(call.func).removeprefix(f"{tf}.").rpartition(".")[2] if len(call.args) == 1 else ""
    inside: ast.expr | None = None
    if name == "log1p":
        inside = call.args[0]
    elif name == "log" and isinstance(call.args[0], ast.BinOp) and isinstance(call.args[0].op, ast.Add):
        left, right = call.args[0].left, call.args[0].right
        one = next((each for each in (left, right) if isinstance(each, ast.Constant) and each.value == 1), None)
        inside = None if one is None else right if one is left else left
    if (
        isinstance(inside, ast.Call)
        and dotted(inside.func) in (f"{tf}.exp", f"{tf}.math.exp")
        and len(inside.args) == 1
    ):
        return inside.args[0]
    return None


def reasons(pieces: Sequence[str]) -> str:
    """Why expressions for which these are written give NaN or an infinity."""
    found = []
    if any(".softplus(" in one for one in pieces):
        found.append("exp of more than 88 is infinite in float32")
    if any(".where(" in one for one in pieces):
        found.append("a tape takes the gradient also of what tf.where leaves out")
    if any(one.endswith(f", {_LEAST})") for one in pieces):
        found.append("a logarithm of 0 is infinite, and that times 0 is NaN")
    if any(f".{_DIVIDES}(" in one for one in pieces):
        found.append("a sum of 0 divided by a sum of 0 is NaN")
    known = (".softplus(", ".where(", f".{_DIVIDES}(")
    if any(not any(word in one for word in known) and not one.endswith(f", {_LEAST})") for one in pieces):
        found.append("the gradient of a root is infinite at 0")
    return listed(found)


def _is_raised(value: ast.expr) -> bool:
    """Whether a number above 0 is added: `1 + e`."""
    sides = (value.left, value.right) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else ()
    return any(isinstance(one, ast.Constant) and isinstance(one.value, (int, float)) and one.value > 0 for one in sides)


def _choice(facts: Facts, file: str, call: ast.Call, tf: str) -> dict[ast.expr, str]:
    """A choice one side of which may grow beyond all floats: its gradient is taken also where it is left out."""
    found: dict[ast.expr, str] = {}
    condition = pastes.text_of(facts, file, call.args[0])
    for place, side in enumerate(call.args[1:]):
        grows = [one for one in calls(side) if dotted(one.func).rpartition(".")[2] in _GROWS]
        read = [
            one for each in grows for one in ast.walk(each)
            if isinstance(one, ast.Name) and one.id in names(call.args[0]) and one.id != tf
        ]  # fmt: skip
        for one in read:
            parts = (one.id, f"{tf}.zeros_like({one.id})")
            taken, left = parts if place == 0 else parts[::-1]
            found[one] = f"{tf}.where({condition}, {taken}, {left})"
    return found


def with_called(tree: ast.AST, scopes: Sequence[ast.AST]) -> list[ast.AST]:
    """Some functions, and those of the file that they call by name."""
    found = list(scopes)
    functions = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
    for scope in scopes:
        for call in calls(scope):
            called = functions.get(dotted(call.func).rpartition(".")[2])
            if called is not None and called not in found:
                found.append(called)
    return found


def trains(scope: ast.AST) -> bool:
    """Whether a function asks a tape."""
    nodes = code.own_nodes(scope) if isinstance(scope, ast.FunctionDef) else ast.walk(scope)
    return any(isinstance(one, ast.Attribute) and one.attr in _TRAIN for one in nodes)


def steps(tree: ast.Module) -> list[ast.AST]:
    """The functions of a file that train, and what they call; the whole file where it trains in none, or nothing."""
    found = [one for one in pastes.walk(tree, ast.FunctionDef) if trains(one)]
    if not found:
        return [tree] if trains(tree) else []
    return with_called(tree, with_called(tree, found))


def checked(facts: Facts, file: str) -> str:
    """What makes TensorFlow name the op: above the first line behind the imports."""
    tf, older = (pastes.module(facts, file, name) for name in ("tensorflow", _OLDER))
    tree = facts.tree(file)
    line = (
        f"{tf or older or 'tf'}.debugging.enable_check_numerics()  # fails at the first op that makes NaN, and names it"
    )
    body: list[ast.stmt] = getattr(tree, "body", [])
    imports = [
        place for place, one in enumerate(body)
        if isinstance(one, (ast.Import, ast.ImportFrom)) and "tensorflow" in ast.unparse(one)
    ]  # fmt: skip
    after = [
        one for one in body[imports[-1] + 1 if imports else 0 :]
        if not isinstance(one, (ast.Import, ast.ImportFrom))
        and not (isinstance(one, ast.Expr) and (isinstance(one.value, ast.Constant) or _switches(one.value)))
    ]  # fmt: skip
    if (tf is None and older is None) or not after:
        return line
    lines = (line,) if tf is not None else (f"{older}.enable_resource_variables()  # it knows no others", line)
    return pastes.written(pastes.above(facts, file, pastes.first_line(after[0]), *lines))


def _switches(value: ast.expr) -> bool:
    """Whether it is such as `tf.disable_v2_behavior()`."""
    return isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2].startswith(("disable_", "enable_"))
