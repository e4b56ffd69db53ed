"""Functions of the user's that end without a `return`, and the one that they lack."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import return_values
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of

IN_PLACE = frozenset({
    "adapt", "add", "append", "build", "clear", "compile", "discard", "extend", "fill", "insert", "load_weights",
    "remove", "reset_state", "reverse", "save", "save_weights", "set_weights", "shuffle", "sort", "start", "summary",
    "update",
})  # fmt: skip
"""Methods of lists, dicts, models and layers that change what they are called on, and give None."""


OF_NUMPY = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
"""Functions of NumPy's that change their first argument, and give None."""
_PACKAGES = frozenset({"K", "keras", "math", "np", "numpy", "ops", "tensorflow", "tf"})
"""Names of packages whose functions of these names give what they compute: `tf.add`, `np.sort`."""
_SHUFFLES = re.compile(r"(?:^|\.)(?:random|rng|generator)$")


def works_in_place(node: ast.AST | None) -> TypeGuard[ast.Call]:
    """Whether an expression calls such a method: of a value, not a function of a package, nor a dataset's shuffle."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if _is_of_numpy(node):
        return True
    if node.func.attr not in IN_PLACE:
        return False
    owner = dotted(node.func.value)
    if node.func.attr == "shuffle":
        return _SHUFFLES.search(owner) is not None
    return owner.partition(".")[0] not in _PACKAGES


def _is_of_numpy(call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr in OF_NUMPY and dotted(func.value) in ("np", "numpy")


def changes_its_argument(call: ast.Call) -> bool:
    """Whether such a call changes its first argument, and not what it is called on: `np.place(x, ...)`."""
    shuffles = isinstance(call.func, ast.Attribute) and call.func.attr == "shuffle"
    return _is_of_numpy(call) or (shuffles and bool(call.args))


def changed(call: ast.Call) -> ast.expr:
    """What a call that works in place changes."""
    assert isinstance(call.func, ast.Attribute)
    return call.args[0] if changes_its_argument(call) and call.args else call.func.value


def ends_without_return(function: ast.FunctionDef) -> bool:
    """Whether a way through a function comes to its end: it gives None there."""
    return _goes_on(function.body[-1])


def _goes_on(last: ast.stmt) -> bool:
    if isinstance(last, (ast.Return, ast.Raise)):
        return False
    if isinstance(last, ast.If):
        return not last.orelse or _goes_on(last.body[-1]) or _goes_on(last.orelse[-1])
    if isinstance(last, ast.While):
        return not (isinstance(last.test, ast.Constant) and last.test.value)
    if isinstance(last, ast.With):
        return _goes_on(last.body[-1])
    if isinstance(last, ast.Try):
        ends = [last.orelse or last.body, *(one.body for one in last.handlers)]
        return any(_goes_on(one[-1]) for one in ends)
    return True


def way_out(last: ast.stmt) -> int:
    """The last line of the way through a function's last statement that comes to its end without a `return`."""
    if isinstance(last, ast.If):
        ways = [way[-1] for way in (last.body, last.orelse) if way and _goes_on(way[-1])]
        return way_out(ways[0]) if ways else last.lineno
    return last.end_lineno or last.lineno


def returns_nothing(function: ast.FunctionDef) -> bool:
    """Whether a function has neither a value to return nor one to yield."""
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(function))
    return not yields and not return_values(function)


def with_return(file: str, source: Source, function: ast.FunctionDef) -> Edit | None:
    """The `return` of what a function's last statement made or changed; None where it does neither."""
    last = function.body[-1]
    blanks, end = indent_of(source.lines[function.body[-1].lineno - 1]), last.end_lineno or last.lineno
    if isinstance(last, ast.Expr) and isinstance(last.value, (ast.BinOp, ast.Call)) and _computes(last.value):
        text = source.text(last.value).split("\n")
        return Edit(file, last.lineno, end, (f"{blanks}return {text[0]}", *text[1:]))
    name = result(last)
    return Edit(file, end + 1, end, (f"{blanks}return {name}",)) if name else None


def result(last: ast.stmt) -> str:
    """The name of what a statement made or changed; "" where it is not one."""
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], (ast.Name, ast.Tuple)):
        return ast.unparse(last.targets[0]).strip("()")
    if isinstance(last, ast.AugAssign) and isinstance(last.target, ast.Name):
        return last.target.id
    if isinstance(last, ast.Expr) and works_in_place(last.value):
        owner = changed(last.value)
        return owner.id if isinstance(owner, ast.Name) else ""
    return ""


def _computes(value: ast.expr) -> bool:
    """Whether a statement of this expression alone does nothing but compute: its value is lost."""
    if not isinstance(value, ast.Call):
        return True
    name = dotted(value.func)
    first = name.partition(".")[0]
    plain = not works_in_place(value) and not name.endswith(("print", "assert_equal", "write", "scalar"))
    if name.endswith((".minimize", ".apply_gradients")):  # what a session runs
        return True
    return plain and (first in ("tf", "np", "keras", "K", "ops") or name.startswith(("self.", "layers.")))
