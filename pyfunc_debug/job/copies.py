"""Copies of a recording in a store that fsspec knows (gs://, s3://, file://), made by a process of their own.

A recording is written on this machine whatever the store does. Every few minutes, and when it is complete, a process
is started that copies it: the recorded program waits for the last copy only, for a minute at most. What goes wrong
costs the copy: it is said once, and the recording stays where it is.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from pyfunc_debug.errors import NotInstalledError
from pyfunc_debug.pfrec.database import connect

MINUTES = "PYFUNC_DEBUG_COPY_MINUTES"
"""How often a growing recording is copied; 5 if it is not set, 0: only when it is complete."""
TO = "PYFUNC_DEBUG_COPY_TO"
"""Where the recordings of a job are copied to, for processes that are given a local folder."""
_PATIENCE_S = 60.0
_AT_ONCE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"}
"""Stores in which a file is there when all of it is; in others, which may be full, half of it would take its place."""


def is_url(place: str) -> bool:
    """Whether a place is in a store, as `gs://bucket/run`."""
    return "://" in place


def local_folder(url: str) -> str:
    """Where recordings for a store are written, when nobody named a folder: the same for each process."""
    return os.path.join(tempfile.gettempdir(), f"pyfunc_debug-{re.sub(r'[^A-Za-z0-9.-]+', '_', url).strip('_')}")


class Copies:
    """Copies one recording until `finish`.

    Args:
      url: A folder in a store; or the name of the copy, if it ends in .pfrec.

    Raises:
      NotInstalledError: fsspec is not installed.
    """

    def __init__(self, url: str) -> None:
        if importlib.util.find_spec("fsspec") is None:
            raise NotInstalledError(f"{url} needs fsspec: pip install 'pyfunc-debug[store]'")
        self._url = url
        self._path = ""
        self._process = os.getpid()
        self._end = threading.Event()
        self._turn = threading.Lock()  # an older copy must not come last
        self._said: set[str] = set()

    def start(self, path: str) -> None:
        """Begins to copy this recording now and then."""
        self._path = path
        every_s = 60.0 * _minutes()
        if every_s:
            from pyfunc_debug.program.threads import daemon_thread

            daemon_thread(lambda: self._now_and_then(every_s), "pyfunc_debug copies").start()

    def finish(self) -> None:
        """Copies the complete recording, once."""
        if os.getpid() == self._process and self._path and not self._end.is_set():
            self._end.set()
            self._copy(_PATIENCE_S)

    def _now_and_then(self, every_s: float) -> None:
        while not self._end.wait(every_s):
            self._copy(max(every_s, _PATIENCE_S))

    def _copy(self, patience_s: float) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYFUNC_DEBUG")}
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "pyfunc_debug.job.copies", self._path, self._url]
        why = f"it took longer than {patience_s:.0f} s"
        if self._turn.acquire(timeout=patience_s):
            try:
                done = subprocess.run(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE, timeout=patience_s, check=False,
                )  # fmt: skip
                said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason was given"]
                why = said[-1] if done.returncode else ""
            except subprocess.TimeoutExpired:
                pass
            except OSError as error:
                why = str(error)
            finally:
                self._turn.release()
        if why and why not in self._said:
            self._said.add(why)
            print(f"pyfunc-debug: {self._path} was not copied to {self._url}: {why}", file=sys.stderr, flush=True)


def copy(path: str, url: str) -> None:
    """Copies a recording as it is now, also while it is written.

    Args:
      path: The recording.
      url: As in `Copies`.
    """
    import fsspec

    target = url if url.endswith(".pfrec") else f"{url.rstrip('/')}/{os.path.basename(path)}"
    system, place = fsspec.core.url_to_fs(target)
    with tempfile.TemporaryDirectory(prefix="pyfunc_debug-") as folder:
        whole = os.path.join(folder, "copy.pfrec")
        uri = f"file:{urllib.parse.quote(os.fsencode(path))}?mode=ro"
        with (
            contextlib.closing(connect(uri, uri=True)) as here,
            contextlib.closing(connect(whole)) as to,
        ):
            here.backup(to)  # what was committed at one moment; the writer goes on meanwhile
            to.execute("PRAGMA journal_mode = DELETE")
        system.makedirs(place.rpartition("/")[0], exist_ok=True)
        known = {system.protocol} if isinstance(system.protocol, str) else {*system.protocol}
        if known & _AT_ONCE:
            system.put_file(whole, place)
            return
        part = f"{place}.part"
        try:
            system.put_file(whole, part)
            system.mv(part, place)
        except BaseException:
            with contextlib.suppress(Exception):
                system.rm_file(part)
            raise


def _minutes() -> float:
    try:
        return max(0.0, float(os.environ.get(MINUTES, "5")))
    except ValueError:
        return 5.0


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # the recorded program goes first
    try:
        copy(*sys.argv[1:3])
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
