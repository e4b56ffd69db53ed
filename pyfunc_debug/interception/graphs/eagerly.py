"""Running tf.functions eagerly on one thread only, and what a graph holds on to: for comparisons and stopped prompts.

`Function.__call__` asks the property `Function._run_functions_eagerly` (polymorphic_function.py), which TensorFlow's
own switch sets for the whole process; while a comparison or an evaluation runs it also asks a thread-local flag, which
other threads do not see.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.errors import UnsupportedTensorFlowError
from pyfunc_debug.interception import names as _names
from pyfunc_debug.interception.graphs.library import scan_ops
from pyfunc_debug.interception.names import private
from pyfunc_debug.interception.patches import Patch, Patches

_here = threading.local()


class _Switch:
    """The patched property, shared by all comparisons and evaluations that run at a time."""

    lock = threading.Lock()  # held for bookkeeping only
    users = 0
    patches = Patches()


@contextmanager
def eagerly() -> Iterator[None]:
    """Runs every tf.function that this thread calls, nested ones included, as plain Python.

    Raises:
      UnsupportedTensorFlowError: this TensorFlow has no such switch.
    """
    function_type = _switched()
    if function_type is None:
        raise UnsupportedTensorFlowError("this TensorFlow has moved Function._run_functions_eagerly: compare needs it")
    with _Switch.lock:
        if _Switch.users == 0:
            _Switch.patches.apply([Patch(function_type, private.RUN_EAGERLY, _also_here)])
        _Switch.users += 1
    before = getattr(_here, "eager", False)
    _here.eager = True
    try:
        yield
    finally:
        _here.eager = before
        with _Switch.lock:
            _Switch.users -= 1
            if _Switch.users == 0:
                _Switch.patches.revert()


def eagerly_if_possible() -> AbstractContextManager[None]:
    """`eagerly()`; where this TensorFlow has no such switch, nothing happens."""
    return eagerly() if _switched() is not None else nullcontext()


def _switched() -> Any:
    """The class whose property is replaced; None where it has none."""
    function_type = _names.load().function_type
    return function_type if isinstance(vars(function_type or object).get(private.RUN_EAGERLY), property) else None


def _also_here(original: Any) -> Any:
    process_wide = original.fget

    def _run_functions_eagerly(self: Any) -> Any:
        return getattr(_here, "eager", False) or process_wide(self)

    return property(_run_functions_eagerly)


# -- what a graph holds on to -----------------------------------------------------------------------------------------


def is_tf_function(thing: Any) -> bool:
    """Whether `thing` is what tf.function returns."""
    kind = _names.load().function_type
    return kind is not None and isinstance(thing, kind)


@dataclass
class Resources:
    """Variables that a graph reads or writes, with their values when taken; `others` are resources of other kinds."""

    values: list[tuple[Any, Any, Any]]
    others: int

    def restore(self) -> None:
        """Puts the values back."""
        import tensorflow as tf

        for handle, value, dtype in self.values:
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(value, dtype))


def take_resources(concrete: Any) -> Resources:
    """Reads the variables captured by a ConcreteFunction, through their handles."""
    import tensorflow as tf

    values, others = [], 0
    for captured in concrete.captured_inputs:
        if getattr(captured, "dtype", None) != tf.resource:
            continue
        try:
            data = private.handle_data(captured)
            dtype = tf.as_dtype(data.shape_and_type[0].dtype)
            # A copy: a body that writes into what it was given may write into the variable's own memory.
            values.append((captured, tf.raw_ops.ReadVariableOp(resource=captured, dtype=dtype).numpy(), dtype))
        except (AttributeError, IndexError, tf.errors.OpError):  # a table, an iterator, or not initialized yet
            others += 1
    return Resources(values, others)


def op_types(concrete: Any) -> frozenset[str]:
    """Types of all ops in a ConcreteFunction's graph and in every graph nested in it."""
    names = _names.load()
    found: set[str] = set()
    seen: set[str] = set()
    name = concrete.name
    todo = [name.decode() if isinstance(name, bytes) else name]
    while todo:
        function = todo.pop()
        if function in seen:
            continue
        seen.add(function)
        try:
            definition = names.context_module.context().get_function_def(function)
        except Exception:  # TensorFlow raises NotFoundError once a function is gone
            continue
        types, nested = scan_ops(definition.node_def)
        found |= types
        todo.extend(nested)
    return frozenset(found)
