"""Why the program failed, as it was said under the traceback. See pyfunc_debug/doctor/failures."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.records import Finding

NAMES = (
    "argument",
    "array-for-number",
    "array-index",
    "asserted-count",
    "autograph",
    "batch-loss",
    "body-input",
    "broken-image",
    "class-weight",
    "cut-gradient",
    "dropped-dataset",
    "exhausted",
    "file-read",
    "generator",
    "input-signature",
    "label-range",
    "leaked-tensor",
    "lost-object",
    "method-signature",
    "missing-attribute",
    "missing-package",
    "mixed-dtypes",
    "none-gradient",
    "none-value",
    "older-api",
    "output-contract",
    "ragged-batch",
    "saved-classes",
    "serialization",
    "session-feed",
    "shadowed-module",
    "shared-optimizer",
    "shared-state",
    "structure",
    "symbol-in-text",
    "symbolic-value",
    "thread-bound",
    "unbatched",
    "uninitialized",
    "unknown-length",
    "unknown-metric",
    "unknown-shape",
    "untaped",
    "variable-in-function",
    "xla",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a failure."""
    yield from failures(facts, NAMES)
