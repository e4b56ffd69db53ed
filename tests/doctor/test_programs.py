"""Each rule finds what it is for, at the user's line, with something to paste; and is silent where it only looks so."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.records import Finding
from tests.doctor import programs


def findings(program, ends_with: type[BaseException] | None = None, **options) -> list[Finding]:
    """What is found in a recording of a program, which may end with an exception."""
    recording = pfd.record(**options)
    if ends_with is None:
        with recording:
            program()
    else:
        with pytest.raises(ends_with), recording:
            program()
    found = recording.findings()
    recording.close()
    assert not [one for one in found if one.rule == "doctor-trouble"], found
    return found


def name(case) -> str:
    return f"{case[0]}-{case[1].__name__}"


@pytest.mark.parametrize("case", programs.TRIGGERS, ids=name)
def test_it_is_found(case):
    rule, program, options = case
    severity = options.get("severity")
    found = findings(program, options.get("ends_with"), **options.get("record", {}))
    ours = [one for one in found if one.rule == rule]
    assert ours, [(one.rule, one.message) for one in found]
    for one in ours:
        assert severity is None or one.severity == severity
        assert one.fix.strip()
        assert "FILE" not in one.fix
        assert options.get("says", "") in f"{one.message} {' '.join(one.evidence)} {one.fix}"
        if one.node is not None:
            assert one.file == programs.__file__


@pytest.mark.parametrize("case", programs.NEAR, ids=name)
def test_nothing_is_found_where_it_only_looks_so(case):
    rule, program, options = case
    found = findings(program, options.get("ends_with"), **options.get("record", {}))
    assert [one.message for one in found if one.rule == rule] == []
