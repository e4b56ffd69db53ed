"""Why TensorFlow traced a tf.function again, in words.

A tf.function looks its graphs up in its FunctionCache (core/function/polymorphism/function_cache.py); a lookup that
finds nothing is a graph trace about to happen, and the difference from the closest graph in the cache is its reason.
"""

from __future__ import annotations

import inspect
import itertools
import threading
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyfunc_debug.events import FunctionFacts, Observer
from pyfunc_debug.interception.bodies import SourceMaps, closure
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.graphs.advice import advise
from pyfunc_debug.interception.graphs.signatures import Difference, differences, signature
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.program.frames import caller, is_generated

_MOST = 200  # graphs compared with; a function with more has been explained often enough


@dataclass(frozen=True)
class Reason:
    """Why a graph trace happened: sentences; the closest earlier signature; what would have avoided it.

    `sentences` is empty for a first graph trace, `avoid` where nothing short of other code would have helped.
    """

    sentences: tuple[str, ...] = ()
    closest: str | None = None
    avoid: str | None = None


FIRST = Reason()


class Retraces:
    """Notes misses of the lookup on each thread, and knows the tf.function objects and where they were made."""

    def __init__(self, names: TensorFlowNames, observer: Observer, maps: SourceMaps) -> None:
        self._names = names
        self._observer = observer
        self._maps = maps
        self._here = threading.local()  # .missed: (cache, FunctionType, context) of the newest miss on this thread
        self._objects: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._sites: weakref.WeakKeyDictionary[Any, tuple[str, int, str]] = weakref.WeakKeyDictionary()
        self._failed: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._numbers = itertools.count(1)
        # A traced Python function -> its newest tf.function object, and what its closure held
        self._newest: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}

    # -- patches ------------------------------------------------------------------------------------------------------

    def lookup(self, original: Any) -> Any:
        """The replacement of `FunctionCache.lookup`. Some 0.2 us for a graph that is found."""
        here = self._here

        def lookup(self_: Any, function_type: Any, context: Any = None) -> Any:
            found = original(self_, function_type, context)
            if found is None:
                here.missed = self_, function_type, context
            return found

        return lookup

    def function_init(self, original: Any) -> Any:
        """The replacement of `polymorphic_function.Function.__init__`: the line where a tf.function object is made."""

        def __init__(self_: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces this method
            try:
                original(self_, *args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                site = caller()
                if site is not None:
                    self._sites[private.lock(self_)] = site
            except Exception as error:
                self._observer.trouble("noting where a tf.function is made", error)

        return __init__

    # -- graph traces -------------------------------------------------------------------------------------------------

    def take(self, options: Any) -> Reason:
        """The reason of the graph trace that begins on this thread."""
        missed = getattr(self._here, "missed", None)
        self._here.missed = None
        if missed is None or missed[0] is not options.function_cache:
            return FIRST
        try:
            cache, kind, context = missed
            earlier = ((old, around) for around, old, _ in entries(cache)[-_MOST:])
            return against(earlier, kind, context, options.default_values or {}, options.python_function, self._names)
        except Exception as error:
            self._observer.trouble("explaining a graph trace", error)
            return FIRST

    def object(self, options: Any) -> int | None:
        """A number for the tf.function object being traced, known by its lock: its own, and weakly referable."""
        if options.lock is None:
            return None
        number = self._objects.get(options.lock)
        if number is None:
            number = self._objects[options.lock] = next(self._numbers)
        return number

    def number(self, function: Any) -> int | None:
        """The number of a tf.function object that was traced while on; None for others."""
        lock = private.lock(function)
        return None if lock is None else self._objects.get(lock)

    def complete(
        self, reason: Reason, options: Any, function: FunctionFacts, number: int | None, error: str | None
    ) -> Reason:
        """Adds to a reason what only the history shows: a new tf.function object, or a trace that failed before."""
        if options.lock is None or number is None:
            return reason
        if reason is FIRST or not reason.sentences:
            failed = self._failed.get(options.lock)
            if failed is not None:
                reason = replace(reason, sentences=(f"the graph trace before failed with {failed} and left no graph",))
            else:
                reason = self._new_object(reason, options, function, number)
        if error is not None:
            self._failed[options.lock] = error
            reason = replace(reason, avoid=None)  # nobody knows whether advice would work where tracing fails
        else:
            self._failed.pop(options.lock, None)
        return reason

    def _new_object(self, reason: Reason, options: Any, function: FunctionFacts, number: int) -> Reason:
        key = (function.name, function.kind, function.file, function.line)
        held = _held(options.python_function)
        known, before = self._newest.get(key, (None, {}))
        self._newest[key] = number, held
        if known is None or known == number or function.internal or function.file is None:
            return reason
        differs = [name for name, value in held.items() if before.get(name) != value]
        if function.kind == "tf.data":
            text = "a new dataset: tf.data traces its functions for each one"
            fix = None if differs else "build the dataset once and iterate it again"
        elif _is_method(options.python_function):
            text = "another object's method: TensorFlow keeps graphs for each object"
            fix = "keep one object, or accept a graph each"
        else:
            line = self._made_at(options.lock) or f"line {function.line}"
            text = f"a new tf.function object, made at {line}: each object has graphs of its own"
            fix = "make the tf.function once, outside the function or loop that calls it"
            if differs:
                fix += f", and give it {', '.join(f'`{name}`' for name in differs)} as an argument"
        return replace(reason, sentences=(text,), avoid=fix)

    def _made_at(self, lock: Any) -> str | None:
        site = self._sites.get(lock)
        if site is None:
            return None
        file, line = site[0], site[1]
        if is_generated(file):
            file, line = self._maps.find(file, line) or (file, line)
        return f"line {line}" if not is_generated(file) else None


def _held(python_function: Any) -> dict[str, Any]:
    """What a function's closure holds: plain values, and the identity of other objects."""
    function = getattr(python_function, "__wrapped__", python_function)
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(function, types.FunctionType):
        return {}
    return {
        name: value if isinstance(value, (int, float, str, bytes, type(None))) else id(value)
        for name, value in closure(function).items()
    }


def _is_method(python_function: Any) -> bool:
    """Whether a tf.function was made by accessing a decorated method (class_method_to_instance_method)."""
    for _ in range(16):
        if isinstance(python_function, types.MethodType):
            return type(python_function.__self__).__name__ == "TfMethodTarget"
        decorator = private.decorator(python_function)
        inner = getattr(decorator, "decorated_target", None) or getattr(python_function, "__wrapped__", None)
        if inner is None or inner is python_function:
            return False
        python_function = inner
    return False


# -- caches -----------------------------------------------------------------------------------------------------------


def entries(cache: Any) -> list[tuple[Any, Any, Any]]:
    """(context, FunctionType, ConcreteFunction) of the graphs in a FunctionCache, oldest first."""
    for _ in range(10):
        try:
            return [(context, kind, function) for (context, kind), function in private.cached_graphs(cache).items()]
        except RuntimeError:  # another thread added a graph while we looked
            continue
    return []


def against(
    earlier: Iterable[tuple[Any, Any]], function_type: Any, context: Any, defaults: Mapping[str, Any], function: Any,
    names: TensorFlowNames,
) -> Reason:  # fmt: skip
    """The reason of a graph trace, compared with the earlier graphs.

    Args:
      earlier: (FunctionType, FunctionContext) of each, oldest first.
      function_type: What was traced.
      context: Under which FunctionContext.
      defaults: Default values of its parameters.
      function: The Python function that was traced.
      names: TensorFlow's names.
    """
    earlier = list(earlier)
    best: tuple[int, list[Difference], list[Difference], Any] | None = None
    for kind, other in earlier:
        around, found = list(_contexts(other, context)), differences(kind, function_type)
        weight = sum(one.weight for one in (*around, *found))
        if best is None or weight <= best[0]:
            best = (weight, around, found, kind)
    if best is None:
        return FIRST
    _, around, found, kind = best
    closest = signature(kind)
    if not around and not found:
        return Reason(("the same signature: its earlier graph is gone, or a captured value has another type",), closest)
    sentences, avoid = advise(kind, function_type, found, [one for one, _ in earlier], defaults, function, names)
    if around:  # another place needs another graph: what the arguments would need as well avoids nothing alone
        avoid = "; ".join(dict.fromkeys(one.fix for one in around if one.fix)) if not found else None
    return Reason((*(one.text for one in around), *sentences), closest, avoid or None)


_CONTEXT = 20
_SURROUNDINGS = {
    "parent_graph": "called while another tf.Graph is being built, which has its own",
    "device_functions": "called under another tf.device",
    "colocation_stack": "called under another tf.compat.v1.colocate_with",
    "in_cross_replica_context": "called in another place of a tf.distribute strategy",
    "variable_policy": "traced again for saving with another variable policy",
    "xla_context_id": "called inside another XLA context",
}


def _contexts(old: Any, new: Any) -> Iterator[Difference]:
    """What differs around two calls with perhaps the same arguments."""
    if old == new:
        return
    scopes = getattr(old, "scope_type", None), getattr(new, "scope_type", None)
    if scopes[0] != scopes[1]:
        if getattr(scopes[1], "name", "") == "NO_VARIABLE_CREATION":
            text = "first call created variables, so TensorFlow traces twice"
            yield Difference(_CONTEXT, text, "create the variables before the first call")
        else:
            yield Difference(_CONTEXT, f"called in another variable scope ({getattr(scopes[1], 'name', scopes[1])})")
    around = getattr(old, "context", None), getattr(new, "context", None)
    for field, text in _SURROUNDINGS.items():
        before, now = getattr(around[0], field, None), getattr(around[1], field, None)
        if before is not now and before != now:
            if field == "parent_graph" and now is None:
                text = "called eagerly, before in another tf.Graph"
            yield Difference(_CONTEXT, text)
