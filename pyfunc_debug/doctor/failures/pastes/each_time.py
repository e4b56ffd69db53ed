"""What Python keeps of a graph, kept in each of its runs: the call of `append` in a py_function."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.code import local_names, own_nodes, parameters
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, names

_MADE_OF_PARTS = (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)
_TAKES = ("pop", "popleft")
_DTYPES: dict[type | None, str] = {int: "int32", float: "float32", str: "string", bool: "bool"}
_OF_TENSORS = {"shape", "dtype", "ndim", "size", "T", "numpy"}
"""Attributes that a tensor has in a body as well."""


def each_time(source: Source, function: Function, call: ast.Call, tf: str) -> str | None:
    """A call that keeps something (`self.history.append(loss)`) as a py_function, which runs it each time.

    What the call is asked of (`self.history`) stays what it was when the graph was built: Python objects and keys are
    not tensors. Only what it keeps is an input.

    Args:
      source: The file.
      function: The function that is traced.
      call: The call.
      tf: What the file calls TensorFlow.

    Returns:
      The py_function's call; None where what is kept cannot be an input.
    """
    parts = [*call.args, *(one.value for one in call.keywords)]
    if any(isinstance(one, ast.Starred) for one in parts) or any(one.arg is None for one in call.keywords):
        return None
    owner, local = names(call.func), local_names(function)
    bound = [one for one in owner if one in local and one not in parameters(function)]
    whole = _whole(parts[0], tf) if len(parts) == 1 and not call.keywords else None
    if whole is not None:
        given, inputs, text = [whole], [source.text(parts[0])], f"{source.text(call.func)}({whole})"
        objects: set[str] = set()
    else:
        given = inputs = list(dict.fromkeys(one for part in parts for one in names(part) if one in local))
        objects = {
            dotted(one.value).partition(".")[0] for part in parts for one in ast.walk(part)
            if isinstance(one, ast.Attribute) and one.attr not in _OF_TENSORS
        }  # fmt: skip
        text = source.text(call)
    if set(given) & {*owner, *objects} or not all(_may_be_tensor(function, one) for one in given):
        return None
    head = ", ".join([*given, *(f"{one}={one}" for one in bound)])
    wrapped = f"{tf}.py_function(lambda{' ' * bool(head)}{head}: {text}, [{', '.join(inputs)}], "
    if _is_alone(source.tree, call):
        return f"{wrapped}[])"
    dtype = _taken(source, call)
    return None if dtype is None else f"{tf}.ensure_shape({wrapped}{tf}.{dtype}), [])"


def _is_alone(tree: ast.AST, call: ast.Call) -> bool:
    """Whether nothing is done with what a call gives."""
    place = (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset)
    return any(
        isinstance(one, ast.Expr)
        and place == (one.value.lineno, one.value.col_offset, one.value.end_lineno, one.value.end_col_offset)
        for one in ast.walk(tree)
    )


def _taken(source: Source, call: ast.Call) -> str | None:
    """The dtype of what is taken out of a list (`self.items.pop()`), where the file says of what it is made."""
    kept = dotted(call.func.value) if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKES else ""
    made = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and kept and kept in [dotted(target) for target in one.targets]
    ]  # fmt: skip
    value = made[0] if len(made) == 1 else None
    value = (
        value.args[0] if isinstance(value, ast.Call) and dotted(value.func).endswith("deque") and value.args else value
    )
    parts = value.elts if isinstance(value, ast.List) else []
    kinds = {type(one.value) if isinstance(one, ast.Constant) else None for one in parts}
    return _DTYPES.get(kinds.pop()) if len(kinds) == 1 else None


def _whole(value: ast.expr, tf: str) -> str | None:
    """The name under which the one value that is kept goes into the body; None where its parts do."""
    if isinstance(value, ast.Name):
        return value.id
    tensors = isinstance(value, ast.Call) and dotted(value.func).startswith(f"{tf}.")
    return "value" if tensors or isinstance(value, ast.Attribute) else None


def _may_be_tensor(function: Function, name: str) -> bool:
    """Whether nothing in a function says that a name of it is a list, a dict or the like."""
    return not any(
        isinstance(one, ast.Assign) and isinstance(one.value, _MADE_OF_PARTS)
        and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
        for one in own_nodes(function)
    )  # fmt: skip


__all__ = ["each_time"]
