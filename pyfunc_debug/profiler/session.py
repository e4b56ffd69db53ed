"""TensorFlow's profiler, borrowed: only the public tf.profiler.experimental is used, and the program's wish goes first.

A session is exclusive in a process. When the program starts the profiler itself, ours is closed at once and none is
opened again.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any


class InUseError(Exception):
    """The profiler is not available; the message says why."""


class Profiler:
    """One session after another of TensorFlow's profiler, for whoever of us wants it.

    Args:
      level: `host_tracer_level`; ops are there from 2 on, but for the cheapest (tf.reshape).
      yielding: Called, with the lock held, when the program is about to get the profiler while a session of ours is
        open; it may `close` it to keep what there is.

    Attributes:
      lock: Held while a session is opened or closed, never while the program's code runs.
      yielded: Why no session is opened any more, or empty.
    """

    def __init__(self, level: int, yielding: Callable[[], None] = lambda: None) -> None:
        self.lock = threading.RLock()
        self.yielded = ""
        self.is_open = False
        self._level = level
        self._yielding = yielding
        self._folder = ""
        self._patched: list[tuple[Any, Any]] = []
        self._wrapper: Any = None

    def load(self) -> None:
        """Looks the profiler up.

        Raises:
          InUseError: TensorFlow is not loaded.
        """
        tensorflow: Any = sys.modules.get("tensorflow")
        if tensorflow is None or not hasattr(tensorflow, "profiler"):
            raise InUseError("TensorFlow is not loaded")
        self._module = tensorflow.profiler.experimental
        self._options = self._module.ProfilerOptions(
            host_tracer_level=self._level, python_tracer_level=0, device_tracer_level=0
        )

    def trace(self, name: str) -> Any:
        """A context manager that makes an event of this name."""
        return self._module.Trace(name)

    def open(self) -> bool:
        """Opens a session. False when the profiler is not available."""
        with self.lock:
            if self.yielded or self.is_open:
                return False
            self._folder = tempfile.mkdtemp(prefix="pyfunc_debug-")
            try:
                self._start()(self._folder, self._options)
            except Exception as error:  # AlreadyExistsError; whatever else it is, it must not reach the program
                by = "by this recording" if ours_is_open() else type(error).__name__
                self.yielded = f"the profiler is in use ({by})"
                if isinstance(error.__context__, type(error)):
                    # A remote capture is running. TensorFlow keeps our failed session then, and would refuse the
                    # program's next start (profiler_v2.py): take it away again.
                    self._module.stop(save=False)
                shutil.rmtree(self._folder, ignore_errors=True)
                return False
            self.is_open = True
            return True

    def close(self) -> list[bytes]:
        """Closes the session; returns its XSpace files (`pyfunc_debug.profiler.xspace`)."""
        with self.lock:
            if not self.is_open:
                return []
            self.is_open = False
            found: list[bytes] = []
            try:
                self._module.stop(save=True)
                for file in glob.glob(os.path.join(self._folder, "**", "*.xplane.pb"), recursive=True):
                    with open(file, "rb") as stream:
                        found.append(stream.read())
            except Exception as error:
                # UnavailableError: the program stopped a profiler it had not started, and got ours.
                self.yielded = f"a window could not be read ({type(error).__name__}: {error})"
                found = []
            shutil.rmtree(self._folder, ignore_errors=True)
            return found

    def watch(self) -> None:
        """From now on the program gets the profiler whenever it starts it."""
        original = self._module.start

        def start(*args: Any, **options: Any) -> Any:
            self._yield()
            return original(*args, **options)

        start.__name__, start.__qualname__, start.__doc__ = original.__name__, original.__qualname__, original.__doc__
        start.__module__ = original.__module__
        start.pyfunc_debug_original = original  # type: ignore[attr-defined] # read by _start below
        for module in list(sys.modules.values()):
            # The public namespaces and the module that defines it, wherever this TensorFlow has them.
            if getattr(module, "__dict__", {}).get("start") is original:
                module.start = start  # type: ignore[attr-defined] # it is there
                self._patched.append((module, original))
        self._wrapper = start
        _running.append(self)

    def unwatch(self) -> None:
        """Gives `tf.profiler.experimental.start` back."""
        for module, original in self._patched:
            if module.start is self._wrapper:
                module.start = original
        self._patched = []
        if self in _running:
            _running.remove(self)

    def _start(self) -> Callable[..., Any]:
        """TensorFlow's own start, past our wrapper."""
        current = self._module.start
        return getattr(current, "pyfunc_debug_original", current)  # type: ignore[no-any-return] # TensorFlow is untyped

    def _yield(self) -> None:
        with self.lock:
            if not self.yielded:
                self.yielded = "the program started the profiler itself, which allows one session at a time"
            if self.is_open:
                self._yielding()
            if self.is_open:
                self.is_open = False
                try:
                    self._module.stop(save=False)
                except Exception:  # it was closed already: then the program gets what it wants
                    pass
                shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self) -> None:
        """In a forked child: the session is the parent's, and the lock may be held forever here."""
        self.lock = threading.RLock()
        self.yielded = "this process was forked"
        self.is_open = False
        self.unwatch()


_running: list[Profiler] = []


def ours_is_open() -> bool:
    """Whether the profiler's session that runs now is one of ours."""
    return any(profiler.is_open for profiler in _running)


def _after_fork_in_child() -> None:
    for profiler in _running.copy():
        profiler.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
