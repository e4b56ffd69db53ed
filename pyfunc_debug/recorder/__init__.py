"""From what interception tells to rows in a file: bounded queue, writer thread, budget, counts of what was dropped."""

from pyfunc_debug.recorder.budget import Budget, parse_bytes
from pyfunc_debug.recorder.recorder import Recorder

__all__ = ["Budget", "Recorder", "parse_bytes"]
