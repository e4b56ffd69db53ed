"""A number of `fit` asked for by a name that it has not: `logs["val_acc"]`, `history.history["acc"]`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.models.monitored import RULE, instead, logs_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, held, lookup, of_keras
from pyfunc_debug.doctor.failures.reading.tables import is_array, is_frame

_OF_NONE = re.compile(r"NoneType")
_PATH = re.compile(r"Failed to format this callback filepath: .*Reason: \\?'(\w+)")
_NUMBERS = (int, float)
_MEASURED = ("accuracy", "acc", "mae", "mse", "mean_absolute_error", "mean_squared_error")
"""Names of metrics that stand for one kind of number, and that `compile` takes."""
_FARTHEST = 8
"""Lines that one paste goes over."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line asks for a number of `fit` by a name that is not among them."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    path = _PATH.search(situation.message) if situation.kind == "KeyError" else None
    if path is not None:
        return _of_path(spot, statement, path[1])
    if situation.kind == "KeyError" and situation.inner.args:
        asked = [
            (one.value, one.slice) for one in ast.walk(statement)
            if isinstance(one, ast.Subscript) and situation.inner.args[0] in (_text(one.slice), _kept(one.slice, spot))
        ]  # fmt: skip
        before = _before_its_end(spot, asked)
        if before is not None:
            return before
    elif situation.kind == "TypeError" and _OF_NONE.search(situation.message):
        asked = _gotten(spot, statement)
    else:
        return None
    for owner, key in asked:
        logs, name = _logs(owner, spot), _text(key) or _kept(key, spot)
        if name and logs and name not in logs:
            return _told(situation, spot, owner, key, name, logs)
    return None


def _kept(key: ast.expr, spot: Spot) -> str:
    """The text that a name stands for: `logs[k]`."""
    value = spot.value(key.id) if isinstance(key, ast.Name) else None
    return value if type(value) is str else ""


def _before_its_end(spot: Spot, asked: list[tuple[ast.expr, ast.expr]]) -> Explanation | None:
    """`self.model.history.history["loss"][-1]` in a callback: Keras adds an epoch's numbers behind the user's own."""
    for owner, key in asked:
        text, given = spot.source.text(owner), parameters(spot.function) if spot.function is not None else []
        name = getattr(spot.function, "name", "")
        logs = spot.value(given[1]) if len(given) > 1 and name == "on_epoch_end" and spot.by == "Keras" else None
        if not text.endswith(".history.history") or type(logs) is not dict or not _text(key):
            continue
        model = (
            held(owner.value.value, spot)
            if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Attribute)
            else None
        )
        past = vars(model).get("history") if of_keras(type(model), "Model") else None
        if not of_keras(type(past), "History") or vars(past).get("history") != {}:
            continue
        meant = _text(key) if _text(key) in logs else instead(_text(key), list(logs))
        whole = spot.source.parent(key)
        outer = spot.source.parent(whole) if whole is not None else None
        last = isinstance(outer, ast.Subscript) and spot.source.text(outer.slice) == "-1"
        cause = (
            f"{text} has no number at the end of the first epoch: Keras writes an epoch into it after the callbacks of "
            f"fit have run. {given[1]} has those of this epoch: {short(', '.join(map(str, logs)), 60)}."
        )
        edit = None
        if last and meant is not None and isinstance(outer, ast.Subscript):
            edit = edit_of(spot.file, spot.source.replaced({outer: f"{given[1]}{_bracketed(key, meant, spot)}"}))
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Read {given[1]} there.")
    return None


def _bracketed(key: ast.expr, name: str, spot: Spot) -> str:
    return f"[{_quoted(key, name, spot)}]"


def _quoted(key: ast.expr, name: str, spot: Spot) -> str:
    """A name between the quotes that the user has there: in an f-string no others may stand."""
    mark = spot.source.text(key)[-1:]
    return f"{mark}{name}{mark}" if mark in ("'", '"') else f'"{name}"'


