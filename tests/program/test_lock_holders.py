"""Who holds a lock is read from the stacks of the threads, and is not guessed."""

from __future__ import annotations

import contextlib
import sys
import threading
from types import SimpleNamespace

import pytest

from pyfunc_debug.program.lock_holders import holder

lock, other = threading.Lock(), threading.Lock()
objects = SimpleNamespace(lock=lock)
here = __file__


def with_statement(ready, go):
    with lock:
        ready.set()
        go.wait()


def two_in_one_with(ready, go):
    with other, objects.lock:
        for _ in range(1):
            ready.set()
            go.wait()


def acquired(ready, go):
    lock.acquire()
    try:
        ready.set()
        go.wait()
    finally:
        lock.release()


def acquired_above_a_loop(ready, go):
    lock.acquire()
    while not go.is_set():
        ready.set()
        go.wait()
    lock.release()


def by_a_function_that_it_calls(ready, go):
    def inside():
        ready.set()
        go.wait()

    with lock:
        inside()


def another_lock_of_this_name(ready, go):
    the_global_one = lock_of_the_module()
    lock = threading.Lock()
    with lock:
        the_global_one.__enter__()
        ready.set()
        go.wait()
        the_global_one.__exit__()


def lock_of_the_module():
    return lock


def let_go_inside(ready, go):
    with lock:
        lock.release()
        lock.__enter__()  # not read: only `with` and acquire() are
        ready.set()
        go.wait()


def in_a_helper(ready, go):
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock)
        ready.set()
        go.wait()


def a_function_that_is_only_made_there(ready, go):
    with contextlib.ExitStack() as stack:
        with lock:

            def later():
                ready.set()
                go.wait()

        stack.enter_context(lock)
        later()


def a_lambda_that_is_only_made_there(ready, go):
    with lock:
        later = lambda: (  # noqa: E731
            ready.set(),
            go.wait(),
        )
    lock.__enter__()
    later()
    lock.__exit__()


def found(run):
    """Who is seen to hold `lock` while a thread runs this."""
    ready, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=run, args=(ready, go), name="holds")
    thread.start()
    ready.wait()
    try:
        assert lock.locked()
        return holder(lock, sys._getframe())
    finally:
        go.set()
        thread.join()


@pytest.mark.parametrize(
    ("run", "taken", "line"),
    [(with_statement, 1, 3), (two_in_one_with, 1, 4), (acquired, 1, 4), (acquired_above_a_loop, 1, 4),
     (by_a_function_that_it_calls, 5, 6)],
)  # fmt: skip
def test_a_thread_that_shows_it(run, taken, line):
    held = found(run)
    first = run.__code__.co_firstlineno
    assert held is not None
    assert (held.thread, held.file, held.tensorflow, held.itself) == ("holds", here, False, False)
    assert held.taken - first == taken
    assert first + 3 <= held.line <= first + line + 1


@pytest.mark.parametrize(
    "run",
    [
        another_lock_of_this_name,
        let_go_inside,
        in_a_helper,
        a_function_that_is_only_made_there,
        a_lambda_that_is_only_made_there,
    ],
)
def test_it_is_not_guessed(run):
    assert found(run) is None


def test_the_thread_that_waits_for_what_it_took_itself():
    with lock:
        held = holder(lock, sys._getframe())
    assert held is not None
    assert held.itself
