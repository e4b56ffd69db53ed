"""The two functions of `tf.cond` return what differs: in dtype, in how much, or one of them nothing."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, local_function, return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is

RULE = "structure"
_DIFFER = "true_fn and false_fn arguments to tf.cond must have the same number"
_LENGTHS = "Lengths of branch outputs of cond must match"
_COUNTS = re.compile(r"^\[(\d+), (\d+)\]$")
_OUTPUT = re.compile(r"(true|false)_fn output: (.*?)\n(?=\s*false_fn output|\s*Error details|\s*$)", re.DOTALL)
_DTYPE = re.compile(r"dtype[=:] ?(?:<dtype: ')?(?:tf\.)?(\w+)")
_NUMBERS = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "int16", "uint16", "bool")
"""A branch of a dtype can be cast to those before it without loss of a fraction."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if two branches of a `tf.cond` of the failing line do not match."""
    spot, said = situation.last, situation.message
    statement = situation.statement if not situation.body else None
    counted = _COUNTS.match(said.strip()) if situation.kind == "AssertionError" else None
    if spot is None or statement is None or not (_DIFFER in said or _LENGTHS in said or counted):
        return None
    found = [
        one for one in calls(statement) if dotted(one.func).endswith(".cond") and root_is(one.func, spot, "tensorflow")
    ]
    given = [(argument(found[0], 1, "true_fn"), argument(found[0], 2, "false_fn"))] if len(found) == 1 else []
    branches = [local_function(one, spot) for pair in given for one in pair]
    if len(branches) != 2 or None in branches:
        return None
    results = [return_value(one) if one is not None else None for one in branches]
    functions = [one for one in branches if one is not None]
    nothing = [one is None or _is_none(one) for one in results]
    if nothing[0] != nothing[1]:
        return _nothing(spot, statement, found[0], results, nothing)
    if results[0] is None or results[1] is None:
        return None
    two = (functions[0], results[0]), (functions[1], results[1])
    sizes = [len(one.elts) if isinstance(one, ast.Tuple) else 1 for _, one in two]
    if sizes[0] != sizes[1]:
        return _counts(spot, statement, found[0], two, sizes)
    return _dtypes(spot, found[0], two, {name: _DTYPE.findall(text) for name, text in _OUTPUT.findall(f"{said}\n")})


def _nothing(
    spot: Spot, statement: ast.stmt, call: ast.Call, results: list[ast.expr | None], nothing: list[bool]
) -> Explanation:
    """One branch returns nothing: as an `if`, which AutoGraph makes a branch of the graph, nothing has to match."""
    text, at = spot.source.text, nothing.index(False)
    condition = argument(call, 0, "pred")
    cause = f"The {'true' if at == 0 else 'false'} branch returns a value, and the other nothing: they have to match."
    printed = results[1 - at]
    lambdas = all(
        isinstance(argument(call, 1 + place, word), ast.Lambda) for place, word in ((0, "true_fn"), (1, "false_fn"))
    )
    done = results[at]
    if isinstance(statement, ast.Expr) and spot.generated and lambdas and condition is not None and done is not None:
        first, last = spot.source.span(statement)
        blanks = indent_of(spot.source.lines[first - 1])
        test = text(condition) if at == 0 else f"not ({text(condition)})"
        lines = [f"{blanks}if {test}:", f"{blanks}    {text(done)}"]
        if isinstance(printed, ast.Call):
            lines += [f"{blanks}else:", f"{blanks}    {alias(spot, 'tensorflow')}.{text(printed)}"]
        edit = Edit(spot.file, first, last, tuple(lines))
        return Explanation(RULE, spot.file, call.lineno, f"{cause} As an `if` AutoGraph makes a branch of it.", edit)
    advice = "Return the same in both: where nothing is to change, the value as it is."
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice)


def _is_none(node: ast.expr) -> bool:
    """Whether an expression gives nothing: None itself, or what `print` gives."""
    prints = isinstance(node, ast.Call) and dotted(node.func) == "print"
    return prints or (isinstance(node, ast.Constant) and node.value is None)


def _counts(
    spot: Spot, statement: ast.stmt, call: ast.Call, two: tuple[tuple[Function, ast.expr], ...], sizes: list[int]
) -> Explanation:
    """One branch returns more values: what it passes on as it is, the other can return too."""
    more, less = (0, 1) if sizes[0] > sizes[1] else (1, 0)
    longer, shorter, text = two[more][1], two[less][1], spot.source.text
    cause = (
        f"`{text(longer)}` of one branch is {sizes[more]} values, and `{text(shorter)}` of the other "
        f"is {f'{sizes[less]}' if sizes[less] > 1 else 'one'}: both have to return as many."
    )
    parts = longer.elts if isinstance(longer, ast.Tuple) else []
    made = [one for one in parts if not isinstance(one, ast.Name) or one.id in _bound(two[more][0])]
    to = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    kept = [one for one in parts if isinstance(to, ast.Name) and dotted(one) == to.id]
    if sizes[less] == 1 and len(kept) == 1:  # one name takes the result
        edit = edit_of(spot.file, spot.source.replaced({longer: text(kept[0])}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
    if sizes[less] == 1 and len(made) == 1 and not isinstance(to, ast.Name):
        new = ", ".join(text(shorter) if one is made[0] else text(one) for one in parts)
        new = f"({new})" if isinstance(two[less][0], ast.Lambda) else new
        edit = edit_of(spot.file, spot.source.replaced({shorter: new}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
    return Explanation(RULE, spot.file, call.lineno, cause, None, "Return in each branch what the other does.")


def _bound(function: Function) -> set[str]:
    """Names that a branch makes itself, or is given."""
    stored = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return stored | set(parameters(function))


def _dtypes(
    spot: Spot, call: ast.Call, two: tuple[tuple[Function, ast.expr], ...], dtypes: dict[str, list[str]]
) -> Explanation | None:
    """A value of other dtype in the one branch than in the other."""
    kinds = dtypes.get("true", []), dtypes.get("false", [])
    parts = [one.elts if isinstance(one, ast.Tuple) else [one] for _, one in two]
    if len(kinds[0]) != len(kinds[1]) or len(kinds[0]) != len(parts[0]):
        return None
    pieces: dict[ast.expr, str] = {}
    said: list[str] = []
    for place, pair in enumerate(zip(*kinds)):
        if pair[0] == pair[1] or not set(pair) <= set(_NUMBERS):
            continue
        narrow = 0 if _NUMBERS.index(pair[0]) > _NUMBERS.index(pair[1]) else 1
        node, wide = parts[narrow][place], pair[1 - narrow]
        pieces[node] = _cast(node, wide, spot)
        said.append(f"`{spot.source.text(node)}` is {pair[narrow]}, and `{spot.source.text(parts[1 - narrow][place])}` "
                    f"of the other branch {wide}")  # fmt: skip
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    if not said:
        return None
    cause = f"{'; '.join(said)}: a tensor has one dtype, whichever branch runs."
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _cast(node: ast.expr, dtype: str, spot: Spot) -> str:
    if isinstance(node, ast.Constant) and type(node.value) is int and dtype == "float32":
        return f"{node.value}.0"
    tf = alias(spot, "tensorflow")
    return f"{tf}.cast({spot.source.text(node)}, {tf}.{dtype})"
