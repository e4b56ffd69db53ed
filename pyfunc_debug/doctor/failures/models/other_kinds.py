"""What Keras gets of the user's that is of another kind: a callback's class, a loss as the logs of a step."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import definition_of, dotted, read, short
from pyfunc_debug.doctor.failures.reading.symbols import keras_name, lookup, of_keras

RULE = "structure"
_OF_CLASS = re.compile(r"\.\w+\(\) missing \d+ required positional argument")
_NO_DICT = re.compile(r"(?:Tensor'?|NoneType'|float'?|list'|tuple'|Variable'?) object has no attribute 'items'")
_NO_CALLBACK = "'function' object has no attribute 'set_model'"
_BY_ARGUMENT = {"epoch": "on_epoch_end", "batch": "on_train_batch_end", "step": "on_train_batch_end"}
_STEPS = {"fit": "train_step", "evaluate": "test_step"}


def of_callback(situation: Situation) -> Explanation | None:
    """The explanation, if `callbacks=` has a class, and not an object of it."""
    if situation.kind != "TypeError" or not _OF_CLASS.search(situation.message):
        return None
    for spot, call in failed_fits(situation):
        given = next((one.value for one in call.keywords if one.arg == "callbacks"), None)
        every = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given] if given is not None else []
        found = [one for one in every if isinstance(kind := lookup(one, spot), type) and of_keras(kind, "Callback")]
        if not found:
            continue
        first = found[0]
        text = spot.source.text(first)
        cause = f"{text} is a class, and Keras calls the methods of an object: `{text}()` makes one."
        needed = [name for one in found for name in _needed(lookup(one, spot))]
        if needed:
            advice = f"Write {text}({', '.join(_needed(lookup(first, spot)))}), with these values."
            return Explanation(RULE, spot.file, first.lineno, cause, None, advice)
        edit = edit_of(spot.file, spot.source.replaced({one: f"{spot.source.text(one)}()" for one in found}))
        return Explanation(RULE, spot.file, first.lineno, cause, edit, "" if edit else f"Write {text}().")
    return None


def of_function(situation: Situation) -> Explanation | None:
    """The explanation, if `callbacks=` has a function, as LambdaCallback takes it."""
    if situation.kind != "AttributeError" or not situation.message.startswith(_NO_CALLBACK):
        return None
    for spot, call in failed_fits(situation):
        given = next((one.value for one in call.keywords if one.arg == "callbacks"), None)
        every = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given] if given is not None else []
        found = [one for one in every if type(lookup(one, spot)).__name__ == "function"]
        if len(found) != 1:
            continue
        text, code = spot.source.text(found[0]), lookup(found[0], spot).__code__
        names = code.co_varnames[: code.co_argcount]
        method = _BY_ARGUMENT.get(names[0], "") if len(names) == 2 else ""
        keras = keras_name(spot)
        cause = f"{text} is a function, and Keras calls the methods of a Callback. LambdaCallback makes one of it."
        new = f"{keras}.callbacks.LambdaCallback({method or 'on_epoch_end'}={text})"
        edit = edit_of(spot.file, spot.source.replaced({found[0]: new})) if method else None
        advice = "" if edit is not None else f"Write {new}, of a function of the epoch and its logs."
        return Explanation(RULE, spot.file, found[0].lineno, cause, edit, advice, "likely")
    return None


def _needed(kind: Any) -> list[str]:
    """What a class cannot be made without; read of its code."""
    made = inspect.getattr_static(kind, "__init__", None)
    code, defaults = getattr(made, "__code__", None), getattr(made, "__defaults__", None) or ()
    return list(code.co_varnames[1 : code.co_argcount - len(defaults)]) if code is not None else []


def of_step(situation: Situation) -> Explanation | None:
    """The explanation, if `train_step` or `test_step` returns no dict."""
    if situation.kind != "AttributeError" or not _NO_DICT.search(situation.message):
        return None
    for spot, call in failed_fits(situation):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        model = lookup(owner, spot) if owner is not None else None
        name = _STEPS.get(dotted(call.func).rpartition(".")[2], "")
        step = inspect.getattr_static(type(model), name, None) if of_keras(type(model), "Model") and name else None
        found = definition_of(getattr(step, "__code__", None))
        if found is not None:
            return _of_returns(*found, type(model).__name__)
    return None


def _of_returns(file: str, step: ast.FunctionDef, kind: str) -> Explanation | None:
    source = read(file)
    returns = [one for one in own_nodes(step) if isinstance(one, ast.Return)]
    values = [one.value for one in returns if one.value is not None]
    takes = 'Keras takes a dict of names and numbers: `{"loss": loss}`.'
    if not values:
        cause = f"{kind}.{step.name} returns nothing. {takes}"
        return Explanation(RULE, file, step.lineno, cause, None, "Return such a dict.")
    if len(values) != 1 or isinstance(values[0], ast.Dict):
        return None
    value = values[0]
    cause = f"{kind}.{step.name} returns `{short(source.text(value), 30)}`, which is not a dict. {takes}"
    if isinstance(value, ast.Tuple) and all(isinstance(one, ast.Name) for one in value.elts):
        new = ", ".join(f'"{source.text(one)}": {source.text(one)}' for one in value.elts)
    else:
        new = f'"loss": {source.text(value)}'
    edit = edit_of(file, source.replaced({value: f"{{{new}}}"}))
    return Explanation(RULE, file, value.lineno, cause, edit, "" if edit else "Return such a dict.")
