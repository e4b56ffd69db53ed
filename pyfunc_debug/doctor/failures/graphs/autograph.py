"""What AutoGraph cannot turn into a graph: branches and loops whose variables differ."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.graphs.python_loops import left_by_a_tensor
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias

RULE = "autograph"
_UNDEFINED = re.compile(
    r"'([\w.]+(?:\[[^\]]+\])?)' must also be initialized in the (main|else) branch"
    r"|'([\w.]+(?:\[[^\]]+\])?)' must be defined before the loop"
    r"|'(\w+)' is (?:None|undefined)"
)
_RETURN = re.compile(r"the (main|else) branch must also have a return statement")
_BRANCH_DTYPE = re.compile(r"'(\w+)' has dtype (\w+) in the main branch, but dtype (\w+) in the else branch")
_LOOP_DTYPE = re.compile(r"'(\w+)' has dtype (\w+) before the loop, but dtype (\w+) after one iteration")
_LOOP_SHAPE = re.compile(r"'(\w+)' has shape \(([^)]*)\) before the loop, but shape \(([^)]*)\) after one iteration")
_CONDITION = re.compile(r"condition of (.+?) expected to be `tf\.bool` scalar, got (.*)", re.DOTALL)
_DTYPE = re.compile(r"dtype=(?:tf\.)?(\w+)")


def condition(situation: Situation) -> Explanation | None:
    """The explanation, if what an `if` or `while` asks is a tensor of another dtype, or of several values."""
    found, spot = _CONDITION.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or not isinstance(statement, (ast.If, ast.While)):
        return None
    test, tf = statement.test, alias(spot, "tensorflow")
    if not isinstance(test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Compare)):
        return None
    text, dtype = spot.source.text(test), _DTYPE.search(found[0])
    word = "while" if isinstance(statement, ast.While) else "if"
    number = "use `tf.cast`" in found[2]
    if number:
        new = f"{tf}.cast({text}, {tf}.bool)"
        cause = (
            f"`{word} {short(text, 30)}` asks a tensor of {dtype[1] if dtype else 'numbers'}. In a graph a condition "
            f"is a bool: unlike Python, it takes no number for one."
        )
    else:
        new = f"{tf}.reduce_all({text})"
        cause = (
            f"`{word} {short(text, 30)}` asks a tensor of several bools, and a condition is one: {tf}.reduce_all, or "
            f"{tf}.reduce_any. What each value decides for itself is {tf}.where."
        )
    made = spot.source.replaced({test: new})
    if made is None:
        return None
    edit = Edit(spot.file, made[0], made[1], (made[2],))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "measured" if number else "likely")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if AutoGraph refused a branch or loop."""
    spot, statement = situation.last, situation.statement
    if (
        spot is None
        or statement is None
        or situation.kind not in ("ValueError", "TypeError", "StagingError", "UnboundLocalError")
    ):
        return None
    for pattern, tell in (
        (_UNDEFINED, _undefined), (_RETURN, _return), (_BRANCH_DTYPE, _dtypes), (_LOOP_DTYPE, _loop_dtype),
        (_LOOP_SHAPE, _loop_shape),
    ):  # fmt: skip
        found = pattern.search(situation.message)
        if found is not None:
            return tell(spot, statement, found)
    return None


def _undefined(spot: Spot, statement: ast.stmt, found: re.Match[str]) -> Explanation | None:
    name = next(one for one in (found[1], found[3], found[4]) if one)
    value = _assigned(statement, name) if name.isidentifier() else None  # what is kept elsewhere may mean another
    tf = alias(spot, "tensorflow")
    edit = None
    if value is not None:
        blanks = indent_of(spot.source.lines[statement.lineno - 1])
        line = f"{blanks}{name} = {tf}.zeros_like({spot.source.text(value)})"
        edit = Edit(spot.file, statement.lineno, statement.lineno - 1, (line,))
    what = "loop" if isinstance(statement, (ast.For, ast.While)) else "`if`"
    cause = (
        f"{name} gets a value only in one way through this {what}. Python needs it only if that way is taken; a graph "
        f"builds both at trace, so {name} needs a value of the same dtype and shape before."
    )
    advice = "" if edit else f"Give {name} a value before the {what}, of the same dtype and shape."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely" if edit else "measured")


