"""Errors that people see. Each says what happened, in the user's names, and what to do about it."""

from __future__ import annotations


class PyfuncDebugError(Exception):
    """Base of all errors of this package."""


class BadRecordingError(PyfuncDebugError):
    """The file is missing, is not a recording, is truncated, or has a newer schema."""


class RecordingBusyError(PyfuncDebugError):
    """Something is being recorded already, in this process or into this file."""


class BadOptionError(PyfuncDebugError, ValueError):
    """An option of `record`, a glob, or a query makes no sense."""


class NotKeptError(PyfuncDebugError, LookupError):
    """The recording does not hold what was asked for."""


class UnsupportedTensorFlowError(PyfuncDebugError):
    """This TensorFlow lacks something that the interception needs. The message names it."""


class PyfuncDebugWarning(UserWarning):
    """Something that a user should know and that did not stop anything."""
