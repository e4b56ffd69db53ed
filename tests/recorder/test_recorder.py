"""The recorder by itself: what it stores, what it counts, whom it never loses."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyfunc_debug.analysis.describe import call_text
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.events import MANY_RUNS, Body, FunctionFacts, NodeFacts, Notice, RunFacts
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.pfrec.ring import RingReader
from pyfunc_debug.recorder import Budget, Recorder, hot, worker
from pyfunc_debug.recorder.reserve import Reserve
from pyfunc_debug.recorder.ticket import Ticket
from pyfunc_debug.values import Policies
from tests.limits import HANG_S

EAGER = FunctionFacts("(eager)", "eager", None, None, internal=False)


def node(token: str, body: str = "body", site: Any = None, gradient_of: str | None = None) -> NodeFacts:
    return NodeFacts(
        token, "py_function", Body(body, "user.py", 1, ("x",), False), None, None, EAGER if site else None, (),
        (), ("x",), ("out",), False, gradient_of, site,
    )  # fmt: skip


class NoRoom(Budget):
    queue_calls = 0


@pytest.fixture(params=["C", "Python"])
def make(tmp_path, monkeypatch, request):
    made = []
    if request.param == "Python":
        monkeypatch.setitem(sys.modules, "pyfunc_debug.recorder._hot", None)
        monkeypatch.setattr("pyfunc_debug.recorder.recorder.HotPath", runpy.run_path(hot.__file__)["HotPath"])

    def recorder(values: Any = "none", nodes: str = "*", budget: int = 64_000_000, limits: Any = Budget) -> Recorder:
        one = Recorder(str(tmp_path / f"{len(made)}.pfrec"), Policies(values, nodes), limits(budget), {"pid": 1})
        assert type(one._hot).__module__ == {"C": "pyfunc_debug.recorder._hot", "Python": "<run_path>"}[request.param]
        made.append(one)
        return one

    yield recorder
    for one in made:
        if one._hot.accepting:
            one.close({})


def call(recorder: Recorder, token: str, *args: Any, result: Any = None, error: BaseException | None = None) -> None:
    ticket = recorder.enter(token, args)
    if error is not None:
        recorder.fail(ticket, error)
    else:
        recorder.leave(ticket, result)


def finish(recorder: Recorder) -> Recording:
    result = recorder.close({})
    assert not result["troubles"], result
    return Recording(recorder.path)


def test_of_very_many_runs_in_flight_a_call_names_none_and_says_so(make):
    recorder = make()
    recorder.node_made(node("graph"))
    live = recorder._hot.live
    for number in range(2, MANY_RUNS + 3):
        live.begin(RunFacts(number, "forward", "f", None, None, None, 1, 0))
        if number in (2, 3):
            call(recorder, "graph")
    call(recorder, "graph")
    recording = finish(recorder)
    calls = list(recording.calls())
    assert [one.runs for one in calls] == [(2,), (2, 3), ()]
    assert [one.crowded for one in calls] == [False, False, True]
    assert "run not known: more than 64 were in flight" in call_text(calls[2], recording.reader)


def test_eager_calls_from_one_line_are_one_node_however_many(make):
    recorder = make()
    for index in range(20_050):
        token = f"eager_{index}"
        recorder.node_made(node(token, site=("user.py", 7, "<module>")))
        call(recorder, token)
    recording = finish(recorder)
    assert [(one.body, one.token) for one in recording.nodes()] == [("body", None)]
    assert recording.reader.counts()["call"] == 20_050
    assert len(recorder._eager) <= 10_000, "the memory of the recorder grows with the number of eager calls"


def test_an_eager_call_that_is_shown_as_running_stays_at_its_node(make):
    recorder = make()
    recorder.node_made(node("pyfunc_1", site=("user.py", 7, "f")))
    ticket = recorder.enter("pyfunc_1", ())
    ticket.start_ns -= 10**9  # as if a second had passed
    recorder.flush()
    reader = Recording(recorder.path)
    assert [one.status for one in reader.calls()] == ["running"]
    reader.close()
    recorder.leave(ticket, None)
    recording = finish(recorder)
    assert [(one.node, one.status) for one in recording.calls()] == [(1, "ok")]
    assert len(recording.nodes()) == 1


def test_the_gradient_of_an_eager_call_belongs_to_its_node(make):
    recorder = make()
    for index in range(3):
        recorder.node_made(node(f"pyfunc_{index}", site=("user.py", 7, "f")))
        call(recorder, f"pyfunc_{index}")
        recorder.node_made(node(f"pyfunc_g{index}", site=("user.py", 9, "f"), gradient_of=f"pyfunc_{index}"))
        call(recorder, f"pyfunc_g{index}")
    recording = finish(recorder)
    assert len(recording.nodes()) == 1
    assert [one.kind for one in recording.calls()] == ["forward", "gradient"] * 3


def test_a_gradient_is_kept_as_its_forward_node_is(make):
    recorder = make(values={"loud": "shape", "*": "none"}, nodes="loud")
    for body in ("loud", "quiet"):
        recorder.node_made(node(body, body))
        recorder.node_made(node(f"{body}_gradient", "grad_fn", gradient_of=body))
        call(recorder, body, np.zeros(2), result=np.zeros(2))
        call(recorder, f"{body}_gradient", np.zeros(2), result=np.zeros(2))
    recording = finish(recorder)
    bodies = {one.id: one.body for one in recording.nodes()}
    assert [(bodies[one.node], one.kind, len(one.inputs)) for one in recording.calls()] == [
        ("loud", "forward", 1), ("loud", "gradient", 1),
    ]  # fmt: skip


def test_calls_that_find_no_room_in_the_queue_are_counted_exactly_from_many_threads(make):
    recorder = make(limits=NoRoom)
    recorder.node_made(node("graph"))
    recorder.node_made(node("eager", site=("user.py", 7, "f")))

    def work(token: str) -> None:
        for index in range(2000):
            call(recorder, token, error=ValueError("x") if index % 4 == 0 else None)

    threads = [threading.Thread(target=work, args=(token,)) for token in ("graph", "eager", "graph", "eager")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recording = finish(recorder)
    assert recording.sql("SELECT node, kind, calls, errors FROM dropped ORDER BY node") == [
        {"node": 1, "kind": "forward", "calls": 4000, "errors": 1000},
        {"node": 2, "kind": "forward", "calls": 4000, "errors": 1000},
    ]
    assert recording.meta["dropped"]["calls"] == 8000


def test_a_message_that_is_no_unicode_costs_no_other_row(make):
    recorder = make()
    recorder.node_made(node("graph"))
    call(recorder, "graph", error=ValueError("file \udcff"))
    call(recorder, "graph")
    recording = finish(recorder)
    first, second = recording.calls()
    assert first.failure is not None
    assert first.failure.message == "file \\udcff"
    assert second.status == "ok"
    assert recording.reader.state() == "complete"


def test_blobs_of_a_batch_that_had_to_be_repeated_are_stored(make):
    recorder = make(values="full")
    recorder.node_made(node("graph"))
    call(recorder, "graph", np.arange(5.0), error=ValueError("file \udcff"))
    (one,) = finish(recorder).calls()
    np.testing.assert_array_equal(one.inputs[0].array(), np.arange(5.0))


def test_the_name_of_a_thread_that_has_ended_is_known(make):
    recorder = make()
    recorder.node_made(node("graph"))
    thread = threading.Thread(target=call, args=(recorder, "graph"), name="loader")
    thread.start()
    thread.join()
    recording = finish(recorder)
    assert [one.name for one in recording.reader.threads()] == ["loader"]


def test_a_long_message_is_cut_and_says_so(make):
    recorder = make()
    recorder.node_made(node("graph"))
    call(recorder, "graph", error=ValueError("x" * 1_000_000))
    (one,) = finish(recorder).calls()
    assert len(one.failure.message) < 101_000
    assert one.failure.message.endswith("(1,000,000 characters)")


def test_runs_beyond_the_budget_are_counted(make):
    recorder = make()
    recorder._rows.allowance.stop(Loss.BUDGET)
    recorder._rows.allowance.update = lambda *sizes: None  # which the next write would ask
    for index in range(10):
        run = RunFacts(index, "forward", "__inference_f_1", None, None, None, 1, 0)
        run.duration_ns = 1
        recorder._queue.append(run)
    recorder.flush()
    assert recorder._rows.allowance.losses.report()["reasons"]["runs"] == {"budget": 10}
    recorder.close({})


def test_the_cpu_time_of_some_short_calls_is_measured_and_of_all_long_ones(make):
    recorder = make()
    for token in ("short", "long"):
        recorder.node_made(node(token, body=token))

    def calls(token: str, longer_ns: int) -> None:
        ticket = recorder.enter(token, ())
        ticket.start_ns -= longer_ns
        recorder.leave(ticket, None)

    for _ in range(hot.STREAK + 3 * hot.EVERY):
        calls("short", -(10**9))
        calls("long", 10**9)  # what another node does between them does not matter
    calls("short", 10**9)
    for _ in range(hot.STREAK):
        calls("short", -(10**9))
    recorder._hot.all_cpu = True
    for _ in range(2 * hot.EVERY):
        calls("short", -(10**9))
    recording = finish(recorder)
    names = {one.id: one.body for one in recording.nodes()}
    known = {"short": [], "long": []}
    for one in recording.calls():
        known[names[one.node]].append(one.cpu_ns is not None)
    assert all(known["long"])
    few, rest = known["short"][: hot.STREAK + 3 * hot.EVERY], known["short"][hot.STREAK + 3 * hot.EVERY :]
    assert all(few[: hot.STREAK])
    assert sum(few[hot.STREAK :]) == 3
    assert all(rest[1:]), "all after a long one, and all with GIL timing"


def test_the_sum_of_queued_bytes_heals(make):
    recorder = make(values="full")
    recorder.node_made(node("graph"))
    recorder._hot.queued_bytes = 10**15  # as after lost updates
    call(recorder, "graph", np.arange(5.0))
    recorder.flush()
    recorder.flush()
    assert recorder._hot.queued_bytes == 0
    recorder.close({})


def test_a_flush_ends_although_calls_keep_coming(make):
    recorder = make()
    recorder.node_made(node("graph"))
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            call(recorder, "graph")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert recorder.flush(60)
    finally:
        done.set()
        thread.join()
    recorder.close({})


def test_the_budget_holds_for_values_that_are_large_beside_it(make):
    recorder = make(values="full", budget=1_000_000)
    recorder.node_made(node("graph"))
    generator = np.random.default_rng(0)
    same = generator.random(30_000)
    for array in (same, generator.random(80_000), same, generator.random(1000)):
        call(recorder, "graph", array)
        recorder.flush()
    recording = finish(recorder)
    assert os.path.getsize(recorder.path) <= 1_000_000
    assert (recording.meta["stopped"], recording.meta["dropped"]["values"]) == ("", 1)
    values = [one.inputs[0] for one in recording.calls()]
    assert [one.kept for one in values] == ["full", "", "full", "full"]
    assert values[1].note == "dropped: no room in the budget"
    assert values[1].max is not None, "its statistics take no room"


def test_the_budget_holds(make):
    recorder = make(values="full", budget=2_000_000)
    recorder.node_made(node("graph"))
    generator = np.random.default_rng(0)
    for _ in range(600):
        call(recorder, "graph", generator.random(2000), error=None, result=generator.random(2000))
        recorder.flush()
    recording = finish(recorder)
    size = os.path.getsize(recorder.path)
    assert size <= 2_000_000
    kept = sum(value.kept == "full" for one in recording.calls() for value in one.inputs)
    assert 0 < kept < 600
    assert recording.meta["dropped"]["values"] > 0
    assert recording.reader.counts()["call"] + recording.meta["dropped"]["calls"] == 600
    assert "not stored" in str(recording.ledger())


def test_failures_after_a_used_up_budget_are_stored_and_no_value_is_taken_for_nothing(make):
    recorder = make(values="summary", budget=1_000_000)
    recorder.node_made(node("graph"))
    begun, array = 0, np.arange(100.0)
    while recorder._rows.allowance.keep_calls:
        for _ in range(200):
            call(recorder, "graph", array, result=array)
        begun += 200
        recorder.flush()
    for number in range(9):
        ticket = recorder.enter("graph", (array,))
        ticket.start_ns -= 3_600_000_000_000 * (number < 4)  # then nothing is slow
        recorder.leave(ticket, np.full(2, np.nan) if number == 8 else array)
        assert (ticket.inputs is None) == (4 <= number < 8)
    recorder.node_made(node("later"))
    for number in range(5):
        call(recorder, "graph" if number else "later", array, error=ValueError(f"number {number}"))
    recording = finish(recorder)
    dropped, failed = recording.meta["dropped"], list(recording.calls(status="error"))
    assert [one.failure.message for one in failed] == [f"number {n}" for n in range(5)]
    assert [one.inputs[0].max for one in failed] == [99.0] * 5
    after = "read after the body had run, which may have changed it"
    assert [one.inputs[0].note for one in failed] == ["", after, after, after, after]
    stored, values = recording.reader.counts()["call"], recording.reader.counts()["value"]
    assert stored + dropped["calls"] == begun + 9 + 5
    assert values + dropped["values"] == 2 * (stored - dropped["without_values"]) - 5
    assert dropped["without_values"] > 0
    assert [one.outputs[0].nan for one in recording.calls() if one.outputs and one.outputs[0].nan] == [2]
    assert os.path.getsize(recorder.path) <= 1_000_000
    assert "more calls are stored without values: the budget of" in " ".join(str(recording.ledger()).split())


@pytest.mark.parametrize("together", [False, True])
def test_failures_with_long_texts_are_shortened_before_one_is_lost_and_gil_rows_leave_them_room(
    make, together, monkeypatch
):
    """Rows of the GIL's probe come late and all at once: their room is kept, or they use up the budget."""
    monkeypatch.setattr("pyfunc_debug.recorder.gil_rows._PATIENCE_NS", 1 << 62)
    recorder, late = make(budget=1_000_000), []

    def answers(calls, body, *, final):
        late.extend((one, "native", 1, 1, 1, 0, ()) for one, *_ in calls)
        return [late.pop() for _ in late[:]] if final or not recorder._rows.allowance.keep_calls else []

    recorder.measure_gil(SimpleNamespace(grade="native", answers=answers, report=dict))
    recorder.node_made(node("graph"))
    while recorder._rows.allowance.keep_calls:
        for _ in range(200):
            call(recorder, "graph")
        recorder.flush()
    for number in range(6):
        call(recorder, "graph", error=ValueError(f"number {number} {'x' * 200_000}"))
        if not together:
            recorder.flush()
    recording = finish(recorder)
    failed = [one.failure for one in recording.calls(status="error")]
    assert [one.message[:9] for one in failed] == [f"number {n} " for n in range(6)]
    assert all(one.message.endswith("... (200,009 characters)") for one in failed)
    assert recording.meta["stopped"] == ""
    assert os.path.getsize(recorder.path) <= 1_000_000
    assert recording.sql("SELECT count(*) AS n FROM gil") == [{"n": recording.reader.counts()["call"]}]


