"""The ring beside a recording: calls in progress and the newest finished ones, in memory that outlives the process.

The writer thread stores a call some moments after it ended. What was not stored yet when a process is killed, or dies
in C code, stands here: `FILE-ring`, mapped into memory and shared with the kernel, which keeps it whatever becomes of
the process. The hot path writes a few dozen bytes a call (recorder/_hot.c has the same layout); nodes, graph traces and
threads are lines of JSON after the slots, once each. All of it without a system call, which would let go of the GIL. A
recording that ends well leaves none; `recovery.py` reads one that is left. It is made when the recording has its name,
and after the recording says where it will be: so none is ever left that nobody finds.

Its blocks are reserved when it is made, so that a disk that fills up cannot fail a write into the mapping (SIGBUS).
File systems where that does not help (they copy on write, or lie across a network) and small disks have it in /dev/shm.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import secrets
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SUFFIX = "-ring"
_MEMORY, _PREFIX = "/dev/shm", "pyfunc_debug-"
_MAGIC = b"PFDRING2"
_HEADER = struct.Struct("<8sIIqqqqII")
"""Magic, slots of calls in progress and of finished ones, last sign of life, calls begun, end of the text, when SIGTERM
or SIGHUP came (0: they did not), slots of what finished calls were given, the number of that signal (0: SIGTERM)."""
_SIGN = 16
_BEGUN = 24
_TEXT = 32
_TEXT_BYTES = 1 << 20
"""Room for the lines about nodes, graph traces and threads; the file knows what does not fit, a moment later."""
_HEADER_BYTES = 4096
_DISK = 8
"""A disk must have this many times the ring's size left: it must not take the recording's room."""
_LAST_SIGN_NS = 1_000_000_000
"""A process that leaves a sign of life so long after a signal was not ended by it."""
_OPEN = struct.Struct("<qqii64s")  # call (0: free), start_ns, thread, inputs (-1: not looked at), token
_BRIEF = struct.Struct("<cB6x4qddqq")  # element kind, rank, sizes, min, max, elements, NaN
_OPEN_BYTES = 512
_OPEN_SLOTS = 1024
_MOST_INPUTS = 5
_WORD = 8
_DONE = struct.Struct("<qqqqii24s")  # call (0: none), start_ns, end_ns, cpu_ns, thread, whether it failed, token
_GIVEN = struct.Struct("<qq")  # call (0: none), inputs, which follow as in an open call
_GIVEN_BYTES = 376
_SURE = {"ext2", "ext3", "ext4", "xfs", "tmpfs", "overlay"}
"""File systems whose reserved blocks are written in place."""
_KINDS = {
    "?": "bool", "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32", "l": "int64",
    "L": "uint64", "q": "int64", "Q": "uint64", "e": "float16", "f": "float32", "d": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class Brief:
    """What the ring says of an input of a call in progress.

    Attributes:
      dtype, shape: Of its elements; "?" where it was not looked at; no shape above four dimensions.
      min, max: Over finite elements; None where there are none.
      elements, nan: How many; `nan` is None where they were not counted.
    """

    dtype: str
    shape: tuple[int, ...] | None
    min: float | None
    max: float | None
    elements: int
    nan: int | None


@dataclass(frozen=True)
class RingCall:
    """A call in the ring. `end_ns` is None for one in progress; `inputs`: what it was given, if that is known."""

    call: int
    token: str
    thread: int
    start_ns: int
    end_ns: int | None
    cpu_ns: int
    failed: bool
    inputs: tuple[Brief, ...] | None = None


class Ring:
    """The ring of a recording that is being made.

    Args:
      path: The recording.
      calls: How many finished calls it holds.
      given: Of how many of them it holds the inputs.
      announce: Called with its path before it is made.

    Raises:
      OSError: there is no room for it.
      ValueError: this system has none.

    Attributes:
      path: Of the ring.
      memory: For the hot path.
      locked: Whether others can see by a lock on it that this process lives: the system ends the lock with the process.
    """

    def __init__(
        self, path: str, calls: int, given: int = 0, announce: Callable[[str], None] = lambda place: None
    ) -> None:
        if not sys.platform.startswith("linux"):
            raise ValueError("only on Linux")
        self._text = _HEADER_BYTES + _OPEN_SLOTS * _OPEN_BYTES + calls * _DONE.size + given * _GIVEN_BYTES
        self._end = self._text + _TEXT_BYTES
        self.path = _place(path, self._end)
        announce(self.path)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, self._end)
            self.memory = mmap.mmap(file, self._end)
            # Linux would make all of it present at the first touch: 2 ms of CPU as a recording begins.
            self.memory.madvise(mmap.MADV_RANDOM)
            self._file = os.fstat(file).st_ino
        except BaseException:
            os.unlink(self.path)
            raise
        finally:
            os.close(file)
        self._lock_file = _hold(self.path)
        self.locked = self._lock_file >= 0
        _HEADER.pack_into(self.memory, 0, _MAGIC, _OPEN_SLOTS, calls, time.monotonic_ns(), 0, 0, 0, given, 0)
        self._lock = threading.Lock()  # for copying one line
        self._calls = calls
        self._turns = itertools.count()
        self._free = list(range(_OPEN_SLOTS))
        self._slots: dict[int, int] = {}
        self._shared: dict[Any, int] = {}
        self._facts = itertools.count()

    def share(self, fact: Any) -> int | None:
        """The number of a fact (JSON) that many nodes have; its line is appended where it is new."""
        if not fact:
            return None
        number = self._shared.get(fact)
        if number is None:
            number = self._shared[fact] = next(self._facts)  # two threads may write one twice
            self.describe(shared=number, fact=fact)
        return number

    def describe(self, **facts: Any) -> None:
        """Appends what is known of a node, a graph trace or a thread."""
        line = json.dumps(facts).encode() + b"\n"
        with self._lock, contextlib.suppress(ValueError):  # it was closed
            begin, end = self._text, self._text + len(line)
            if end <= self._end:
                self.memory[begin:end] = line
                struct.pack_into("<q", self.memory, _TEXT, end)
                self._text = end

    def follow(self, path: str) -> None:
        """The recording was moved: goes there with it, if it stands beside it."""
        if not self.path.startswith(_MEMORY + os.sep + _PREFIX):
            with contextlib.suppress(OSError):  # another file system: then who looks for it does not find it
                if self._is_there():  # else it went with its folder
                    os.rename(self.path, path + SUFFIX)
            self.path = path + SUFFIX

    def beat(self) -> None:
        """Leaves a sign of life."""
        struct.pack_into("<q", self.memory, _SIGN, time.monotonic_ns())

    # -- what _hot.c does where it was built; there it also keeps what calls were given, and leaves signs of life -----

    def begin(self, ticket: Any) -> None:
        """A call's body is about to run."""
        if self._free:
            slot = self._slots[ticket.call] = self._free.pop()
            token = ticket.token.encode()[:64]
            _OPEN.pack_into(self.memory, _at_open(slot), ticket.call, ticket.start_ns, ticket.thread, -1, token)
        struct.pack_into("<q", self.memory, _BEGUN, ticket.call)  # last: a call that is counted is not missing

    def end(self, ticket: Any) -> None:
        """A call has ended."""
        if not ticket.light:  # one that sampling left out is only counted, and drives no other out
            at = _HEADER_BYTES + _OPEN_SLOTS * _OPEN_BYTES + next(self._turns) % self._calls * _DONE.size
            _DONE.pack_into(
                self.memory, at, ticket.call, ticket.start_ns, ticket.end_ns, ticket.cpu_ns, ticket.thread,
                ticket.failure is not None, ticket.token.encode()[:24],
            )  # fmt: skip
        slot = self._slots.pop(ticket.call, None)
        if slot is not None:
            struct.pack_into("<q", self.memory, _at_open(slot), 0)
            self._free.append(slot)

    def close(self, keep: bool = False) -> None:
        """Ends it; the hot path must have let go of `memory`. With `keep` the file stays: of a forked child."""
        with contextlib.suppress(BufferError):  # a thread is just in it: the mapping goes with the process
            self.memory.close()
        _let_go(self._lock_file)
        if not keep:
            with contextlib.suppress(OSError):
                if self._is_there():
                    os.unlink(self.path)

    def _is_there(self) -> bool:
        """Whether it has its name still: that may be another recording's by now."""
        return os.stat(self.path).st_ino == self._file


