"""What a call of py_function gives to the line that uses it: one tensor for one dtype, a list for a list of dtypes."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments
from pyfunc_debug.doctor.failures.reading.made_values import made_return, made_shape
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument
from pyfunc_debug.doctor.failures.reading.shapes import Shape, guessed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

RULE = "output-contract"
_ITERATED = re.compile(r"[Ii]terating over a symbolic|Cannot iterate over a (?:scalar|[Tt]ensor)|not iterable")
_COUNT = re.compile(r"(?:not enough|too many) values to unpack \(expected (\d+)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line takes another number of values from a py_function than its Tout has."""
    spot = situation.last
    if spot is None or situation.body:
        return None
    one = _ITERATED.search(situation.message) is not None
    counted = _COUNT.search(situation.message) if situation.kind == "ValueError" else None
    statement = spot.statement
    if not (one or counted) or not isinstance(statement, ast.Assign):
        return None
    target = statement.targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(part, ast.Starred) for part in target.elts):
        return None
    call = _made(statement.value, spot)
    tout = argument(call, 2, "Tout") if call is not None else None
    if call is None or tout is None:
        return None
    wanted = len(target.elts)
    if isinstance(tout, (ast.List, ast.Tuple)):
        declared = [spot.source.text(part) for part in tout.elts]
        if one or len(declared) == wanted:
            return None
    elif one and isinstance(tout, (ast.Attribute, ast.Constant)):
        declared = [spot.source.text(tout)]
    else:
        return None  # a name may stand for any structure
    names = short(spot.source.text(target).strip("()[]"), 30)
    op = dotted(call.func).rpartition(".")[2]
    cause = (
        f"`{names} =` takes {wanted} values, but Tout={short(spot.source.text(tout), 30)} declares "
        f"{len(declared)}: {op} gives one tensor for each dtype in Tout, whatever its body returns later."
    )
    found = body_dtypes(call, spot)
    returned = found if found is not None and len(found) == wanted else [None] * wanted
    if len(declared) > wanted and found is not None and len(found) == len(declared):  # the names are too few
        rest = ["_"] * (len(declared) - wanted)
        listed = ", ".join([*map(spot.source.text, target.elts), *rest])
        return _edited(spot, {target: listed}, call.lineno, cause, True)
    known = declared[:wanted] + [declared[-1] if declared else f"{alias(spot, 'tensorflow')}.float32"] * wanted
    dtypes = [dtype or known[place] for place, dtype in enumerate(returned)]
    explained = _edited(spot, {tout: f"[{', '.join(dtypes)}]"}, call.lineno, cause, None not in returned)
    return (
        _as_declared(explained, declared[0], dtypes, statement, spot) if one and statement.value is call else explained
    )


def _as_declared(
    explained: Explanation, declared: str, returned: list[str], statement: ast.Assign, spot: Spot
) -> Explanation:
    """The paste with a line behind it that gives the values the one dtype that Tout had, where the body has another."""
    target = statement.targets[0]
    edit, elements = explained.edit, target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    same = [one for one in returned if _kind(one) == _kind(declared)]
    cast = {one for one in same or returned if one != declared}
    numbers = all(map(_kind, (declared, *cast)))
    if edit is None or not cast or not numbers or not all(isinstance(one, ast.Name) for one in elements):
        return explained
    given = [spot.source.text(one) for one in elements]
    tf = alias(spot, "tensorflow")
    new = [f"{tf}.cast({name}, {declared})" if own in cast else name for name, own in zip(given, returned)]
    changed = [(name, one) for name, one in zip(given, new) if one != name]
    line = f"{', '.join(name for name, _ in changed)} = {', '.join(one for _, one in changed)}"
    if edit.last < statement.lineno:  # a decorator's line
        end = statement.end_lineno or statement.lineno
        behind = Edit(spot.file, end + 1, end, (f"{' ' * statement.col_offset}{line}",))
        lines = (edit := together([edit, behind], spot.source.lines)).lines
    else:
        lines = (*edit.lines, f"{indent_of(edit.lines[0])}{line}")
    own = " and ".join(sorted(one.rpartition(".")[2] for one in cast))
    cause = f"{explained.cause} The body returns {own}: the last line makes {declared.rpartition('.')[2]} of it."
    return dataclasses.replace(explained, cause=cause, edit=dataclasses.replace(edit, lines=lines))


def _kind(dtype: str) -> str:
    """`int` of `tf.uint8`; empty for other dtypes."""
    found = dtype.rpartition(".")[2].rstrip("0123456789").removeprefix("u").removeprefix("b")
    return found if found in ("int", "float") else ""


def is_made(call: ast.Call) -> bool:
    """Whether a call is one of py_function or numpy_function."""
    return dotted(call.func).rpartition(".")[2] in NODE_CALLS


def _edited(spot: Spot, pieces: dict[ast.expr, str], line: int, cause: str, sure: bool) -> Explanation:
    found = spot.source.replaced(pieces)
    edit = edit_of(spot.file, found)
    advice = "" if edit is not None else "Give Tout one dtype for each value."
    return Explanation(RULE, spot.file, line, cause, edit, advice, "measured" if sure else "likely")


def _made(value: ast.expr, spot: Spot, deep: int = 0) -> ast.Call | None:
    """The call of py_function that a value comes from: itself, a name's, or what a function of the file returns."""
    if isinstance(value, ast.Name):
        function = spot.function
        assigned = assignments(function if function is not None else spot.source.tree).get(value.id)
        return _made(assigned, spot, deep + 1) if assigned is not None and deep < 3 else None
    if not isinstance(value, ast.Call):
        return None
    if is_made(value):
        return value
    own = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(value.func)
    ]
    returned = [one.value for one in ast.walk(own[0]) if isinstance(one, ast.Return)] if len(own) == 1 else []
    if len(returned) != 1 or returned[0] is None or deep >= 3:
        return None
    if isinstance(returned[0], ast.Name):
        returned = [assignments(own[0]).get(returned[0].id)]
    return _made(returned[0], spot, deep + 1) if returned[0] is not None else None


def body_dtypes(call: ast.Call, spot: Spot) -> list[str | None] | None:
    """The dtypes that the body returns, as far as its source says; None where it returns one value."""
    given = argument(call, 0, "func")
    name = dotted(given).rpartition(".")[2] if given is not None else ""
    found = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and one.name == name
    ]  # fmt: skip
    function = given if isinstance(given, ast.Lambda) else found[0] if len(found) == 1 else None
    if function is None:
        return None
    there = Spot(spot.file, function.lineno, {}, spot.module, "")
    dtypes, many = Guess(there).returned(function)
    return dtypes if many else None


def body_shape(call: ast.Call, spot: Spot) -> Shape | None:
    """The shape that a py_function's body returns, as its source or made inputs say; None where they do not."""
    given, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    found: list[Function] = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)
    ]
    found = [given] if isinstance(given, ast.Lambda) else found
    if len(found) != 1 or not isinstance(inp, (ast.List, ast.Tuple)):
        return None
    values = {name: lookup(one, spot) for name, one in zip(parameters(found[0]), inp.elts)}
    there = Spot(spot.file, found[0].lineno, values, spot.module, "")
    shapes = guessed(found[0], there)
    if len(shapes) == 1 and shapes[0] is not None:
        return shapes[0]
    arrays = dotted(call.func).rpartition(".")[2] == "numpy_function"
    return made_shape(functools.partial(made_return, found[0], there, arrays=arrays))
