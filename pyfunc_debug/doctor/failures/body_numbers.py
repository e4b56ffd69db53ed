"""A number of NumPy's, or a tensor, where only one of Python's own will do."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.body_edits import RULE, first_statement, is_generator
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import indent_of, parameters

_PLAIN_NUMBER = re.compile(
    r"an integer is required|cannot be interpreted as an integer|must be an? (?:int|float)|expected an? int"
    r"|not JSON serializable|integer argument expected|requires an integer|unhashable type: '(?:numpy\.)?ndarray'"
    r"|has no attribute '__(?:index|int|float)__'|but expected one of: "
    r"|argument should be an int|only supported seed types|unsupported type for timedelta|SeedSequence expects int"
    r"|Cannot index by location index with a non-integer key"
    r"|not (?:a )?(?:numpy\.)?(?:int64|int32|float32|float64|ndarray)\b"
)
_TENSOR_AS_KEY = re.compile(r"<?tf\.Tensor(?:\(|: shape=)")
"""What a KeyError says of a key that is an eager tensor, or of text that was made of one."""


def number(situation: Situation, spot: Spot) -> Explanation | None:
    """A number of NumPy's, or a tensor, where only one of Python's own will do."""
    statement, function = spot.source.statement(spot.line), spot.function
    if statement is None or function is None or isinstance(function, ast.Lambda):
        return None
    said = {"TypeError": _PLAIN_NUMBER, "AttributeError": _PLAIN_NUMBER, "KeyError": _TENSOR_AS_KEY}
    if situation.kind not in said or not said[situation.kind].search(situation.message):
        return None
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
    given = [name for name in parameters(function) if name in read and is_number(spot.variables.get(name))]
    if not given:
        return None
    first = first_statement(function)
    blanks, name = indent_of(spot.source.lines[first - 1]), given[0]
    value = spot.variables[name]
    eager = type(value).__name__ == "EagerTensor"
    lines = tuple(f"{blanks}{one} = {_own_number(spot.variables[one], one)}" for one in given[:2])
    what = "an eager tensor" if eager else f"a {type(value).__module__}.{type(value).__name__}"
    who = "Dataset.from_generator gives its generator" if is_generator(function) else "a py_function gives its body"
    if not eager and not is_generator(function):
        who = "a numpy_function gives its body"
    return Explanation(
        RULE, spot.file, spot.line,
        f"{who} {'tensors' if eager else 'NumPy values'}: {name} is {what}, and this line takes Python's own numbers. "
        f"`{lines[0].partition(' = ')[2]}` is one.",
        Edit(spot.file, first, first - 1, lines), "", "likely",
    )  # fmt: skip


def _own_number(value: object, name: str) -> str:
    """Python's own number for one of NumPy's or a tensor; an int for a bool, which protocol buffers refuse."""
    array = f"{name}.numpy()" if type(value).__name__ == "EagerTensor" else name
    return f"int({array})" if getattr(getattr(value, "dtype", None), "name", "") == "bool" else f"{array}.item()"


def is_number(value: object) -> bool:
    """Whether it is one number of NumPy's, or a tensor that is one."""
    kind = type(value)
    if kind.__name__ == "EagerTensor":
        return getattr(getattr(value, "shape", None), "rank", None) == 0
    return kind.__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item")
