"""Turns, without TensorFlow and without a clock: threads that take steps only when the test says so."""

from __future__ import annotations

import threading
import types

import pytest

from pyfunc_debug.stops import Abort, Stop
from pyfunc_debug.stops import broker as broker_module
from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.rules import EVALUATION, EXPIRED, RELEASED, SKIPPED
from tests.limits import HANG_S


class Front:
    name = "a front"

    def __init__(self):
        self.woken = []

    def can_answer(self, stop):
        return True

    def closed(self, stop): ...

    def wake(self, stop):
        self.woken.append(stop)


class House:
    """A broker whose clock stands still; waiting ends by notification only, and each wait is counted."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(broker_module, "time", types.SimpleNamespace(monotonic=lambda: self.now))
        self.broker = Broker()
        self.front = Front()
        self.broker.fronts.append(self.front)
        self.patience = []
        self.shown = []
        self.callers = []
        self.broker.listeners.append(lambda: self.shown.append([stop.title for stop in self.broker.waiting()]))
        self.waits = threading.Semaphore(0)
        wait = self.broker._turn.wait

        def counted(timeout=None):
            self.patience.append(timeout)
            self.waits.release()
            assert wait(HANG_S), "nobody notified"

        self.broker._turn.wait = counted

    def waiting(self):
        """Until one more thread has begun to wait."""
        assert self.waits.acquire(timeout=HANG_S)

    def knock(self):
        """Wakes everybody who waits, as any change does."""
        with self.broker._turn:
            self.broker._turn.notify_all()


class Caller:
    """A call on a thread of its own that has hit a breakpoint."""

    def __init__(self, house, number, policy="wait"):
        self.house = house
        self.outcome = None
        self.go = threading.Event()
        self.has_turn = threading.Event()
        self.steps = []
        house.callers.append(self)
        self.thread = threading.Thread(target=self._run, args=(number, policy), daemon=True)
        self.thread.start()

    def _run(self, number, policy):
        rule = types.SimpleNamespace(policy=policy, text=lambda: "*")
        self.stop = Stop(None, number, rule, "a test")
        try:
            self.outcome = self.house.broker.acquire(self.stop)
        except Abort:
            self.outcome = "aborted"
        if self.outcome == "":
            self.has_turn.set()
            assert self.go.wait(HANG_S)
            self.house.broker.leave(self.stop)

    def turn(self):
        assert self.has_turn.wait(HANG_S)
        assert self.house.broker.active is self.stop

    def end(self):
        self.go.set()
        self.thread.join(HANG_S)
        assert not self.thread.is_alive()
        return self.outcome


@pytest.fixture
def house(monkeypatch):
    made = House(monkeypatch)
    yield made
    made.broker.close()  # what still waits would fail much later, in another test
    for caller in made.callers:
        caller.go.set()
        caller.thread.join(HANG_S)


def test_turns_go_in_order_and_a_newcomer_does_not_push_in(house):
    first = Caller(house, 1)
    first.turn()
    others = []
    for number in (2, 3, 4):
        others.append(Caller(house, number))
        house.waiting()
    assert [stop.call for stop in house.broker.waiting()] == [2, 3, 4]
    assert first.end() == ""
    for one in others:
        one.turn()
        assert one.end() == ""
    assert house.broker.active is None


def test_a_call_whose_time_is_over_goes_on_and_is_no_longer_shown(house):
    first = Caller(house, 1)
    first.turn()
    second = Caller(house, 2, policy=5.0)
    house.waiting()
    assert house.patience == [5.0]
    house.now += 4.0
    house.knock()
    house.waiting()
    assert house.patience[-1] == 1.0
    house.now += 1.0
    house.knock()
    assert second.end() == EXPIRED
    assert house.shown[-1] == []
    assert first.end() == ""


def test_skip_goes_on_at_once_only_while_another_is_stopped(house):
    first = Caller(house, 1)
    first.turn()
    assert Caller(house, 2, policy="skip").end() == SKIPPED
    first.end()
    alone = Caller(house, 3, policy="skip")
    alone.turn()
    assert alone.end() == ""


def test_a_call_that_arrives_in_an_evaluation_passes_when_that_lasts(house):
    first = Caller(house, 1)
    first.turn()
    with house.broker.evaluation():
        second = Caller(house, 2)
        house.waiting()
        assert house.patience == [broker_module._EVALUATION_S]
        house.now += broker_module._EVALUATION_S
        house.knock()
        assert second.end() == EVALUATION
    assert first.end() == ""


@pytest.mark.parametrize("arrives", ["before any evaluation", "in one that has ended"])
def test_a_later_evaluation_lets_nobody_pass_who_waited_already(house, arrives):
    first = Caller(house, 1)
    first.turn()
    if arrives == "before any evaluation":
        second = Caller(house, 2)
        house.waiting()
    else:
        with house.broker.evaluation():
            second = Caller(house, 2)
            house.waiting()
    with house.broker.evaluation():
        house.now += 10 * broker_module._EVALUATION_S
        house.knock()
        house.waiting()  # it has looked, and waits again
        assert house.patience[-1] is None
    first.end()
    second.turn()
    assert second.end() == ""


def test_the_time_of_an_evaluation_is_not_that_of_a_step(house):
    first = Caller(house, 1)
    first.turn()
    second = Caller(house, 2)
    house.waiting()
    house.broker.prompts(first.stop, False)  # an answer came: it may be a step
    house.waiting()
    house.broker.evaluating[first.stop.ident] = 1
    house.now += 10 * broker_module._STEPPING_S
    house.knock()
    house.waiting()
    assert house.patience[-1] is None, "it waits on"
    house.broker.evaluating.clear()
    first.end()
    second.turn()
    assert second.end() == ""


def test_what_steps_on_after_an_evaluation_has_its_whole_time(house):
    stop = Stop(None, 1, types.SimpleNamespace(policy="wait", text=lambda: "*"), "a test")
    assert house.broker.acquire(stop) == ""
    house.broker.prompts(stop, False)
    with house.broker.evaluation():
        house.now += 10 * broker_module._STEPPING_S
    assert stop.running_since == house.now
    house.broker.leave(stop)


def test_an_evaluation_inside_an_evaluation_is_the_same_one(house):
    with house.broker.evaluation():
        with house.broker.evaluation():
            pass
        assert house.broker.evaluates(threading.get_ident())
    assert not house.broker.evaluates(threading.get_ident())


def test_release_lets_all_go_on_even_one_whose_turn_has_just_come(house):
    first = Caller(house, 1)
    first.turn()
    second, third = Caller(house, 2), None
    house.waiting()
    third = Caller(house, 3)
    house.waiting()
    with house.broker._turn:  # nobody can look between the two
        house.broker.leave(first.stop)
        assert house.broker.release() == 2
    assert second.end() == RELEASED
    assert third.end() == RELEASED
    assert first.end() == ""
    assert house.shown[-1] == []
    later = Caller(house, 4)
    later.turn()
    assert later.end() == ""


def test_an_interrupt_ends_the_stop_the_waiting_and_those_that_come_at_once(house):
    first = Caller(house, 1)
    first.turn()
    second = Caller(house, 2)
    house.waiting()
    assert house.broker.interrupt()
    assert second.end() == "aborted"
    assert first.stop.aborted
    assert house.front.woken == [first.stop]
    first.end()
    assert Caller(house, 3).end() == "aborted"
    assert house.broker.interrupted
    house.now += broker_module._ABORTING_S
    later = Caller(house, 4)
    later.turn()
    assert later.end() == ""
    assert house.broker.take_interrupt()
    assert not house.broker.interrupt(), "nothing is stopped"


def test_close_lets_the_stopped_the_waiting_and_the_coming_go_on(house):
    first = Caller(house, 1)
    first.turn()
    second = Caller(house, 2)
    house.waiting()
    house.broker.close()
    assert second.end() == RELEASED
    assert first.stop.released
    assert house.front.woken == [first.stop]
    first.end()
    assert Caller(house, 3).end() == RELEASED


def test_a_body_called_by_a_stopped_one_goes_before_those_who_wait(house):
    outer = Stop(None, 1, None, "outer")
    assert house.broker.acquire(outer) == ""
    waiting = Caller(house, 2)
    house.waiting()
    inner = Stop(None, 3, None, "inner")
    assert house.broker.acquire(inner) == ""
    assert house.broker.active is inner
    house.broker.leave(inner)
    assert house.broker.active is outer
    assert not waiting.has_turn.is_set()
    house.broker.leave(outer)
    waiting.turn()
    assert waiting.end() == ""


def test_a_panel_chosen_after_the_interrupt_does_not_wait_for_a_click(house):
    """The interrupt came while the panel was being pinged: there was no front to wake."""
    from jupyter_ext.panel_front import PanelFront

    panel = PanelFront(types.SimpleNamespace(key="cell"), lambda state: True)
    try:
        stop = Stop(None, 1, None, "a test")
        stop.aborted = True
        with pytest.raises(Abort):
            panel.ask(stop, "(prompt) ")
        stop.aborted, stop.released = False, True
        assert panel.ask(stop, "(prompt) ") is None
    finally:
        panel.close()


def test_who_comes_between_a_release_and_those_released_gets_the_turn_after_them(house):
    first = Caller(house, 1)
    first.turn()
    second = Caller(house, 2)
    house.waiting()
    with house.broker._turn:
        house.broker.leave(first.stop)
        house.broker.release()
        newcomer = Stop(None, 3, None, "comes now")
        assert house.broker.acquire(newcomer) == ""  # waits behind the second, which does not take its turn
    assert house.broker.active is newcomer
    house.broker.leave(newcomer)
    assert second.end() == RELEASED
    first.end()


class Switched:
    """`others N` at the prompt of a call: its thread gives the turn away until it comes back."""

    def __init__(self, house, caller, other):
        self.outcome = None
        self.thread = threading.Thread(target=self._run, args=(house.broker, caller.stop, other.stop), daemon=True)
        self.thread.start()
        house.waiting()

    def _run(self, broker, stop, other):
        try:
            self.outcome = broker.switch(stop, other)
        except Abort:
            self.outcome = "aborted"

    def end(self):
        self.thread.join(HANG_S)
        assert not self.thread.is_alive()
        return self.outcome


@pytest.fixture
def switched(house):
    """The first of four has given its turn to the third."""
    first = Caller(house, 1)
    first.turn()
    callers = [first]
    for number in (2, 3, 4):
        callers.append(Caller(house, number))
        house.waiting()
    switched = Switched(house, first, callers[2])
    callers[2].turn()
    return house, callers, switched


def test_a_turn_that_was_given_to_one_who_waits_comes_back_before_the_others_have_theirs(switched):
    house, (first, second, third, fourth), back = switched
    assert [stop.call for stop in house.broker.waiting()] == [1, 2, 4]
    assert house.broker.held() == {one.stop.ident for one in (first, second, third, fourth)}
    assert (third.end(), back.end()) == ("", "")
    assert house.broker.active is first.stop
    for one in (first, second, fourth):
        one.turn()
        assert one.end() == ""


def test_one_who_gave_its_turn_away_is_released_with_the_others(switched):
    house, (_, second, third, fourth), back = switched
    assert house.broker.release() == 3
    assert (back.end(), second.end(), fourth.end()) == (RELEASED,) * 3
    assert third.end() == ""


def test_one_who_gave_its_turn_away_ends_with_the_others(switched):
    house, (first, second, third, fourth), back = switched
    house.broker.quit(third.stop)
    assert (back.end(), second.end(), fourth.end()) == ("aborted",) * 3
    assert first.stop.aborted
    assert third.end() == ""


def test_a_turn_comes_back_from_one_who_runs_on_for_long_which_queues_again(switched):
    house, (first, second, third, fourth), back = switched
    closed = []
    house.front.closed = closed.append
    house.broker.release()  # only the first and the third are left
    assert (back.end(), second.end(), fourth.end()) == (RELEASED,) * 3
    house.broker.leave(first.stop)
    assert closed == [first.stop]
    fifth = Caller(house, 5)
    house.waiting()
    back = Switched(house, third, fifth)
    fifth.turn()
    house.broker.prompts(fifth.stop, False)  # a step: over a line that waits for the third, say
    house.waiting()
    house.now += 2.0
    house.knock()
    assert back.end() == ""
    assert house.broker.active is third.stop
    again = threading.Thread(target=house.broker.acquire, args=(fifth.stop,), daemon=True)
    again.start()
    house.waiting()
    assert house.broker.waiting() == [fifth.stop]
    assert third.end() == ""
    again.join(HANG_S)
    assert house.broker.active is fifth.stop
    assert fifth.end() == ""
    assert closed == [first.stop, third.stop, fifth.stop]