def test_failures_that_say_the_same_take_little_room_and_those_that_are_lost_are_counted(make):
    recorder = make(budget=1_000_000)
    recorder.node_made(node("graph"))
    while recorder._rows.allowance.keep_calls:
        for _ in range(200):
            call(recorder, "graph")
        recorder.flush()
    for _ in range(200):
        call(recorder, "graph", error=ValueError("bad row " + "x" * 5000))
    recorder.flush()
    assert "failed" not in recorder._rows.allowance.losses.report()["reasons"]
    for number in range(1000):
        call(recorder, "graph", error=ValueError(f"number {number} {'x' * 5000}"))
    recording = finish(recorder)
    failed = [one.failure.message for one in recording.calls(status="error")]
    assert len(set(failed[:200])) == 1
    assert [one.split()[1] for one in failed[200:]] == [str(number) for number in range(len(failed) - 200)]
    lost = 1200 - len(failed)
    assert 0 < lost < 1000
    assert recording.meta["dropped"]["reasons"]["failed"] == {"budget": lost}
    words = " ".join(str(recording.ledger()).split())
    assert f"calls ({lost} of them failed) were counted but not stored: the budget of" in words
    assert "stored after that: the first failures, what findings name" in words
    assert f", {len(failed)} failures, " in repr(recording)
    assert os.path.getsize(recorder.path) <= 1_000_000


