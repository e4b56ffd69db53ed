"""Errors that people see. Each says what happened, in the user's names, and what to do about it."""

from __future__ import annotations


class PyfuncDebugError(Exception):
    """Base of all errors of this package: catch this one to catch them all."""


class BadRecordingError(PyfuncDebugError):
    """The file is missing, is not a recording, is truncated, or has a newer schema. From what reads files.

    Attributes:
      path: Of a file that was there and could not be read as a recording; else None.
    """

    path: str | None = None


class RecordingBusyError(PyfuncDebugError):
    """Something is being recorded already, in this process or into this file. From `record(...).start()`."""


class BadOptionError(PyfuncDebugError, ValueError):
    """An option, a glob or a query makes no sense, or a file is there already that nobody asked to overwrite."""


class NotKeptError(PyfuncDebugError, LookupError):
    """The recording does not hold what was asked for: a call, its values, a function's source, a failure's frames."""


class NotDeterministicError(PyfuncDebugError):
    """A body gives something else for the same inputs, so nothing can be checked. From `call.check_gradient()`."""


class CannotWriteError(PyfuncDebugError):
    """A recording, a report or a lesson cannot be written where it was asked for.

    From `record(...).start()`, `to_html` and `pyfunc-debug learn`.
    """


class NotInstalledError(PyfuncDebugError):
    """A package or a part of this one that is needed is not installed. From `to_pandas` and `pyfunc-debug learn`."""


class UnsupportedTensorFlowError(PyfuncDebugError):
    """This TensorFlow lacks something that the interception needs. The message names it."""


class PyfuncDebugWarning(UserWarning):
    """Something that a user should know and that did not stop anything.

    Filter it as any warning: `warnings.filterwarnings("ignore", category=pfd.PyfuncDebugWarning)`.
    """
