"""Which of many tests of one kind the whole suite runs: they are most of its time, and only grow in number.

All of them are run where a file, a folder or a test is named on the command line, and by `.ci/run`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest

ONE_OF = 32
"""Of the doctor's programs."""


def shared(
    cases: Iterable[tuple[str, str, Any]], one_of: int = ONE_OF
) -> Iterable[tuple[str, Any, list[pytest.MarkDecorator]]]:
    """Marks those of many tests that the whole suite leaves out.

    Args:
      cases: Name, kind and parameters of each test. The first of each kind is run, and of the others those whose
        name falls to them: which they are does not change as tests come and go.
      one_of: Of so many others one is run.

    Yields:
      The name, the parameters, and the mark.
    """
    seen: set[str] = set()
    for name, kind, parameters in cases:
        left_out = kind in seen and zlib.crc32(name.encode()) % one_of != 0
        seen.add(kind)
        yield name, parameters, [pytest.mark.more] * left_out


def some(cases: Iterable[tuple[str, Any]], one_of: int) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: one of so many tests in the whole suite, and the first.

    Args:
      cases: Name and parameters of each test; a tuple of them where a test has several.
      one_of: Of so many one is run.
    """
    every = shared(((name, "", parameters) for name, parameters in cases), one_of)
    return [
        pytest.param(*(parameters if isinstance(parameters, tuple) else (parameters,)), id=name, marks=more)
        for name, parameters, more in every
    ]
