"""Running something of ours outside every graph, session, tape and device scope that the program is in just now."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable
from typing import TypeVar

from pyfunc_debug.program.threads import hide_from_debuggers

Result = TypeVar("Result")


def outside(run: Callable[[], Result]) -> Result:
    """Runs something in a thread of its own, where TensorFlow's stacks of contexts are empty; raises what it raises."""
    done: list[Result] = []
    failed: list[BaseException] = []

    def target() -> None:
        try:
            with _synchronous():
                done.append(run())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=target, name="pyfunc_debug self-test", daemon=True)
    hide_from_debuggers(thread)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _synchronous() -> contextlib.AbstractContextManager[object]:
    """For where the program runs operations asynchronously.

    There TensorFlow has no gradient for a graph's py_function, and an error of ours would become the program's.
    """
    try:
        context = importlib.import_module("tensorflow.python.eager.context")
        executor = importlib.import_module("tensorflow.python.eager.executor")
        if not context.is_async():
            return contextlib.nullcontext()
        return context.executor_scope(executor.new_executor(enable_async=False))  # type: ignore[no-any-return]
    except (ImportError, AttributeError):  # another TensorFlow
        return contextlib.nullcontext()


def executing_eagerly() -> bool:
    """Whether code outside all graphs runs eagerly: not so after tf.compat.v1.disable_eager_execution()."""
    import tensorflow as tf

    return bool(tf.executing_eagerly())