def test_beyond_the_budget_the_first_the_newest_the_slowest_and_what_a_notice_names_are_stored(make):
    recorder = make(values="summary", budget=1_000_000)
    peak = 0
    commit = recorder._writer.commit

    def measured():
        nonlocal peak
        commit()
        parts = [recorder.path + end for end in ("", "-wal", "-shm") if os.path.exists(recorder.path + end)]
        peak = max(peak, sum(map(os.path.getsize, parts)))

    recorder._writer.commit = measured
    for name in ("graph", "later"):
        recorder.node_made(node(name, name))
    array = np.arange(100.0)
    while recorder._rows.allowance.keep_calls:
        for _ in range(200):
            call(recorder, "graph", array, result=array)
        recorder.flush()
    slow, named, hour = [], 0, 3_600_000_000_000
    for number in range(3000):
        ticket = recorder.enter("later" if number % 500 == 7 else "graph", (array,))
        if number % 1000 == 20:
            ticket.start_ns -= hour
            slow.append(ticket.call)
        if number == 1500:
            named = ticket.call
            recorder.notice(Notice.WRONG_TAPE, "graph", named)
        recorder.leave(ticket, None)
    recording = finish(recorder)
    begun, newest = ticket.call, recorder._rows.allowance.reserve.limit
    stored = [one.id for one in recording.calls()]
    assert peak <= 1_000_000
    assert begun == recording.meta["dropped"]["counted"] == len(stored) + recording.meta["dropped"]["calls"]
    assert recording.meta["dropped"]["reasons"]["calls"] == {"budget": begun - len(stored)}
    assert stored[-newest:] == [*range(begun - newest + 1, begun + 1)]
    assert {named, *slow} <= set(stored)
    assert len([*recording.calls(node="later")]) >= 3
    assert f"the slowest and the newest {newest}" in " ".join(str(recording.ledger()).split())
    values, missing = recording.reader.counts()["value"], recording.meta["dropped"]["values"]
    assert recording.meta["dropped"]["without_values"] >= newest
    with_values = len(stored) - recording.meta["dropped"]["without_values"]
    assert with_values <= values + missing <= 2 * with_values


