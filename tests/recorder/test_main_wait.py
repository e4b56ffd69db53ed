"""Looking at the main thread, each second, changes nothing in the program."""

from __future__ import annotations

import multiprocessing.process  # noqa: F401 - who has not imported it waits for no process
import sys
import threading
import weakref

from pyfunc_debug.program.forks import Forks
from pyfunc_debug.recorder.forked import MainWait


class Held:
    """What a variable of the program holds."""


def test_a_variable_that_the_program_deletes_dies_though_the_main_thread_was_looked_at():
    lock, main, places = threading.Lock(), threading.main_thread().ident, []
    watch, forks = MainWait(30.0), Forks(30.0, 1.0)

    def look():
        while len(places) < 3 or None in places[-3:]:  # until it waits in the test's own `acquire`
            watch.look(forks, {})
            frame = sys._current_frames()[main]
            places.append(frame.f_lasti if frame.f_code is own else None)
        watch.look(forks, {})
        lock.release()

    own, mine = sys._getframe().f_code, Held()
    alive = weakref.ref(mine)
    lock.acquire()
    looker = threading.Thread(target=look)
    looker.start()
    lock.acquire()
    del mine
    looker.join()
    assert alive() is None
