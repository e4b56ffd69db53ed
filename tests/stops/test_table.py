"""The table of docs/breakpoints.md, every way to stop x every place: rows of it are what its script finds now."""

from __future__ import annotations

import pytest

from docs import stops

ROWS = [line for line in stops.PAGE.read_text(encoding="utf-8").partition(stops.BEGIN)[2].splitlines() if "|" in line]


@pytest.mark.parametrize("place", ["tf.function", "Dataset.map, parallel"])
def test_a_row_of_the_page_is_what_its_programs_do(place):
    (row,) = [line for line in ROWS if line.startswith(f"| {place} |")]
    for way, field in zip(stops.WAYS, row.split(" | ")[1:]):
        if way != "Pause, Ctrl-C":  # it waits for a time: tests/stops/test_terminal.py
            assert stops.tried(way, place) is ("\u2713" in field), way


def test_the_page_has_every_way_and_place_and_a_reason_for_each_hole():
    assert ROWS[0].strip("| ").split(" | ") == list(stops.WAYS)
    found = {place: {way: (place, way) not in stops.HOLES for way in stops.WAYS} for place in stops.PLACES}
    assert stops.table(found) in stops.PAGE.read_text(encoding="utf-8"), "run python -m docs.stops"
