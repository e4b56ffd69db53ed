"""Functions of the user's that only give something: what they are called for is lost where nothing keeps it."""

from __future__ import annotations

import ast
import builtins

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.failures.reading.source import Source, dotted

_PURE = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max",
    "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip",
})  # fmt: skip
_MUTATE = frozenset({
    "shuffle", "put", "copyto", "place", "putmask", "fill_diagonal", "put_along_axis", "save", "savez",
    "savez_compressed", "savetxt", "seed", "seterr", "set_printoptions", "setflags", "at",
})  # fmt: skip
"""Functions of NumPy that do something besides giving a value."""
_GIVE = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "copy", "cumsum", "decode", "dot", "encode",
    "flatten", "get", "index", "items", "join", "keys", "lower", "max", "mean", "min", "numpy", "prod", "ravel",
    "replace", "reshape", "round", "split", "squeeze", "std", "strip", "sum", "swapaxes", "tobytes", "tolist",
    "transpose", "upper", "values", "var",
})  # fmt: skip
"""Methods of arrays, texts and Python's containers that only give a value."""
_FRESH = frozenset({
    "copy", "astype", "array", "zeros", "zeros_like", "empty", "empty_like", "ones", "ones_like", "full", "full_like",
    "list", "dict", "tile", "repeat", "pad", "concatenate", "stack",
})  # fmt: skip
"""Functions and methods that make a container of their own."""


def parts_given(own: Source, call: ast.Call, named: dict[str, ast.FunctionDef]) -> list[ast.expr] | None:
    """What a call gives, part by part, if it calls a function of the file that does nothing else; else None.

    Args:
      own: The file.
      call: The call, of a function or of a method of `self`.
      named: The functions and methods of the file, by the names that one has alone.
    """
    name = dotted(call.func)
    head, _, last = name.rpartition(".")
    function = named.get(last) if head in ("", "self") else None
    if function is None or not _only_gives(own, function):
        return None
    returned = pastes.returns(function)
    value = returned[0]
    return list(value.elts) if isinstance(value, ast.Tuple) else [value]


def _only_gives(own: Source, function: ast.FunctionDef) -> bool:
    """Whether all that a function does is its one return at the end."""
    returned = pastes.returns(function)
    if len(returned) != 1 or not isinstance(function.body[-1], ast.Return) or function.decorator_list:
        return False
    if isinstance(returned[0], ast.Constant):
        return False
    fresh = _made_there(function)
    known = imports(own)
    for one in code.own_nodes(function):
        if isinstance(one, (ast.Yield, ast.YieldFrom, ast.Raise, ast.Assert, ast.Global, ast.Nonlocal, ast.With,
                            ast.Await, ast.Delete, ast.Try, ast.FunctionDef, ast.ClassDef)):  # fmt: skip
            return False
        if isinstance(one, (ast.Attribute, ast.Subscript)) and not isinstance(one.ctx, ast.Load):
            if not isinstance(one, ast.Subscript) or dotted(one.value) not in fresh:
                return False
        elif isinstance(one, ast.AugAssign) and dotted(one.target) not in fresh:
            return False  # x += 1 changes an array that was given
        elif isinstance(one, ast.Call) and not _is_pure(one, known, fresh):
            return False
    return True


def _made_there(function: ast.FunctionDef) -> set[str]:
    """Names that hold what the function made itself, and nothing else."""
    made: dict[str, bool] = {}
    for one in code.own_nodes(function):
        if not isinstance(one, (ast.Assign, ast.AnnAssign, ast.For, ast.NamedExpr, ast.comprehension)):
            continue
        value = one.value if isinstance(one, ast.Assign) else None
        fresh = isinstance(value, (ast.List, ast.Dict, ast.ListComp, ast.Constant)) or (
            isinstance(value, ast.Call) and pastes.last_name(value.func) in _FRESH
        )
        for name in code.stored_names(one):
            made[name] = made.get(name, True) and fresh
    return {name for name, fresh in made.items() if fresh}


def _is_pure(call: ast.Call, known: dict[str, str], fresh: set[str]) -> bool:
    """Whether a call only gives a value, as far as its name says."""
    name = dotted(call.func)
    head, _, rest = name.partition(".")
    if any(one.arg in ("out", "dst") for one in call.keywords):
        return False
    if not rest and head in _PURE:
        return head not in known and hasattr(builtins, head)
    module = known.get(head, "")
    if module in ("numpy", "random") or module.startswith("numpy."):
        return rest.rpartition(".")[2] not in _MUTATE
    if module.partition(".")[0] == "sklearn":
        return name.rpartition(".")[2] in ("shuffle", "resample", "train_test_split")
    if isinstance(call.func, ast.Attribute):
        if call.func.attr == "append" and dotted(call.func.value) in fresh:
            return True
        return call.func.attr in _GIVE and not call.keywords
    return False
