"""Python that asked a symbolic tensor for its value while a graph was built."""

from __future__ import annotations

import ast
import os
import re

from pyfunc_debug.doctor.failures.graphs import (
    checks,
    comprehensions,
    kept_lists,
    known_sizes,
    returned_values,
    state_changes,
)
from pyfunc_debug.doctor.failures.graphs.chosen_values import chosen
from pyfunc_debug.doctor.failures.graphs.foreign_code import unnamed
from pyfunc_debug.doctor.failures.graphs.session_feeds import in_session
from pyfunc_debug.doctor.failures.models.keras_calls import compiled_function, cuts_a_loss, is_loss
from pyfunc_debug.doctor.failures.models.keras_inputs import keras_input, listed_inputs
from pyfunc_debug.doctor.failures.models.measured_losses import measured, stepped
from pyfunc_debug.doctor.failures.ops import row_loops, steps
from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.ops.slopes import COST
from pyfunc_debug.doctor.failures.pastes import control_flow, texts_of_ops, wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import best
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE, SHAPE_CHECK, explained, few, runs, when
from pyfunc_debug.doctor.failures.pastes.value_fixes import converted, stored, value_fix
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_keras,
    is_symbolic,
    lookup,
    shape_of,
    symbolic_parts,
)
from pyfunc_debug.program.frames import is_generated

_VALUE = re.compile(
    r"'?(?:SymbolicTensor|Tensor|KerasTensor)'? object has no attribute '(?P<attribute>\w+)'"
    r"|Cannot evaluate tensor using `eval\(\)`"
    r"|Cannot use the given session to evaluate tensor"
    r"|must feed a value for placeholder tensor"
    r"|Cannot convert a symbolic (?:tf\.)?(?:Keras )?\w+.* to a [Nn]um[Pp]y array"
    r"|A KerasTensor is symbolic|KerasTensor\.__array__\(\)"
    r"|\b(?:SymbolicTensor|KerasTensor)\b.*cannot be interpreted as an integer"
    r"|(?:not|got|passed to|to) '?(?:a )?(?:SymbolicTensor|KerasTensor|Tensor)\b"
    r"|'(?:SymbolicTensor|KerasTensor|Tensor)' object (?:does not support|is not|cannot)"
    r"|(?<![a-z])Tensor is unhashable"
    r"|len is not well defined for a symbolic Tensor|len requires a non-scalar tensor"
    r"|A KerasTensor cannot be used as input to a TensorFlow function"
    r"|Expected any non-tensor type, but got a tensor instead"
    r"|(?:not|got|found) '?<tf\.Tensor '"
    r"|(?:of type|unsupported type|got|found|not) <class '[\w.]*(?:SymbolicTensor|KerasTensor)'>"
    r"|(?:float|int)\(\) argument must be .*(?:SymbolicTensor|KerasTensor|'Tensor')"
    r"|Expected type in .* but got .*SymbolicTensor"
    r"|Cannot (?:cast|convert) (?:a )?symbolic"
    r"|[Cc]an't convert object to 'str'.*SymbolicTensor"
    r"|(?:Unsupported|Unexpected|unexpected|[Ii]nvalid) .*\bSymbolicTensor\b",
    re.DOTALL,
)
_BOOL = re.compile(
    r"as a Python `?bool`? is not allowed|KerasTensor cannot be used as a boolean|truth value of a .*[Tt]ensor"
)
_ITERATE = re.compile(
    r"[Ii]terating over a symbolic|Cannot iterate over a Tensor with unknown first dimension"
    r"|Tensor objects are only iterable|Cannot iterate over a scalar"
)
_KERAS = re.compile(r"KerasTensor|keras_tensor")
_FOREIGN = re.compile(r"OpenCV\(|cv2\.error|PIL\.")
_KINDS = {"AttributeError", "NotImplementedError", "TypeError", "ValueError", "OperatorNotAllowedInGraphError", "error"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if this is why the program failed."""
    spot, message = situation.last, situation.message
    if (
        spot is None
        or situation.body
        or situation.kind not in {*_KINDS, "InvalidArgumentError", "UnidentifiedImageError"}
    ):
        return None
    statement = spot.statement
    if SHAPE_CHECK.search(message) or statement is None or isinstance(statement, ast.Raise):  # or the program's words
        return None
    value = wrapping.value_here(spot, statement)
    parts = symbolic_parts(value, spot) if value is not None else {}
    parts = parts or stored(statement, spot)
    if in_session(situation, spot, parts.values()):
        return None
    if _BOOL.search(message):
        return _bool(situation, spot, statement, value, parts)
    if _ITERATE.search(message):
        return _iterate(situation, spot, statement, value, parts)
    found = _VALUE.search(message)
    if not found and not (parts and situation.kind == "error" and _FOREIGN.search(message)):
        return None
    if not parts and value is not None and _KERAS.search(message):
        listed = listed_inputs(situation, spot, statement, value)
        if listed is not None:
            return listed
    if not parts:
        return steps.explain(situation, spot, statement) or unnamed(situation, spot, statement)
    if any(is_keras(one) for one in parts.values()):
        return keras_input(situation, spot, statement, value, parts)
    edit, sure = value_fix(situation, spot, statement, value, found["attribute"] if found else None)
    edit = _correlation(spot, statement) or edit
    if edit is None or "py_function(" in "\n".join(edit.lines):
        slopes, steps_in_it = measured(situation), stepped(situation)
        if slopes is not None or steps_in_it:
            return explained(situation, spot, statement, parts, slopes, sure=False, advice=steps_in_it or COST)
    if cuts_a_loss(situation, statement, edit, parts):
        edit = None
    then = texts_of_ops.THEN if edit is not None and edit == texts_of_ops.values_of_texts(spot) else ""
    if edit is not None and (both := returned_values.at_the_call(situation, edit)) is not None:
        edit, then = both, returned_values.SAID
    return explained(situation, spot, statement, parts, edit, sure, then)


def _correlation(spot: Spot, statement: ast.stmt) -> Edit | None:
    """`r, p = pearsonr(a, b)` as ops, where nobody asks for p."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(value, ast.Call):
        return None
    first, second = target.elts
    read = [one.id for one in ast.walk(spot.function or statement)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]  # fmt: skip
    if not isinstance(first, ast.Name) or not isinstance(second, ast.Name) or second.id in read:
        return None
    if dotted(value.func).rpartition(".")[2] != "pearsonr":
        return None
    part = ast.copy_location(ast.Subscript(value, ast.Constant(0), ast.Load()), value)
    text = as_ops(part, spot)
    line = spot.source.lines[statement.lineno - 1]
    new = f"{line[: len(line) - len(line.lstrip())]}{first.id} = {text}"
    return None if text is None else Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (new,))


