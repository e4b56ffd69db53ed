"""A table that keeps the newest entries."""

from __future__ import annotations

import pytest

from pyfunc_debug.newest import Newest


def test_the_newest_entries_are_known_and_no_others():
    table = Newest[str](4)
    table.update((number, f"call {number}") for number in range(1, 11))
    assert [table.get(number, "unknown") for number in (0, 1, 6, 7, 10, 11)] == [
        "unknown", "unknown", "unknown", "call 7", "call 10", "unknown",
    ]  # fmt: skip
    assert 7 in table
    assert 3 not in table


def test_what_is_taken_out_is_not_known_any_more():
    table = Newest[None](4)
    table[5] = None
    assert table.pop(1, "another stands in its place") == "another stands in its place"
    assert table.pop(5, "unknown") is None
    assert 5 not in table
    assert table.pop(5, "unknown") == "unknown"


@pytest.mark.parametrize("step", [1, 3, 1000, 1024, 1025, 5000])
def test_a_table_that_begins_small_knows_what_one_of_its_full_size_knows(step):
    table, known = Newest[int](4096), {}
    for number in range(0, 6000 * step, step):
        table[number] = known[number % 4096] = number
    for number in (one + near for one in range(0, 6000 * step, step) for near in (0, 1, 1024)):
        assert table.get(number, None) == (number if known.get(number % 4096) == number else None)
