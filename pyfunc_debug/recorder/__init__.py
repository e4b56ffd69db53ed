"""From what interception reports to rows in a file: bounded queue, writer thread, budget, drop counts."""

from pyfunc_debug.recorder.budget import Budget, parse_budget
from pyfunc_debug.recorder.recorder import Recorder

__all__ = ["Budget", "Recorder", "parse_budget"]
