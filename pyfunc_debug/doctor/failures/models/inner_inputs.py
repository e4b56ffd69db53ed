"""`tf.nn.relu(keras.Input((3,)))`: Keras inputs that are made inside the call of an op of TensorFlow's."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.models.keras_chains import in_dtype
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.callables import taken
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, keras_name, root_is

_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_MOST = 4


def in_a_layer(spot: Spot, statement: ast.stmt) -> Edit | None:
    """Names for the inputs on lines above, and the op in a Lambda; None where the line has no such call, or several."""
    source = spot.source
    ops = [one for one in calls(statement) if _is_op(one, spot) and any(map(_is_input, calls(one)))]
    ops = [one for one in ops if not any(one is not other and one in ast.walk(other) for other in ops)]
    if len(ops) != 1 or hasattr(statement, "body"):
        return None
    op = ops[0]
    inputs = [one for one in calls(op) if _is_input(one)]
    inputs.sort(key=lambda one: (one.lineno, one.col_offset))
    if len(inputs) > _MOST or any(isinstance(one, (ast.Lambda, ast.comprehension)) for one in ast.walk(op)):
        return None
    if any(isinstance(one, ast.Constant) and one.value is None for call in inputs for one in call.args[1:]):
        return None
    used = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    names: dict[ast.expr, str] = {}
    for made_here in inputs:
        wanted = _parameter(op, made_here, spot)
        fresh = (wanted, f"{wanted}_in", *(f"{wanted}_{number}" for number in range(2, 9)))
        names[made_here] = next(name for name in fresh if name not in used | set(names.values()))
    tf, keras = alias(spot, "tensorflow"), keras_name(spot)
    pieces: dict[ast.expr, str] = {}
    kinds = []
    for one in inputs:
        name, given = names[one], next((word.value for word in one.keywords if word.arg == "dtype"), None)
        kind = str(given.value) if isinstance(given, ast.Constant) else dotted(given).rpartition(".")[2]
        kinds.append(kind or "float32")
        pieces[one] = f"{tf}.cast({name}, {tf}.{kind})" if kind in _DTYPES else name
    inside, listed = source.text_with(op, pieces), ", ".join(names.values())
    dtype = in_dtype(kinds)
    if len(names) == 1:
        whole = f"{keras}.layers.Lambda(lambda {listed}: {inside}{dtype})({listed})"
    else:
        whole = f"{keras}.layers.Lambda(lambda both: (lambda {listed}: {inside})(*both){dtype})([{listed}])"
    if "\n" in whole:
        whole = ast.unparse(ast.parse(whole, mode="eval"))
    first, last = source.span(statement)
    blanks = indent_of(source.lines[first - 1])
    made = [f"{blanks}{name} = {' '.join(source.text(one).split())}" for one, name in names.items()]
    return Edit(spot.file, first, last, (*made, *source.spliced({op: whole}, first, last)))


def _is_op(call: ast.Call, spot: Spot) -> bool:
    parts = dotted(call.func).split(".")
    return root_is(call.func, spot, "tensorflow") and "keras" not in parts and parts[-1][:1].islower() and (
        parts[-1] not in ("py_function", "numpy_function")
    )  # fmt: skip


def _is_input(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] == "Input"


def _parameter(op: ast.Call, given: ast.Call, spot: Spot) -> str:
    """What the op calls an argument: "labels"; "x" of a part of one."""
    for word in op.keywords:
        if word.value is given and word.arg:
            return word.arg
    names = taken(op, spot)
    place = next((number for number, one in enumerate(op.args) if one is given), len(names))
    return names[place] if place < len(names) else "x"
