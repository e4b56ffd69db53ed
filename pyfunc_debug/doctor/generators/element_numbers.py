"""Which element of a generator a call of its node asked for: the numbers of calls count others, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_PASS = "SELECT v.min FROM value v WHERE v.call = ? AND v.role = 'input' AND v.position = 0 AND v.min = v.max"
_BEFORE = """
    SELECT count(*) FROM call c JOIN value v ON v.call = c.id AND v.role = 'input' AND v.position = 0
    WHERE c.node = ? AND c.kind = 'forward' AND c.id <= ? AND v.min = ?
"""


def element_number(rows: Callable[..., Any], node: int, call: int) -> int | None:
    """The number of an element in its pass, from 1; None where nothing says which pass a call belongs to.

    Args:
      rows: Asks the recording.
      node: The node of `from_generator` that calls the generator, with the number of its iterator.
      call: One of its calls.
    """
    passes = rows(_PASS, (call,))
    if len(passes) != 1 or passes[0][0] is None:
        return None
    return int(rows(_BEFORE, (node, call, passes[0][0]))[0][0]) or None
