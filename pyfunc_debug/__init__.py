"""pyfunc_debug: an interactive debugger for Python that runs inside TensorFlow graphs.

    import pyfunc_debug as pfd

    with pfd.record("train.pfrec") as recording:
        train_step(batch)
    print(recording.ledger())

Importing it imports neither TensorFlow nor IPython: public names are loaded when they are first used.
"""

from __future__ import annotations

import os

import pyfunc_debug.program.file_lines  # noqa: F401 - notes the folder, before the program goes to another one

TYPE_CHECKING = False  # that of `typing`, which is not loaded as each process of a recorded job starts
if TYPE_CHECKING:
    from typing import Any

    from pyfunc_debug.api.breakpoints import answers, break_on, breakpoints, post_mortem
    from pyfunc_debug.api.check import check
    from pyfunc_debug.api.compare import compare
    from pyfunc_debug.api.exact_gradients import exact_gradients
    from pyfunc_debug.api.explain import explain
    from pyfunc_debug.api.graduate import graduate
    from pyfunc_debug.api.ide import ide
    from pyfunc_debug.api.job import Job, open
    from pyfunc_debug.api.record import record
    from pyfunc_debug.api.recording import Recording
    from pyfunc_debug.errors import (
        BadOptionError,
        BadRecordingError,
        CannotWriteError,
        NotDeterministicError,
        NotInstalledError,
        NotKeptError,
        PyfuncDebugError,
        PyfuncDebugWarning,
        RecordingBusyError,
        UnsupportedTensorFlowError,
    )

    __version__: str

_PUBLIC = {
    "exact_gradients": ("pyfunc_debug.api.exact_gradients", "exact_gradients"),
    "record": ("pyfunc_debug.api.record", "record"),
    "compare": ("pyfunc_debug.api.compare", "compare"),
    "check": ("pyfunc_debug.api.check", "check"),
    "graduate": ("pyfunc_debug.api.graduate", "graduate"),
    "ide": ("pyfunc_debug.api.ide", "ide"),
    "answers": ("pyfunc_debug.api.breakpoints", "answers"),
    "break_on": ("pyfunc_debug.api.breakpoints", "break_on"),
    "breakpoints": ("pyfunc_debug.api.breakpoints", "breakpoints"),
    "post_mortem": ("pyfunc_debug.api.breakpoints", "post_mortem"),
    "explain": ("pyfunc_debug.api.explain", "explain"),
    "open": ("pyfunc_debug.api.job", "open"),
    "Job": ("pyfunc_debug.api.job", "Job"),
    "Recording": ("pyfunc_debug.api.recording", "Recording"),
    "PyfuncDebugError": ("pyfunc_debug.errors", "PyfuncDebugError"),
    "PyfuncDebugWarning": ("pyfunc_debug.errors", "PyfuncDebugWarning"),
    "BadRecordingError": ("pyfunc_debug.errors", "BadRecordingError"),
    "BadOptionError": ("pyfunc_debug.errors", "BadOptionError"),
    "RecordingBusyError": ("pyfunc_debug.errors", "RecordingBusyError"),
    "CannotWriteError": ("pyfunc_debug.errors", "CannotWriteError"),
    "NotDeterministicError": ("pyfunc_debug.errors", "NotDeterministicError"),
    "NotInstalledError": ("pyfunc_debug.errors", "NotInstalledError"),
    "NotKeptError": ("pyfunc_debug.errors", "NotKeptError"),
    "UnsupportedTensorFlowError": ("pyfunc_debug.errors", "UnsupportedTensorFlowError"),
    "load_ipython_extension": ("jupyter_ext", "load_ipython_extension"),
    "unload_ipython_extension": ("jupyter_ext", "unload_ipython_extension"),
}

__all__ = [
    "BadOptionError",
    "BadRecordingError",
    "CannotWriteError",
    "Job",
    "NotDeterministicError",
    "NotInstalledError",
    "NotKeptError",
    "PyfuncDebugError",
    "PyfuncDebugWarning",
    "Recording",
    "RecordingBusyError",
    "UnsupportedTensorFlowError",
    "answers",
    "break_on",
    "breakpoints",
    "check",
    "compare",
    "exact_gradients",
    "explain",
    "graduate",
    "ide",
    "open",
    "post_mortem",
    "record",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from pyfunc_debug.api.meta import version

        return version()
    try:
        module, attribute = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'pyfunc_debug' has no attribute {name!r}") from None
    import importlib

    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


if os.environ.get("PYFUNC_DEBUG") == "ide":
    __getattr__("ide")()