class RingReader:
    """A ring that a process left, or that one is writing.

    Args:
      path: Of the ring.

    Raises:
      OSError: it cannot be read.
      ValueError: it is not a ring, or a damaged one.

    Attributes:
      sign_ns: The last sign of life.
      begun: How many calls began.
      signal: The name of the signal that ended the process, SIGTERM or SIGHUP: _hot.c notes no other. Else None.
      nodes, threads: Facts by token, names by native id.
      traces: Facts of graph traces by number.
      tracing: Numbers, in `shared`, of the functions whose graph traces had begun and not ended, by number.
      shared: What nodes and traces refer to by number: functions and stacks.
    """

    def __init__(self, path: str) -> None:
        with os.fdopen(_opened(path), "rb") as file:
            self._data = file.read()
        if len(self._data) < _HEADER_BYTES:
            raise ValueError("too short for a ring")
        magic, slots, calls, self.sign_ns, self.begun, text_end, signal_ns, given, number = _HEADER.unpack_from(
            self._data
        )
        # Who is the first process of a container does not end by it.
        ended = signal_ns > 0 and self.sign_ns - signal_ns < _LAST_SIGN_NS
        self.signal = signal.Signals(number or signal.SIGTERM).name if ended else None
        self._open_end = _HEADER_BYTES + slots * _OPEN_BYTES
        self._done_end = self._open_end + calls * _DONE.size
        self._end = self._done_end + given * _GIVEN_BYTES
        if magic != _MAGIC or len(self._data) < self._end:
            raise ValueError("not a ring")
        opened = self._numbers(_HEADER_BYTES, self._open_end, _OPEN_BYTES)  # its process may have ended just before
        self.begun = max(self.begun, *opened)  # counting
        self.nodes: dict[str, dict[str, Any]] = {}
        self.threads: dict[int, str] = {}
        self.traces: dict[int, dict[str, Any]] = {}
        self.tracing: dict[int, Any] = {}
        self.shared: dict[Any, Any] = {}
        for line in self._data[self._end : text_end].splitlines():
            try:
                facts = json.loads(line)
                if "thread" in facts:
                    self.threads[int(facts["thread"])] = str(facts["name"])
                elif "shared" in facts:
                    self.shared[facts["shared"]] = facts["fact"]
                elif "tracing" in facts:
                    self.tracing[int(facts["tracing"])] = facts["function"]
                elif "trace" in facts:
                    self.traces[int(facts["trace"])] = facts
                    self.tracing.pop(int(facts["trace"]), None)
                else:
                    self.nodes[str(facts["token"])] = facts
            except (ValueError, KeyError, TypeError):  # the last line may be half
                continue

    def numbers(self) -> list[int]:
        """Those of all calls in it."""
        ended = self._numbers(self._open_end, self._done_end, _DONE.size)
        return [call for call in ended + self._numbers(_HEADER_BYTES, self._open_end, _OPEN_BYTES) if call > 0]

    def _numbers(self, start: int, end: int, size: int) -> list[int]:
        """The first word of each slot: its call, or 0."""
        return memoryview(self._data)[start:end].cast("q")[:: size // _WORD].tolist()

    def calls(self, known: Collection[int] = ()) -> Iterator[RingCall]:
        """Finished calls, then those in progress.

        A program may have died after a call's end was noted and before its beginning was taken out: it has ended.

        Args:
          known: Numbers of calls to leave out.
        """
        given = dict(zip(self._numbers(self._done_end, self._end, _GIVEN_BYTES), itertools.count()))
        done = self._numbers(self._open_end, self._done_end, _DONE.size)
        ended = set(done)
        wanted = ended.difference(known)  # few, of ten thousand
        for slot, call in enumerate(done) if any(wanted) else ():
            if call > 0 and call in wanted:
                _, start, end, cpu, thread, failed, token = _DONE.unpack_from(
                    self._data, self._open_end + slot * _DONE.size
                )
                at, inputs = 0, -1
                if call in given:
                    at = self._done_end + given[call] * _GIVEN_BYTES
                    _, inputs = _GIVEN.unpack_from(self._data, at)
                briefs = self._briefs(at + _GIVEN.size, inputs)
                yield RingCall(call, _text(token), thread, start, end, cpu, bool(failed), briefs)
        for slot, call in enumerate(self._numbers(_HEADER_BYTES, self._open_end, _OPEN_BYTES)):
            if call > 0 and call not in ended and call not in known:
                at = _at_open(slot)
                _, start, thread, inputs, token = _OPEN.unpack_from(self._data, at)
                yield RingCall(
                    call, _text(token), thread, start, None, -1, False, self._briefs(at + _OPEN.size, inputs)
                )

    def _briefs(self, at: int, count: int) -> tuple[Brief, ...] | None:
        if not 0 <= count <= _MOST_INPUTS:
            return None
        found = []
        for number in range(count):
            kind, rank, *rest = _BRIEF.unpack_from(self._data, at + number * _BRIEF.size)
            shape, (low, high, elements, nan) = rest[:4], rest[4:]
            finite = low <= high
            found.append(
                Brief(
                    _KINDS.get(kind.decode("ascii", "replace"), "?"), tuple(shape[:rank]) if rank <= 4 else None,
                    low if finite else None, high if finite else None, elements,
                    nan if nan >= 0 else None,
                )
            )  # fmt: skip
        return tuple(found)


def _at_open(slot: int) -> int:
    return _HEADER_BYTES + slot * _OPEN_BYTES


def _text(token: bytes) -> str:
    return token.rstrip(b"\0").decode("utf-8", "replace")


def place_of(path: str, meta: Mapping[str, Any]) -> str:
    """Where the ring of a recording stands that is there already.

    Args:
      path: The recording, which may have been moved, and its ring with it.
      meta: Its table `meta`. Whoever made the file may have written anything there.
    """
    folder, name = os.path.split(str(meta.get("ring")))
    if folder == _MEMORY and name.startswith(_PREFIX) and name.endswith(SUFFIX):
        return os.path.join(folder, name)
    return path + SUFFIX


def is_ring(path: str, *, begun: bool = True) -> bool:
    """Whether a file is a ring, or with `begun=False` whether it was to become one."""
    try:
        with os.fdopen(_opened(path), "rb") as file:
            head = file.read(len(_MAGIC))
    except OSError:
        return False
    return head == _MAGIC if begun else not any(head)


def _opened(path: str) -> int:
    """A descriptor to read a file with; OSError for all else, as to open a pipe would wait for whoever fills it."""
    if not os.path.isfile(path):
        raise OSError(f"{path} is not a file")
    return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))


