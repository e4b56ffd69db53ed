"""A py_function's call site, written as a plain call of graph code; and what in a body's source needs Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType

from pyfunc_debug.doctor.bodies.foreign_objects import method_of, values_asked
from pyfunc_debug.doctor.code import all_nodes, local_names, own_nodes, state_writes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, py_call
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, read

_GRAPH_MODULES = ("tensorflow", "keras", "tf_keras")
_EAGER_ONLY = {"numpy", "item", "tolist", "tobytes"}
"""Methods that ask a tensor for its value."""
_OF_ARRAYS = {
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "copy", "cumsum", "dot", "fill", "flatten", "max",
    "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "sort", "squeeze", "std", "sum", "swapaxes",
    "transpose", "var", "view",
}  # fmt: skip
"""Methods of NumPy's arrays that a tensor does not have."""
_VALUES = {"float", "int", "bool", "str", "list", "set", "dict", "sorted", "bytes"}
"""Built-in functions that ask a tensor for its value."""
_OUTSIDE = {"print", "open", "input", "exec", "eval", "next", "setattr", "delattr", "globals", "__import__"}
"""Built-in functions that do something outside of the graph."""
_OUTER = (ast.Try, ast.With, ast.AsyncWith, ast.Yield, ast.YieldFrom, ast.Await)
_DEEPEST = 3


@dataclass(frozen=True)
class Obstacle:
    """Something in a body that graph code cannot do.

    Attributes:
      file, line: Where.
      text: Its text there.
      why: What is wrong with it, in words that follow "line 12".
      effect: Whether it does something outside of the body, each time it runs.
      draws: Whether it is an op that draws random numbers: graph code can do it, and nobody can compare what it gives.
    """

    file: str
    line: int
    text: str
    why: str
    effect: bool = False
    draws: bool = False


def imports(source: Source) -> dict[str, str]:
    """What a file imports: the module (and name in it) behind each name."""
    found: dict[str, str] = {}
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Import):
            for name in one.names:
                found[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(one, ast.ImportFrom) and one.module:
            found.update({name.asname or name.name: f"{one.module}.{name.name}" for name in one.names})
    return found


def definition(file: str | None, line: int | None) -> Function | None:
    """The function that begins on a line, at its first decorator or its `def`; a lambda only if it is alone there."""
    if file is None or line is None:
        return None
    found = []
    for one in all_nodes(read(file).tree):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if line in (one.lineno, *(decorator.lineno for decorator in one.decorator_list)):
                return one
        elif isinstance(one, ast.Lambda) and one.lineno == line:
            found.append(one)
    return found[0] if len(found) == 1 else None


def definition_of(code: CodeType, file: str, line: int) -> Function | None:
    """The syntax tree of a code object's function; None where several lambdas of a line may be it.

    Args:
      code: The code object; AutoGraph's where the function is defined in what AutoGraph converts.
      file: The user's file.
      line: The user's line on which it begins.
    """
    if code.co_name != "<lambda>":
        return definition(file, line)
    own = code.co_filename == file
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [
        one for one in all_nodes(read(file).tree)
        if isinstance(one, ast.Lambda) and one.lineno == line
        and tuple(arg.arg for arg in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs)) == given
    ]  # fmt: skip
    if len(found) > 1 and own and hasattr(code, "co_positions"):  # since Python 3.11
        columns = [place[2] for place in code.co_positions() if place[2] is not None and place[0] == line]
        last = max(columns, default=-1)
        inside = [one for one in found if one.body.col_offset <= last < (one.end_col_offset or 0)]
        found = sorted(inside, key=lambda one: -one.col_offset)[:1]
    return found[0] if len(found) == 1 else None


def call_at(source: Source, line: int) -> ast.Call | None:
    """The call of py_function that a line holds.

    AutoGraph knows one line of a lambda only: there it is the one call in the lambda.
    """
    found = py_call(source, line)
    if found is not None:
        return found
    calls = {
        id(call): call
        for one in ast.walk(source.tree)
        if isinstance(one, ast.Lambda) and one.lineno <= line <= (one.end_lineno or one.lineno)
        for inner in ast.walk(one)
        if isinstance(inner, ast.Call) and (call := py_call(source, inner.lineno)) is not None
    }
    return next(iter(calls.values())) if len(calls) == 1 else None


