"""Errors that people see. Each says what happened, in the user's names, and what to do about it."""

from __future__ import annotations


class PyfuncDebugError(Exception):
    """Base of all errors of this package: catch this one to catch them all."""


class BadRecordingError(PyfuncDebugError):
    """The file is missing, is not a recording, is truncated, or has a newer schema. From what reads files."""


class RecordingBusyError(PyfuncDebugError):
    """Something is being recorded already, in this process or into this file. From `record(...).start()`."""


class BadOptionError(PyfuncDebugError, ValueError):
    """An option of `record`, a glob, or a query makes no sense."""


class NotKeptError(PyfuncDebugError, LookupError):
    """The recording does not hold what was asked for: a call, its values, a function's source, a failure's frames."""


class UnsupportedTensorFlowError(PyfuncDebugError):
    """This TensorFlow lacks something that the interception needs. The message names it."""


class PyfuncDebugWarning(UserWarning):
    """Something that a user should know and that did not stop anything.

    Filter it as any warning: `warnings.filterwarnings("ignore", category=pfd.PyfuncDebugWarning)`.
    """
