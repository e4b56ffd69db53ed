"""tf.functions run eagerly on one thread while a stopped prompt evaluates there, and as always on all others.

`tf.config.run_functions_eagerly` is for the whole process; its only reader is the property
`Function._run_functions_eagerly` (eager/polymorphic_function/polymorphic_function.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_NAME = "_run_functions_eagerly"
_lock = threading.Lock()
_threads: list[int] = []
_original: list[Any] = []


@contextlib.contextmanager
def eager_here() -> Iterator[None]:
    """Makes tf.functions called on this thread run eagerly. Where TensorFlow has no such property, nothing happens."""
    try:
        from tensorflow.python.eager.polymorphic_function import polymorphic_function

        function_type: Any = polymorphic_function.Function
        original = vars(function_type)[_NAME]
    except (ImportError, AttributeError, KeyError):
        yield
        return
    me = threading.get_ident()
    with _lock:
        if not _threads:
            _original.append(original)
            read = original.__get__
            setattr(
                function_type, _NAME,
                property(lambda function: threading.get_ident() in _threads or read(function, function_type)),
            )  # fmt: skip
        _threads.append(me)
    try:
        yield
    finally:
        with _lock:
            _threads.remove(me)
            if not _threads:
                setattr(function_type, _NAME, _original.pop())
