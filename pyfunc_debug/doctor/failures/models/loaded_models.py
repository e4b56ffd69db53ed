"""`load_model` does not find a class or function of the user's, or refuses a lambda that a file holds."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import calls, keras_name, of_package
from pyfunc_debug.program.frames import is_installed

RULE = "saved-classes"
_LOST = re.compile(r"Could not locate (class|function) '(\w+)'|Unknown (?:layer|loss|metric|object):? '?(\w+)'?")
_UNSAFE = re.compile(r"deserialization of a `Lambda` layer whose `function` is a Python lambda")
_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_LOADS = ("load_model", "model_from_json", "clone_model")
_BASES = ("Layer", "Model", "Loss", "Metric", "LearningRateSchedule", "Initializer", "Regularizer", "Constraint")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model was loaded without what it is made of."""
    lost, unsafe = _LOST.search(situation.message), _UNSAFE.search(situation.message)
    spot = next((one for one in reversed(situation.spots) if _load(one) is not None), None)
    call = _load(spot) if spot is not None else None
    if spot is None or call is None or not (lost or unsafe):
        return None
    named = _named(spot, "") if lost is None else None
    if named is not None:
        cause = (
            "The file holds the code of a Python lambda, without the names of this file that it reads: loaded, it "
            "would not find them. Keras saves a function that is registered by its name."
        )
        return Explanation(RULE, spot.file, call.lineno, cause, named)
    if lost is None:
        cause = (
            "The file holds a Python lambda of a Lambda layer: loading runs it, and Keras does so only for files that "
            "you say you trust. A layer of your own (keras.layers.Layer) needs no such leave."
        )
        return _with(spot, call, "safe_mode=False", cause, "Load it with safe_mode=False.")
    name, kind = lost[2] or lost[3], lost[1] or "class"
    library = _of_library(situation, spot, name) if kind == "function" else None
    if library is not None:
        return _of_function(spot, call, name, library)
    if name not in spot.variables and name not in spot.module:
        return None
    if dotted(call.func).endswith("clone_model"):
        return _registered(spot, name, kind)
    also = [one for one in own_classes(spot) if one != name] if kind == "class" else []
    given = ", ".join(f'"{one}": {one}' for one in (name, *also))
    cause = (
        f"The file names the {kind} {name}, and Keras knows classes and functions of yours only if they are given at "
        "load, or registered (@keras.utils.register_keras_serializable()) before the model is saved."
    )
    return _with(spot, call, f"custom_objects={{{given}}}", cause, f"Load it with custom_objects={{{given}}}.")


def _registered(spot: Spot, name: str, kind: str) -> Explanation | None:
    """`clone_model` of a model with a class of the user's: it takes no custom_objects."""
    own = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, (ast.ClassDef, ast.FunctionDef)) and one.name == name
    ]  # fmt: skip
    if len(own) != 1:
        return None
    line = min([own[0].lineno, *(one.lineno for one in own[0].decorator_list)])
    text = f"@{keras_name(spot)}.utils.register_keras_serializable()"
    cause = (
        f"clone_model makes the model again by the names of its parts, and Keras knows the {kind} {name} only if it "
        "is registered."
    )
    blanks = indent_of(spot.source.lines[line - 1])
    return Explanation(RULE, spot.file, line, cause, Edit(spot.file, line, line - 1, (f"{blanks}{text}",)))


def _of_library(situation: Situation, spot: Spot, name: str) -> str | None:
    """How a function of a package is written that was given to Keras: `tf.math.real`, for a file that says `real`.

    Args:
      situation: The failure.
      spot: The frame that loads.
      name: What the file says.

    Returns:
      The text, where the frame that loads knows it and it stands for one object; None of a function of the user's.
    """
    found: dict[str, Any] = {}
    for _, source in situation.sources():
        for call in calls(source.tree):
            for given in (*call.args, *(one.value for one in call.keywords)):
                value = of_package(given, spot) if isinstance(given, (ast.Name, ast.Attribute)) else None
                if callable(value) and getattr(value, "__name__", "") == name and _is_installed(value):
                    found[dotted(given)] = value
    return next(iter(found)) if len({id(one) for one in found.values()}) == 1 else None


