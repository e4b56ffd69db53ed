"""What reading a recording may take: time, memory, and what becomes of a file that no recording is.

Whoever made the file may have wanted a reader to hang. The bounds are for this process and far above what the largest
honest recording takes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Iterator
from types import FrameType

from pyfunc_debug.errors import BadOptionError, BadRecordingError, PyfuncDebugError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

CPU_S = "PYFUNC_DEBUG_CPU_S"
"""Environment variable: another bound of CPU time; 0 is none."""
_CPU_S = 300.0
_MEMORY_BYTES = 8 << 30
_DAMAGE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, sqlite3.Error)
"""What contents that no recording has make of code that reads them. pfrec/checks.py refuses most before."""


class _TooLong(BaseException):
    """Not an Exception: nothing on the way takes it for something else."""


class _Time:
    is_up = False


@contextlib.contextmanager
def bounded(path: str, alone: bool) -> Iterator[None]:
    """For reading a recording.

    Args:
      path: The recording, for messages.
      alone: Whether this process does nothing else: then its CPU time and memory are bound.

    Raises:
      BadRecordingError: it holds what cannot be read, or reading it takes too much.
    """
    name = os.path.basename(path)
    seconds = _bind() if alone else 0.0
    try:
        yield
    except (_TooLong, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and not _Time.is_up:  # SQLite knows one interruption only
            raise
        raise BadRecordingError(
            f"gave up on {name} after {seconds:g} s of CPU time: {CPU_S}=0 in the environment lifts that bound"
        ) from None
    except MemoryError:
        raise BadRecordingError(f"reading {name} takes more than {_MEMORY_BYTES >> 30} GB of memory") from None
    except _DAMAGE as error:
        if isinstance(error, PyfuncDebugError) or sys.flags.dev_mode:
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise BadRecordingError(
            f"the recording {name} holds something that cannot be read ({type(error).__name__}: {str(error)[:100]}, "
            f"{os.path.basename(place.filename)}:{place.lineno}); `python -X dev -m pyfunc_debug` shows where"
        ) from error
    finally:
        if seconds:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _bind() -> float:
    seconds = _seconds()
    if resource is not None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    return seconds


def _stop(number: int, frame: FrameType | None) -> None:
    _Time.is_up = True
    raise _TooLong


def _seconds() -> float:
    text = os.environ.get(CPU_S, str(_CPU_S))
    try:
        return max(0.0, float(text))
    except ValueError:
        raise BadOptionError(f"{CPU_S}={text!r} is not a number of seconds") from None
