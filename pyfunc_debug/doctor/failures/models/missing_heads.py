"""A model whose output still has the axes of an image or a sequence, and labels that are one number or row an example.

TensorFlow says the two shapes that the loss did not bring together, and neither whose they are nor what is missing.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.models.label_shapes import unflattened
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.refused_ops import sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_keras_class, keras_name, lookup

RULE = "structure"
SAID = (
    re.compile(r"Incompatible shapes: \[([\d,]+)\] vs\. \[([\d,]+)\].*compile_loss", re.DOTALL),
    re.compile(r"node compile_loss/.* with input shapes: \[([\d,?]+)\], \[([\d,?]+)\]", re.DOTALL),
    re.compile(
        r"Arguments? (?:`target` and )?`output` must .*?target\.shape=\(([^)]*)\), output\.shape=\(([^)]*)\)", re.DOTALL
    ),
)
_ENDS = {"binary": "sigmoid", "categorical": "softmax"}
"""What the last layer of a model computes, by the name of its loss."""
_Shape = tuple[int | None, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the output of a model has two axes more than its labels, or one."""
    said = next((found for one in SAID if (found := one.search(situation.message)) is not None), None)
    for spot, fit in failed_fits(situation) if said is not None else ():
        owner = fit.func.value if isinstance(fit.func, ast.Attribute) else None
        model: Any = lookup(owner, spot) if owner is not None else None
        if said is None or type(model).__name__ not in ("Sequential", "Functional") or not is_keras_class(type(model)):
            continue
        shape = getattr(model, "output_shape", None)
        if not isinstance(shape, tuple) or not all(one is None or isinstance(one, int) for one in shape):
            continue
        sides = [sizes(said[1]), sizes(said[2])]
        outputs = [one for one in sides if len(one) == len(shape) and _fits(one, shape)]
        labels = [one for one in sides if len(one) in (1, 2) and len(one) < len(shape)]
        if len(shape) >= 3 and len(outputs) == len(labels) == 1:
            return _told(spot, fit, model, labels[0], outputs[0])
    return None


def _fits(one: _Shape, shape: _Shape) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, shape))


def _shown(shape: _Shape) -> str:
    return f"({', '.join('None' if one is None else str(one) for one in shape)}{',' * (len(shape) == 1)})"


def _told(spot: Spot, fit: ast.Call, model: Any, labels: _Shape, output: _Shape) -> Explanation:
    last = model.layers[-1]
    loss = compiled(spot, fit, "loss")
    text = spot.source.text(loss).lower() if loss is not None else ""
    units = labels[1] if len(labels) == 2 else 1
    sparse = "sparse" in text
    count = "classes" if sparse or units is None else str(units)
    both = f"the labels are {_shown(labels)}, and the model's output is {_shown(output)}"
    cause = f"{both}, that of its last layer {last.name}. "
    pools = {3: "GlobalAveragePooling1D", 4: "GlobalAveragePooling2D", 5: "GlobalAveragePooling3D"}
    pool = f" or {pools[len(output)]}" if len(output) in pools else ""
    if type(last).__name__ == "Dense":
        pasted = unflattened(spot, cause.rstrip()) if type(model).__name__ == "Sequential" else None
        cause += f"Dense keeps all axes but the last: Flatten{pool} before it makes one row of each example."
        told = Explanation(RULE, spot.file, fit.lineno, cause, None, "Put it before the first Dense.", "likely")
        return pasted or told
    if len(labels) == 2 and None not in output[1:] and units == math.prod(one for one in output[1:] if one is not None):
        cause = f"{both}: as many numbers a row, with other axes."
        advice = f"Reshape the labels to {_shown((-1, *output[1:]))}, or end the model with a Flatten."
        return Explanation(RULE, spot.file, fit.lineno, cause, None, advice)
    axes = "these" if len(labels) == 1 or units is None else _shown(labels)
    cause += f"To predict {axes} it lacks a head: Flatten{pool}, then Dense({count})."
    ends = next((end for name, end in _ENDS.items() if name in text), "")
    ending = f', activation="{ends}"' if ends and "logits" not in text else ""
    edit = None if sparse or units is None else _behind(spot, fit, f"({units}{ending})")
    return Explanation(
        RULE, spot.file, fit.lineno, cause, edit, "" if edit else f"Add them behind {last.name}.", "likely"
    )


def _behind(spot: Spot, fit: ast.Call, given: str) -> Edit | None:
    """Flatten and Dense as the last layers of the one Sequential model of a file, or of its one `Model(x, y)`."""
    own, owner = spot.source, dotted(fit.func).rpartition(".")[0]
    added = [one for one in own.calls_of(frozenset({"add"})) if dotted(one.func) == f"{owner}.add"]
    made = [
        one for one in own.calls_of(frozenset({"Sequential", "Model"})) if not isinstance(own.parent(one), ast.Expr)
    ]
    if len(made) != 1:
        return None
    call = made[0]
    flatten, dense = (f"{_layer(spot, name)}{rest}" for name, rest in (("Flatten", "()"), ("Dense", given)))
    listed = call.args[0] if call.args else None
    if dotted(call.func).endswith("Sequential"):
        if added:
            statement = own.statement(added[-1].lineno)
            if statement is None or not isinstance(statement, ast.Expr) or _in_loop(spot, statement):
                return None
            pad, end = " " * statement.col_offset, statement.end_lineno or statement.lineno
            return Edit(spot.file, end + 1, end, (f"{pad}{owner}.add({flatten})", f"{pad}{owner}.add({dense})"))
        if not isinstance(listed, ast.List) or not listed.elts:
            return None
        tail = listed.elts[-1]
        return Edit(spot.file, *own.kept_lines({tail: f"{own.text(tail)}, {flatten}, {dense}"}))
    named = [one.value for one in call.keywords if one.arg == "outputs"]
    output = call.args[1] if len(call.args) > 1 else named[0] if named else None
    if not isinstance(output, ast.Name):
        return None
    return Edit(spot.file, *own.kept_lines({output: f"{dense}({flatten}({own.text(output)}))"}))


def _in_loop(spot: Spot, statement: ast.stmt) -> bool:
    return any(isinstance(one, (ast.For, ast.While, ast.If)) for one in spot.source.around(statement))


def _layer(spot: Spot, name: str) -> str:
    """A layer's class, as the file calls it."""
    if isinstance(spot.value(name), type):
        return name
    holder = next((dotted(one.func).rpartition(".")[0] for one in spot.source.calls_of(frozenset({name}))), "")
    layers = spot.value("layers")
    return f"{holder or ('layers' if layers is not None else f'{keras_name(spot)}.layers')}.{name}"
