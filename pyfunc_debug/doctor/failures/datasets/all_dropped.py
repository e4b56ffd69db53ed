"""The end of data of which a filter dropped all: each call of a body hid an exception, and said so by a flag.

So did a generator that yielded nothing.
"""

from __future__ import annotations

import re

from pyfunc_debug.doctor.datasets import hiding_generators
from pyfunc_debug.doctor.datasets.hidden_errors import hidden
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation

RULE = "all-dropped"
_ENDED = re.compile(r"[Ee]nd of sequence|ran out of data|Empty Logs")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if no element came, and one body alone hid an exception in each of its calls."""
    ended = situation.kind in ("OutOfRangeError", "StopIteration") or _ENDED.search(situation.message)
    if situation.body or not ended:
        return None
    sources = dict(situation.sources())
    found = [*hidden(situation.rows, sources), *hiding_generators.hidden(situation.rows, sources)]
    if len({(one.file, one.line) for one in found}) != 1:
        return None
    one = found[0]
    return Explanation(RULE, one.file, one.line, one.cause, None, one.advice, "likely")
