"""What a tf.function object itself shows, recorded or not: its graphs, why each was traced, the nodes in them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.errors import BadOptionError, UnsupportedTensorFlowError
from pyfunc_debug.events import Body
from pyfunc_debug.interception import names as _names
from pyfunc_debug.interception.bodies import SourceMaps, closure, find_body
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.graphs.retraces import Reason, against, entries
from pyfunc_debug.interception.graphs.signatures import signature
from pyfunc_debug.interception.names import private
from pyfunc_debug.program.frames import is_user


@dataclass(frozen=True)
class LiveGraph:
    """One graph of a tf.function. `nodes` are (token, body) of the nodes in it, nested graphs included."""

    name: str
    signature: str
    reason: Reason
    nodes: tuple[tuple[str, Body], ...]


@dataclass(frozen=True)
class LiveFunction:
    """A tf.function object and its graphs, oldest first."""

    body: Body
    graphs: tuple[LiveGraph, ...]


def describe(function: Any) -> LiveFunction:
    """Reads a tf.function object. Changes nothing and traces nothing.

    Raises:
      BadOptionError: it is not a tf.function; the message says what it is and what to pass.
      UnsupportedTensorFlowError: this TensorFlow keeps its graphs elsewhere.
    """
    names = _names.load()
    if names.function_type is None or names.function_cache_type is None:
        raise UnsupportedTensorFlowError(_names.explain_missing(names))
    if not isinstance(function, names.function_type):
        raise BadOptionError(_what_to_pass(function, names))
    maps, library = SourceMaps(names), Library(names)
    body = find_body(function.python_function, names, maps)
    defaults = private.default_values(function) or {}
    graphs: list[LiveGraph] = []
    earlier: list[tuple[Any, Any]] = []
    for context, kind, concrete in entries(private.function_cache(function)):
        reason = against(earlier, kind, context, defaults, function.python_function, names)
        earlier.append((kind, context))
        name = concrete.name.decode() if isinstance(concrete.name, bytes) else str(concrete.name)
        tokens = library.tokens(name) or frozenset()
        nodes = tuple((token, _body(token, names, maps)) for token in sorted(tokens, key=_number))
        graphs.append(LiveGraph(name, signature(kind), reason, nodes))
    return LiveFunction(body, tuple(graphs))


_KERAS_METHODS = {
    "fit": "train_function", "train_on_batch": "train_function", "evaluate": "test_function",
    "test_on_batch": "test_function", "predict": "predict_function", "predict_on_batch": "predict_function",
}  # fmt: skip


@dataclass(frozen=True)
class KerasStep:
    """What a Keras model runs for each batch.

    Attributes:
      name: The model's class and method.
      file: The file of the user's own `train_step` (`test_step`, `predict_step`), if the model has one.
      line: Its line.
      function: The tf.function that Keras traces for each kind of batch; None before the first step, and if eager.
      eager: Whether the model runs eagerly: nothing is traced then.
    """

    name: str
    file: str | None
    line: int | None
    function: Any
    eager: bool


def keras_step(thing: Any) -> KerasStep | None:
    """The step of a Keras model (that of `fit`) or of one of its bound methods; None for other things."""
    method = getattr(thing, "__name__", "") if isinstance(thing, types.MethodType) else "fit"
    model = thing.__self__ if isinstance(thing, types.MethodType) else thing
    attribute = _KERAS_METHODS.get(method)
    if attribute is None or not hasattr(model, "make_train_function"):
        return None
    function_type = _names.load().function_type
    held = getattr(model, attribute, None)
    found = list(_tf_functions(held, function_type, set())) if function_type is not None else []
    step = found[-1] if found else None  # the innermost: it is traced for each kind of batch, the others loop
    code = getattr(getattr(type(model), attribute.replace("_function", "_step"), None), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code and is_user(code.co_filename) else (None, None)
    name, eager = f"{type(model).__name__}.{method}", bool(getattr(model, "run_eagerly", False))
    return KerasStep(name, file, line, step, eager)


def _tf_functions(thing: Any, function_type: Any, seen: set[int]) -> Iterator[Any]:
    """The tf.functions that a function calls through its closure, outermost first."""
    if thing is None or id(thing) in seen or len(seen) > 100:
        return
    seen.add(id(thing))
    if isinstance(thing, function_type):
        yield thing
        yield from _tf_functions(thing.python_function, function_type, seen)
        return
    inner = getattr(thing, "__wrapped__", None)
    if inner is not None:
        yield from _tf_functions(inner, function_type, seen)
    if isinstance(thing, types.FunctionType):
        for held in closure(thing).values():
            if isinstance(held, (types.FunctionType, function_type)):
                yield from _tf_functions(held, function_type, seen)


def _body(token: str, names: Any, maps: SourceMaps) -> Body:
    registered = names.registry.get(token)
    if registered is None:
        return Body("(gone)", None, None, (), internal=False)
    return find_body(registered, names, maps)


def _number(token: str) -> tuple[int, str]:
    digits = token.rpartition("_")[2]
    return (int(digits) if digits.isdigit() else 0, token)


def _what_to_pass(thing: Any, names: Any) -> str:
    name = getattr(thing, "__name__", None) or type(thing).__name__
    if isinstance(thing, names.concrete_function_type):
        return f"{name} is one graph (a ConcreteFunction): pass the tf.function that it came from"
    if callable(thing):
        return f"{name} is not a tf.function, so TensorFlow never traces it by itself: pass what tf.function returned"
    return f"{name!r} is not a tf.function: pass what tf.function returned"
