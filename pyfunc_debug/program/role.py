"""What a process is in its job: `worker-1`, `rank-3`, `Trainer`, `Process-2`, or the program's name."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import NamedTuple

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID", "JOB_COMPLETION_INDEX")
"""What launchers of many processes set: torchrun, Slurm, Open MPI, MPICH, scripts for JAX, indexed Kubernetes Jobs."""
_TAKEN = "PYFUNC_DEBUG_ROLE"
"""The role that a launcher gave a process above this one, and that process's number: the variables are inherited."""


class Role(NamedTuple):
    """A process's part in a job.

    Attributes:
      name: In few words, as it can stand in a file's name.
      rank: Its number among those of its kind; None where nobody gave it one.
    """

    name: str
    rank: int | None


def role() -> Role:
    """The role of this process: from TF_CONFIG, a launcher's rank, Ray, multiprocessing, or its program; in this order.

    A process that inherited the first two from one that has taken its role from them has its own name behind that.
    What a cluster resolver says is known only later (api/meta.py).

    Sources: the Multi-worker training guide (TF_CONFIG's `task`); torchrun's, Slurm's, mpirun's, Ray's documentation.
    """
    given = _given()
    if given is not None:
        taken, _, pid = os.environ.get(_TAKEN, "").rpartition(" ")
        if taken != given.name or pid == str(os.getpid()):
            return given
        return Role(f"{given.name}-{plain_name(multiprocessing_name() or _program())}", given.rank)
    actor = _of_ray()
    if actor is not None:
        return actor
    child = multiprocessing_name()
    if child is not None:
        return Role(plain_name(child), None)
    if sys.argv[1:2] == ["record"] and os.path.basename(sys.argv[0]) in ("pyfunc-debug", "__main__.py"):
        return Role("main", None)
    return Role(plain_name(_program()), None)


def take_role() -> None:
    """Tells the processes that this one starts what its role is, where a launcher gave it one."""
    given = _given()
    if given is not None and role() == given:
        os.environ[_TAKEN] = f"{given.name} {os.getpid()}"


def _given() -> Role | None:
    """What the launcher's variables say."""
    rank = launcher_rank()
    return _task() or (None if rank is None else Role(f"rank-{rank}", rank))


def _program() -> str:
    program = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    return program if program not in ("", "-c", "-m") else "python"


def launcher_rank() -> int | None:
    """The rank that a launcher of many processes gave this one; None without such a launcher."""
    given = (os.environ.get(name, "") for name in _RANKS)
    return next((int(text) for text in given if text.isdigit()), None)


def multiprocessing_name() -> str | None:
    """The name that multiprocessing gave this process, as `Process-1`; None if it did not start it."""
    processes = sys.modules.get("multiprocessing.process")
    name: str = "MainProcess" if processes is None else processes.current_process().name
    return None if name == "MainProcess" else name  # its parent is known to it only later, after importing the program


def _task() -> Role | None:
    try:
        task = json.loads(os.environ["TF_CONFIG"])["task"]
        kind, index = str(task["type"]), int(task["index"])
    except (KeyError, ValueError, TypeError):
        return None
    return Role(plain_name(f"{kind}-{index}"), index)


def _of_ray() -> Role | None:
    """In a worker process of Ray: its actor's name, else its class, else the task's function."""
    ray = sys.modules.get("ray")
    if ray is None or os.path.basename(sys.argv[0] if sys.argv else "") != "default_worker.py":
        return None
    try:
        context = ray.get_runtime_context()
        name = context.get_actor_name() or (context.get_task_name() or "").partition(".")[0]
    except Exception:  # a Ray that says it otherwise
        return None
    return Role(plain_name(name), None) if name else None


def plain_name(text: str) -> str:
    """As it can stand in a file's name."""
    return re.sub(r"[^\w.-]+", "_", text)[:60] or "python"