def _is_installed(function: Any) -> bool:
    """Whether a function is a package's, and not the user's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is None or is_installed(code.co_filename)


def _of_function(spot: Spot, call: ast.Call, name: str, written: str) -> Explanation:
    """`custom_objects={"real": tf.math.real}`, also where the call has it under other names."""
    cause = (
        f"Keras wrote {written} into the file as `{name}`, without its package, and looks for a function of this name "
        "in custom_objects."
    )
    entry = f'"{name}": {written}'
    given = next((one.value for one in call.keywords if one.arg == "custom_objects"), None)
    if given is None:
        return _with(spot, call, f"custom_objects={{{entry}}}", cause, f"Load it with custom_objects={{{entry}}}.")
    if isinstance(given, ast.Dict):
        text = spot.source.text
        kept = [
            f"{text(key)}: {text(value)}" if key is not None else f"**{text(value)}"
            for key, value in zip(given.keys, given.values)
            if dotted(value) != written
        ]
        new = f"{{{', '.join([*kept, entry])}}}"
    else:
        new = f"{{**{spot.source.text(given)}, {entry}}}"
    cause += " It has none of that name here."
    edit = edit_of(spot.file, spot.source.replaced({given: new}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def of_name(situation: Situation) -> Explanation | None:
    """The explanation, if a lambda of a layer does not find a name of the file that it was loaded without."""
    match = _UNKNOWN.search(situation.message)
    if match is None or situation.kind != "NameError":
        return None
    edits = (_named(one, match[1]) for one in situation.spots if match[1] in one.module and _saves_and_loads(one))
    edit = next((one for one in edits if one is not None), None)
    if edit is None:
        return None
    cause = (
        f"The lambda of this Lambda layer reads `{match[1]}` of this file. Keras saved the lambda's code alone: "
        "loaded, it does not find that name. A registered function is saved by its name, and found with all it reads."
    )
    return Explanation(RULE, edit.file, edit.first, cause, edit)


def _saves_and_loads(spot: Spot) -> bool:
    """Whether a frame's file saves models and loads them."""
    called = {dotted(one.func).rpartition(".")[2] for one in calls(spot.source.tree)}
    return bool(called & set(_LOADS) and called & {"save", "save_model"})


def _named(spot: Spot, lacked: str) -> Edit | None:
    """`Lambda(lambda t: clean(t))` as a Lambda of a registered function, where the lambda reads names of the file.

    Args:
      spot: The frame that loads.
      lacked: The name that it did not find; "" where the file has no other lambda, or loading is refused again.
    """
    found = [
        (call, call.args[0]) for call in calls(spot.source.tree)
        if dotted(call.func).rpartition(".")[2] == "Lambda" and call.args and isinstance(call.args[0], ast.Lambda)
    ]  # fmt: skip
    reading = [(call, one) for call, one in found if any(name in spot.module for name in names(one))]
    reading = [(call, one) for call, one in reading if not lacked or lacked in names(one)]
    if len(reading) != 1 or (not lacked and len(found) != 1):
        return None
    one, source = reading[0][1], spot.source
    statement = source.statement(one.lineno)
    if statement is None or hasattr(statement, "body") or "in_lambda" in names(source.tree):
        return None
    blanks, first = indent_of(source.lines[statement.lineno - 1]), statement.lineno
    last = statement.end_lineno or statement.lineno
    listed = ", ".join(part.arg for part in one.args.args)
    lines = (
        f"{blanks}@{keras_name(spot)}.utils.register_keras_serializable()",
        f"{blanks}def in_lambda({listed}):",
        f"{blanks}    return {source.text(one.body)}",
        *source.spliced({one: "in_lambda"}, first, last),
    )
    return Edit(spot.file, first, last, lines)


def _load(spot: Spot | None) -> ast.Call | None:
    """The call in a frame's line that loads a model."""
    statement = spot.statement if spot is not None else None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _LOADS] if statement else []
    return found[0] if len(found) == 1 else None


def own_classes(spot: Spot) -> list[str]:
    """The file's classes that a model may be made of."""
    return [
        one.name for one in spot.source.tree.body
        if isinstance(one, ast.ClassDef) and one.name in spot.module
        and any(dotted(base).endswith(_BASES) for base in one.bases)
    ]  # fmt: skip


def _with(spot: Spot, call: ast.Call, keyword: str, cause: str, advice: str) -> Explanation:
    """The call with one keyword more."""
    name, text = keyword.partition("=")[0], spot.source.text(call)
    edit = None
    if name not in [one.arg for one in call.keywords]:
        comma = "" if text.endswith("()") else ", "
        found = spot.source.replaced({call: f"{text[:-1].rstrip().rstrip(',')}{comma}{keyword})"})
        edit = edit_of(spot.file, found)
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)
