"""Other threads' stacks are read without a search for garbage in between, which Python 3.11 does not stand."""

from __future__ import annotations

import gc
import inspect
import os
import sys
import threading

import pytest

from pyfunc_debug.program.garbage import no_search
from pyfunc_debug.program.lock_holders import holder
from pyfunc_debug.program.waiting import empty_loops, plain_values, waiting
from pyfunc_debug.records import Frame
from tests.limits import HANG_S


def deep(levels, event):
    if levels:
        deep(levels - 1, event)
    else:
        event.wait(HANG_S)


@pytest.fixture
def thread():
    end = threading.Event()
    thread = threading.Thread(target=deep, args=(60, end))
    thread.start()
    yield thread
    end.set()
    thread.join()


def searches(read, *within):
    """How many searches for garbage begin in these functions, where each new object begins one."""
    begun = []

    def note(phase, info):
        one = sys._getframe(1)
        while phase == "start" and one is not None:
            begun.extend([None] * (one.f_code in codes))
            one = one.f_back

    codes = {inspect.unwrap(one).__code__ for one in within}
    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        read()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    return len(begun)


def frames_of(thread):
    one = sys._current_frames()[thread.ident]
    while one is not None:
        one = one.f_back


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="Python 3.11 alone begins them there")
def test_reading_frames_begins_searches_and_ours_does_not(thread):
    assert searches(lambda: frames_of(thread), frames_of) > 0, "else there is nothing to prove"
    body, lock = Frame(__file__, deep.__code__.co_firstlineno, "deep", ""), threading.Lock()
    with lock:
        assert searches(lambda: waiting(thread.ident), waiting) == 0
        assert searches(lambda: empty_loops(thread.ident, body), empty_loops) == 0
        assert searches(lambda: plain_values(thread.ident, body), plain_values) == 0
        assert searches(lambda: holder(lock, sys._getframe()), holder) == 0


def test_what_the_program_chose_comes_back():
    assert gc.isenabled()
    with no_search(), no_search():
        pass
    assert gc.isenabled()
    gc.disable()
    try:
        with no_search():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_two_threads_that_read_leave_it_off_until_both_have_ended():
    entered, leave, left = (threading.Event() for _ in range(3))

    def read():
        with no_search():
            entered.set()
            leave.wait(HANG_S)
        left.set()

    thread = threading.Thread(target=read)
    with no_search():
        thread.start()
        assert entered.wait(HANG_S)
    assert gc.isenabled() is (sys.version_info[:2] != (3, 11)), "the other one still reads"
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_meanwhile_searches_as_ever():
    reading, over = threading.Event(), threading.Event()

    def read():
        with no_search():
            reading.set()
            over.wait(HANG_S)

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait(HANG_S)
    pid = os.fork()
    if not pid:
        os._exit(not gc.isenabled())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    over.set()
    thread.join()
    assert code == 0
    assert gc.isenabled()
