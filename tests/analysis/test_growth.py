"""Growth is a slope only where the points lie on a straight line that rises."""

from __future__ import annotations

from pyfunc_debug.analysis.growth import grown


def meta(counts, calls=None):
    points = [[i * 10**9, i * 10 if calls is None else calls[i], 10**8, count] for i, count in enumerate(counts)]
    return {"growth": {"columns": ["ns", "calls", "resident_bytes", "entries"], "points": points}}


def test_a_straight_line_has_a_slope_by_calls_and_by_seconds():
    found = grown(meta([5, 25, 45, 65, 85]), "entries")
    assert (found.first, found.last, found.first_calls, found.last_calls) == (5, 85, 0, 40)
    assert (round(found.a_call, 6), round(found.a_second, 6)) == (2.0, 20.0)


def test_the_beginning_can_be_left_out():
    found = grown(meta([0, 500, 500, 500, 501, 502, 503, 504]), "entries", 0.5)
    assert (found.first, round(found.a_call, 3)) == (501, 0.1)


def test_steps_falls_and_standing_still_have_none():
    for counts in ([0, 0, 0, 0, 0, 0, 0, 90], [9, 7, 5, 3], [4, 4, 4, 4]):
        assert grown(meta(counts), "entries").a_call is None
    assert grown(meta([1, 2, 3, 4], [7, 7, 7, 7]), "entries").a_call is None
    assert grown(meta([1, 2, 3, 4], [7, 7, 7, 7]), "entries").a_second == 1.0


def test_little_that_was_counted_says_nothing():
    assert grown(meta([1, 2, 3]), "entries") is None
    assert grown(meta([1, 2, 3, 4]), "tapes") is None
    assert grown({}, "entries") is None
