"""Blame, the profile reader and the what-if ceiling: arithmetic, tested without a clock."""

from __future__ import annotations

import numpy as np
import pytest

from pyfunc_debug.gil import blame, native_join
from pyfunc_debug.gil.band import Band
from pyfunc_debug.gil.blame import OUTSIDE, Holds, Span, call_of, equal_split, recorded_blame
from pyfunc_debug.gil.join import as_rows
from pyfunc_debug.gil.native_join import NativeJoin
from pyfunc_debug.gil.releases import Releases
from pyfunc_debug.gil.samples import CLOSED, HELD, RELEASED, WAITED, Samples
from pyfunc_debug.gil.whatif import Stage, ceiling
from pyfunc_debug.newest import Newest
from pyfunc_debug.profiler import xplane, xspace

MS = 1_000_000


def test_holds_during_a_wait():
    holds = Holds()
    for i in range(10):
        holds.add(i, i * 100, i * 100 + 80)
    assert holds.during(150, 420) == {1: 30, 2: 80, 3: 80, 4: 20}
    assert holds.during(180, 200) == {}
    assert holds.during(5000, 6000) == {}


def test_a_band_keeps_every_nanosecond_and_its_number_of_columns():
    band = Band()
    band.add(np.array([5, 7]) * MS, np.array([6, 7]) * MS + [500_000, 250_000])
    assert band.as_json() == {"start_ns": 5 * MS, "width_ns": MS, "us": [1000, 500, 250]}
    later = np.arange(100) * 60 * MS + 20 * MS
    band.add(later, later + 30 * MS)
    made = band.as_json()
    assert made["width_ns"] == 16 * MS
    assert len(made["us"]) <= 512
    assert sum(made["us"]) == 1750 + 100 * 30_000
    assert max(made["us"]) == 16_000
    assert Band().as_json() is None


def test_only_the_newest_holds_are_kept():
    holds = Holds(keep=5)
    for i in range(20):
        holds.add(i, i * 100, i * 100 + 80)
    assert holds.during(0, 500) == {}
    assert holds.during(1950, 2000) == {19: 30}


def test_equal_split_among_running_bodies():
    spans = [Span(0, 100, 1, 11), Span(50, 150, 2, 12), Span(0, 200, 9, 99)]
    assert equal_split(0, 200, 9, spans) == {11: 75, 12: 75, None: 50}


def test_what_no_body_explains_is_outside():
    assert equal_split(0, 100, 1, []) == {None: 100}


def test_labels_are_read_back():
    assert call_of(blame.by_call("augment", 17)) == ("augment", 17)
    assert call_of("f.<locals>.<lambda> (#3)") == ("f.<locals>.<lambda>", 3)
    assert call_of(OUTSIDE) == (OUTSIDE, None)
    assert call_of("odd (#x)") == ("odd (#x)", None)


def test_small_shares_are_added_up_by_body():
    shares = {call: 100 - call for call in range(40)}
    rows = recorded_blame(shares, {OUTSIDE: 7}, lambda call: "f", most=3)
    assert rows[0] == ("f", sum(100 - c for c in range(3, 40)))
    assert [label for label, _ in rows[1:4]] == ["f (#0)", "f (#1)", "f (#2)"]
    assert sum(ns for _, ns in rows) == sum(shares.values()) + 7


def closed(thread: int, serial: int, requested: int, enter: int, leave: int, waited: int = 0) -> tuple:
    return (CLOSED, thread, serial, requested, enter, leave, waited, 0, 0)


def test_a_holder_may_become_known_later():
    """Call 2 waited for call 1, whose ticket comes in a later batch."""
    join = NativeJoin(lambda call: "f")
    rows = [
        (HELD, 1, 1, 0, 10 * MS, 0, 0, 0, 0),
        (WAITED, 2, 2, 2 * MS, 10 * MS, 1, 0, 0, 0),
        closed(2, 2, 2 * MS, 10 * MS, 20 * MS, 8 * MS),
    ]
    assert join.feed(Samples("native", 20 * MS, native=rows), [(2, 2, 11 * MS, 19 * MS)]) == []
    later = as_rows(join.feed(Samples("native", 31 * MS, native=[closed(1, 1, 0, 0, 30 * MS)]), [(1, 1, MS, 29 * MS)]))
    assert {call: row.blame for call, row in later} == {1: (), 2: (("f (#1)", 8 * MS),)}


