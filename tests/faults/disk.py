"""A recording on a disk that fills up and gets room again: a tmpfs of 2 MB, or a limit on the size of files.

    python -m tests.faults.disk FOLDER [--limit]

Prints what became of it as JSON. FOLDER is where the tmpfs is mounted already; with --limit it is any folder.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path

import numpy as np

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.recorder import Budget, Recorder
from pyfunc_debug.values import Policies
from tests.limits import HANG_S
from tests.recorder.test_recorder import call, node


class Small(Budget):
    """A short queue, so that calls are lost while nothing can be written, and no large ring."""

    queue_calls = 100
    ring_calls = 1024


def main(folder: Path, limited: bool) -> dict[str, object]:
    """Fills the disk, loses calls, makes room, records on, and fills it once more until the end."""
    ballast = folder / "ballast"

    def full(yes: bool) -> None:
        if limited:
            size = max(one.stat().st_size for one in folder.glob("disk.pfrec*") if not one.name.endswith("-ring"))
            soft = size + 300_000 if yes else resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))
        elif yes:
            disk = os.statvfs(folder)
            ballast.write_bytes(bytes(disk.f_bavail * disk.f_frsize - 300_000))
        else:
            ballast.unlink()

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    said: list[str] = []
    waits = threading.Event()
    recorder = Recorder(str(folder / "disk.pfrec"), Policies("full"), Small(64_000_000), {"pid": 1})

    def hear(text: str) -> None:
        said.append(text)
        waits.set()

    recorder._worker.say = hear
    recorder.node_made(node("graph"))
    begun = 0

    def calls(count: int) -> None:
        nonlocal begun
        for _ in range(count):
            begun += 1
            call(recorder, "graph", np.full(10, begun), result=np.full(10, -begun))

    calls(50)
    assert recorder.flush(HANG_S)
    full(True)
    while not waits.is_set():
        calls(20)
        recorder.flush(HANG_S)
    calls(300)  # more than may wait
    full(False)
    while not recorder.flush(HANG_S):  # it ends when the writer has tried again
        pass
    calls(100)
    assert recorder.flush(HANG_S)
    full(True)
    while recorder.flush(HANG_S):
        calls(20)
    calls(300)
    result = recorder.close({})
    full(False)
    recording = Recording(recorder.path)
    dropped = recording.meta["dropped"]
    stored = recording.reader.counts()["call"]
    ids = [row["id"] for row in recording.sql("SELECT id FROM call ORDER BY id")]
    return {
        "begun": begun, "stored": stored, "dropped": dropped, "said": said, "stopped": result["stopped"],
        "state": recording.meta["state"], "troubles": result["troubles"], "footer": str(recording.ledger()),
        "files": sorted(os.listdir(folder)), "resumed": any(ids[i + 1] > ids[i] + 1 for i in range(len(ids) - 1)),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), "--limit" in sys.argv)))
