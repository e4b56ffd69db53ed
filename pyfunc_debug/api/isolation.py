"""What keeps two runs of a function apart: each has its own arguments, and finds what the function captures as it was.

A body of tf.numpy_function is given the graph's own memory (py_func.cc): one that writes into its input changes a
tensor of the caller's, and with it what the next run sees.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyfunc_debug.program.python_state import reachable


class Isolation:
    """The arguments of a comparison, and what its functions can reach, as they were in the beginning.

    Args:
      tf: TensorFlow.
      functions: What will run.
      args: Arguments of the caller's; they are copied, never handed on.
      kwargs: Keyword arguments, likewise.
    """

    def __init__(self, tf: Any, functions: Iterable[Any], args: Any, kwargs: Any) -> None:
        self._tf = tf
        self._args, self._kwargs = self._copied(args), self._copied(kwargs)
        self._put_back: list[Callable[[], None]] = []
        things: dict[int, Any] = {}
        for function in functions:
            for thing in reachable(function).values():
                inside = (
                    thing
                    if isinstance(thing, (list, tuple))
                    else list(thing.values())
                    if isinstance(thing, dict)
                    else ()
                )
                things.update({id(one): one for one in (thing, *inside)})
        for leaf in (*tf.nest.flatten(args), *tf.nest.flatten(kwargs)):
            if isinstance(leaf, tf.Variable) or _holds_variables(leaf):
                things[id(leaf)] = leaf
        for thing in things.values():
            self._keep(thing)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for one run, which nobody else has: tensors, also for NumPy arrays, as a graph would be given."""
        return self._copied(self._args), self._copied(self._kwargs)

    def convert(self, signature: Any) -> None:
        """Converts the arguments as an input_signature would, before they reach the graph."""
        spec = self._tf.TensorSpec
        pairs = list(zip(self._args, signature))
        converted = (
            self._tf.convert_to_tensor(value, one.dtype) if isinstance(one, spec) else value for value, one in pairs
        )
        self._args = (*converted, *self._args[len(pairs) :])

    def restore(self) -> None:
        """Puts back what the functions can reach: variables, tensors, NumPy arrays and random generators."""
        for put_back in self._put_back:
            put_back()

    def _copied(self, structure: Any) -> Any:
        tf = self._tf

        def copied(leaf: Any) -> Any:
            if isinstance(leaf, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)):
                return tf.nest.map_structure(copied, leaf, expand_composites=True)
            if isinstance(leaf, (np.ndarray, np.generic)):
                return tf.convert_to_tensor(np.array(leaf))
            if isinstance(leaf, tf.Tensor) and hasattr(leaf, "numpy") and leaf.dtype not in (tf.resource, tf.variant):
                try:
                    with tf.device(leaf.device):
                        return tf.constant(leaf.numpy(), leaf.dtype)
                except (TypeError, ValueError, NotImplementedError, tf.errors.OpError):  # a quantised type, say
                    return leaf
            return leaf

        return tf.nest.map_structure(copied, structure)

    def _keep(self, thing: Any) -> None:
        tf = self._tf
        if isinstance(thing, tf.Variable):
            try:
                value = thing.numpy()
            except (ValueError, NotImplementedError, tf.errors.OpError):  # not initialized, or of another graph
                return
            self._put_back.append(lambda: thing.assign(value))
        elif _holds_variables(thing):
            for variable in thing.variables:  # Keras 3 wraps TensorFlow's
                self._keep(variable if isinstance(variable, tf.Variable) else getattr(variable, "value", None))
        elif isinstance(thing, tf.Tensor) and hasattr(thing, "numpy"):
            self._keep_memory(_memory(thing))
        elif isinstance(thing, np.ndarray):
            self._keep_memory(thing)
        elif isinstance(thing, np.random.Generator):
            state = copy.deepcopy(thing.bit_generator.state)
            self._put_back.append(lambda: setattr(thing.bit_generator, "state", state))
        elif isinstance(thing, np.random.RandomState):
            numpy_state = thing.get_state()
            self._put_back.append(lambda: thing.set_state(numpy_state))
        elif isinstance(thing, random.Random):
            python_state = thing.getstate()
            self._put_back.append(lambda: thing.setstate(python_state))

    def _keep_memory(self, array: np.ndarray[Any, Any] | None) -> None:
        if array is None or not array.size or not array.flags.writeable:
            return
        saved = array.copy()
        self._put_back.append(lambda: np.copyto(array, saved))


@contextmanager
def random_put_back() -> Iterator[None]:
    """Python's and NumPy's global random states are afterwards what they were before."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@contextmanager
def as_before(tf: Any, function: Any) -> Iterator[None]:
    """What a body can reach is afterwards what it was: variables, arrays and random generators, global ones too."""
    kept = Isolation(tf, [function], (), {})
    with random_put_back():
        try:
            yield
        finally:
            kept.restore()


def _holds_variables(thing: Any) -> bool:
    """Whether it is a tf.Module, a Keras layer or a model: then `variables` is the framework's own property."""
    own = (kind.__module__.partition(".")[0] for kind in type(thing).__mro__ if "variables" in vars(kind))
    return next(own, "") in ("tensorflow", "keras", "tf_keras")


def _memory(tensor: Any) -> np.ndarray[Any, Any] | None:
    """A tensor's own memory as an array that can be written to; None where it cannot be reached."""
    import ctypes

    try:
        view = np.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError):
        return None
    if view.dtype.hasobject or not view.flags.c_contiguous or not view.nbytes:
        return None
    memory = (ctypes.c_char * view.nbytes).from_address(view.ctypes.data)
    array: np.ndarray[Any, Any] = np.frombuffer(memoryview(memory), view.dtype).reshape(view.shape)
    return array
