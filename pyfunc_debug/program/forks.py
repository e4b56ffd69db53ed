"""Processes that were forked from this one after TensorFlow had started threads, and stand still in TensorFlow there.

A forked process has only the thread that forked it. Measured on TensorFlow 2.21: where the threads of its pool
(`tf_Compute`) were there at the fork, a tf.function, `fit`, `predict` and a large matmul never end in the child, while
small eager operations do. A thread in the child looks, and writes what it sees into memory that both processes share.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import sys
import threading
import time
from _thread import get_ident
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from pyfunc_debug.program.bell import Bell, pause
from pyfunc_debug.program.frames import Site, is_installed, is_user, line_text, own_caller
from pyfunc_debug.program.garbage import no_search
from pyfunc_debug.program.pools import inter_op_threads
from pyfunc_debug.program.role import multiprocessing_name
from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.program.waiting import Waiting, in_bodies, runnable, waiting

_SLOTS, _SLOT_BYTES = 32, 4096
_EMPTY, _STANDS, _WENT_ON = 0, 1, 2
_HEAD = 3
"""Bytes of a slot before its text: what it says, and the text's length."""
_BUSY_SHARE = 0.1
_FRAMES = 6
_POOL = os.path.join("multiprocessing", "pool.py")
_CHILD = (os.path.join("multiprocessing", "process.py"), "_bootstrap")
"""Below it on a stack is what the parent was in when it forked."""


class _Fork(NamedTuple):
    """What is known before a fork.

    Attributes:
      slot: Where the child writes.
      site: The user's line that forks.
      threads: How many threads TensorFlow's operations have to run on.
    """

    slot: int
    site: Site | None
    threads: int


