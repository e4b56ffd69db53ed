"""A loop over data of which a filter dropped all, as each call of a body hid an exception."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.hidden_errors import hidden
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.records import Finding

NAMES = ("all-dropped",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body: what a failure was explained by, else a loop that got no element behind a filter."""
    told = list(failures(facts, NAMES))
    yield from told
    dropped = {
        token
        for one in facts.meta.get("inputs") or []
        if not one["taken"] and one["iterators"]
        for place, stage in enumerate(one["stages"])
        if "Filter" in [behind["kind"] for behind in one["stages"][:place]]
        for token in stage["tokens"]
    }
    if told or not dropped:
        return
    seen: set[tuple[str, int]] = set()
    for one in hidden(facts.reader.rows, {file: pastes.source(facts, file) for file in facts.files}):
        if one.token in dropped and (one.file, one.line) not in seen:
            seen.add((one.file, one.line))
            yield Finding(
                NAMES[0], "error", one.node, (one.call,), one.cause.rstrip("."), one.advice, one.file, one.line,
                confidence="likely",
            )  # fmt: skip