def _of_path(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`ModelCheckpoint("m_{val_acc:.2f}.keras")`, where fit has val_accuracy, or no validation data."""
    texts = [
        one for call in calls(spot.source.tree) if dotted(call.func).rpartition(".")[2] == "ModelCheckpoint"
        for given in (*call.args[:1], *(word.value for word in call.keywords if word.arg == "filepath"))
        for one in ast.walk(given) if isinstance(one, ast.Constant) and f"{{{name}" in str(one.value)
    ]  # fmt: skip
    logs = [one for fit in fits(statement) for one in logs_of(spot, fit)]
    if len(texts) != 1 or not logs:
        return None
    node, known = texts[0], [*logs, "epoch"]
    cause = f"The file's name has {{{name}}} in it, and fit has {short(', '.join(known), 60)}."
    new = instead(name, logs)
    if new is None and name.startswith("val_") and "val_loss" in logs:
        new = "val_loss"
    if new is None or not isinstance(node, ast.Constant):
        advice = "Give fit validation_data." if name.startswith("val_") else "Write one of these."
        return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
    text = spot.source.text(node).replace(f"{{{name}", f"{{{new}")
    edit = edit_of(spot.file, spot.source.replaced({node: text}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit is not None else f"Write {new}.")


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _gotten(spot: Spot, statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """`logs.get("val_acc")` in a statement, or in the line that made a name of it which is None."""
    of_none = {name for name in names(statement) if name in spot.variables and spot.variables[name] is None}
    function = spot.function
    made = [
        one.value for one in ast.walk(function) if isinstance(one, ast.Assign) and len(one.targets) == 1
        and isinstance(one.targets[0], ast.Name) and one.targets[0].id in of_none
    ] if function is not None else []  # fmt: skip
    return [
        (one.func.value, one.args[0]) for part in (statement, *made) for one in calls(part)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "get" and len(one.args) == 1 and not one.keywords
    ]  # fmt: skip


def _logs(owner: ast.expr, spot: Spot) -> list[str]:
    """The names of the numbers of `fit` that an expression holds: a callback's logs, or a history."""
    value = lookup(owner, spot)
    if isinstance(owner, ast.Attribute) and of_keras(type(lookup(owner.value, spot)), "History"):
        value = vars(lookup(owner.value, spot)).get("history")
    if is_frame(value):
        return [str(one) for one in value.columns] if "loss" in value.columns else []
    if type(value) is not dict or "loss" not in value or not all(type(one) is str for one in value):
        return []
    if isinstance(owner, ast.Name) and not (_of_callback(owner, spot) or _of_history(owner, spot)):
        return []
    return list(value) if all(map(_is_logged, value.values())) else []


def _of_callback(owner: ast.Name, spot: Spot) -> bool:
    """Whether Keras gave it to the function that runs."""
    function = spot.function
    return (
        spot.by == "Keras" and isinstance(function, (ast.FunctionDef, ast.Lambda)) and owner.id in parameters(function)
    )


def _of_history(owner: ast.Name, spot: Spot) -> bool:
    """Whether a line makes it of what `fit` returns: `h = model.fit(x, y).history`."""
    return any(
        isinstance(one, ast.Assign) and isinstance(one.value, ast.Attribute) and one.value.attr == "history"
        and any(isinstance(name, ast.Name) and name.id == owner.id for name in one.targets)
        for one in ast.walk(spot.source.tree)
    )  # fmt: skip


def _is_logged(value: Any) -> bool:
    """Whether it is a number, or a list with one of each epoch."""
    every = value if type(value) is list else [value]
    return all(type(one) in _NUMBERS or is_array(one) for one in every)


def _told(
    situation: Situation, spot: Spot, owner: ast.expr, key: ast.expr, name: str, logs: list[str]
) -> Explanation | None:
    text = spot.source.text(owner)
    cause = f"{text} has no `{name}`: its names are {short(', '.join(logs), 60)}."
    validated = any(one.startswith("val_") for one in logs)
    if not name.startswith("val_") or validated:
        new = instead(name, logs) if _text(key) else None
        if new is None and (measured := _without_metrics(spot, owner, name, logs, cause)) is not None:
            return measured
        edit = (
            Edit(spot.file, *spot.source.kept_lines(_renamed(spot, owner, logs, {key: _quoted(key, new, spot)})))
            if new
            else None
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Ask for one of these names.")
    if "batch" in getattr(spot.function, "name", ""):
        advice = "The numbers of validation come at the end of an epoch: read them in on_epoch_end."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    cause += " Names that begin with val_ are those of validation data."
    fitted = _fit(situation, spot)
    if fitted is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Give fit validation_data.")
    outer, fit = fitted
    if any(one.arg in ("validation_data", "validation_split", None) for one in fit.keywords):
        return Explanation(RULE, spot.file, spot.line, cause, None, "Ask for them only where fit has validated.")
    cause += f" {outer.source.text(fit.func)} got none (line {fit.lineno})."
    if not all(_is_data(argument(fit, place, word), outer) for place, word in ((0, "x"), (1, "y"))):
        return Explanation(RULE, spot.file, spot.line, cause, None, "Give it validation_data.")
    new = outer.source.with_argument(fit, "validation_split=0.2")
    edit = edit_of(outer.file, outer.source.replaced({fit: new}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Give it validation_data.", "likely")


def _without_metrics(spot: Spot, owner: ast.expr, name: str, logs: list[str], cause: str) -> Explanation | None:
    """`logs["accuracy"]` where `compile` was given no metrics: with this one."""
    past = lookup(owner.value, spot) if isinstance(owner, ast.Attribute) else None
    if not (isinstance(owner, ast.Name) or of_keras(type(past), "History")):  # a table of the user's own
        return None
    metric = name.removeprefix("val_")
    compiles = [one for one in spot.source.calls_of(frozenset({"compile"})) if isinstance(one.func, ast.Attribute)]
    if metric not in _MEASURED or not set(logs) <= {"loss", "val_loss", "learning_rate"} or len(compiles) != 1:
        return None
    given = compiles[0]
    if len(given.args) > 2 or any(one.arg in ("metrics", "weighted_metrics", None) for one in given.keywords):
        return None
    if dotted(given.func) == "re.compile":
        return None
    cause = f"{cause} compile (line {given.lineno}) was given no metrics: fit measures the loss alone."
    lines = spot.source.ended(given, f'metrics=["{metric}"]')
    edit = Edit(spot.file, given.lineno, given.end_lineno or given.lineno, lines)
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _renamed(spot: Spot, owner: ast.expr, logs: list[str], pieces: dict[ast.expr, str]) -> dict[ast.expr, str]:
    """The same for what stands near and asks for another name that is not there."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Subscript) and ast.unparse(one.value) == ast.unparse(owner) and _text(one.slice):
            new = instead(_text(one.slice), logs) if _text(one.slice) not in logs else None
            if new is not None and new.startswith("val_") == _text(one.slice).startswith("val_"):
                pieces |= {one.slice: _quoted(one.slice, new, spot)} if abs(one.lineno - spot.line) < _FARTHEST else {}
    return pieces


def _is_data(node: ast.expr | None, spot: Spot) -> bool:
    """Whether it is an array, which Keras can split."""
    value = lookup(node, spot) if node is not None else None
    return type(value).__module__ == "numpy" and len(getattr(value, "shape", ())) > 0


def _fit(situation: Situation, spot: Spot) -> tuple[Spot, ast.Call] | None:
    """The call of `fit` that runs; else the one of the file."""
    found = []
    for outer in situation.spots:
        statement = outer.statement
        found += [(outer, one) for one in (fits(statement) if statement is not None else ())]
    found = found or [(spot, one) for one in spot.source.calls_of(frozenset({"fit"}))]
    found = [one for one in found if isinstance(one[1].func, ast.Attribute) and one[1].func.attr == "fit"]
    return found[0] if len(found) == 1 else None
