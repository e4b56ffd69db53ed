"""What a finding's paste needs of its file: imports that are not there, and names that its TensorFlow has."""

from __future__ import annotations

from dataclasses import replace

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.added_imports import import_above, lacking
from pyfunc_debug.doctor.failures.pastes.explanation import pasted_lines, with_lines
from pyfunc_debug.doctor.failures.pastes.older_names import older
from pyfunc_debug.records import Finding


def with_imports(facts: Facts, finding: Finding) -> Finding:
    """The finding; the imports that its paste lacks stand behind it, as they go above all other lines."""
    file = finding.file
    if file is None or not file.endswith(".py"):
        return finding
    source, lacks = pastes.source(facts, file), list[str]()
    fix = with_lines(finding.fix, file, lambda one: older(source, one.lines, source.lines[one.first - 1 : one.last]))
    finding = replace(finding, fix=fix)
    for line, lines in pasted_lines(finding.fix, file).items():
        lacks += lacking(source, line, lines)
    above = import_above(source, file, list(dict.fromkeys(lacks)))
    if above is None:
        return finding
    return replace(finding, fix="\n".join((finding.fix, above.instruction(), *above.lines)))
