"""Threads that run are stopped at their next line, by what each Python has for that."""

from __future__ import annotations

import sys
import threading

import pyfunc_debug as pfd
from pyfunc_debug.stops.pause import Pause
from pyfunc_debug.switchboard import board
from tests.limits import HANG_S

LOOP = """
def loop(entered):
    n = 1
    try:
        entered.wait()
        while n: n += 1
    except StopIteration:
        ended.append(n)
"""

WAITS = """
def waits(entered, lock):
    entered.set()
    lock.acquire()
    return 1
"""


def frame_of(ident, code):
    frame = sys._current_frames()[ident]
    while frame.f_code is not code:
        frame = frame.f_back
    return frame


def test_threads_in_a_loop_of_one_line_are_stopped():
    ended, entered, missed = [], threading.Barrier(3), []
    names = {"ended": ended}
    exec(compile(LOOP, __file__, "exec"), names)
    threads = [threading.Thread(target=names["loop"], args=(entered,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    entered.wait()

    def stop(frame):
        raise StopIteration

    stacks = {thread.ident: [frame_of(thread.ident, names["loop"].__code__)] for thread in threads}
    (watched, *_), *_ = stacks.values()
    watched.f_trace_lines = False  # as a breakpoint with when="after" leaves it
    assert Pause(stacks, stop, lambda: missed.append(1), each=True).arm()
    for thread in threads:
        thread.join(HANG_S)
    assert (len(ended), missed) == (2, [])
    assert not watched.f_trace_lines


def test_threads_that_an_earlier_pause_waits_for_in_c_are_stopped_by_the_next_one():
    """Ctrl-C, Ctrl-C again, which takes the pause back, and a third one, while the body is in a lock or a sleep."""
    lock, entered, stopped = threading.Lock(), threading.Event(), []
    names = {}
    exec(compile(WAITS, __file__, "exec"), names)
    with lock:
        thread = threading.Thread(target=names["waits"], args=(entered, lock), daemon=True)
        thread.start()
        entered.wait()
        stacks = {thread.ident: [frame_of(thread.ident, names["waits"].__code__)]}
        first = Pause(stacks, lambda frame: stopped.append("first"))
        assert first.arm()
        first.cancel()
        assert Pause(stacks, lambda frame: stopped.append("second")).arm(), "it is there and can be stopped"
    thread.join(HANG_S)
    assert stopped == ["second"]


def test_it_stops_at_the_line_that_comes_and_not_after_it(script, tf):
    """A line that waits would keep the stop waiting."""
    first, second, entered = threading.Lock(), threading.Lock(), threading.Event()

    def body(x):
        entered.set(), first.acquire(timeout=HANG_S)
        got.append(second.acquire(timeout=HANG_S))
        return x * 2

    def pause():
        entered.wait()
        asked.append(board.pause())
        first.release()

    got, asked = [], []
    prompts = script("second.release()", "c")
    rule = pfd.break_on("another")
    helper = threading.Thread(target=pause)
    first.acquire()
    second.acquire()
    helper.start()
    assert float(tf.function(lambda x: tf.py_function(body, [x], tf.float32))(3.0)) == 6.0
    helper.join()
    rule.remove()
    assert asked == [True]
    assert got == [True], "the prompt gave the lock back before the body asked for it"
    assert "got.append(second" in prompts.text
