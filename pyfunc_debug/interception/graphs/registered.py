"""What TensorFlow's registry of Python functions keeps: an entry for each node and each eager py_function, forever.

The outermost graph holds them (`_py_funcs_used_in_graph`, script_ops.py). Outside of a v1 graph that is the process'
default graph, which never goes: an entry stays until the process ends, with all that its function's closure holds.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.events import Body
from pyfunc_debug.interception.bodies import SourceMaps, closure, find_body, scope, unwrap, user_generator
from pyfunc_debug.interception.names import TensorFlowNames, private


@dataclass(frozen=True)
class Entries:
    """The registry's entries of one body.

    Attributes:
      body: The body.
      token: One of them, the newest.
      count: How many there are.
      nbytes: What the arrays and tensors in their closures weigh, each counted once; of generators, also those of
        the object that they are a method of.
      old_nbytes: The part of it that the newest entry does not hold.
    """

    body: Body
    token: str
    count: int
    nbytes: int
    old_nbytes: int


def next_number(names: TensorFlowNames) -> int | None:
    """The number that the registry gives its next entry; None where that cannot be known."""
    return private.next_token(names.registry)


def entries_since(number: int, names: TensorFlowNames, maps: SourceMaps) -> list[Entries]:
    """The entries of the user's bodies that were made since, and still are. Some microseconds an entry.

    Those of `Dataset.from_generator` count for its generator: of its three, the one that takes elements.
    """
    bodies: dict[int, Body] = {}
    counts: dict[Body, int] = {}
    newest: dict[Body, str] = {}
    held: dict[Body, dict[int, int]] = {}
    last: dict[Body, dict[int, int]] = {}
    for token, registered in private.registered_since(names.registry, number):
        function = unwrap(registered, names)
        generator = user_generator(function)
        code = getattr(function, "__code__", None) if generator is None else None  # one code serves all generators
        body = bodies.get(id(code)) if code is not None else None
        if body is None:
            body = find_body(registered, names, maps)
            if code is not None:
                bodies[id(code)] = body
        if body.internal and (generator is None or not generator.asks or private.keras_source(generator.function)[0]):
            continue
        counts[body] = counts.get(body, 0) + 1
        newest[body] = token
        last[body] = _arrays(function if generator is None else generator.function, generator is not None)
        held.setdefault(body, {}).update(last[body])
    return [
        Entries(
            body, newest[body], count, sum(held[body].values()),
            sum(size for one, size in held[body].items() if one not in last[body]),
        )
        for body, count in counts.items()
    ]  # fmt: skip


def _arrays(function: Any, generates: bool) -> dict[int, int]:
    """Sizes of the arrays and tensors that a function holds, by identity."""
    if generates:
        own, _ = scope(function)
        values = list(own.values())
        values += [one for owner in values for one in _attributes(owner)]
    else:
        values = list(closure(function).values()) if hasattr(function, "__closure__") else []
    found = {}
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            size = array_bytes(one)
            if size:
                found[id(one)] = size
    return found


def _attributes(owner: Any) -> list[Any]:
    """What an object of a class of the user's holds. Runs no code of theirs."""
    if isinstance(owner, (type, types.ModuleType, types.FunctionType)):
        return []
    try:
        return list(object.__getattribute__(owner, "__dict__").values())
    except AttributeError:
        return []


def bodies_since(
    number: int, names: TensorFlowNames, maps: SourceMaps
) -> Iterator[tuple[str, Body, dict[str, Any], dict[str, Any]]]:
    """The user's bodies of entries made since, each once: token, body, names of its own, its module's."""
    seen: set[Body] = set()
    for token, registered in reversed(private.registered_since(names.registry, number)):
        body = find_body(registered, names, maps)
        if body.internal or body in seen:
            continue
        seen.add(body)
        yield token, body, *scope(unwrap(registered, names))


def array_bytes(thing: Any) -> int:
    """What an array or an eager tensor weighs; 0 for everything else."""
    if isinstance(thing, np.ndarray):
        return int(thing.nbytes)
    if not private.is_of_eager_type(thing):
        return 0
    shape, dtype = getattr(thing, "shape", None), getattr(thing, "dtype", None)
    if type(shape).__name__ == "TensorShape" and shape is not None and shape.num_elements() is not None:
        return int(shape.num_elements() * getattr(dtype, "size", 0))
    return 0
