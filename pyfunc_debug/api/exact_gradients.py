"""`exact_gradients()`: TensorFlow's wrong gradients of py_functions put right, with or without a recording."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from pyfunc_debug.errors import BadOptionError, PyfuncDebugError, PyfuncDebugWarning
from pyfunc_debug.program.imports import when_imported


class ExactGradients:
    """A switch, made by `exact_gradients()`. It also works as a context manager.

    Several may be on at once; gradients are exact as long as one of them, or a recording with gradients="exact", is on.
    """

    def __init__(self, order: int = 1) -> None:
        self._order = order
        self._use: Any = None
        self._waiting: Any = None

    def on(self) -> ExactGradients:
        """Switches on, also for graphs that were traced while a recording or another switch was on. Twice does nothing.

        Raises:
          UnsupportedTensorFlowError: this TensorFlow lacks something that exact gradients need; nothing was changed.
        """
        if not self.is_on:
            self._waiting = when_imported("tensorflow", self._start)
        return self

    def off(self) -> None:
        """Switches off: TensorFlow's own gradients again. Calls made while on keep their exact gradients."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting()
        use, self._use = self._use, None
        if use is not None:
            from pyfunc_debug.interception.gradients.hub import hub

            hub().release(use)

    @property
    def is_on(self) -> bool:
        """Whether this switch is on, or will be as soon as TensorFlow is imported."""
        return self._use is not None or self._waiting is not None

    def _start(self) -> None:
        """Runs inside the program's `import tensorflow` when that comes later: it must not raise there."""
        from pyfunc_debug.interception.gradients.hub import Use, hub

        late = self._waiting is not None
        try:
            self._use = hub().acquire(Use(exact=True, order=self._order))
        except PyfuncDebugError as error:
            if not late:
                raise
            import warnings

            warnings.warn(f"pyfunc_debug: gradients are not exact: {error}", PyfuncDebugWarning, stacklevel=2)

    def __enter__(self) -> ExactGradients:
        return self.on()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.off()

    def __repr__(self) -> str:
        return f"<exact gradients: {'on' if self.is_on else 'off'}, order {self._order}>"


def exact_gradients(order: int = 1) -> ExactGradients:
    """Correct gradients of every call of every py_function, on at once.

    TensorFlow keeps the tape of a py_function's call by node (script_ops.py, `tape_cache`), so that calls of one node
    take each other's gradients: gradient accumulation, loops, jacobians, persistent tapes and threads get wrong
    numbers or a KeyError. With this on, each call has a tape of its own. That works for nodes that are made
    (traced) while this, or a recording, is on; tf.functions that were traced before keep TensorFlow's gradients
    until they are traced again.

    Args:
      order: 2 for second derivatives as well, where TensorFlow silently returns None: each call that may be
        differentiated is then taped twice, and what its gradient computed is kept for as long as its tape. It must be
        on when the first gradient is traced.

    Returns:
      The switch.

    Raises:
      BadOptionError: order is neither 1 nor 2.
      UnsupportedTensorFlowError: this TensorFlow lacks something that is needed; nothing was changed.

    Example:
      with pfd.exact_gradients():
          train(dataset)

      switch = pfd.exact_gradients()  # on from here
      switch.off()  # and on again at any time, without retracing
    """
    if order not in (1, 2):
        raise BadOptionError(f"order={order!r} is neither 1 nor 2: derivatives beyond the second are not supported")
    return ExactGradients(order).on()
