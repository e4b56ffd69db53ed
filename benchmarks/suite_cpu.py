"""What the tests cost in CPU, by file and by test: of pytest's process and of all that it starts.

    python -m benchmarks.suite_cpu tests/job tests/stops/test_hooks.py     # arguments are pytest's
    python -m benchmarks.suite_cpu --tests 3 tests/job                      # and the three dearest tests of each file

CPU seconds depend on what else runs on the machine by its caches only. All files run in one process, which imports
TensorFlow once, as does the process that programs are forked from: the first file that needs one of them pays for it.
Processes whose parent has ended are counted as well: they become children of the process that measures.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
ROOT, TOLD = "PFD_SUITE_CPU_ROOT", "PFD_SUITE_CPU_TOLD"


def tree_s(root: int) -> float:
    """CPU of a process, of what it started and is still there, and of what has ended under any of them."""
    parents, used = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                parents[int(entry)] = int(fields[1])
                used[int(entry)] = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    children = defaultdict(list)
    for pid, parent in parents.items():
        children[parent].append(pid)
    todo, total = [root], 0
    while todo:
        pid = todo.pop()
        total += used.get(pid, 0)
        todo += children[pid]
    return total * TICK_S


class _Told:
    """The plugin in the measured pytest: after each test a line with what was used until then."""

    def __init__(self) -> None:
        self._root = int(os.environ[ROOT])
        self._file = open(os.environ[TOLD], "a", buffering=1)  # noqa: SIM115 - until the process ends
        self._tell("")

    def _tell(self, name: str) -> None:
        own = os.times()
        self._file.write(json.dumps([name, tree_s(self._root), own.user + own.system]) + "\n")

    def pytest_collection_finish(self) -> None:
        self._tell("(collected)")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._tell(nodeid)


def measured(arguments: list[str]) -> int:
    """Pytest itself, in a process of its own."""
    import pytest

    return pytest.main(["-q", "-n", "0", *arguments], [_Told()])


def main() -> int:
    """Runs pytest and prints the table; pytest's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tests", type=int, default=0, help="this many of the dearest tests of each file as well")
    options, arguments = parser.parse_known_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    run = "import sys; from benchmarks.suite_cpu import measured; sys.exit(measured(sys.argv[1:]))"
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as told:
        process = subprocess.Popen(
            [sys.executable, "-c", run, *arguments], env={**os.environ, ROOT: str(os.getpid()), TOLD: told.name}
        )
        code = 1
        while True:  # also those whose parent has ended
            try:
                pid, status = os.wait()
            except ChildProcessError:
                break
            if pid == process.pid:
                code = process.returncode = os.waitstatus_to_exitcode(status)
        lines = [json.loads(line) for line in told]
    _print(lines, options.tests)
    return code


def _print(lines: list[tuple[str, float, float]], most: int) -> None:
    files = defaultdict(list)
    for before, (name, total, own) in itertools.pairwise(lines):
        file, _, test = name.partition("::")
        files[file].append((total - before[1], own - before[2], test))
    print(f"{'CPU, s':>8}{'in it':>8}{'tests':>7}  file")
    for file, its in sorted(files.items(), key=lambda one: -sum(test[0] for test in one[1])):
        print(f"{sum(one[0] for one in its):8.1f}{sum(one[1] for one in its):8.1f}{len(its):7}  {file}")
        for total, own, name in sorted(its, reverse=True)[:most]:
            print(f"{total:8.2f}{own:8.2f}{'':7}      {name}")
    ended = os.times()
    print(f"{ended.children_user + ended.children_system:8.1f} in all")


if __name__ == "__main__":
    sys.exit(main())
