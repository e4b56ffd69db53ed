"""Functions of Keras' old backend that make a variable, or leave the graph: `K.zeros(K.shape(y_true))` in a loss.

`K.zeros`, `K.ones`, `K.eye` and `K.variable` make variables (keras/src/legacy/backend.py), the first two outside of the
graph that is traced. Where nothing assigns to it, a tensor does, which TensorFlow's function of that name makes.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup, symbolic_parts
from pyfunc_debug.interception.names.private import KERAS_OLD_BACKEND

RULE = "variable-in-function"
_OUTSIDE = "is out of scope"
_MADE = ("tf.function only supports singleton tf.Variables", "could not be lifted out of a `tf.function`")
_MAKERS = {
    "zeros": "zeros", "ones": "ones", "eye": "eye",
    "random_uniform_variable": "random.uniform", "random_normal_variable": "random.normal",
}  # fmt: skip
_CHANGES = ("update", "update_add", "update_sub", "set_value", "moving_average_update", "batch_set_value")
_GIVEN = 4
"""The place of the dtype among what K.random_uniform_variable takes: shape, low, high."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a function was called while a graph was traced."""
    spot = situation.last
    outside = _OUTSIDE in situation.text
    if spot is None or situation.body or not (outside or any(one in situation.message for one in _MADE)):
        return None
    statement, function = spot.statement, spot.function
    if statement is None or not isinstance(function, ast.FunctionDef):
        return None
    found = [one for one in calls(statement) if is_old_backend(lookup(one.func, spot))]
    found = [one for one in found if (name := _name(one)) in _MAKERS or name == "variable"]
    made: dict[ast.expr, str] = {one: new for one in found if (new := _as_tensor(one, spot)) is not None}
    parts = list(dict.fromkeys(part for one in made for part in symbolic_parts(one, spot)))
    if not made or len(made) < len(found) or _assigned(function, statement) or (outside and not parts):
        return None
    call = next((one for one in made if not outside or symbolic_parts(one, spot)), found[0])
    code, tensor = f"`{short(spot.source.text(call), 36)}`", made[call].partition("(")[0]
    if outside:
        cause = (
            f"{code} leaves the graph that {function.name} is traced into, and {' and '.join(parts)} "
            f"{'has' if len(parts) == 1 else 'have'} a value there only. {tensor} makes its tensor in the graph."
        )
    else:
        cause = (
            f"{code} makes a variable each time that {function.name} is traced. Nothing here assigns to it: {tensor} "
            "makes a tensor."
        )
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, *spot.source.kept_lines(made)))


def is_old_backend(value: object) -> bool:
    """Whether a value is a function of what `from keras import backend as K` gives of Keras 2."""
    return callable(value) and getattr(value, "__module__", "") == KERAS_OLD_BACKEND


def _name(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _as_tensor(call: ast.Call, spot: Spot) -> str | None:
    """The call as one of TensorFlow's, with the same values and dtype."""
    tf, text, name = alias(spot, "tensorflow"), spot.source.text, _name(call)
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return None
    if name == "variable":
        value, dtype = argument(call, 0, "value"), argument(call, 1, "dtype")
        if value is None:
            return None
        plain = isinstance(value, (ast.Constant, ast.List, ast.Tuple)) or is_ndarray(lookup(value, spot))
        made = "constant" if plain and not symbolic_parts(value, spot) else "cast"
        return f"{tf}.{made}({text(value)}, {text(dtype) if dtype is not None else f'{tf}.float32'})"
    words = {"size": "num_rows", "low": "minval", "high": "maxval", "scale": "stddev"}
    given = [text(one) for one in call.args]
    if name == "eye" and len(given) > 1:
        given[1] = f"dtype={given[1]}"
    if len(given) >= _GIVEN or (name in ("zeros", "ones", "eye") and len(given) > 2):  # a dtype or a name by its place
        return None
    given += [f"{words.get(one.arg or '', one.arg)}={text(one.value)}" for one in call.keywords]
    return f"{tf}.{_MAKERS[name]}({', '.join(given)})"


def _assigned(function: ast.FunctionDef, statement: ast.stmt) -> bool:
    """Whether the function changes what the statement makes, or keeps it in an object."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if not isinstance(statement, (ast.Assign, ast.Return, ast.AugAssign)):
        return True
    kept = [dotted(one) for one in targets]
    if any(not isinstance(one, ast.Name) for one in targets) or set(kept) & set(parameters(function)):
        return True
    changed = [
        one for one in calls(function) if (_name(one) in _CHANGES and one.args and dotted(one.args[0]) in kept)
        or (dotted(one.func).rpartition(".")[0] in kept and _name(one).startswith(("assign", "scatter")))
    ]  # fmt: skip
    return bool(changed)