def lambda_at(site: tuple[str, int]) -> ast.Lambda | None:
    """The lambda that a call of py_function on a line is given."""
    call = call_at(read(site[0]), site[1])
    given = None if call is None else argument(call, 0, "func")
    return given if isinstance(given, ast.Lambda) else None


def obstacles(
    file: str, function: Function, modules: tuple[str, ...] = (), source: Source | None = None
) -> list[Obstacle]:
    """What in a function's source needs Python, in the order of its lines; empty where TensorFlow's ops do it all.

    Read from the source: a function of another file, or one that is passed in, is not looked into.

    Args:
      file: The function's file.
      function: Its syntax tree.
      modules: Modules besides TensorFlow and Keras that it may use.
      source: The file, if it is not to be read.
    """
    found = _obstacles(file, function, source or read(file), (*_GRAPH_MODULES, *modules), 0)
    return sorted(found, key=lambda one: one.line)


def _obstacles(
    file: str, function: Function, source: Source, modules: tuple[str, ...], depth: int
) -> Iterator[Obstacle]:
    known, local = imports(source), local_names(function)
    in_ops = len(modules) == len(_GRAPH_MODULES)  # else what NumPy computes does not matter
    for write in state_writes(function):
        text = write.text.splitlines()[0]
        yield Obstacle(
            file, write.line, text, f"changes Python state ({text}), which graph code would do once, at trace", True
        )
    if in_ops and not depth:
        for node, text, why in values_asked(function):
            yield Obstacle(file, node.lineno, text, why)
    for one in own_nodes(function):
        outside = isinstance(one, _OUTER) and not (
            isinstance(one, ast.With) and all(_graph(item.context_expr, known, modules) for item in one.items)
        )
        if outside and isinstance(one, (ast.stmt, ast.expr)):
            word = type(one).__name__.lower().removeprefix("async")
            yield Obstacle(file, one.lineno, word, f"has a `{word}`, which graph code runs at trace only")
        stores = isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and dotted(one.value) in local
        if isinstance(one, ast.Subscript) and stores and in_ops:
            text = source.text(one)
            yield Obstacle(file, one.lineno, text, f"writes into an array ({text}), and a tensor cannot be changed")
        if not isinstance(one, ast.Call):
            continue
        name = dotted(one.func)
        head = name.partition(".")[0]
        if isinstance(one.func, ast.Attribute) and one.func.attr in _EAGER_ONLY:
            text = f"{source.text(one.func)}()"
            yield Obstacle(file, one.lineno, text, f"asks for values ({text}), which a tensor of a graph does not have")
        elif in_ops and _of_an_array(one, local):
            text = f"{source.text(one.func)}()"
            yield Obstacle(file, one.lineno, text, f"calls a method of NumPy's arrays ({text})")
        elif head in known and head not in local:
            full = f"{known[head]}.{name.partition('.')[2]}".rstrip(".")
            if ".random." in full or full.startswith("random."):
                why = f"draws random numbers ({name}), so results cannot be compared"
                yield Obstacle(file, one.lineno, name, why, draws=full.startswith("tensorflow."))
            elif not _graph(one, known, modules):
                yield Obstacle(file, one.lineno, name, f"uses {name}, which graph code would run once, at trace", True)
        elif in_ops and name and (head not in local or head == "self") and _is_foreign(one, file, source, known, depth):
            yield Obstacle(file, one.lineno, f"{name}()", f"calls {name}(), an object of Python's")
        elif isinstance(one.func, ast.Name) and head not in local:
            helper = next(
                (part for part in ast.walk(source.tree) if isinstance(part, ast.FunctionDef) and part.name == head),
                None,
            )
            if helper is not None and depth < _DEEPEST and helper is not function:
                yield from _obstacles(file, helper, source, modules, depth + 1)
            elif head in _OUTSIDE:
                why = f"calls {head}(), which graph code would do once, at trace"
                yield Obstacle(file, one.lineno, f"{head}()", why, True)
            elif head in _VALUES and not modules:
                why = f"asks for values ({head}()), which a tensor of a graph does not have"
                yield Obstacle(file, one.lineno, f"{head}()", why)


