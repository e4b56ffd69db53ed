"""Waits until a process begins to import TensorFlow: a process of the job that never does is left alone.

Imports next to nothing: it runs as each Python process of a recorded job starts.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE = "PYFUNC_DEBUG"
"""`record:FOLDER`: each Python process that loads TensorFlow writes a recording of its own in that folder.
`record:FILE.pfrec`, or `record` alone: the same for one process, into a file that is numbered if it is taken.
"""


class Waiter:
    """A finder of modules that finds none: it starts the recording when TensorFlow is asked for, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by Python for each module that is imported; see importlib.abc.MetaPathFinder."""
        if name != "tensorflow":
            return None
        self.stop()
        import importlib.util

        from pyfunc_debug.job import child

        child.start()
        return importlib.util.find_spec(name)  # once more: the recording waits there for TensorFlow's end

    def stop(self) -> None:
        """Waits no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def wanted_place() -> str | None:
    """What follows `record` in the variable: a folder, a .pfrec file or nothing; None if it does not ask to record."""
    verb, _, place = os.environ.get(VARIABLE, "").partition(":")
    return place if verb == "record" else None


def wait() -> None:
    """Begins to wait, where the environment asks for it."""
    waiting = any(isinstance(one, Waiter) for one in sys.meta_path)
    if wanted_place() is not None and "tensorflow" not in sys.modules and not waiting:
        sys.meta_path.insert(0, Waiter())
