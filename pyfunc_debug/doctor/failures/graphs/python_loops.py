"""A loop of Python's that a tensor is to end: a graph cannot leave a loop that was unrolled while it was traced."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.control_flow import converts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, lookup, root_is

RULE = "autograph"
_ENDED = "The condition of while loop started as non-Tensor, then changed to Tensor"
_SAID = "which depend on a TF condition are not supported in Python for loops"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a `break` or `return` in a loop of Python's depends on a tensor."""
    spot = situation.last
    if spot is not None and _ENDED in situation.message:
        return _for_ever(spot)
    statement = situation.statement if _SAID in situation.message else None
    if spot is None or not isinstance(statement, ast.For):
        return None
    leaves = next((one for one in own_nodes(statement) if isinstance(one, (ast.Break, ast.Return))), None)
    return None if leaves is None else left_by_a_tensor(spot, statement, leaves)


def _for_ever(spot: Spot) -> Explanation | None:
    """`while True:` that a tensor is to end."""
    loop = spot.statement
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Constant):
        return None
    leaves = next((one for one in own_nodes(loop) if isinstance(one, (ast.Break, ast.Return))), None)
    if leaves is None:
        return None
    tf, test = alias(spot, "tensorflow"), spot.source.text(loop.test)
    word = "break" if isinstance(leaves, ast.Break) else "return"
    cause = (
        f"`{word}` (line {leaves.lineno}) depends on a tensor, and `while {test}` is a loop of Python's: it ran while "
        "the graph was traced, when no value was there to end it. A loop whose condition is a tensor is one of the "
        "graph's."
    )
    found = spot.source.replaced({loop.test: f"{tf}.constant({test})"}) if word == "break" else None
    edit = edit_of(spot.file, found)
    advice = "" if edit else f"Loop while {tf}.constant(True), and leave it by a break."
    return Explanation(RULE, spot.file, loop.lineno, cause, edit, advice, "likely")


def left_by_a_tensor(spot: Spot, statement: ast.For, leaves: ast.AST) -> Explanation:
    """What is said of a loop of Python's and the `break` or `return` in it."""
    line = getattr(leaves, "lineno", statement.lineno)
    word = "break" if isinstance(leaves, ast.Break) else "return"
    over = spot.source.text(statement.iter)
    cause = (
        f"`{word}` (line {line}) depends on a tensor, and `for ... in {over}` is a loop of Python's: it ran "
        f"while the graph was traced, when no value was there to end it. A loop over a tensor is one of the graph's."
    )
    edit = _in_graph(spot, statement)
    if edit is not None and word == "return":
        edit = _without_return(spot, statement, edit.lines[0])
    advice = "" if edit is not None else f"Loop over {alias(spot, 'tensorflow')}.range(...), or a tensor, instead."
    return Explanation(RULE, spot.file, statement.lineno, cause, edit, advice)


def _in_graph(spot: Spot, loop: ast.For) -> Edit | None:
    """The loop's head with tf.range, or with a tensor of the numbers that Python would go through."""
    tf, over = alias(spot, "tensorflow"), loop.iter
    if isinstance(over, ast.Call) and dotted(over.func) == "range":
        new = f"{tf}.{spot.source.text(over)}"
    elif _numbers(lookup(over, spot)):
        new = f"{tf}.constant({spot.source.text(over)})"
    else:
        return None
    counted = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    if not converts(ast.Module([loop], [])) or not all(_takes_tensors(one, spot, counted) for one in own_nodes(loop)):
        return None
    found = spot.source.replaced({over: new})
    return edit_of(spot.file, found)


def _without_return(spot: Spot, loop: ast.For, head: str) -> Edit | None:
    """The loop with `break` for `return`, which a loop of the graph's does not take, and one `return` behind it.

    Args:
      spot: The frame.
      loop: The loop.
      head: Its first line, as a loop of the graph's.
    """
    function, source = spot.function, spot.source
    after = next((one for one in getattr(function, "body", ()) if one.lineno > (loop.end_lineno or 0)), None)
    returns = [one for one in own_nodes(loop) if isinstance(one, ast.Return)]
    plain = [one for one in returns if one.value is not None and one.lineno == one.end_lineno]
    inner = any(isinstance(one, (ast.For, ast.While)) for one in own_nodes(loop))
    if function is None or not isinstance(after, ast.Return) or after.value is None or plain != returns or inner:
        return None
    if source.parent(loop) is not function or loop.body[0].lineno == loop.lineno:
        return None
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    name = next(one for one in ("found", "result", "returned") if one not in taken)
    blanks, lines = indent_of(source.lines[loop.lineno - 1]), [head]
    values = {one.lineno: source.text(one.value) for one in plain if one.value is not None}
    for number in range(loop.lineno + 1, (loop.end_lineno or loop.lineno) + 1):
        line = source.lines[number - 1]
        left = indent_of(line)
        lines += [f"{left}{name} = {values[number]}", f"{left}break"] if number in values else [line]
    lines = [f"{blanks}{name} = {source.text(after.value)}", *lines, f"{blanks}return {name}"]
    return Edit(spot.file, loop.lineno, after.end_lineno or after.lineno, tuple(lines))


def _numbers(value: object) -> bool:
    listed = isinstance(value, (list, tuple)) and value and len({type(one) for one in value}) == 1
    return bool(listed and isinstance(value[0], (int, float))) or type(value).__module__ == "numpy"  # type: ignore[index]


def _takes_tensors(node: ast.AST, spot: Spot, counted: set[str]) -> bool:
    """Whether a node of the loop's body goes on where the loop's variable is a tensor: no list of Python's has one."""
    if not isinstance(node, ast.Subscript) or not any(
        isinstance(one, ast.Name) and one.id in counted for one in ast.walk(node.slice)
    ):
        return True
    made = isinstance(node.value, ast.Call) and root_is(node.value.func, spot, "tensorflow")
    return made or is_symbolic(lookup(node.value, spot))