def test_the_timing_of_a_call_that_was_held_back_is_stored_with_it():
    reserve = Reserve(gone := [].append)
    reserve.limit = 2
    for number in range(1, 8):
        ticket = Ticket()
        ticket.call, ticket.token, ticket.start_ns, ticket.end_ns = number, "a", 0, 10 - number
        reserve.offer(ticket)
        assert [*reserve.measured([(number, "native"), (99, "native")])] == [(99, "native")]
        if number == 4:
            reserve.name(4)
    tickets, rows = reserve.take()
    assert [one.call for one in tickets] == [1, 2, 4, 6, 7]
    assert rows == [(call, "native") for call in (1, 2, 4, 6, 7)]
    assert gone.__self__ == [3, 5]
    assert len(reserve) == 0


def test_an_extension_that_does_not_fit_the_source_is_not_used(monkeypatch):
    """Built before a method was renamed, it would record no calls."""
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)  # C can only say so on stderr

    def older(owner, *others):
        return hot.HotPath(SimpleNamespace(_meet=owner.register, _meet_thread=owner.register_thread), *others)

    assert hot.works(hot.HotPath)
    assert not hot.works(older)


@pytest.fixture
def sleeper(monkeypatch):
    """A writer that sleeps for good where it would for a second; its bell says what it does."""

    class Watched(worker.Bell):
        def __init__(self):
            super().__init__()
            self.sleeps, self.woken = threading.Event(), threading.Event()

        def wait(self, how_long):
            if how_long is not worker._SLEEP:
                return super().wait(how_long)
            self.sleeps.set()
            rung = super().wait(how_long)
            self.woken.set()
            return rung

    monkeypatch.setattr(worker, "_SLEEP", (True, HANG_S))
    monkeypatch.setattr(worker, "Bell", Watched)