def test_a_holder_that_is_not_recorded_is_not_waited_for_for_ever():
    join = NativeJoin(lambda call: "f")
    rows = [
        (HELD, 1, 1, 0, 10 * MS, 0, 0, 0, 0),
        (WAITED, 2, 2, 2 * MS, 10 * MS, 1, 0, 0, 0),
        closed(1, 1, 0, 0, 11 * MS),
        closed(2, 2, 2 * MS, 10 * MS, 20 * MS, 8 * MS),
    ]
    assert join.feed(Samples("native", 20 * MS, native=rows), [(2, 2, 11 * MS, 19 * MS)]) == []
    [(call, row)] = as_rows(join.feed(Samples("native", 3600_000 * MS), []))
    assert call == 2
    assert row.blame == ((blame.UNRECORDED, 8 * MS),)


def test_a_body_that_still_runs_at_the_end_is_named_so():
    join = NativeJoin(lambda call: "f")
    rows = [
        (HELD, 1, 1, 0, 10 * MS, 0, 0, 0, 0),
        (WAITED, 2, 2, 2 * MS, 10 * MS, 1, 0, 0, 0),
        closed(2, 2, 2 * MS, 10 * MS, 20 * MS, 8 * MS),
    ]
    [(_, row)] = as_rows(join.feed(Samples("native", 20 * MS, native=rows), [(2, 2, 11 * MS, 19 * MS)], final=True))
    assert row.blame == ((blame.RUNNING, 8 * MS),)