def is_held(path: str) -> bool:
    """Whether a process, in whatever container, holds the lock on a ring; True where that cannot be known."""
    try:
        file = _opened(path)
    except OSError:
        return True
    try:
        return not _lock(file, shared=True)  # several may look at once
    finally:
        os.close(file)


_held: set[int] = set()
"""Descriptors of this process's locks."""


def _hold(path: str) -> int:
    """Locks a ring for as long as this process lives; returns a descriptor, or -1.

    The file is opened for that alone: who maps it shares its lock, and a forked child keeps what is mapped.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    _held.add(file)
    if _lock(file):
        return file
    _let_go(file)
    return -1


def _let_go(file: int) -> None:
    if file in _held:
        _held.discard(file)
        os.close(file)


def _let_go_in_child() -> None:
    """The lock is its parent's, and must end with that."""
    for file in list(_held):
        _let_go(file)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_let_go_in_child)


def _lock(file: int, *, shared: bool = False) -> bool:
    try:
        import fcntl  # not on Windows

        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _place(path: str, size: int) -> str:
    """Where the ring of a new recording goes."""
    folder = os.path.dirname(path)
    disk = os.statvfs(folder)
    if _file_system(folder) in _SURE and disk.f_bavail * disk.f_frsize >= _DISK * size:
        return path + SUFFIX
    return os.path.join(_MEMORY, f"{_PREFIX}{secrets.token_hex(8)}{SUFFIX}")


def _file_system(folder: str) -> str:
    """Type of the file system that holds a folder, as /proc says; empty if it does not."""
    found, longest = "", -1
    with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            _, mounted, kind, *_ = line.split(" ")
            mounted = mounted.replace("\\040", " ")
            inside = folder == mounted or folder.startswith(mounted.rstrip("/") + "/")
            if inside and len(mounted) >= longest:
                found, longest = kind, len(mounted)
    return found
