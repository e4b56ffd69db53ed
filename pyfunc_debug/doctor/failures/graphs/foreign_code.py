"""Code of neither TensorFlow nor Keras that met a symbolic tensor, and failures that only name one in their text."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.inner_inputs import in_a_layer
from pyfunc_debug.doctor.failures.models.keras_calls import cuts_a_loss
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import as_python
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE, SHAPE_CHECK, explained, runs, when
from pyfunc_debug.doctor.failures.pastes.value_fixes import value_fix
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_keras,
    is_symbolic,
    lookup,
    root_is,
    shape_of,
    symbolic_parts,
    takes_tensors,
)
from pyfunc_debug.program.frames import is_generated

_CALLED_WRONG = re.compile(r"positional argument|keyword argument|is not defined|No module named|referenced before")
_PYTHONS = {
    "AttributeError", "FileNotFoundError", "ImportError", "IndexError", "KeyError", "ModuleNotFoundError", "NameError",
    "RecursionError", "UnboundLocalError", "ZeroDivisionError",
}  # fmt: skip
"""What Python itself raises in a line, whatever tensors are in it; on a symbolic tensor it raises others."""
_NAMED = re.compile(r"SymbolicTensor|KerasTensor|symbolic `?(?:tf\.)?Tensor")


def unnamed(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Without a symbolic tensor in the user's line: reported only where the text itself names one."""
    if not _NAMED.search(situation.message) or SHAPE_CHECK.search(situation.message):
        return None
    code = short(spot.source.text(statement).split("\n")[0], 44)
    listed = _stacked(spot, statement)
    if listed is not None:
        name, edit = listed
        cause = f"`{code}` ran once, {when(situation)}: the tensors in {name} have no value there. {runs(situation)}"
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    if "KerasTensor" in situation.message:
        cause = (
            f"`{code}` meets a Keras tensor. It describes what a model will compute: only layers and keras.ops take "
            "it, and it has no value before the model is given data."
        )
        layer = in_a_layer(spot, statement)
        if layer is not None:
            cause += " As a Lambda layer it is part of the model."
            return Explanation(RULE, spot.file, spot.line, cause, layer)
        advice = "keras.Model(model.inputs, tensor).predict(data) has its value."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice, "likely")
    cause = f"`{code}` ran once, {when(situation)}, with a symbolic tensor, which had no value yet. {runs(situation)}"
    if spot.function is None:  # a module's line is not traced: what it calls is, and is nobody's in this program
        cause = f"`{code}` has TensorFlow trace code of a library, which asks a tensor without a value for it. "
        cause += runs(situation)
    tf = alias(spot, "tensorflow")
    return Explanation(
        RULE,
        spot.file,
        spot.line,
        cause,
        None,
        f"Use ops of {tf} there, or put it in {tf}.py_function(f, [x], Tout).",
        "likely",
    )


def _stacked(spot: Spot, statement: ast.stmt) -> tuple[str, Edit | None] | None:
    """The list of tensors of one shape and dtype that a line makes an array of, and the line with `tf.stack`."""
    for call in calls(statement):
        name = dotted(call.func).rpartition(".")[2]
        given = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if name not in ("array", "asarray", "stack") or not root_is(call.func, spot, "numpy") or given is None:
            continue
        held = lookup(given, spot)
        if (
            type(held) not in (list, tuple)
            or not held
            or not all(is_symbolic(one) and not is_keras(one) for one in held)
        ):
            continue
        if len({(dtype_of(one), str(shape_of(one))) for one in held}) == 1:
            text = f"{alias(spot, 'tensorflow')}.stack({spot.source.text(given)})"
            return spot.source.text(given), wrapping.replace_expression(spot, call, text)
    return None


def elsewhere(situation: Situation) -> Explanation | None:
    """A library that is neither TensorFlow nor Keras failed on a symbolic tensor, in words that name none."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not wrapping.entry(situation)[1]:
        return None
    if (opened := _opened(situation, spot, statement)) is not None:
        return opened
    if SHAPE_CHECK.search(situation.message):
        return None
    if _CALLED_WRONG.search(situation.message) or _raised_by(situation, ("tensorflow", "keras")):
        return None
    if situation.kind in _PYTHONS and _in_line(situation, spot) and not _NAMED.search(situation.message):
        return None
    if isinstance(statement, ast.Raise):
        return _refused(situation, spot, statement)
    if isinstance(statement, ast.Assert):  # the program's own
        return None
    value = wrapping.value_here(spot, statement)
    given: list[ast.expr] = []
    for one in ast.walk(value) if value is not None else ():
        if isinstance(one, ast.Call) and not _harmless(one, spot):
            given += [*one.args, *(keyword.value for keyword in one.keywords)]
        if isinstance(one, ast.Subscript) and not symbolic_parts(one.value, spot):
            given.append(one.slice)
    parts = {name: part for one in given for name, part in symbolic_parts(one, spot).items()}
    if not parts or any(is_keras(one) for one in parts.values()):
        return None
    edit, _ = value_fix(situation, spot, statement, value, None)
    if cuts_a_loss(situation, statement, edit, parts):
        edit = None
    return explained(situation, spot, statement, parts, edit, sure=False)


def _opened(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """A `GFile(name)` that was made with a symbolic tensor: it fails where it is first read."""
    for one in names(statement):
        value = spot.value(one)
        path = vars(value).get("_FileIO__name") if type(value).__name__ in ("GFile", "FileIO") else None
        if not is_symbolic(path):
            continue
        called = next((name for name, part in spot.variables.items() if part is path), one)
        wrap = as_python(situation) or wrapping.mapped_function(situation)
        return explained(
            situation, spot, statement, {called: path}, wrap.edit if wrap is not None else None, sure=False
        )
    return None


def _refused(situation: Situation, spot: Spot, statement: ast.Raise) -> Explanation | None:
    """A check of the program's own, `if not isinstance(text, str): raise ...`, met a symbolic tensor."""
    check = next((one for one in spot.source.around(statement) if isinstance(one, ast.If)), None)
    checked = [one for one in calls(check.test) if dotted(one.func) == "isinstance" and one.args] if check else []
    parts = {name: part for one in checked for name, part in symbolic_parts(one.args[0], spot).items()}
    wrap = as_python(situation) or wrapping.mapped_function(situation) if parts else None
    if check is None or wrap is None or any(is_keras(one) for one in parts.values()):
        return None
    return explained(situation, spot, check, parts, wrap.edit, sure=False)


def _harmless(call: ast.Call, spot: Spot) -> bool:
    """Whether a call takes symbolic tensors as any value."""
    if dotted(call.func) in ("isinstance", "print", "type", "hasattr", "getattr", "id", "repr", "str", "zip", "dict"):
        return True
    return takes_tensors(call, spot) or any(root_is(call.func, spot, name) for name in ("tensorflow", "keras"))


def _in_line(situation: Situation, spot: Spot) -> bool:
    """Whether the user's line raised it, and no code that it called."""
    traceback = situation.inner.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    file = traceback.tb_frame.f_code.co_filename if traceback is not None else ""
    return file == spot.file or is_generated(file)


def _raised_by(situation: Situation, packages: tuple[str, ...]) -> bool:
    """Whether the innermost frame is one of these packages'."""
    traceback, name = situation.inner.__traceback__, ""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next
    return name.partition(".")[0] in packages
