"""Running a node's body again, outside of TensorFlow's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyfunc_debug.interception import names as _names
from pyfunc_debug.interception.bodies import SourceMaps, unwrap
from pyfunc_debug.interception.gradients.hub import hub
from pyfunc_debug.interception.names import private
from pyfunc_debug.program.frames import is_generated


def body_runner(token: str, through: Callable[..., Any] | None = None) -> Callable[..., list[Any]] | None:
    """A function that runs a node's body eagerly on flat arrays and returns flat arrays; None when the body is gone.

    The body is given what TensorFlow gives it (py_func.cc): a py_function's eager tensors; a numpy_function's arrays of
    its own, and NumPy scalars or bytes where the array has no dimensions.

    Args:
      token: The node's name in TensorFlow's registry.
      through: Is given the body and its arguments, to call it.
    """
    names = hub().names
    registered = names.registry.get(token)
    if registered is None:
        return None
    eager = isinstance(registered, names.eager_func_type)
    if eager:
        return runner(private.body(registered), private.output_dtypes(registered), through)
    return runner(registered, None, through)


def runner(
    function: Callable[..., Any], dtypes: Sequence[Any] | None, through: Callable[..., Any] | None = None
) -> Callable[..., list[Any]]:
    """As `body_runner`, of a given function.

    Args:
      function: The user's.
      dtypes: What a py_function's results become; None for a numpy_function, which is given arrays.
      through: Is given the body and its arguments, to call it.
    """

    def run(*arrays: Any) -> list[Any]:
        import tensorflow as tf

        with tf.init_scope():  # out of any graph or tape of the program's
            given = [np.array(array)[()] if dtypes is None else tf.constant(array) for array in arrays]
            found = through(function, *given) if through is not None else function(*given)
            if dtypes is not None:
                return [_array(tf.convert_to_tensor(*one)) for one in zip(_flat(found), dtypes)]
        return [np.asarray(one) for one in _flat(found)]

    return run


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor's elements; `np.asarray` of a tensor fails for a single bfloat16 (TensorFlow 2.21)."""
    return np.asarray(tensor.numpy(), object if tensor.dtype.name == "string" else None)


def body_function(token: str) -> tuple[Any, bool] | None:
    """The user's function behind a node, and whether it is given eager tensors; None when it is gone.

    Args:
      token: The node's name in TensorFlow's registry.
    """
    names = hub().names
    registered = names.registry.get(token)
    if registered is None:
        return None
    return unwrap(registered, _names.load()), isinstance(registered, names.eager_func_type)


def user_line(file: str, line: int) -> tuple[str, int]:
    """The user's file and line for a line that may be AutoGraph-generated; without a recording that notes them."""
    return (SourceMaps(_names.load()).find(file, line) if is_generated(file) else None) or (file, line)


def _flat(found: Any) -> list[Any]:
    return [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
