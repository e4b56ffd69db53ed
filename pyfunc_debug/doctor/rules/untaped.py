"""`tape.gradient` that gave None for all it was asked: what was computed outside of the tape, or nobody watches."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.gradients import assigned_values, of_datasets
from pyfunc_debug.doctor.failures.gradients.losses_in_variables import at_line
from pyfunc_debug.doctor.failures.gradients.no_gradients import by_the_source
from pyfunc_debug.doctor.failures.gradients.untaped import untaped
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.records import Finding

NAMES = ("untaped",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks a tape."""
    told = {(one.file, one.line) for one in failures(facts, ("cut-gradient", "none-gradient"))}
    if told or facts.notices["cut-gradient"] or facts.notices["flat-op"]:
        return  # why there is none is known, and is another
    for _, _, noticed in facts.notices["all-none"]:
        file, line = str(noticed["file"]), int(noticed["line"])
        own = pastes.source(facts, file)
        by_place = untaped(file, own, line, bool(noticed["tensors"]), bool(noticed["whole"]))
        by_data = at_line(file, own, line) or of_datasets.at_line(file, own, line)
        found = by_data or by_place or by_the_source(file, own, line)
        found = found or assigned_values.at_line(file, own, line)
        if found is not None:
            yield Finding(
                NAMES[0], "warning", None, (), f"tape.gradient gave None in line {line}. {found.cause}",
                pastes.written(found.edit) if found.edit is not None else found.advice, file, found.line,
                evidence=(f"line {line}: {facts.line(file, line)}",), confidence="likely",
            )  # fmt: skip
