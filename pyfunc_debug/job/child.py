"""What a process of a recorded job does: records itself, quietly, and completes its file when it ends.

A new process finds its way here by `on_path/sitecustomize.py`; a forked one by `follow_forks`.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from typing import Any

from pyfunc_debug.errors import CannotWriteError, NotInstalledError
from pyfunc_debug.job.children import OPTIONS, file_in
from pyfunc_debug.job.copies import TO, Copies, is_url, local_folder
from pyfunc_debug.job.waiter import wait, wanted_place
from pyfunc_debug.program.role import multiprocessing_name, take_role


class _Child:
    recording: Any = None
    copies: Copies | None = None
    follows = False
    forked = False


class _Token:
    """multiprocessing keeps only a weak reference to what it calls after a fork."""


_TOKEN = _Token()


def start() -> None:
    """Begins the recording of this process. Runs inside the program's own imports and forks: it never raises."""
    place = wanted_place()
    if place is None:
        return
    follow_forks()
    try:
        from pyfunc_debug.api.record import record
        from pyfunc_debug.pfrec.database import is_usable

        if _Child.forked and not is_usable():
            raise CannotWriteError(
                "a thread of its parent was inside SQLite when it was forked, and left it locked in this process"
            )
        options = json.loads(os.environ.get(OPTIONS, "{}"))
        take_role()
        url = place if is_url(place) else os.environ.get(TO)
        if url:
            try:
                copies = _Child.copies = Copies(url)
                atexit.register(copies.finish)  # before the recording: it is complete by then
            except NotInstalledError as error:  # which costs the copy only
                print(f"pyfunc-debug: {error}", file=sys.stderr)
        recording = _Child.recording = record(
            file_in(local_folder(place) if is_url(place) else place), **options
        ).start()
        if _Child.copies is not None:
            _Child.copies.start(recording.path)
    except Exception as error:
        print(f"pyfunc-debug: process {os.getpid()} is not recorded: {error}", file=sys.stderr)
        return
    if multiprocessing_name() is not None:
        from multiprocessing.util import register_after_fork

        _finish_at_its_end()
        register_after_fork(_TOKEN, lambda _: _finish_at_its_end())  # what was asked for before it runs is forgotten


def _finish_at_its_end() -> None:
    """A process of multiprocessing may end without Python's own exit handlers."""
    from multiprocessing.util import Finalize

    Finalize(None, _finish, exitpriority=-1)


def _finish() -> None:
    recording, _Child.recording = _Child.recording, None
    if recording is not None:
        try:
            recording.stop()
        except Exception as error:
            print(f"pyfunc-debug: the recording of process {os.getpid()} was not completed: {error}", file=sys.stderr)
        if _Child.copies is not None:
            _Child.copies.finish()


def follow_forks() -> None:
    """From now on forked children of this process record themselves too."""
    if not _Child.follows and hasattr(os, "register_at_fork"):
        _Child.follows = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    """In the child, after the recording of the parent was let go here (api/live.py)."""
    _Child.recording = _Child.copies = None
    _Child.forked = True
    if wanted_place() is None:
        return
    if "tensorflow" not in sys.modules:
        wait()
    elif _by_multiprocessing():  # which gives the child its name, and forgets what is to be done at its end, after this
        from multiprocessing.util import register_after_fork

        register_after_fork(_TOKEN, lambda _: start())
    else:
        start()


def _by_multiprocessing() -> bool:
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in ("multiprocessing.popen_fork", "multiprocessing.forkserver"):
            return True
        frame = frame.f_back
    return False
