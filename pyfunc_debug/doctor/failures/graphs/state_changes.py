"""Python's own state changed with a tensor's value, `counts[int(label)] += 1`: the lines as a py_function's body."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

from pyfunc_debug.doctor.code import Definition, all_nodes, own_nodes, root
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, indent_of, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, lookup, symbolic_parts
from pyfunc_debug.program.syntax import copied

_LONGEST = 8
"""Lines that are moved into a body."""
_ADDS = ("append", "extend", "insert", "add", "update", "write")
_CONVERTS = ("int", "float", "str", "bool", "bytes")


def edit(spot: Spot, statement: ast.stmt, message: str) -> Edit | None:
    """A statement that keeps something of a symbolic tensor where only Python sees it, in a py_function.

    Args:
      spot: The frame that failed.
      statement: Its statement.
      message: What TensorFlow said.

    Returns:
      What to paste; None for every other statement, and where the function goes on with what was kept.
    """
    function, statement = spot.function, _with_its_file(spot.source, statement)
    if not isinstance(function, ast.FunctionDef):
        return None
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = _kept_in(statement)
        if target is None or is_symbolic(lookup(target.value, spot)):
            return None
        if root(target) in _made_here(function) or _reads_again(function, statement, target):
            return None
    elif not isinstance(statement, ast.With) or _is_read_on(function, statement):
        return None
    inputs = list(symbolic_parts(statement, spot))
    if not inputs or not all(one.isidentifier() for one in inputs):
        return None
    hashed = inputs if "unhashable" in message else []
    made = in_python(spot.source, function, statement, inputs, alias(spot, "tensorflow"), hashed)
    return None if made is None else dataclasses.replace(made, file=spot.file)


def _is_read_on(function: ast.FunctionDef, block: ast.With) -> bool:
    """Whether the function goes on with what a block sets or adds to: a body that runs later gives it nothing."""
    changed = {one.id for one in ast.walk(block) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    changed |= {
        dotted(one.func.value) for one in ast.walk(block)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _ADDS
    }  # fmt: skip
    made = changed & (_made_here(function) | {one.id for one in ast.walk(block) if isinstance(one, ast.Name)})
    return any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in made
        and one.lineno > (block.end_lineno or block.lineno)
        for one in own_nodes(function)
    )  # fmt: skip


def kept_in_python(spot: Spot, statement: ast.Assign | ast.AugAssign, function: ast.FunctionDef) -> Edit | None:
    """A line that kept a symbol in a dict, `state["mean"] = 0.9 * state["mean"] + 0.1 * loss`, as each run keeps it.

    Args:
      spot: A frame of the file, in which the function is no longer running.
      statement: The line.
      function: The function that was traced; it must not go on with what it keeps.
    """
    target = _kept_in(statement)
    made = _made_here(function) | set(parameters(function))
    if not isinstance(target, ast.Subscript) or root(target) in made or _reads_again(function, statement, target):
        return None
    called = {dotted(one.func) for one in ast.walk(statement) if isinstance(one, ast.Call)} | {"self", "cls"}
    inputs = [one for one in names(statement) if one in made and one not in called]
    found = in_python(spot.source, function, statement, inputs, alias(spot, "tensorflow")) if inputs else None
    return None if found is None else dataclasses.replace(found, file=spot.file)


def goes_on(spot: Spot, statement: ast.stmt) -> bool:
    """Whether a statement changes what Python keeps by what it was before: `best["loss"] = min(best["loss"], loss)`.

    As an op it would keep a symbol there, once.
    """
    target = _kept_in(statement) if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    if target is None or is_symbolic(lookup(target.value, spot)):
        return False
    text = ast.unparse(target)
    read = any(isinstance(one, ast.expr) and ast.unparse(one) == text for one in ast.walk(statement.value))  # type: ignore[attr-defined]
    return read or isinstance(statement, ast.AugAssign)


def in_python(
    source: Source,
    function: Definition,
    statement: ast.stmt,
    inputs: Sequence[str],
    tf: str,
    hashed: Sequence[str] = (),
    keys: Sequence[str] = (),
) -> Edit | None:
    """A statement as the body of a py_function that gives nothing back.

    Args:
      source: The file.
      function: The function that is traced.
      statement: The statement.
      inputs: Names of the tensors in it.
      tf: What the file calls TensorFlow.
      hashed: Tensors that are keys, which only values can be.
      keys: Python's own values that are keys: they stay what they were when the graph was built.

    Returns:
      What to paste, without the name of the file.
    """
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    if last - first >= _LONGEST or any(isinstance(one, (ast.Return, ast.Yield)) for one in ast.walk(statement)):
        return None
    lines = list(source.lines[first - 1 : last])
    blanks = indent_of(lines[0])
    if hashed:
        if first != last:
            return None
        lines = [f"{blanks}{ast.unparse(_Keys(set(hashed)).visit(copied(statement)))}"]
    taken = {one.id for one in all_nodes(source.tree) if isinstance(one, ast.Name)}
    name = next(one for one in ("keep", "keep_in_python", "body") if one not in taken)
    outer = [
        one
        for part in own_nodes(function)
        if isinstance(part, ast.Global)
        for one in part.names
        if one in names(statement)
    ]
    elements = {name: _element(statement, name, keys) for name in inputs} if not hashed else {}
    given = {one: name for name, found in elements.items() for one in found}
    if given:  # of a list of tensors one is an input
        lines = list(source.spliced(given, first, last))
    listed = ", ".join(source.text(found[0]) if (found := elements.get(name)) else name for name in inputs)
    return Edit(
        "", first, last,
        (
            f"{blanks}def {name}({', '.join([*inputs, *(f'{one}={one}' for one in keys)])}):",
            *([f"{blanks}    global {', '.join(outer)}"] if outer else []),
            *(f"    {line}" if line.strip() else line for line in lines),
            f"{blanks}{tf}.py_function({name}, [{listed}], [])",
        ),
    )  # fmt: skip


def gives_back(part: ast.expr, spot: Spot) -> bool:
    """Whether a call whose result nobody takes has one: a py_function without outputs returns nothing."""
    if not isinstance(part, ast.Call):
        return True
    called = lookup(part.func, spot)
    owner, name = getattr(called, "__self__", None), dotted(part.func).rpartition(".")[2]
    if isinstance(owner, (list, dict, set)):
        return name in ("pop", "popitem", "setdefault")
    own = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    of_user = [one for function in own for one in own_nodes(function) if isinstance(one, ast.Return) and one.value]
    return name in ("write", "writerow", "writerows") or bool(of_user)


def _element(statement: ast.stmt, name: str, keys: Sequence[str]) -> list[ast.expr]:
    """`grads[i]` wherever a statement reads `grads`, with i of Python's own; empty where it reads it otherwise, too."""
    read = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name]
    found: list[ast.expr] = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and one.value.id == name
        and names(one.slice) and set(names(one.slice)) <= set(keys)
    ]  # fmt: skip
    return found if len(found) == len(read) and len({ast.unparse(one) for one in found}) == 1 else []


