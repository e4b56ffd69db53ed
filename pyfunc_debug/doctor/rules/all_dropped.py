"""Data of which nothing came, as a body or a generator hid exceptions: a filter dropped all, or none was yielded."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import hiding_generators
from pyfunc_debug.doctor.datasets.hidden_errors import hidden
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.records import Finding

NAMES = ("all-dropped",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body: what a failure was explained by, else data of which nothing came."""
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
    if told:
        return
    seen: set[tuple[str, int]] = set()
    sources = {file: pastes.source(facts, file) for file in facts.files}
    found = [one for one in hidden(facts.reader.rows, sources) if one.token in dropped] if dropped else []
    for one in [*found, *hiding_generators.hidden(facts.reader.rows, sources)]:
        if (one.file, one.line) not in seen:
            seen.add((one.file, one.line))
            yield Finding(
                NAMES[0], "error", one.node, (one.call,), one.cause.rstrip("."), one.advice, one.file, one.line,
                confidence="likely",
            )  # fmt: skip
