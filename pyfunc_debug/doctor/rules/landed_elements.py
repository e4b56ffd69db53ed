"""Parts of a dataset's elements that land in parameters with a default, where nothing failed."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.datasets.landed import RULE, Landing, landings
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.records import Finding

NAMES = (RULE,)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function."""
    told = {(one.file, one.line) for one in failures(facts, NAMES)}
    for one in landings(facts.reader.rows, lambda file: pastes.source(facts, file)):
        if (one.file, one.call.lineno) not in told:
            yield _finding(one)


def _finding(one: Landing) -> Finding:
    edit = one.edit()
    return Finding(
        RULE, "warning", None, (), f"{one.cause()} The default is never used", pastes.written(edit) if edit else
        f"lambda {one.name}, *others: ...  # passes on what the function takes, and not the other parts",
        one.file, one.call.lineno, confidence="likely",
    )  # fmt: skip
