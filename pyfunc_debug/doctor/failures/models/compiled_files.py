"""A model that an .h5 file holds was compiled with functions of the user's: Keras 3 fails on their names.

Keras asks the file's training configuration for losses and metrics, and looks for their names among its own
(keras/src/legacy/saving/saving_utils.py). The model itself is loaded without them.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "saved-classes"
_READS = "compile_args_from_training_config"
_RESOLVES = "_resolve_compile_arguments_compat"
_UNKNOWN = "Unknown variable: "
_ENDS = (".h5", ".hdf5")
_TRAINS = ("fit", "evaluate", "train_on_batch", "test_on_batch")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model of an .h5 file was not loaded for its losses and metrics."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind not in ("TypeError", "ValueError"):
        return None
    loads = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == "load_model"]
    if len(loads) != 1 or argument(loads[0], 2, "compile") is not None:
        return None
    reading = [one for one in frames(situation.inner.__traceback__) if one.f_code.co_name == _READS]
    if not reading:
        return None
    name = _name(situation, reading[-1].f_locals.get("training_config"))
    cause = (
        f"Keras fails on what the file says of how the model was compiled{f' ({name})' if name else ''}, and not on "
        "the model: that loads without it."
    )
    call, source = loads[0], spot.source
    lines, first, last = source.ended(call, "compile=False"), call.lineno, call.end_lineno or call.lineno
    again = _compiled(spot, statement, call)
    if again is None:
        return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, first, last, lines))
    cause += " Compiled again, it can be trained."
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, first, last, (*lines, again)))


def of_optimizer(situation: Situation) -> Explanation | None:
    """The explanation, if a model that was loaded with its optimizer from an .h5 file cannot be trained further."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.message.startswith(_UNKNOWN):
        return None
    owners = {dotted(one.func.value) for one in calls(statement) if isinstance(one.func, ast.Attribute)}
    loaded = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        and dotted(one.value.func).rpartition(".")[2] == "load_model" and one.lineno < spot.line
        and {dotted(target) for target in one.targets} & owners - {""}
    ]  # fmt: skip
    call = loaded[-1].value if loaded else None
    path = argument(call, 0, "filepath") if isinstance(call, ast.Call) else None
    name = computed(path, spot) if path is not None else None
    if not isinstance(call, ast.Call) or not str(name).endswith(_ENDS) or argument(call, 2, "compile") is not None:
        return None
    cause = f"The optimizer that came with {name} knows none of the model's variables: so Keras 3 loads it from .h5."
    again = _compiled(spot, loaded[-1], call)
    edit = Edit(spot.file, statement.lineno, statement.lineno - 1, (again,)) if again is not None else None
    cause += " Compiled again, the model has a new one." if edit is not None else ""
    advice = "" if edit else "Compile it again, with a new optimizer, before it is trained."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _name(situation: Situation, config: Any) -> str:
    """The loss or metric that Keras was at; "" where it is not said."""
    found = [
        one.f_locals.get("obj") for one in frames(situation.inner.__traceback__) if one.f_code.co_name == _RESOLVES
    ]
    loss = found[-1] if found else config.get("loss") if type(config) is dict else None
    return loss if isinstance(loss, str) else ""


def _compiled(spot: Spot, statement: ast.stmt, load: ast.Call) -> str | None:
    """The file's line `model.compile(...)`, for what was loaded; None where that is not trained, or it is not known."""
    source = spot.source
    if not isinstance(statement, ast.Assign) or statement.value is not load or len(statement.targets) != 1:
        return None
    owner, trained = dotted(statement.targets[0]), False
    for one in calls(source.tree):
        method = one.func if isinstance(one.func, ast.Attribute) else None
        trained = trained or (
            method is not None and method.attr in _TRAINS and dotted(method.value) == owner and one.lineno > load.lineno
        )
    found = [one for one in calls(source.tree) if isinstance(one.func, ast.Attribute) and one.func.attr == "compile"]
    if not owner or not trained or len(found) != 1 or source.function(found[0].lineno) is not spot.function:
        return None
    made, others = _optimizers(spot, found[0]), found[0]
    if made is None or found[0].lineno > load.lineno:
        return None
    pieces = [*map(source.text, others.args), *(f"{one.arg}={source.text(one.value)}" for one in others.keywords)]
    text = ", ".join(made.get(piece, piece) for piece in pieces)
    return f"{indent_of(source.lines[statement.lineno - 1])}{owner}.compile({text})"


def _optimizers(spot: Spot, call: ast.Call) -> dict[str, str] | None:
    """What stands for an optimizer's name: a new one, as Keras ties an optimizer to its first model's variables."""
    given = argument(call, 0, "optimizer")
    if not isinstance(given, (ast.Name, ast.Attribute)):
        return {}
    found = [
        one.value for one in ast.walk(spot.source.tree) if isinstance(one, ast.Assign)
        and dotted(given) in map(dotted, one.targets)
    ]  # fmt: skip
    if len(found) != 1 or not isinstance(found[0], ast.Call):
        return None
    new, old = spot.source.text(found[0]), spot.source.text(given)
    if set(names(found[0])) - set(spot.module) - set(spot.variables):
        return None
    return {old: new, f"optimizer={old}": f"optimizer={new}"}
