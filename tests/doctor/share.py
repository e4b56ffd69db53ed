"""Which of the doctor's programs the whole suite runs: they are most of its time, and only grow in number.

All of them are run where a file, a folder or a test is named on the command line, and by `.ci/run`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest

ONE_OF = 16


def shared(cases: Iterable[tuple[str, str, Any]]) -> Iterable[tuple[str, Any, list[pytest.MarkDecorator]]]:
    """Marks those of many programs that the whole suite leaves out.

    Args:
      cases: Name, kind and parameters of each program. The first of each kind is run, and of the others those whose
        name falls to them: which they are does not change as programs come and go.

    Yields:
      The name, the parameters, and the mark.
    """
    seen: set[str] = set()
    for name, kind, parameters in cases:
        left_out = kind in seen and zlib.crc32(name.encode()) % ONE_OF != 0
        seen.add(kind)
        yield name, parameters, [pytest.mark.more] * left_out
