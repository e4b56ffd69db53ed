"""A table that keeps the newest entries."""

from __future__ import annotations

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
