"""An element that an op refuses, of a cache file that an earlier run wrote: what makes the elements did not run now.

The file is whole only if a pass over all elements came to its end: so something has changed since then.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.datasets import gone_over, with_inputs
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import bytes_of
from pyfunc_debug.interception.names.private import cache_name, dataset_functions

RULE = "stale-cache"
_ITERATES = re.compile(r"Error in user-defined function passed to|IteratorGetNext|Cannot batch tensors")
_IDLE = "SELECT DISTINCT body FROM node WHERE origin = 'user' AND id NOT IN (SELECT node FROM call) ORDER BY id"
_CLOCK = "SELECT value FROM meta WHERE key = 'clock'"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the elements are of an earlier run, and no body in front of the cache ran."""
    spot = situation.last
    if spot is None or situation.body or situation.kind != "InvalidArgumentError":
        return None
    idle = [str(body) for (body,) in situation.rows(_IDLE)] if _ITERATES.search(situation.text) else []
    file = next(_read(situation), "") if idle else ""
    if not file:
        return None
    names = list(dict.fromkeys(one.rpartition(".")[2] for one in idle))
    ran = f"{names[0]} has" if len(names) == 1 else f"{short(' and '.join(names[:2]), 40)} have"
    path = os.path.relpath(file)
    path = file if path.startswith("..") else path
    place, line = next(
        (
            (where, call.end_lineno or call.lineno)
            for where, source in situation.sources()
            for call in source.calls_of(frozenset({"cache"}))
            if isinstance(call.func, ast.Attribute) and len(call.args) == 1 and dotted(call.func.value) != "self"
        ),
        (spot.file, spot.line),
    )
    cause = (
        f"the elements come from the cache file {path}, which an earlier run wrote to its end: {ran} not run in this "
        "one. What changed since then, such as a size or the data, has no effect on them, and what comes behind the "
        "cache does not fit them."
    )
    advice = f"Delete it, or give it another name: rm {shlex.quote(path)}.index {shlex.quote(path)}.data-*"
    return Explanation(RULE, place, line, cause, None, advice, "likely")


def _read(situation: Situation) -> Iterator[str]:
    """The cache files that were there before the program began, with functions in front of them."""
    clock = situation.rows(_CLOCK)
    began_ns = int(json.loads(clock[0][0])["wall_ns"]) if clock else 0
    for dataset in gone_over(situation):
        name = cache_name(dataset)
        file = os.fsdecode(bytes_of(name) or b"") if name is not None else ""
        try:
            older = bool(file) and os.stat(f"{file}.index").st_mtime_ns < began_ns
        except OSError:
            continue
        makes = any(dataset_functions(one) for one in with_inputs([dataset]) if one is not dataset)
        if older and makes:
            yield os.path.abspath(file)
