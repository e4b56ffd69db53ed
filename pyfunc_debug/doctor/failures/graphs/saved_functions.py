"""A `tf.Module`, or a model, that is saved as a SavedModel and called after it was loaded.

A SavedModel has the graphs of functions, and no Python: of a method without `tf.function` nothing is saved, of a
`tf.function` that was not called no graph (tensorflow/python/saved_model/save.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup
from pyfunc_debug.interception.graphs.retraces import entries
from pyfunc_debug.interception.names.private import function_cache, of_object

RULE = "serialization"
_NO_GRAPH = "Found zero restored functions for caller function"
_NO_CALL = re.compile(r"'_UserObject' object (?:is not callable|has no attribute '(\w+)')")
_NO_SIGNATURE = "Expected a TensorFlow function for which to generate a signature"
_BY_POSITION = re.compile(
    r"Binding inputs to tf\.function failed due to .*?for signature: \(\*, (.*?)\) -> |"
    r"takes 0 positional arguments, got|only takes? keyword arguments",
    re.DOTALL,
)
_NAMED = re.compile(r"(\w+): TensorSpec\(")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a SavedModel has no graph for what is asked of it, or takes its inputs by name."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    message = situation.message
    if message.startswith(_NO_SIGNATURE):
        return _of_signature(spot, statement)
    if message.startswith(_NO_GRAPH):
        return _untraced(spot, statement)
    found = _NO_CALL.search(message)
    if found is not None:
        return _undecorated(spot, statement, found[1] or "__call__")
    found = _BY_POSITION.search(message)
    return _by_name(spot, statement, _NAMED.findall(found[1] or "")) if found is not None else None


def _saves(spot: Spot) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls of the file that write a SavedModel, and what they save."""
    for call in calls(spot.source.tree):
        if dotted(call.func).endswith("saved_model.save") and len(call.args) > 1:
            yield call, call.args[0]


def _saved(spot: Spot) -> tuple[ast.Call, ast.expr, Any] | None:
    """The one call that saves, what it saves as it is written, and that object."""
    found = list(_saves(spot))
    if len(found) != 1:
        return None
    call, node = found[0]
    value = lookup(node, spot)
    if value is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):  # save(M(), ...)
        value = spot.value(node.func.id)
        return (call, node, value) if isinstance(value, type) else None
    return None if value is None else (call, node, value)


