"""Arguments of layers by the names that Keras 1 and 2 had for them, or by none that Keras knows."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Iterable, Mapping

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.failed_layers import is_add, other_class
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras_class, lookup, of_keras, of_package

RULE = "older-api"
_UNKNOWN = re.compile(r"^Unrecognized keyword arguments passed to (\w+): \{")
_MISSING = re.compile(r"^(\w+)\.__init__\(\) missing \d+ required positional arguments?: ")
_MISSING_NAME = re.compile(r"'(\w+)'(?=$|,| and)")
_OLDER: Mapping[str, str] = {
    "output_dim": "units", "nb_filter": "filters", "border_mode": "padding", "subsample": "strides",
    "subsample_length": "strides", "filter_length": "kernel_size", "pool_length": "pool_size",
    "init": "kernel_initializer", "inner_init": "recurrent_initializer", "inner_activation": "recurrent_activation",
    "W_regularizer": "kernel_regularizer", "U_regularizer": "recurrent_regularizer",
    "b_regularizer": "bias_regularizer", "W_constraint": "kernel_constraint", "b_constraint": "bias_constraint",
    "dropout_W": "dropout", "dropout_U": "recurrent_dropout", "bias": "use_bias", "p": "rate",
    "gamma_init": "gamma_initializer", "beta_init": "beta_initializer", "depth": "num_tokens",
}  # fmt: skip
"""Names of Keras 1, and what they are called since Keras 2."""
_WITHOUT = ("consume_less", "implementation", "time_major", "batch_input_shape", "input_length")
"""What Keras 3 does without, or takes elsewhere."""
_NEAR = 0.8
_ALWAYS = ("name", "trainable", "dtype", "input_shape", "input_dim", "activity_regularizer", "autocast")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer refused the name of an argument, or lacks one that has another name now."""
    spot, statement = situation.last, situation.statement
    said = _UNKNOWN.search(situation.message) or _MISSING.search(situation.message)
    if said is None or spot is None or statement is None or situation.body:
        return None
    found = [
        (one, kind) for one in calls(statement)
        if isinstance(kind := _class(one.func, spot), type) and kind.__name__ == said[1] and is_keras_class(kind)
        and _others(one, kind)
    ]  # fmt: skip
    if len(found) != 1 or not of_keras(found[0][1], "Layer"):
        return None
    call, kind = found[0]
    names, refused = list(inspect.signature(kind).parameters), _others(call, kind)
    places = len(_positional(call, refused, spot))
    missing, renamed = _MISSING_NAME.findall(situation.message), {}
    for one in refused:
        new = "" if one in _WITHOUT else _new(one, names)
        if new is None and len(missing) == 1 and len(refused) == 1:
            new = next(iter(difflib.get_close_matches(one, missing, 1)), None)
        if new is None or any(word.arg == new for word in call.keywords) or new in names[:places]:
            return None
        renamed[one] = new
    pieces = _pieces(call, renamed, spot)
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    parts = [f"{kind.__name__} has {new}= and no {old}=" for old, new in renamed.items() if new]
    gone = [one for one in renamed if one in _WITHOUT]
    if "batch_input_shape" in gone:
        edit = _with_input(spot, call, pieces[call])
        parts.append("Keras 3 takes the shape with the batch in an Input, as batch_shape")
    other = [one for one in gone if one != "batch_input_shape"]
    parts += [f"Keras 3 has no {' and no '.join(f'{one}=' for one in other)} here"] if other else []
    cause = f"{'; '.join(parts)}."
    rule = RULE if any(one in _OLDER or one in _WITHOUT for one in renamed) else "argument"
    return Explanation(rule, spot.file, call.lineno, cause, edit) if edit is not None else None


def _class(function: ast.expr, spot: Spot) -> object:
    found = lookup(function, spot)
    return found if found is not None else of_package(function, spot)


def _others(call: ast.Call, kind: type) -> list[str]:
    """The keywords of a call that a class has no parameter for."""
    names = (*inspect.signature(kind).parameters, *_ALWAYS)
    return [one.arg for one in call.keywords if one.arg is not None and one.arg not in names]


def _new(name: str, names: list[str]) -> str | None:
    """The parameter that a name means; None where that is not known."""
    if _OLDER.get(name) in names:
        return _OLDER[name]
    close = difflib.get_close_matches(name, names, 1, _NEAR)
    return close[0] if close else None


def _pieces(call: ast.Call, renamed: Mapping[str, str], spot: Spot) -> dict[ast.expr, str]:
    """The call with other names."""
    text = spot.source.text
    args = _positional(call, renamed, spot)
    for one in call.keywords:
        name = renamed.get(one.arg, one.arg) if one.arg is not None else None
        if name != "":
            args.append(f"{name}={text(one.value)}" if name is not None else f"**{text(one.value)}")
    return {call: f"{text(call.func)}({', '.join(args)})"}


def _positional(call: ast.Call, refused: Iterable[str], spot: Spot) -> list[str]:
    """The positional arguments; those of Keras 1, rows and columns of a kernel, as one."""
    args = [spot.source.text(one) for one in call.args]
    first = {"border_mode", "subsample", "init"} & set(refused)
    return [args[0], f"({args[1]}, {args[2]})"] if first and len(args) == 3 else args


def _with_input(spot: Spot, call: ast.Call, new: str) -> Edit | None:
    """An Input in front of a layer that had the shape with the batch, where a Sequential begins with the layer."""
    shape = next(one.value for one in call.keywords if one.arg == "batch_input_shape")
    made = f"{other_class(call.func, 'Input', spot)}(batch_shape={spot.source.text(shape)})"
    around = spot.source.parent(call)
    if isinstance(around, ast.List) and around.elts[0] is call:
        return edit_of(spot.file, spot.source.replaced({call: f"{made}, {new}"}))
    statement = spot.source.parent(around) if around is not None else None
    if isinstance(around, ast.Call) and is_add(around) and isinstance(statement, ast.Expr):
        indent = " " * statement.col_offset
        first, last, lines = spot.source.kept_lines({call: new})
        line = f"{indent}{spot.source.text(around.func)}({made})"
        return Edit(spot.file, first, last, (line, *lines)) if first == statement.lineno else None
    return None
