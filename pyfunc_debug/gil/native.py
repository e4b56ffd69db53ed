"""The native grade: the C extension `_native`, switched on, tested and switched off.

It patches the slots through which TensorFlow's PyFuncOp takes the GIL and the interpreter waits for it, so waits and
holders are measured and not inferred. Linux on x86-64 or aarch64 only; elsewhere it says why it is absent.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import sysconfig
import threading
import time
from types import ModuleType
from typing import cast

import numpy as np

from pyfunc_debug.gil.blame import Holds
from pyfunc_debug.gil.samples import HELD, WAITED, Samples
from pyfunc_debug.program.threads import made_by_cpp

# tensorflow/python/lib/core/py_func.cc: PyFuncOp::Compute(OpKernelContext*).
COMPUTE = "_ZN10tensorflow8PyFuncOp7ComputeEPNS_15OpKernelContextE"
RECORDS = 1 << 17
"""Rows that fit between two drains: 9 MB, touched as they fill; about 40,000 contended calls."""

_HOLD_US = 2000
_WAKE_US = 20_000
"""How long the self-test's thread may take to wake up."""
_TRIES = 10


class AbsentError(Exception):
    """A grade is not available here; the message says why, in words for the user."""


def load() -> ModuleType:
    """The C extension.

    Raises:
      AbsentError: It does not exist for this system, was not built, or cannot be loaded.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        # Loading an extension that does not declare itself would switch the GIL on: it would change the program.
        raise AbsentError("this is a free-threaded build of Python")
    if sys.implementation.name != "cpython":
        raise AbsentError(f"it knows CPython, this is {sys.implementation.name}")
    if sys.platform != "linux":
        raise AbsentError(f"it exists for Linux, this is {sys.platform}")
    if not (3, 10) <= sys.version_info[:2] <= (3, 13):
        raise AbsentError(f"it was proven on Python 3.10 to 3.13, this is {sys.version_info[0]}.{sys.version_info[1]}")
    try:
        from pyfunc_debug.gil import _native  # type: ignore[attr-defined,unused-ignore] # built only where it can be
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) or "cannot import name" in str(error):
            raise AbsentError("the C extension was not built (no C compiler when pyfunc_debug was installed)") from None
        raise AbsentError(f"the C extension cannot be loaded: {error}") from None
    return cast(ModuleType, _native)


class NativeProbe:
    """Waits, holders and releases of the GIL, from hooks in the interpreter and in TensorFlow.

    One at a time in a process. Rows of a stopped probe can still be drained.
    """

    grade = "native"

    def __init__(self, *, tensorflow: bool = True, records: int = RECORDS) -> None:
        self._native = load()
        self._symbol = COMPUTE if tensorflow else None
        self._records = records
        self._rest: Samples | None = None
        self._pid = 0
        self.on = False
        self.tested = ""
        """What the self-test saw, in words."""

    def start(self) -> None:
        """Patches the slots and tests the result.

        Raises:
          AbsentError: A slot was not found, or the self-test failed. Nothing is patched then.
        """
        if self.on:
            return
        try:
            self._native.install(self._symbol, self._records)
        except OSError as error:
            raise AbsentError(str(error)) from None
        self.on = True
        self._pid = os.getpid()
        _running.append(self)
        try:
            self.tested = self._self_test()
        except BaseException:
            self.stop()
            self._rest = None
            raise
        self._native.drain()  # the self-test's own rows

    def stop(self) -> None:
        """Puts every slot back. A thread inside a hook leaves it safely: the library stays in memory."""
        if not self.on:
            return
        self._rest = self.drain()
        self.remove()

    def remove(self) -> None:
        """Puts every slot back without reading what was measured."""
        self.on = False
        if self in _running:
            _running.remove(self)
        foreign = self._native.remove()
        if foreign:
            self.tested += f"; {foreign} slots were patched by another tool meanwhile and left to it"

    def drain(self) -> Samples:
        """What was measured since the last drain. Copies without the GIL."""
        if not self.on:
            rest, self._rest = self._rest, None
            return rest or Samples("native", time.monotonic_ns())
        names = {t.ident: t.name for t in threading.enumerate() if t.ident and not made_by_cpp(t)}
        data, lost, until_ns = self._native.drain()
        rows = np.frombuffer(data, np.int64).reshape(-1, 9)  # addresses of threads fit into 63 bits
        return Samples("native", until_ns, native=rows, names=names, lost=lost)

    def _self_test(self) -> str:
        """Holds the GIL for 2 ms while another thread wants it, and looks whether that is what was measured.

        The program's own threads may want and hold the GIL meanwhile: what must be seen is our hold and, as long as it
        lasted, the other thread's wait. How late the machine wakes that thread afterwards does not matter.
        """
        seen = "no wait at all"
        for _ in range(_TRIES):
            holder, waiter, start, end = _contend()
            rows = np.asarray(self.drain().native).tolist()
            holds = Holds()
            for row in rows:
                if row[0] == HELD:
                    holds.add(row[1], row[3], row[4])
            mine = holds.during(start, end).get(holder, 0)
            waits = [r[3:5] for r in rows if r[0] == WAITED and r[1] == waiter]
            waited = sum(to - since for since, to in waits)
            if not waited:  # a busy machine woke the other thread after the hold
                continue
            explained = sum(sum(holds.during(since, to).values()) for since, to in waits)
            seen = f"a wait of {waited / 1e6:.2f} ms, {explained / waited:.0%} of it explained by holders"
            meanwhile = sum(max(0, min(to, end) - max(since, start)) for since, to in waits)
            if min(mine, meanwhile) >= 0.8 * (end - start):
                return f"self-test: {seen}"
        raise AbsentError(f"its self-test failed: while one thread held the GIL for 2 ms, another had {seen}")


def _contend() -> tuple[int, int, int, int]:
    """Makes a thread wait 2 ms for the GIL. Returns the idents of holder and waiter, and when both did so."""
    waiting = load().waiting
    usleep = ctypes.PyDLL(None).usleep  # keeps the GIL
    gate = threading.Lock()
    gate.acquire()
    idents: list[int] = []

    def want() -> None:
        idents.append(threading.get_ident())
        gate.acquire()

    thread = threading.Thread(target=want, name="pyfunc_debug self-test", daemon=True)
    thread.start()
    while not idents:
        time.sleep(0.0001)
    gate.release()
    for _ in range(_WAKE_US // 100):
        if waiting()[0]:
            break
        usleep(100)
    start = time.monotonic_ns()
    usleep(_HOLD_US)
    end = time.monotonic_ns()
    thread.join()
    return threading.get_ident(), idents[0], start, end


_running: list[NativeProbe] = []


def _remove_all() -> None:
    """Slots must not stay patched while the interpreter is torn down, nor in a forked child: the recording is ours."""
    for probe in _running.copy():
        probe.remove()


atexit.register(_remove_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remove_all)