def _method(spot: Spot, value: Any, name: str) -> ast.FunctionDef | None:
    """The method of an object's class, where the class stands in the file."""
    kind = value if isinstance(value, type) else type(value)
    own = {one.__name__ for one in kind.__mro__}
    found = [
        one for part in ast.walk(spot.source.tree) if isinstance(part, ast.ClassDef) and part.name in own
        for one in part.body if isinstance(one, ast.FunctionDef) and one.name == name
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _asked(statement: ast.stmt, name: str) -> ast.Call | None:
    """The call of a loaded object, or of its method, in a line."""
    for one in calls(statement):
        if name == "__call__" and isinstance(one.func, ast.Name) and one.func.id not in ("print", "list", "float"):
            return one
        if isinstance(one.func, ast.Attribute) and one.func.attr == name:
            return one
    return None


def _specs(spot: Spot, call: ast.Call, tf: str) -> list[str] | None:
    """TensorSpecs for the arguments of a call, batches of any size; None where they are not all arrays or tensors."""
    found = []
    for one in call.args:
        text = _spec(one, spot, tf)
        if text is None:
            return None
        found.append(text)
    return found if found and not call.keywords else None


def _spec(node: ast.expr, spot: Spot, tf: str) -> str | None:
    value = lookup(node, spot)
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and shape is not None:
        name = str(getattr(dtype, "name", dtype))
        sizes = ["None", *map(str, list(shape)[1:])] if len(shape) else []
        return f"{tf}.TensorSpec([{', '.join(sizes)}], {tf}.{name})"
    if isinstance(node, ast.Call) and dotted(node.func) == f"{tf}.constant" and node.args:
        dtype_node = argument(node, 1, "dtype")
        number = node.args[0]
        if isinstance(number, ast.Constant) and type(number.value) in (float, int):
            plain = f"{tf}.{'float32' if type(number.value) is float else 'int32'}"
            return f"{tf}.TensorSpec([], {plain if dtype_node is None else spot.source.text(dtype_node)})"
    return None


def _untraced(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """A tf.function that was never called before it was saved."""
    for call, _, value in filter(None, [_saved(spot)]):
        for one in calls(statement):
            name = one.func.attr if isinstance(one.func, ast.Attribute) else "__call__"
            method = _method(spot, value, name)
            if method is None or one is call:
                continue
            tf = alias(spot, "tensorflow")
            cause = (
                f"{name} was not called before line {call.lineno} saved it: a SavedModel has the graphs that were "
                "traced by then, and no Python to trace another. With an input_signature it is traced as it is saved."
            )
            return _told(spot, cause, _with_signature(spot, method, one, tf), _ADVICE.format(tf=tf, name=name))
    return None


_ADVICE = "Write @{tf}.function(input_signature=[{tf}.TensorSpec(...)]) above {name}, or call it before it is saved."


def _told(spot: Spot, cause: str, edit: Edit | None, advice: str) -> Explanation:
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else advice)


def _with_signature(spot: Spot, method: ast.FunctionDef, call: ast.Call, tf: str) -> Edit | None:
    """The tf.function of a method with an input_signature that takes what a call gives."""
    specs = _specs(spot, call, tf)
    given = len(method.args.args) - 1
    if specs is None or len(specs) != given:
        return None
    listed = f"input_signature=[{', '.join(specs)}]"
    bare = [one for one in method.decorator_list if dotted(one) == f"{tf}.function"]
    called = [
        one for one in method.decorator_list if isinstance(one, ast.Call) and dotted(one.func) == f"{tf}.function"
    ]
    blanks = indent_of(spot.source.lines[method.lineno - 1])
    if bare:
        return Edit(spot.file, bare[0].lineno, bare[0].lineno, (f"{blanks}@{tf}.function({listed})",))
    if called:
        if any(one.arg == "input_signature" for one in called[0].keywords):
            return None
        return edit_of(spot.file, spot.source.replaced({called[0]: spot.source.with_argument(called[0], listed)}))
    if method.decorator_list:
        return None
    return Edit(spot.file, method.lineno, method.lineno - 1, (f"{blanks}@{tf}.function({listed})",))


def _undecorated(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """A method without tf.function: nothing of it is saved."""
    found, asked = _saved(spot), _asked(statement, name)
    method = _method(spot, found[2], name) if found is not None else None
    if method is None or asked is None or found is None or method.decorator_list:
        return None
    tf = alias(spot, "tensorflow")
    shown = f"{name} (line {method.lineno})"
    cause = (
        f"{shown} is no {tf}.function: a SavedModel has graphs and variables, and of a method of Python's nothing. "
        "With an input_signature its graph is made as it is saved."
    )
    return _told(spot, cause, _with_signature(spot, method, asked, tf), _ADVICE.format(tf=tf, name=name))


def _of_signature(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`signatures=` with a tf.function that has no input_signature: which of its graphs is not said."""
    saved = [one for one in calls(statement) if any(word.arg == "signatures" for word in one.keywords)]
    if len(saved) != 1:
        return None
    call = saved[0]
    given = next(word.value for word in call.keywords if word.arg == "signatures")
    if isinstance(given, ast.Dict):
        values = [one for one in given.values if not isinstance(one, ast.Call)]
        given = values[0] if len(values) == 1 else given
    if not isinstance(given, (ast.Name, ast.Attribute)):
        return None
    tf, text = alias(spot, "tensorflow"), spot.source.text(given)
    function = _function(spot, given)
    kind = type(function).__name__
    if kind != "Function":
        if not callable(function):
            return None
        cause = f"{text} is a function of Python's. A signature is the graph of a {tf}.function."
        return _told(spot, cause, None, _ADVICE.format(tf=tf, name=text).partition(", or")[0] + ".")
    cause = f"{text} has no input_signature, so that TensorFlow does not know which graph of it the signature is."
    graphs = [one for _, _, one in entries(function_cache(function))]
    specs = [_of_spec(one, tf) for one in _inputs(graphs[0])] if len(graphs) == 1 else []
    if not specs or None in specs:
        return _told(
            spot, cause, None, f"Save {text}.get_concrete_function({tf}.TensorSpec(...)), with a spec for each input."
        )
    new = f"{text}.get_concrete_function({', '.join(map(str, specs))})"
    cause += " Below is the one that it was called for, for batches of any size."
    return _told(spot, cause, edit_of(spot.file, spot.source.replaced({given: new})), "")


def _function(spot: Spot, node: ast.expr) -> Any:
    """A function by its name, or `m.serve`: a method that was asked for is kept by its object."""
    if isinstance(node, ast.Name):
        return spot.value(node.id)
    owner = lookup(node.value, spot) if isinstance(node, ast.Attribute) else None
    kept = lookup(node, spot)
    if kept is not None or owner is None or not isinstance(node, ast.Attribute):
        return kept
    found = [vars(one)[node.attr] for one in type(owner).__mro__ if node.attr in vars(one)]
    if not found:
        return None
    try:
        return of_object(found[0], owner)
    except TypeError:  # an object that has no weak references
        return found[0]


def _inputs(concrete: Any) -> list[Any]:
    """The tensors among a graph's arguments, as specs; empty where it takes something else too."""
    args, words = getattr(concrete, "structured_input_signature", ((), {}))
    plain = [one for one in args if type(one).__name__ == "TensorSpec"]
    return plain if plain and len(plain) == len(args) and not words else []


def _of_spec(spec: Any, tf: str) -> str | None:
    if spec.shape.rank is None:
        return None
    sizes = ["None", *map(str, spec.shape.as_list()[1:])] if spec.shape.rank else []
    return f"{tf}.TensorSpec([{', '.join(sizes)}], {tf}.{spec.dtype.name})"


def _by_name(spot: Spot, statement: ast.stmt, listed: list[str]) -> Explanation | None:
    """A signature that was called by position: it takes its inputs by name only, and tensors."""
    for one in calls(statement):
        if not _is_signature(spot, one.func) or not one.args or one.keywords:
            continue
        names = list(dict.fromkeys(listed))
        if len(names) != len(one.args):
            return None
        tf = alias(spot, "tensorflow")
        pieces: dict[ast.expr, str] = {}
        for name, given in zip(names, one.args):
            made = dotted(given.func).startswith(f"{tf}.") if isinstance(given, ast.Call) else False
            tensor = made or type(lookup(given, spot)).__name__ == "EagerTensor"
            text = spot.source.text(given)
            pieces[given] = f"{name}={text if tensor else f'{tf}.constant({text})'}"
        if all(text == f"{name}={spot.source.text(one)}" for (one, text), name in zip(pieces.items(), names)):
            return None
        cause = "A signature of a SavedModel takes tensors, and makes none of a list or an array. It gives a dict."
        return _told(spot, cause, edit_of(spot.file, spot.source.replaced(pieces)), "")
    return None


def _is_signature(spot: Spot, node: ast.expr) -> bool:
    """Whether a call is one of `loaded.signatures["serving_default"]`, also by a name."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "signatures"
    return any(
        "Signature" in one.__name__ or one.__name__ == "_WrapperFunction" for one in type(lookup(node, spot)).__mro__
    )
