"""A Python number that a graph read at trace, as a tf.Variable: where it is made, and where it is set."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts

_MOST = 6
"""More places than these are not a paste."""
_ADDS = {ast.Add: "assign_add", ast.Sub: "assign_sub"}


def as_variable(facts: Facts, file: str, line: int, name: str) -> str:
    """The lines that make the number, set it and print it; "" where these cannot be told.

    Args:
      facts: The recording.
      file: Where it is read.
      line: The line that reads it.
      name: As the code says it there: `self.rate`, `RATE`.
    """
    tree = facts.tree(file)
    readers = pastes.around(tree, line, ast.FunctionDef)
    tf, keras = pastes.module(facts, file, "tensorflow"), pastes.module(facts, file, "keras")
    if tree is None or not readers or not (tf or keras):
        return ""
    parents = {id(child): one for one in ast.walk(tree) for child in ast.iter_child_nodes(one)}
    reader, names = readers[-1], list(_named(tree, name.rpartition(".")[2]))
    reads = [one for one in names if ast.unparse(one) == name and isinstance(one.ctx, ast.Load)]
    inside = [one for one in reads if any(part is one for part in ast.walk(reader))]
    if not inside or not all(_computes(parents, one) for one in inside):
        return ""
    own = _class(parents, reader)
    stores = [
        parents[id(one)] for one in names if isinstance(one.ctx, ast.Store) and _same(parents, one, name, own, reader)
    ]
    made = [one for one in stores if isinstance(one, ast.Assign) and _makes(parents, one, name, own, reader)]
    writes = [one for one in stores if one not in made]
    if len(made) != 1 or not writes or len(writes) > _MOST:
        return ""
    number = f"float({ast.unparse(made[0].value)})"
    if isinstance(made[0].value, ast.Constant) and isinstance(made[0].value.value, (int, float)):
        number = repr(float(made[0].value.value))
    variable = f"{tf}.Variable({number}, trainable=False)" if tf else f"{keras}.Variable({number}, trainable=False)"
    pieces: dict[ast.AST, str] = {made[0].value: variable}
    for one in writes:
        text = _written(facts, file, one)
        if not text:
            return ""
        pieces[one] = text
    for one in names:
        if isinstance(one.ctx, ast.Load) and _formatted(parents, one) and _same(parents, one, name, own, reader):
            pieces[one] = f"float({ast.unparse(one)})"
    return pastes.all_replaced(facts, file, pieces)  # type: ignore[arg-type]  # statements have places, too


def _named(tree: ast.AST, name: str) -> Iterator[ast.Name | ast.Attribute]:
    for node in ast.walk(tree):
        if (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name):
            yield node


def _computes(parents: dict[int, ast.AST], node: ast.AST) -> bool:
    """Whether a tensor will do in the place of a number: arithmetic, which no condition or index of Python's asks."""
    if not isinstance(parents.get(id(node)), (ast.BinOp, ast.UnaryOp, ast.Call)):
        return False
    for one in _above(parents, node):
        if isinstance(one, (ast.Compare, ast.If, ast.While, ast.IfExp, ast.Subscript, ast.JoinedStr, ast.BoolOp)):
            return isinstance(one, (ast.If, ast.While)) and not any(part is node for part in ast.walk(one.test))
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            return False  # range(k), int(k), print(k)
        if isinstance(one, ast.stmt):
            return True
    return True


def _above(parents: dict[int, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    one = parents.get(id(node))
    while one is not None:
        yield one
        one = parents.get(id(one))


def _class(parents: dict[int, ast.AST], node: ast.AST) -> ast.ClassDef | None:
    return next((one for one in _above(parents, node) if isinstance(one, ast.ClassDef)), None)


def _same(
    parents: dict[int, ast.AST], node: ast.AST, name: str, own: ast.ClassDef | None, reader: ast.FunctionDef
) -> bool:
    """Whether a name may stand for this number: no other class's attribute, no function's own variable."""
    if name.startswith("self.") != isinstance(node, ast.Attribute):
        return False
    if isinstance(node, ast.Attribute):
        return ast.unparse(node.value) != "self" or _class(parents, node) is own
    function = next((one for one in _above(parents, node) if isinstance(one, ast.FunctionDef)), None)
    shared = () if function is None else (
        part for one in ast.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal)) for part in one.names
    )  # fmt: skip
    around = function is None or any(one is function for one in _above(parents, reader))
    return around or isinstance(getattr(node, "ctx", None), ast.Load) or name in shared


def _makes(
    parents: dict[int, ast.AST], node: ast.Assign, name: str, own: ast.ClassDef | None, reader: ast.FunctionDef
) -> bool:
    """Whether a statement gives the first value: in `__init__`, or in what is around the reader, outside of loops."""
    if len(node.targets) != 1:
        return False
    above = list(_above(parents, node))
    if name.startswith("self."):
        function = next((one for one in above if isinstance(one, ast.FunctionDef)), None)
        return function is not None and function.name == "__init__" and _class(parents, node) is own
    return isinstance(above[0], ast.Module) or any(one is above[0] for one in _above(parents, reader))


def _written(facts: Facts, file: str, node: ast.AST) -> str:
    """`x = v` as `x.assign(v)`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return f"{ast.unparse(node.targets[0])}.assign({pastes.text_of(facts, file, node.value)})"
    if isinstance(node, ast.AugAssign):
        target, value = ast.unparse(node.target), pastes.text_of(facts, file, node.value)
        method = _ADDS.get(type(node.op))
        if method is not None:
            return f"{target}.{method}({value})"
        symbol = {ast.Mult: "*", ast.Div: "/"}.get(type(node.op))
        value = value if isinstance(node.value, (ast.Constant, ast.Name, ast.Attribute, ast.Call)) else f"({value})"
        return f"{target}.assign({target} {symbol} {value})" if symbol else ""
    return ""


def _formatted(parents: dict[int, ast.AST], node: ast.AST) -> bool:
    """Whether a text has it with a format, which a variable has none of, or it is printed."""
    one = parents.get(id(node))
    if isinstance(one, ast.Call) and ast.unparse(one.func) == "print":
        return True
    by_percent = isinstance(one, ast.Tuple) and isinstance(parents.get(id(one)), ast.BinOp)
    top = parents.get(id(one)) if by_percent else one
    if isinstance(top, ast.BinOp) and isinstance(top.op, ast.Mod):
        return isinstance(top.left, ast.Constant) and isinstance(top.left.value, str)
    return isinstance(one, ast.FormattedValue) and one.format_spec is not None


__all__ = ["as_variable"]
