"""What becomes of an argument: the policy, the copy taken before the body runs, and the summary made afterwards."""

from pyfunc_debug.values.capture import QUEUE_FULL, TOO_LARGE, Held, hold, hold_quickly, is_plain
from pyfunc_debug.values.policy import POLICIES, Policies, Policy
from pyfunc_debug.values.summary import Summary, summarize

__all__ = [
    "POLICIES", "QUEUE_FULL", "TOO_LARGE", "Held", "Policies", "Policy", "Summary", "hold", "hold_quickly",
    "is_plain", "summarize",
]  # fmt: skip