def _is_foreign(call: ast.Call, file: str, source: Source, known: dict[str, str], depth: int) -> bool:
    """Whether a call is of an object made outside, whose class computes with more than TensorFlow's ops."""
    method = method_of(call, source, known)
    if isinstance(method, ast.FunctionDef):
        return depth < _DEEPEST and any(_obstacles(file, method, source, _GRAPH_MODULES, depth + 1))
    return method is True


def _of_an_array(call: ast.Call, local: set[str]) -> bool:
    """Whether a call is of a method of an array, which is the function's own value."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _OF_ARRAYS:
        return False
    head = dotted(call.func).partition(".")[0]
    return not head or head in local


def _graph(node: ast.AST, known: dict[str, str], modules: tuple[str, ...]) -> bool:
    """Whether a call is of a function of one of these modules."""
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    return known.get(name.partition(".")[0], "").partition(".")[0] in modules


def direct_call(
    site: tuple[str, int], body: str | None = None, cast: tuple[str, ...] = (), source: Source | None = None,
    eager: bool = False, also: Mapping[ast.expr, str] | None = None,
) -> Edit | None:  # fmt: skip
    """The line that calls py_function, with a plain call of the body in its place.

    Args:
      site: File and line of the call of py_function.
      body: What to call; None for what py_function is given.
      cast: Expressions of dtypes that the results are cast to, one a result; "" for a result that is left as it is.
      source: The file, if it is not to be read.
      eager: Whether no graph is around it, so that its inputs may be arrays or numbers, which the body gets as tensors.
      also: Further expressions and their new texts.

    Returns:
      The edit; None where the call is not written as one.
    """
    source = source or read(site[0])
    call = call_at(source, site[1])
    function = None if call is None else argument(call, 0, "func")
    inputs = None if call is None else argument(call, 1, "inp")
    if call is None or function is None or inputs is None:
        return None
    if isinstance(inputs, (ast.List, ast.Tuple)) and not any(isinstance(one, ast.Starred) for one in inputs.elts):
        given = ", ".join(
            _input(one, source, dotted(call.func).rpartition(".")[0] if eager else "") for one in inputs.elts
        )
    else:
        given = f"*{source.text(inputs)}"
    text = source.text(function) if body is None else body
    text = f"({text})({given})" if text.startswith("lambda") else f"{text}({given})"
    tout = argument(call, 2, "Tout")
    if any(cast):
        tf = dotted(call.func).rpartition(".")[0] or "tf"
        if len(cast) == 1:
            text = f"{tf}.cast({text}, {cast[0]})"
        else:
            text = f"[{tf}.cast(one, kind) for one, kind in zip({text}, [{', '.join(cast)}])]"
    if len(cast) <= 1 and isinstance(tout, (ast.List, ast.Tuple)) and len(tout.elts) == 1:
        text = f"[{text}]"
    placed = source.replaced({call: text, **(also or {})}, bare=body is None)
    return edit_of(site[0], placed)


def _input(node: ast.expr, source: Source, tf: str = "") -> str:
    """An input as the body gets it: a tensor, also where a number was written, or with `tf` an array may stand."""
    text = source.text(node)
    if tf and not isinstance(node, ast.Constant):
        made = [
            dotted(one.value.func) for one in ast.walk(source.tree)
            if isinstance(one, ast.Assign) and isinstance(node, ast.Name) and isinstance(one.value, ast.Call)
            and any(isinstance(target, ast.Name) and target.id == node.id for target in one.targets)
        ]  # fmt: skip
        known = made or ([dotted(node.func)] if isinstance(node, ast.Call) else [])
        if not known or not all(one.startswith(f"{tf}.") for one in known):
            return f"{tf}.convert_to_tensor({text})"
    return f"tf.constant({text})" if isinstance(node, ast.Constant) else text


__all__ = [
    "Obstacle",
    "call_at",
    "definition",
    "definition_of",
    "direct_call",
    "imports",
    "lambda_at",
    "obstacles",
]
