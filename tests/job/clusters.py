"""Local clusters: a program that forks all its processes, run once without us and once recorded.

It runs forked itself from a process that has imported TensorFlow and done nothing with it (tests/forked.py), so that no
process of the cluster pays for the import: gRPC begins in each of them only.
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests import forked

ROOT = Path(__file__).parents[2]
_START = '''
import json, multiprocessing, os, socket

claims = []

def addresses(count):
    """Of ports below those that the system gives away, and above Ray's: nobody is given one of them meanwhile. A job
    claims sixteen by a name, until its last process ends: one that looks at the same time takes others."""
    for block in range(os.getpid(), os.getpid() + 600):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\\0pyfunc_debug tests {block % 600}")
        except OSError:
            continue
        claims.append(claim)
        found = []
        for port in range(20_000 + block % 600 * 16, 20_016 + block % 600 * 16):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)):
                    found.append(f"127.0.0.1:{port}")
        if len(found) >= count:
            return found[:count]

def started(name, work, *arguments, cluster=None):
    """A process of the job, which ends with it; with a cluster it is told its task by TF_CONFIG, as launchers do."""
    os.environ.pop("TF_CONFIG", None)
    if cluster:
        kind, _, index = name.partition("-")
        task = {"cluster": cluster, "task": {"type": kind, "index": int(index)}}
        os.environ["TF_CONFIG"] = json.dumps(task)
    process = multiprocessing.get_context("fork").Process(target=work, args=arguments, name=name, daemon=True)
    process.start()
    return process
'''


@dataclass(frozen=True)
class Ran:
    """What the program printed without us and recorded, each line once in order; and its recordings."""

    plain: list[str]
    recorded: list[str]
    errors: str
    folder: Path


def run(folder: Path, program: str) -> Ran:
    """Runs it twice: as `python train.py`, and by `pyfunc-debug record --processes`."""
    (folder / "train.py").write_text(_START + textwrap.dedent(program))
    unwanted = ("TF_CONFIG", "PYFUNC_DEBUG")
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    environment |= {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    plain = forked.run("train.py", cwd=folder, env=environment)
    assert plain.returncode == 0, plain.stderr[-3000:]
    done = forked.run(
        "-m", "pyfunc_debug", "record", "--processes", "-o", "run", "train.py", cwd=folder, env=environment
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    without, recorded = (sorted(one.stdout.splitlines()) for one in (plain, done))
    return Ran(without, recorded, done.stderr, folder / "run")