def test_a_call_that_waits_for_more_holders_than_are_kept_names_them_all(monkeypatch):
    """The op of call 1 is open from the beginning to the end, and waits for each of 3,000 others in turn."""
    monkeypatch.setattr(native_join, "Newest", lambda: Newest(2_000))
    join = NativeJoin(lambda call: "f")
    for first in range(2, 3_002, 100):
        rows, times = [], []
        for serial in range(first, first + 100):
            at, held = serial * MS, MS // 2 if serial == 500 else MS // 4
            rows += [(HELD, 2, serial, at, at + held, 0, 0, 0, 0), (WAITED, 1, 1, at, at + held, 0, 0, 0, 0)]
            rows.append(closed(2, serial, at, at, at + held))
            times.append((serial, 2, at, at + held))
        assert len(join.feed(Samples("native", times[-1][3], native=rows), times)) == 100
    end = 4_000 * MS
    [(call, row)] = as_rows(join.feed(Samples("native", end, native=[closed(1, 1, 0, 0, end)]), [(1, 1, MS, end)]))
    assert call == 1
    assert sum(ns for _, ns in row.blame) == 3_001 * (MS // 4), "each of them, and the long one twice"
    assert {call_of(label)[0] for label, _ in row.blame} == {"f"}
    assert ("f (#500)", MS // 2) in row.blame
    assert len(row.blame) < 40


def test_calls_behind_a_body_that_does_not_end_are_told_once_there_are_many(monkeypatch):
    monkeypatch.setattr(native_join, "_MOST_WAITING", 3)
    join = NativeJoin(lambda call: "f")
    told = []
    for serial in range(2, 7):
        at = serial * MS
        rows = [(HELD, 1, 1, at, at + 5, 0, 0, 0, 0), (WAITED, 2, serial, at, at + 5, 1, 0, 0, 0)]
        rows.append(closed(2, serial, at, at + 5, at + 9, 5))
        told += as_rows(join.feed(Samples("native", at + 10, native=rows), [(serial, 2, at + 6, at + 8)]))
    assert [(call, row.blame) for call, row in told] == [(2, ((blame.RUNNING, 5),))]


def test_reused_thread_idents_are_told_apart_by_time():
    join = NativeJoin(lambda call: "f")
    rows = [closed(7, 1, 0, MS, 2 * MS, MS), closed(7, 2, 5 * MS, 5 * MS, 6 * MS)]
    times = [(2, 7, 5 * MS, 6 * MS), (1, 7, MS, 2 * MS)]
    found = dict(as_rows(join.feed(Samples("native", 9 * MS, native=rows), times, final=True)))
    assert (found[1].wait_ns, found[2].wait_ns) == (MS, 0)


def test_calls_that_bypass_the_op_are_not_measured():
    """An eager numpy_function inside a body runs without an op of its own: it must not take the body's."""
    join = NativeJoin(lambda call: "f")
    rows = [closed(7, 1, 0, MS, 9 * MS, MS)]
    found = join.feed(
        Samples("native", 9 * MS, native=rows), [(2, 7, 3 * MS, 4 * MS), (1, 7, 2 * MS, 8 * MS)], final=True
    )
    assert [call for call, *_ in found] == [1]
    assert join.unmatched == 1


def test_an_op_inside_an_op_takes_its_own_call():
    join = NativeJoin(lambda call: "f")
    inner, outer = closed(7, 2, 3 * MS, 3 * MS, 5 * MS), closed(7, 1, 0, MS, 9 * MS, MS)
    assert [one[0] for one in join.feed(Samples("native", 6 * MS, native=[inner]), [(2, 7, 4 * MS, 4 * MS)])] == [2]
    found = join.feed(Samples("native", 9 * MS, native=[outer]), [(1, 7, 2 * MS, 8 * MS)])
    assert [(one[0], one[2]) for one in found] == [(1, MS)]
    together = NativeJoin(lambda call: "f").feed(
        Samples("native", 9 * MS, native=[inner, outer]), [(1, 7, 2 * MS, 8 * MS), (2, 7, 4 * MS, 4 * MS)]
    )
    assert {(one[0], one[2]) for one in together} == {(1, MS), (2, 0)}


def released(thread: int, root: int, since: int, to: int, waited: int = 0) -> tuple:
    return (RELEASED, thread, root, since, to, to - since - waited, waited, 0, 0)


def test_what_the_op_released_around_the_call_is_not_the_calls():
    """TensorFlow converts the results after the body, and sleeps or waits there: 5 ms of a call that took 2."""
    rows = [
        released(7, 1, 1 * MS, 2 * MS, waited=MS),
        released(7, 1, 4 * MS, 5 * MS),
        (HELD, 9, 0, 7 * MS, 9 * MS, 0, 0, 0, 0),
        (WAITED, 7, 1, 7 * MS, 9 * MS, 0, 0, 0, 0),
        released(7, 1, 6 * MS, 9 * MS, waited=2 * MS),
        (CLOSED, 7, 1, 0, 0, 10 * MS, 0, 2 * MS, 3 * MS),
    ]
    join = NativeJoin(lambda call: "f")
    [(_, row)] = as_rows(join.feed(Samples("native", 10 * MS, native=rows), [(1, 7, 3 * MS, 6 * MS)], final=True))
    assert (row.wait_ns, row.held_ns, row.released_ns, row.reacquire_ns) == (MS, 2 * MS, MS, 0)
    assert row.blame == (), "what it waited for after the call belongs to nobody"


def test_a_call_of_which_a_part_was_lost_is_counted_and_not_told():
    rows = [released(7, 1, 4 * MS, 5 * MS), (CLOSED, 7, 1, 0, 0, 10 * MS, 0, 3 * MS, 0)]
    join = NativeJoin(lambda call: "f")
    assert join.feed(Samples("native", 10 * MS, native=rows), [(1, 7, 3 * MS, 6 * MS)], final=True) == []
    assert (join.matched, join.broken) == (0, 1)


def test_a_call_that_lets_the_gil_go_a_million_times_is_told_from_a_bounded_memory():
    kept, threads = Releases(most=5000), 2
    for batch in range(10):
        for thread in range(threads):
            rows = [
                released(thread, thread, 10 * i + 1, 10 * i + 4, waited=1)
                for i in range(batch * 2000, batch * 2000 + 2000)
            ]
            kept.add(np.array(rows, np.int64))
        assert len(kept) <= 5000 + threads * 2000 + 2000
    ops = np.array([(CLOSED, thread, thread, 0, 0, 200_000, 0, 40_000, 20_000) for thread in range(threads)])
    parts, whole = kept.parts(ops, np.array([(1, 0, 5, 199_995), (2, 1, 100_000, 199_995)]))
    assert parts[0].tolist() == [1, 40_000 - 2, 20_000 - 1]
    assert whole.tolist() == [True, False], "the second begins where nothing exact is known any more"
    kept.forget(np.arange(threads))
    assert len(kept) == 0


def test_calls_of_many_threads_and_days():
    """More time and threads than one key of 64 bits could tell apart."""
    join = NativeJoin(lambda call: "f")
    day = 86_400_000 * MS
    rows = [closed(thread, thread, 0, 40_000 * day + thread, 40_000 * day + 2000) for thread in range(1, 200)]
    rows.append(closed(1, 1000, 0, 0, 1))
    times = [(thread, thread, 40_000 * day + 1000, 40_000 * day + 1001) for thread in range(1, 200)]
    times.append((1000, 1, 0, 1))
    found = join.feed(Samples("native", 40_000 * day, native=rows), times, final=True)
    assert {one[0] for one in found} == {*range(1, 200), 1000}
    assert join.unmatched == 0


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def test_spans_are_read_out_of_a_profile():
    def event(kind: int, offset_ps: int, duration_ps: int, *stats: bytes) -> bytes:
        more = b"".join(field(4, stat) for stat in stats)
        return field(4, field(1, kind) + field(2, offset_ps) + field(3, duration_ps) + more)

    def metadata(kind: int, name: bytes) -> bytes:
        return field(4, field(1, kind) + field(2, field(1, kind) + field(2, name)))

    line = field(1, 2**63 + 5) + field(2, b"tf_Compute") + field(3, 1000)
    line += event(1, 2_000, 500_000) + event(2, 0, 1)
    line += event(300, 9_000_000, 1_000, field(1, 7) + field(4, 42), field(1, 8) + field(7, 9))
    plane = field(2, b"/host:CPU") + field(3, line)
    plane += metadata(1, b"while/PyFunc:PyFunc") + metadata(2, b"Add:AddV2") + metadata(300, b"mark:1")
    for number, name in ((7, b"id"), (8, b"op"), (9, b"a text")):
        plane += field(5, field(1, number) + field(2, field(1, number) + field(2, name)))
    file = field(1, plane) + field(1, field(2, b"empty"))
    wanted = lambda name: xplane.is_op(name) or name.startswith(b"mark:")  # noqa: E731
    assert xspace.events(file, wanted) == [
        (5, b"while/PyFunc:PyFunc", 1002, 1502, {}), (5, b"mark:1", 10_000, 10_001, {}),
    ]  # fmt: skip
    stats = [event.stats for event in xspace.events(file, wanted, wanted)]
    assert stats == [{}, {b"id": 42, b"op": b"a text"}]
    assert xplane.is_op(b"EagerPyFunc")
    assert not xplane.is_op(b"PyFunc:Identity")


@pytest.mark.parametrize(
    ("stage", "calls", "pool", "said"),
    [
        (Stage(10 * MS, 0, 0), 8, 2, "at most x2.0: 2 threads in the pool"),
        (Stage(10 * MS, 9 * MS, 9 * MS), 8, 8, "at most x1.1: the body holds the GIL 90 % of the time"),
        (Stage(10 * MS, None, None), 4, 8, "at most x4.0: num_parallel_calls=4"),
        (
            Stage(10 * MS, MS, 10 * MS),
            8,
            8,
            "at most x2.0: the body is on a CPU 100 % of the time, and there are 2 cores",
        ),
        (Stage(10 * MS, MS, MS, parallel=2), 4, 8, "at most x2.0: num_parallel_calls=4"),
        (Stage(10 * MS, 10 * MS, 0, parallel=4), 8, 8, "at most x1.0: the body holds the GIL 100 % of the time"),
        (Stage(10 * MS, 0, 0), 1, 1, "at most x1.0: num_parallel_calls=1"),
    ],
)
def test_the_ceiling_and_what_stands_in_the_way(stage, calls, pool, said):
    assert str(ceiling(stage, calls, pool, cores=2)) == said


def test_a_ceiling_needs_sensible_numbers():
    with pytest.raises(ValueError, match="positive"):
        ceiling(Stage(0, None, None), 2, 2, 2)
