"""A thread that waits for a bell is woken by it, and adds nothing to the process's objects."""

from __future__ import annotations

import gc
import threading
import time

from pyfunc_debug.program.bell import Bell, pause
from tests.limits import HANG_S


def test_a_ring_is_heard_once_now_or_later():
    bell = Bell()
    bell.ring()
    bell.ring()
    assert bell.is_rung()
    assert bell.wait(pause(HANG_S))
    assert not bell.is_rung()
    assert not bell.wait(pause(0))
    heard = []
    thread = threading.Thread(target=lambda: heard.append(bell.wait(pause(HANG_S))))
    thread.start()
    bell.ring()
    thread.join()
    assert heard == [True]


def test_waiting_leaves_no_object_to_count():
    bell, short, passes = Bell(), pause(0.0005), [0]

    def work():
        while passes[0] < 200:
            bell.wait(short)
            passes[0] += 1

    kinds, found, looks = {tuple, type(bell._lock)}, [], 0
    thread = threading.Thread(target=work)
    gc.collect()
    thread.start()
    while passes[0] < 5:
        time.sleep(0)
    gc.freeze()  # only what is made from now on is counted
    try:
        while passes[0] < 100:  # the thread waits at nearly every look
            looks += 1
            for one in gc.get_objects():  # a comprehension would make a tuple
                if type(one) in kinds:
                    found.append(repr(one))  # noqa: PERF401
            time.sleep(0)
    finally:
        thread.join()
    assert len(found) < looks / 2, "what a wait makes is there at nearly every look, another thread's at one"
