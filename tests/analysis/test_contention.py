"""Who was waited for, as a recording keeps it, is read by a short cut that gives what json and `call_of` give."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.analysis.blames import entries
from pyfunc_debug.gil.blame import call_of

BLAMES = [
    [["augment (#0)", 300_000], ["TF-1", 250_000]],
    [['a "quoted" name (#3)', 1]],
    [["rows[0] (#12)", 5], ["é (#4)", 7]],
    [["f (#)", 3], ["g(#5)", 2], ["h (#5) ", 1], ["k (#1) (#2)", 4]],
    [["back\\slash (#7)", 4]],
    [],
]


def _read(blames):
    found = entries("\n".join(map(json.dumps, blames)), len(blames))
    rows = zip(found.blame.tolist(), found.body.tolist(), found.call.tolist(), found.ns.tolist())
    return [(blame, found.bodies[body], call, ns) for blame, body, call, ns in rows]


def _expected(blames):
    rows = [(i, *call_of(label), ns) for i, blame in enumerate(blames) for label, ns in blame]
    return [(i, body, -1 if call is None else call, ns) for i, body, call, ns in rows]


@pytest.mark.parametrize("blame", BLAMES, ids=str)
def test_the_short_cut_reads_what_json_reads(blame):
    assert _read([blame]) == _expected([blame])


def test_many_blames_are_told_apart_with_their_names():
    many = [[[f"body_{i % 7} (#{i})", i + 1], ["x" * (i % 40), 10**i]] for i in range(18)]
    assert _read(many) == _expected(many)
    odd = [*many, *BLAMES]  # one with escapes among them: all are read by json
    assert _read(odd) == _expected(odd)
