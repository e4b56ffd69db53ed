"""What reads the stacks of other threads keeps nothing of them: the program's objects go when they would without us."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from pyfunc_debug.gil import canary
from pyfunc_debug.program.lock_holders import holder
from pyfunc_debug.program.waiting import in_bodies, place_of, waiting
from pyfunc_debug.recorder.forked import who_waits
from tests.limits import HANG_S


class Thing:
    """Stays in frames of a stack that is looked at."""

    def __init__(self, look):
        self.seen = inner(self, look)


def inner(thing, look):
    """Waits until another thread has looked at this stack."""
    main = threading.get_ident()
    looked = threading.Thread(target=look, args=(main,))
    looked.start()
    looked.join(HANG_S)
    return thing is not None


def locked(ident):
    lock = threading.Lock()
    with lock:
        holder(lock, None)


LOOKS = {
    "canary": lambda ident: canary._stood(),
    "bodies": lambda ident: in_bodies(),
    "waiting": waiting,
    "place": place_of,
    "lock": locked,
    "forked": lambda ident: who_waits(),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_an_object_goes_as_its_last_name_does(look):
    thing = Thing(lambda ident: None)
    del thing
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            thing = Thing(look)
            assert thing.seen
            gone = weakref.ref(thing)
            del thing
            assert gone() is None
    finally:
        gc.enable()
