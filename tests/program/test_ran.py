"""How long a thread was on a core or waited for one, as Linux says."""

from __future__ import annotations

import builtins
import io
import threading
import time

from pyfunc_debug.program import waiting

TID = 4711
STAT = f"{TID} (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 100"


def test_it_is_at_least_the_cpu_time_of_the_thread():
    assert waiting.ran_ns(threading.get_native_id()) >= time.thread_time_ns() - waiting._TICK_NS
    assert waiting.ran_ns(2**22 - 1) is None, "no such thread"


def test_what_it_waited_for_a_core_counts_and_without_schedstat_its_cpu_time(monkeypatch):
    files = {"schedstat": "2000000000 700000000 12\n", "stat": STAT}

    def opened(path, *args, **options):
        name = path.rpartition("/")[2]
        if name not in files:
            raise FileNotFoundError(path)
        return io.StringIO(files[name])

    monkeypatch.setattr(builtins, "open", opened)
    both = waiting.ran_ns(TID)
    del files["schedstat"]
    cpu = waiting.ran_ns(TID)
    monkeypatch.undo()
    assert (both, cpu) == (2_700_000_000, 200 * waiting._TICK_NS)
