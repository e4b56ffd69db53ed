"""A number of NumPy's, or a tensor, where only one of Python's own will do."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, first_statement, is_generator
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import evaluated, given_names
from pyfunc_debug.doctor.failures.reading.nodes import op_of_arrays
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_PLAIN_NUMBER = re.compile(
    r"an integer is required|cannot be interpreted as an integer|must be an? (?:int|float)|expected an? int"
    r"|not JSON serializable|integer argument expected|requires an integer|unhashable type: '(?:numpy\.)?ndarray'"
    r"|has no attribute '__(?:index|int|float)__'|but expected one of: "
    r"|argument should be an int|only supported seed types|unsupported type for timedelta|SeedSequence expects int"
    r"|Cannot index by location index with a non-integer key"
    r"|not (?:a )?(?:numpy\.)?(?:int64|int32|float32|float64|ndarray)\b"
)
_IS_FLOAT = re.compile(r"'(?:numpy\.)?float\d*' object cannot be interpreted as an integer")
_WHOLE = {
    "linspace": (2,), "logspace": (2,), "geomspace": (2,), "range": (0, 1, 2), "zeros": (0,), "ones": (0,),
    "empty": (0,), "full": (0,), "eye": (0, 1), "identity": (0,), "arange": (), "reshape": (0, 1, 2), "repeat": (1,),
    "roll": (1,), "tile": (1,), "randint": (2,), "rand": (0, 1, 2), "randn": (0, 1, 2), "hanning": (0,),
}  # fmt: skip
"""Functions, and the places of arguments that have to be whole numbers, or tuples of them."""
_JSON = "not JSON serializable"
_TENSOR_AS_KEY = re.compile(r"<?tf\.Tensor(?:\(|: shape=)")
"""What a KeyError says of a key that is an eager tensor, or of text that was made of one."""


def number(situation: Situation, spot: Spot) -> Explanation | None:
    """A number of NumPy's, or a tensor, where only one of Python's own will do."""
    statement, function = spot.statement, spot.function
    if statement is None or function is None or isinstance(function, ast.Lambda):
        return None
    said = {"TypeError": _PLAIN_NUMBER, "AttributeError": _PLAIN_NUMBER, "KeyError": _TENSOR_AS_KEY}
    if situation.kind not in said or not said[situation.kind].search(situation.message):
        return None
    computed = _computed(situation, spot, statement) if _IS_FLOAT.search(situation.message) else None
    if computed is not None:
        return computed
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
    given = [name for name in parameters(function) if name in read and is_number(spot.variables.get(name))]
    if _JSON in situation.message:
        return _listed(spot, function, [name for name in parameters(function) if name in read])
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
        who = f"{op_of_arrays(situation)} gives its body"
    return Explanation(
        RULE, spot.file, spot.line,
        f"{who} {'tensors' if eager else 'NumPy values'}: {name} is {what}, and this line takes Python's own numbers. "
        f"`{lines[0].partition(' = ')[2]}` is one.",
        Edit(spot.file, first, first - 1, lines), "", "likely",
    )  # fmt: skip


def _listed(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, read: list[str]) -> Explanation | None:
    """Arrays and numbers of NumPy's, or tensors, that go into JSON: each as lists and numbers of Python's."""
    first = first_statement(function)
    blanks = indent_of(spot.source.lines[first - 1])
    lines: list[str] = []
    for name in read:
        value = spot.variables.get(name)
        eager = type(value).__name__ == "EagerTensor"
        if not eager and not (type(value).__module__ == "numpy" and hasattr(value, "tolist")):
            continue
        lines.append(f"{blanks}{name} = {name}{'.numpy()' if eager else ''}.tolist()")
    if not lines:
        return None
    name = lines[0].split()[0]
    cause = f"JSON has lists and numbers of Python's, and {name} is {_kind(spot.variables[name])}: "
    cause += "tolist() makes these of it."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, first - 1, tuple(lines)))


def _kind(value: object) -> str:
    if type(value).__name__ == "EagerTensor":
        return "an eager tensor"
    return f"a number of NumPy's, {type(value).__name__}" if is_number(value) else "an array"


def _computed(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """An argument that was computed as a float, where a whole number is taken: `np.linspace(0, 1, size / 2)`."""
    found: list[tuple[ast.expr, float]] = []
    for call in calls(statement):
        places = _WHOLE.get(dotted(call.func).rpartition(".")[2], ())
        given = [one for place, one in enumerate(call.args) if place in places]
        given += [one.value for one in call.keywords if one.arg in ("num", "shape")]
        for one in given:
            for part in one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one]:
                value = _plain_value(part, spot)
                if isinstance(value, float):  # NumPy's float64 is one as well
                    found.append((part, value))
    if len(found) != 1 or not found[0][1].is_integer():
        return None
    part, value = found[0]
    text = spot.source.text(part)
    placed = spot.source.replaced({part: f"int({text})"})
    if placed is None:
        return None
    cause = f"`{short(text, 40)}` is {value} in the body, a float, and this line takes a whole number there."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, placed[0], placed[1], (placed[2],)))


def _plain_value(node: ast.expr, spot: Spot) -> object:
    """What an expression of plain values gives; None where it cannot be known."""
    names = given_names(node, spot, {})
    try:
        return None if names is None else evaluated(node, names)
    except Exception:  # it is what fails, perhaps
        return None


def _own_number(value: object, name: str) -> str:
    """Python's own number for one of NumPy's or a tensor; an int for a bool, which protocol buffers refuse.

    A generator may be called by the program itself, too, with numbers of Python's: `int` takes both.
    """
    array = f"{name}.numpy()" if type(value).__name__ == "EagerTensor" else name
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in "iuf" and kind and array == name:
        return f"{'float' if kind == 'f' else 'int'}({name})"
    return f"int({array})" if getattr(getattr(value, "dtype", None), "name", "") == "bool" else f"{array}.item()"


def is_number(value: object) -> bool:
    """Whether it is one number of NumPy's, or a tensor that is one."""
    kind = type(value)
    if kind.__name__ == "EagerTensor":
        return getattr(getattr(value, "shape", None), "rank", None) == 0
    return kind.__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item")