class _Keys(ast.NodeTransformer):
    """`x.numpy()` for the tensors in an index, where nothing makes a number of them yet."""

    def __init__(self, hashed: set[str]) -> None:
        self._hashed = hashed
        self._in_key = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)
        before, self._in_key = self._in_key, True
        node.slice = self.visit(node.slice)
        self._in_key = before
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return node if dotted(node.func) in _CONVERTS else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        key = self._in_key and node.id in self._hashed
        return ast.Call(ast.Attribute(node, "numpy", ast.Load()), [], []) if key else node


def _with_its_file(source: Source, statement: ast.stmt) -> ast.stmt:
    """`with open(name) as file:` around a statement that writes into the file."""
    for one in source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(one, ast.With):
            opened = {dotted(item.optional_vars) for item in one.items if item.optional_vars is not None}
            if opened & set(names(statement)):
                return one
    return statement


def _kept_in(statement: ast.Assign | ast.AugAssign) -> ast.Subscript | ast.Attribute | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return targets[0] if len(targets) == 1 and isinstance(targets[0], (ast.Subscript, ast.Attribute)) else None


def _made_here(function: Function) -> set[str]:
    """Names that a function gives values to: what they hold is gone after it."""
    return {
        one.id for one in own_nodes(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    } - set(parameters(function))


def _reads_again(function: Function, statement: ast.stmt, target: ast.expr) -> bool:
    """Whether the function reads, in another statement, what it keeps."""
    own = set(map(id, ast.walk(statement)))
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):  # other keys are not this one
        own |= {
            id(one.value) for one in own_nodes(function) if isinstance(one, ast.Subscript)
            and isinstance(one.slice, ast.Constant) and one.slice.value != target.slice.value
        }  # fmt: skip
    holder = ast.unparse(target.value) if isinstance(target, ast.Subscript) else ast.unparse(target)
    return any(
        id(one) not in own and isinstance(one, (ast.Name, ast.Attribute)) and ast.unparse(one) == holder
        for one in own_nodes(function)
    )
