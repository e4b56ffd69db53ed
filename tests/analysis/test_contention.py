"""Who was waited for, as a recording keeps it, is read by a short cut that gives what json and `call_of` give."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.analysis.contention import _parts
from pyfunc_debug.gil.blame import call_of

BLAMES = [
    [["augment (#0)", 300_000], ["TF-1", 250_000]],
    [['a "quoted" name (#3)', 1]],
    [["rows[0] (#12)", 5], ["é (#4)", 7]],
    [["f (#)", 3], ["g(#5)", 2], ["h (#5) ", 1], ["k (#1) (#2)", 4]],
    [["back\\slash (#7)", 4]],
    [],
]


@pytest.mark.parametrize("blame", BLAMES, ids=str)
def test_the_short_cut_reads_what_json_reads(blame):
    pairs = [(call_of(label), ns) for label, ns in blame]
    expected = [(body, "" if call is None else str(call), str(ns)) for (body, call), ns in pairs]
    assert list(_parts([json.dumps(blame)])) == expected
