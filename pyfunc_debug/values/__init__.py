"""What becomes of an argument: the policy, the copy taken before the body runs, and the summary made afterwards."""

from pyfunc_debug.values.capture import Held, hold, hold_quickly
from pyfunc_debug.values.policy import POLICIES, Policies, Policy
from pyfunc_debug.values.summary import Summary, summarize

__all__ = ["POLICIES", "Held", "Policies", "Policy", "Summary", "hold", "hold_quickly", "summarize"]