def _return(spot: Spot, statement: ast.stmt, found: re.Match[str]) -> Explanation | None:
    edit = None
    loop = next((one for one in spot.source.around(statement) if isinstance(one, (ast.For, ast.FunctionDef))), None)
    leaves = [one for one in ast.walk(statement) if isinstance(one, ast.Return)]
    if isinstance(loop, ast.For) and leaves:  # to be left in the round that the tensor says
        return left_by_a_tensor(spot, loop, leaves[0])
    if isinstance(statement, ast.If) and not statement.orelse:
        inner = next((one for one in statement.body if isinstance(one, ast.Return) and one.value is not None), None)
        if inner is not None and inner.value is not None:
            after = (statement.end_lineno or statement.lineno) + 1
            blanks = indent_of(spot.source.lines[statement.lineno - 1])
            line = f"{blanks}return {alias(spot, 'tensorflow')}.zeros_like({spot.source.text(inner.value)})"
            edit = Edit(spot.file, after, after - 1, (line,))
    cause = (
        "one branch of this `if` returns a tensor and the other nothing. A graph builds both branches at "
        "trace, and both "
        "must return the same: same dtype, same structure. The value to paste is a guess."
    )
    advice = "" if edit else f"Give the {found[1]} branch a return as well."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely" if edit else "measured")


def _dtypes(spot: Spot, statement: ast.stmt, found: re.Match[str]) -> Explanation | None:
    name, main, other = found[1], found[2], found[3]
    if not isinstance(statement, ast.If):
        return None
    integers = statement.body if "int" in main else statement.orelse if "int" in other else []
    edit = _as_float(spot, integers, name, other if "int" in main else main)
    cause = (
        f"{name} is {main} where this `if` holds and {other} where it does not. A graph builds both branches at trace, "
        "and a tensor has one dtype."
    )
    advice = "" if edit else f"Make {name} the same dtype in both: {alias(spot, 'tensorflow')}.cast({name}, dtype)."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _loop_dtype(spot: Spot, statement: ast.stmt, found: re.Match[str]) -> Explanation | None:
    name, before, after = found[1], found[2], found[3]
    function = spot.function
    body = function.body if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    earlier = [one for one in body if one.lineno < statement.lineno]
    edit = _as_float(spot, earlier, name, after) if "int" in before else None
    cause = (
        f"{name} is {before} before this loop and {after} after one round: in a graph the loop's "
        "variables keep one dtype."
    )
    advice = "" if edit else f"Begin with {name} as {after}, or cast it back in the loop."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _as_float(spot: Spot, statements: list[ast.stmt], name: str, dtype: str) -> Edit | None:
    for one in statements:
        if isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == name:
            value, text = one.value, spot.source.text(one.value)
            whole = isinstance(value, ast.Constant) and isinstance(value.value, int) and dtype == "float32"
            new = (
                f"{text}.0"
                if whole
                else f"{alias(spot, 'tensorflow')}.cast({text}, {alias(spot, 'tensorflow')}.{dtype})"
            )
            found = spot.source.replaced({value: new})
            return edit_of(spot.file, found)
    return None


def _loop_shape(spot: Spot, statement: ast.stmt, found: re.Match[str]) -> Explanation | None:
    name = found[1]
    before, after = (tuple(part.strip() for part in found[group].split(",") if part.strip()) for group in (2, 3))
    if not isinstance(statement, (ast.For, ast.While)) or len(before) != len(after):
        return None
    sizes = ", ".join(one if one == other else "None" for one, other in zip(before, after))
    tf = alias(spot, "tensorflow")
    first = statement.body[0]
    blanks = indent_of(spot.source.lines[first.lineno - 1])
    line = (
        f"{blanks}{tf}.autograph.experimental.set_loop_options(shape_invariants=[({name}, "
        f"{tf}.TensorShape([{sizes}]))])"
    )
    cause = (
        f"{name} grows in this loop: shape ({found[2]}) before, ({found[3]}) after one round. The loop is "
        "built once, at "
        "trace, and has to know which sizes change."
    )
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first.lineno, first.lineno - 1, (line,)))


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    for one in ast.walk(statement):
        none = isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and one.value.value is None
        if isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == name and not none:
            return one.value
    return None
