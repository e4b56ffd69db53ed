"""What a tf.function object itself tells, recorded or not: its graphs, why each was traced, the nodes in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfunc_debug.errors import BadOptionError, UnsupportedTensorFlowError
from pyfunc_debug.events import Body
from pyfunc_debug.interception import names as _names
from pyfunc_debug.interception.bodies import SourceMaps, find_body
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.graphs.retraces import Reason, against, entries
from pyfunc_debug.interception.graphs.signatures import signature


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
    defaults = getattr(function, "_default_values", None) or {}
    graphs: list[LiveGraph] = []
    earlier: list[tuple[Any, Any]] = []
    for context, kind, concrete in entries(function._function_cache):
        reason = against(earlier, kind, context, defaults, function.python_function, names)
        earlier.append((kind, context))
        name = concrete.name.decode() if isinstance(concrete.name, bytes) else str(concrete.name)
        tokens = library.tokens(name) or frozenset()
        nodes = tuple((token, _body(token, names, maps)) for token in sorted(tokens, key=_number))
        graphs.append(LiveGraph(name, signature(kind), reason, nodes))
    return LiveFunction(body, tuple(graphs))


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
    for attribute in ("train_function", "predict_function", "test_function"):  # a Keras model
        if getattr(thing, attribute, None) is not None:
            return f"{name} is a Keras model: pass its {attribute}, as in explain(model.{attribute})"
    if callable(thing):
        return f"{name} is not a tf.function, so TensorFlow never traces it by itself: pass what tf.function returned"
    return f"{name!r} is not a tf.function: pass what tf.function returned"