def _bool(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, parts: dict[str, object]
) -> Explanation | None:
    function = spot.function
    if value is None or not parts:
        return unnamed(situation, spot, statement)
    if any(is_keras(one) for one in parts.values()):
        return keras_input(situation, spot, statement, value, parts)
    array, place = _array_of_values(value, spot)
    if array:
        cause = (
            f"{array} is a TensorArray that was made outside, with values: it takes Python's numbers, and {place} has "
            f"no value {when(situation)}. One that is made in the function takes it; what has to last from call to "
            "call is a variable."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Make {array} in the function.")
    edit = checks.as_op(spot, statement) or state_changes.edit(spot, statement, situation.message)
    if edit is None and wrapping.entry(situation)[1] == "Keras":
        edit = chosen(spot, statement)
    asks = any(isinstance(one, (ast.In, ast.NotIn)) for one in ast.walk(value))  # which AutoGraph does not convert
    if (
        edit is None
        and not asks
        and isinstance(statement, (ast.If, ast.While))
        and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    ):
        edit = converted(spot, function)
    if edit is None and not state_changes.goes_on(spot, statement):
        text = as_ops(value, spot, conditions=True)
        edit = wrapping.replace_expression(spot, value, text) if text is not None else None
    if edit is None and wrapping.entry(situation)[1] == "tf.data":
        edit = function_in_python(situation)
    code = short(spot.source.text(value), 40)
    cause = (
        f"`{code}` was used as a Python bool {when(situation)}: it depends on {few(parts)}, which has "
        "no value there. "
        + (
            "AutoGraph turns `if` into graph code only where it converts the function."
            if isinstance(statement, (ast.If, ast.While))
            else "A list's index and count, and `in`, compare its items with it: that needs a value."
            if asks or any(dotted(one.func).endswith((".index", ".count")) for one in calls(value))
            else "`and`, `or`, `not`, `a < b < c`, min and max need a value; ops do not."
        )
    )  # fmt: skip
    advice = "" if edit is not None else f"Write the condition with {alias(spot, 'tensorflow')}.cond or .where."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _array_of_values(value: ast.expr, spot: Spot) -> tuple[str, str]:
    """The TensorArray of eager code that an expression reads or writes, and the symbol at which; "" for any other."""
    for call in calls(value):
        owner = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        at = symbolic_parts(call.args[0], spot) if call.args else {}
        if type(owner).__name__ == "TensorArray" and at and not is_symbolic(getattr(owner, "flow", None)):
            return spot.source.text(call.func.value), few(at)  # type: ignore[attr-defined]
    return "", ""


def _iterate(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, parts: dict[str, object]
) -> Explanation | None:
    function = spot.function
    tf = alias(spot, "tensorflow")
    if value is None or not parts:
        return unnamed(situation, spot, statement)
    if any(is_keras(one) for one in parts.values()):
        advice = "A Keras model computes all samples at once: put the loop into the call of a layer, with tf.map_fn."
        return explained(situation, spot, statement, parts, None, advice=advice)
    edit: Edit | None = None
    said, over = "", few(parts)
    for one in ast.walk(value):
        if isinstance(one, (ast.ListComp, ast.GeneratorExp)) and _is_over_tensor(one.generators[0].iter, spot):
            counted = one.generators[0].iter
            if isinstance(counted, ast.Call) and dotted(counted.func) == f"{tf}.range":
                over = f"`{short(spot.source.text(counted), 40)}`"
            edit = known_sizes.as_python_ranges(spot, one) or comprehensions.in_graph(spot, one)
            if edit is None and not getattr(function, "decorator_list", ()):  # a tf.function is traced in a body, too
                edit = function_in_python(situation)
            break
    if edit is None and isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        count = len(statement.targets[0].elts)
        shape = shape_of(next(iter(parts.values())))
        columns = isinstance(value, ast.Name) and _of_columns(shape, count, situation)
        starred = any(isinstance(one, ast.Starred) for one in statement.targets[0].elts)
        if starred and not (shape and shape[0] is not None):
            return explained(situation, spot, statement, parts, function_in_python(situation))
        if not columns and shape and len(shape) > 1 and shape[0] is None and _is_given(situation, value):
            code = short(spot.source.text(statement).split("\n")[0], 44)
            cause = (
                f"`{code}` takes {few(parts)} apart along its first axis. That is the batch: it has a part for each "
                f"sample, and not {count}."
            )
            gives = "Keras gives a loss each output of a model alone: join them in the model, with layers.Concatenate."
            advice = gives if is_loss(situation) else "Take the columns that you mean, as x[:, 0]."
            return Explanation("structure", spot.file, spot.line, cause, None, advice)
        num = ", axis=-1" if columns else "" if shape and shape[0] is not None else f", num={count}"
        said = f"Its first axis is the batch: the {count} names stand for its columns." if columns else said
        edit = wrapping.replace_expression(spot, value, f"{tf}.unstack({spot.source.text(value)}{num})")
    if (
        edit is None
        and isinstance(statement, ast.For)
        and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    ):
        numbers = known_sizes.as_python_range(spot, statement.iter)
        edit = wrapping.replace_expression(spot, statement.iter, numbers) if numbers is not None else None
        edit = edit or (converted(spot, function) if control_flow.converts(function) else None)
        edit = edit or row_loops.mapped(spot, statement) or function_in_python(situation)
    if edit is None:
        text = as_ops(value, spot)
        edit = wrapping.replace_expression(spot, value, text) if text is not None else None
    if edit is None and wrapping.entry(situation)[1] == "tf.data" and _in_library(situation, spot):
        edit = value_fix(situation, spot, statement, value, None)[0]
    code = short(spot.source.text(statement).split("\n")[0], 44)
    said = said or runs(situation)
    if edit is None and not isinstance(statement, ast.For) and all(shape_of(one) == () for one in parts.values()):
        cause = f"What `{code}` calls goes through {over} in Python {when(situation)}: it has no value yet. {said}"
        advice = "Call it in Python, outside of the graph, once for each value."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    cause = f"`{code}` looped in Python over {over} {when(situation)}: it has no elements yet. {said}"
    advice = "" if edit is not None else f"Loop with {tf}.map_fn(f, x), or take the parts with {tf}.unstack(x)."
    if edit is None and is_loss(situation):
        advice = "A loss needs a gradient, and NumPy and Python give none: compute it with TensorFlow's ops."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _in_library(situation: Situation, spot: Spot) -> bool:
    """Whether code that the user's line called went through a tensor, and not the line itself."""
    files = [one.f_code.co_filename for one in frames(situation.inner.__traceback__)]
    outside = [one for one in files if "tensorflow" not in one]
    return bool(outside) and outside[-1] != spot.file and not is_generated(os.path.basename(outside[-1]))


def _is_given(situation: Situation, value: ast.expr) -> bool:
    """Whether it is a parameter of a function that Keras calls with batches."""
    index, by = wrapping.entry(situation)
    function = situation.spots[index].function
    own = isinstance(value, ast.Name) and function is situation.spots[-1].function
    return by == "Keras" and own and function is not None and value.id in parameters(function)  # type: ignore[attr-defined]


def _of_columns(shape: tuple[int | None, ...] | None, count: int, situation: Situation) -> bool:
    """Whether the names on the left of `a, b = y` stand for the last axis: the first is a batch of another size."""
    if shape is None or len(shape) < 2 or shape[-1] != count or shape[0] == count:
        return False
    return shape[0] is not None or wrapping.entry(situation)[1] == "Keras"


def function_in_python(situation: Situation) -> Edit | None:
    """The whole function in a py_function, where its loop is none that AutoGraph makes a graph of."""
    by, spot = wrapping.entry(situation)[1], situation.spots[-1]
    if by != "tf.data" and spot.function is not None and not spot.generated:
        arrays = kept_lists.in_arrays(spot, spot.function, decorated=True)
        if arrays is not None:
            return arrays[0]
    compiled = compiled_function(situation) if by == "Keras" else None
    wrap = best(situation) if by == "tf.data" else wrapping.helper_call(situation)
    return compiled or (wrap.edit if wrap is not None else None)


def _is_over_tensor(given: ast.expr, spot: Spot) -> bool:
    """Whether a comprehension goes over a tensor, or over `tf.range` of numbers."""
    counted = known_sizes.as_python_range(spot, given) is not None and dotted(getattr(given, "func", None)) != "range"
    return counted or bool(symbolic_parts(given, spot))
