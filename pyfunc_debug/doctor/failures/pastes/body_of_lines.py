"""Lines of Python and NumPy in a row in a function that is traced, made a body: what goes in, what comes out."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.code import stored_names
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.made_values import made_dtype, made_lines, made_shape
from pyfunc_debug.doctor.failures.reading.shapes import written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_symbolic

_LONGEST = 12
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.With)
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Break, ast.Continue)


def body_of_lines(situation: Situation, spot: Spot, statement: ast.stmt) -> tuple[Edit, bool] | None:
    """`values = x.numpy()` and the lines that go on with `values`, as the body of one py_function.

    Args:
      situation: The failure.
      spot: The frame that failed.
      statement: Its statement, the first that needs a value.

    Returns:
      What to paste, and whether all dtypes in it are known; None for one line alone, which other rewrites cure, and
      where lines leave the function, or their results are none that a tensor holds.
    """
    function = spot.function
    if not isinstance(function, ast.FunctionDef) or not isinstance(statement, ast.Assign):
        return None
    if not any(isinstance(one, ast.Attribute) and one.attr == "numpy" for one in ast.walk(statement.value)):
        return None
    lines = _lines(spot.source, statement)
    if len(lines) < 2 or any("GradientTape(" in ast.unparse(one) for one in lines):
        return None
    first, last = lines[0].lineno, lines[-1].end_lineno or lines[-1].lineno
    made = {name for line in lines for name in stored_names(line)}
    after = [one for one in own_nodes(function) if isinstance(one, ast.Name) and one.lineno > last]
    out = [name for name in dict.fromkeys(one.id for one in after if isinstance(one.ctx, ast.Load)) if name in made]
    given = _given(lines, spot)
    before = {one.arg for one in function.args.args} | {
        name for one in function.body if one.lineno < first for name in stored_names(one)
    }
    if last - first >= _LONGEST or not given or not out or "self" in given or made & before - set(given):
        return None
    own, guess, tf = assignments(function), Guess(spot, assignments(function)), alias(spot, "tensorflow")
    values = [made_lines(lines, spot, ast.Name(name, ast.Load(), lineno=1, col_offset=0)) for name in out]
    known = [made_dtype(one) for one in values]
    dtypes = [
        f"{tf}.{kind}" if kind is not None else guess.of(own[name]) if name in own else None
        for name, kind in zip(out, known)
    ]
    kinds = {dtype_of(spot.value(name)) for name in given}
    likely = f"{tf}.{kinds.pop()}" if len(kinds) == 1 else f"{tf}.float32"
    wanted = [dtype or likely for dtype in dtypes]
    tout = wanted[0] if len(wanted) == 1 else f"[{', '.join(wanted)}]"
    blanks, text = indent_of(spot.source.lines[first - 1]), spot.source.lines[first - 1 : last]
    taken = {one.id for one in ast.walk(spot.source.tree) if isinstance(one, ast.Name)}
    name = next(one for one in ("body", "on_values", f"{function.name}_body") if one not in taken)
    listed = ", ".join(given)
    lists = [isinstance(one, (list, tuple)) for one in values]  # of which a py_function takes the first
    given_back = [f"{tf}.constant({one})" if is_list else one for one, is_list in zip(out, lists)]
    called = f"{tf}.py_function({name}, [{listed}], {tout})"
    if len(out) == 1 and wrapping.entry(situation)[1] == "Keras":  # which asks for the shape, too
        wanted_name = ast.Name(out[0], ast.Load(), lineno=1, col_offset=0)
        size = made_shape(lambda inputs: made_lines(lines, spot, wanted_name, inputs))
        called = f"{tf}.ensure_shape({called}, {written(size)})" if size else called
    pasted = (
        f"{blanks}def {name}({listed}):",
        *(f"    {line}" if line.strip() else line for line in text),
        f"{blanks}    return {', '.join(given_back)}",
        f"{blanks}{', '.join(out)} = {called}",
    )
    return Edit(spot.file, first, last, pasted), None not in dtypes


def _lines(source: Source, first: ast.Assign) -> list[ast.stmt]:
    """The statement, and those behind it in its block to the last that computes with what it made."""
    block = next((one for one in _blocks(source.parent(first)) if first in one), [])
    whole: list[ast.stmt] = [first]
    values, count = stored_names(first), 1
    for one in block[block.index(first) + 1 :] if block else ():
        if not isinstance(one, _SIMPLE) or any(isinstance(part, _LEAVES) for part in ast.walk(one)):
            break
        whole.append(one)
        if values & set(names(one)) and not _is_graph(one):
            values |= stored_names(one)
            count = len(whole)
    return whole[:count]


def _is_graph(statement: ast.stmt) -> bool:
    """Whether a statement only hands values to TensorFlow: `y = tf.reduce_sum(values)`."""
    value = getattr(statement, "value", None)
    called = value.func if isinstance(value, ast.Call) else None
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in ("tf", "tensorflow", "K", "keras")


def _blocks(node: ast.AST | None) -> list[list[ast.stmt]]:
    return [getattr(node, name) for name in ("body", "orelse", "finalbody") if isinstance(getattr(node, name, 0), list)]


def _given(lines: list[ast.stmt], spot: Spot) -> list[str]:
    """The symbolic tensors that the lines read before they write them."""
    found: list[str] = []
    written: set[str] = set()
    for line in lines:
        read = [one.id for one in ast.walk(line) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
        found += [name for name in read if name not in written and name not in found and is_symbolic(spot.value(name))]
        written |= stored_names(line)
    return list(dict.fromkeys(found))
