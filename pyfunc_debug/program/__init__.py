"""Facts of the running Python program: frames, error texts, Python state, threads, pools, imports."""

import sys

LOADED_BEFORE = frozenset(sys.modules)
"""Names of the modules that were loaded before us: by Python itself, and by what started us."""
