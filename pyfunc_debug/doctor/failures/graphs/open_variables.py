"""A tf.Variable that is assigned another shape, or a fraction where it was made of a whole number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.refused_ops import Shape, fits, sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    dtype_of,
    is_tf_variable,
    lookup,
    method_calls,
    shape_of,
    sizes_of,
)

RULE = "structure"
_SHAPES = re.compile(
    r"Cannot assign value to variable .*?The variable shape \(([\d, None]*)\), and the assigned value shape "
    r"\(([\d, None]*)\) are incompatible"
)
_FRACTION = re.compile(r"Cannot convert (-?\d*\.\d+(?:e-?\d+)?) to EagerTensor of dtype (u?int\d+)|"
                       r"Expected (u?int\d+), but got (-?\d*\.\d+(?:e-?\d+)?) of type 'float'")  # fmt: skip
_ASSIGNS = ("assign", "assign_add", "assign_sub")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line that makes the variable is known."""
    spot, statement = situation.last, situation.statement
    shapes, fraction = _SHAPES.search(situation.message), _FRACTION.search(situation.message)
    if spot is None or statement is None or (shapes is None and fraction is None):
        return None
    for call in method_calls(statement, *_ASSIGNS):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        variable = lookup(owner, spot) if owner is not None else None
        if owner is None or not is_tf_variable(variable):
            continue
        made = list(_made(situation, dotted(owner)))
        if len(made) != 1:
            return None
        file, source, line = made[0]
        if shapes is not None and fits(shape_of(variable), sizes(shapes[1])):
            return _shaped(file, source, line, dotted(owner), sizes(shapes[1]), sizes(shapes[2]))
        if fraction is not None and dtype_of(variable) == (fraction[2] or fraction[3]):
            return _whole(file, source, line, dotted(owner), dtype_of(variable), fraction[1] or fraction[4])
    return None


def _made(situation: Situation, name: str) -> Iterator[tuple[str, Source, ast.Call]]:
    """The calls of tf.Variable whose result a name gets."""
    for file, source in situation.sources():
        for one in ast.walk(source.tree):
            value = one.value if isinstance(one, ast.Assign) and name in map(dotted, one.targets) else None
            if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "Variable" and value.args:
                yield file, source, value


def _shaped(file: str, source: Source, made: ast.Call, name: str, has: Shape, got: Shape) -> Explanation | None:
    """`history.assign(tf.concat([history, [x]], 0))` of a variable that does not grow."""
    if len(has) != len(got) or any(one.arg in ("shape", None) for one in made.keywords) or len(made.args) > 1:
        return None
    shape = [one if one == other else None for one, other in zip(has, got)]
    text = f"[{', '.join(map(str, shape))}]"
    cause = (
        f"{name} was made with the shape {sizes_of(has)} and keeps it; {sizes_of(got)} is assigned. None leaves a size "
        "open."
    )
    edit = edit_of(file, source.replaced({made: source.with_argument(made, f"shape={text}")}))
    return Explanation(RULE, file, made.lineno, cause, edit, "", "likely")


def _whole(file: str, source: Source, made: ast.Call, name: str, dtype: str, number: str) -> Explanation | None:
    """`step.assign_add(0.5)` of `tf.Variable(0)`."""
    given = made.args[0]
    plain = isinstance(given, ast.Constant) and type(given.value) is int
    if not plain or any(one.arg in ("dtype", None) for one in made.keywords) or len(made.args) > 1:
        return None
    text = source.text(given)
    cause = (
        f"{name} is {dtype}, as it was made of {text}, a whole number, and gets {number}. {text}.0 makes it float32."
    )
    return Explanation(RULE, file, made.lineno, cause, edit_of(file, source.replaced({given: f"{text}.0"})))