class Forks:
    """Learns of forked children that stand still in TensorFlow.

    Args:
      after_s: How long a child must stand there.
      look_s: How often it is looked at.
    """

    def __init__(self, after_s: float, look_s: float = 1.0) -> None:
        self._after_s = after_s
        self._look_s = look_s
        self._numbers = itertools.count()
        self._shared: mmap.mmap | None = None
        self._told: set[tuple[int, int]] = set()
        self._coming: dict[int, _Fork] = {}
        self._replaced: dict[int, int] = {}

    def watch(self) -> None:
        """Children that are forked from now on are looked at."""
        if hasattr(os, "register_at_fork"):  # not on Windows
            self._shared = mmap.mmap(-1, _SLOTS * _SLOT_BYTES)
            _Hooks.set_to(self)

    def rest(self) -> None:
        """Those that are forked from now on are not; what others say can still be read."""
        _Hooks.leave(self)

    def news(self) -> Iterator[dict[str, Any]]:
        """What children said since the last time: facts of one that stands still, with `went_on` where it did later."""
        shared = self._shared
        for slot in range(_SLOTS if shared is not None else 0):
            start = slot * _SLOT_BYTES
            says = shared[start] if shared is not None else _EMPTY
            if shared is None or says == _EMPTY:
                continue
            length = int.from_bytes(shared[start + 1 : start + _HEAD], "big")
            facts = json.loads(shared[start + _HEAD : start + _HEAD + length])
            if (facts["process"], says) not in self._told:
                self._told.add((facts["process"], says))
                yield {**facts, "went_on": says == _WENT_ON}

    # -- at a fork ----------------------------------------------------------------------------------------------------

    def before(self) -> None:
        """In the parent, on the thread that forks."""
        self._note_replaced()
        threads = inter_op_threads() if "tensorflow" in sys.modules else 0
        if threads:
            self._coming[get_ident()] = _Fork(next(self._numbers) % _SLOTS, own_caller(), threads)

    def in_parent(self) -> None:
        """After it."""
        self._coming.pop(get_ident(), None)

    def in_child(self) -> None:
        """In the child: from now on a thread looks at the one that is there."""
        fork = self._coming.pop(get_ident(), None)
        if fork is not None:
            look = threading.Thread(target=self._look, args=(fork, get_ident()), name="pyfunc_debug fork", daemon=True)
            hide_from_debuggers(look)
            look.start()

    def replaced(self, pool: object) -> int:
        """How many processes of a `multiprocessing.Pool` died and were replaced by others."""
        return self._replaced.get(id(getattr(pool, "_pool", None)), 0)

    def _note_replaced(self) -> None:
        """Whether this fork puts a process in the place of one that a pool lost: none ends by itself there."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == "_maintain_pool" and frame.f_code.co_filename.endswith(_POOL):
                own = frame.f_locals
                if own.get("maxtasksperchild") is None:
                    self._replaced[id(own.get("pool"))] = self._replaced.get(id(own.get("pool")), 0) + 1
                return
            frame = frame.f_back

    # -- in the child -------------------------------------------------------------------------------------------------

    def _look(self, fork: _Fork, ident: int) -> None:
        ended, between = Bell(), pause(self._look_s)
        at: tuple[int, int] | None = None
        since_ns = looked_ns = time.monotonic_ns()
        used_ns, said = time.process_time_ns(), False
        while not ended.wait(between):
            state = waiting(ident)
            if state is None:
                return
            now, used = time.monotonic_ns(), time.process_time_ns()
            worked = used - used_ns > _BUSY_SHARE * (now - looked_ns) or _another_runs() or in_bodies(but=ident)
            if worked or state.at != at or not state.what.endswith(("TensorFlow", "what this line asked for")):
                if said:
                    self._write(fork, _WENT_ON, None)
                    return
                at, since_ns = state.at, now
            elif not said and now - since_ns > self._after_s * 1e9:
                self._write(fork, _STANDS, _facts(fork, ident, state, (now - since_ns) / 1e9))
                said = True
            looked_ns, used_ns = now, used

    def _write(self, fork: _Fork, says: int, facts: dict[str, Any] | None) -> None:
        shared, start = self._shared, fork.slot * _SLOT_BYTES
        if shared is None:
            return
        if facts is not None:
            text = json.dumps(facts).encode()
            while len(text) > _SLOT_BYTES - _HEAD and facts["frames"]:
                facts["frames"] = facts["frames"][1:]
                text = json.dumps(facts).encode()
            shared[start + 1 : start + _HEAD] = len(text).to_bytes(_HEAD - 1, "big")
            shared[start + _HEAD : start + _HEAD + len(text)] = text
        shared[start] = says


def _facts(fork: _Fork, ident: int, state: Waiting, age_s: float) -> dict[str, Any]:
    own = _own_frames(ident) or len(state.stack)
    stack = [one for one in state.stack[-own:] if not is_installed(one.file)] or state.stack[-own:]
    frames = [[one.file, one.line, one.function, one.text] for one in stack[-_FRAMES:]]
    site = fork.site
    return {
        "process": os.getpid(), "name": multiprocessing_name() or "", "age_s": round(age_s, 1), "frames": frames,
        "threads": fork.threads, "threads_here": inter_op_threads(),
        "forked": None if site is None else [*site, line_text(site[0], site[1])],
    }  # fmt: skip


@no_search()
def _own_frames(ident: int) -> int:
    """How many of the user's frames on a thread's stack are of what the child runs; 0 where that is not seen."""
    found, one = 0, sys._current_frames().get(ident)
    while one is not None:
        if one.f_code.co_filename.endswith(_CHILD[0]) and one.f_code.co_name == _CHILD[1]:
            return found
        found += is_user(one.f_code.co_filename)
        one = one.f_back
    return 0


def _another_runs() -> bool:
    """Whether another thread of this process is on a core, or waits for one."""
    own = threading.get_native_id()
    try:
        return any(runnable(int(one)) for one in os.listdir("/proc/self/task") if int(one) != own)
    except OSError:
        return False


class _Hooks:
    """What Python calls at each fork, once it was asked to: that cannot be taken back."""

    current: Forks | None = None
    registered = False

    @classmethod
    def set_to(cls, forks: Forks) -> None:
        cls.current = forks
        if not cls.registered:
            cls.registered = True
            os.register_at_fork(before=cls.before, after_in_parent=cls.in_parent, after_in_child=cls.in_child)

    @classmethod
    def leave(cls, forks: Forks) -> None:
        if cls.current is forks:
            cls.current = None

    @classmethod
    def before(cls) -> None:
        try:
            if cls.current is not None:
                cls.current.before()
        except Exception:  # nothing is said of that child; the program forks
            cls.current = None

    @classmethod
    def in_parent(cls) -> None:
        if cls.current is not None:
            cls.current.in_parent()

    @classmethod
    def in_child(cls) -> None:
        forks, cls.current = cls.current, None
        try:
            if forks is not None:
                forks.in_child()
        except Exception:  # no thread could be made
            return