@pytest.mark.usefixtures("sleeper")
@pytest.mark.parametrize("begin", [lambda one: one.enter("t", ()), lambda one: one.node_made(node("t"))])
def test_a_writer_that_has_nothing_to_do_sleeps_until_something_begins(make, begin):
    recorder = make()
    wake = recorder._worker._wake
    assert wake.sleeps.wait(HANG_S)
    assert recorder._hot.asleep
    begin(recorder)
    assert not recorder._hot.asleep
    assert wake.woken.wait(HANG_S / 2)


@pytest.mark.usefixtures("sleeper")
def test_while_calls_are_sampled_the_writer_sleeps_on_until_much_waits_for_it(make):
    recorder = make(values="full")
    recorder._hot.first = recorder._hot.every = 1
    wake = recorder._worker._wake
    assert wake.sleeps.wait(HANG_S)
    recorder.node_made(node("t"))
    call(recorder, "t", np.ones(8), result=np.ones(8))
    assert recorder._hot.asleep
    call(recorder, "t", np.ones(1 << 18), result=np.ones(1 << 18))  # 4 MB of the 16 that may wait
    assert not recorder._hot.asleep
    assert wake.woken.wait(HANG_S / 2)
    assert len(list(finish(recorder).calls())) == 2


def test_calls_that_sampling_left_out_drive_none_out_of_the_ring(make):
    recorder = make()
    if recorder._ring is None:
        pytest.skip("there is no ring here")
    recorder._hot.first, recorder._hot.every = 4, 1 << 40
    for _ in range(4):
        ticket = recorder.enter("t", ())
        ticket.start_ns -= 10**15  # the others are not among the slowest then
        recorder.leave(ticket, None)
    for _ in range(recorder._ring._calls + 1):
        call(recorder, "t")
    assert [one for one in RingReader(recorder._ring.path).numbers() if one > 0] == [1, 2, 3, 4]
