"""What a recording says about itself: the options, the process and its versions, how it ended."""

from __future__ import annotations

import functools
import os
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.interception.names import private
from pyfunc_debug.pfrec import SCHEMA_VERSION
from pyfunc_debug.places import cells_here
from pyfunc_debug.program.pools import cores
from pyfunc_debug.program.role import launcher_rank, plain_name, role
from pyfunc_debug.recorder import Budget
from pyfunc_debug.recorder.sampling import Sampling
from pyfunc_debug.values import Policies


@dataclass(frozen=True)
class Options:
    """What was asked of `record()`, checked."""

    policies: Policies
    gradients: str
    gil: bool
    budget: Budget
    overwrite: bool
    lines: bool | str
    hang_after: float | None
    order: int
    sampling: Sampling | None = None
    random_state: bool = False


def first_meta(options: Options) -> dict[str, Any]:
    """What the file says when recording begins."""
    name, rank = role()
    return {
        "schema": SCHEMA_VERSION,
        "pid": os.getpid(),
        "role": name,
        "rank": rank,
        "host": socket.gethostname(),
        "argv": sys.argv,
        "cwd": os.getcwd(),
        "versions": {"python": sys.version.split()[0], "pyfunc_debug": version()},
        "clock": {"monotonic_ns": time.monotonic_ns(), "wall_ns": time.time_ns()},
        "options": {
            "values": options.policies.as_dict(), "nodes": options.policies.nodes, "gradients": options.gradients,
            "gil": options.gil, "lines": options.lines, "random_state": options.random_state,
            "sample": options.sampling.said if options.sampling is not None else None,
        },
        "cores": cores(),
        "budget": options.budget.file_bytes,
        "folder_budget": options.budget.folder_bytes,
        "hash_seed": _hash_seed(),
    }  # fmt: skip


def _hash_seed() -> str:
    """What the hashes of texts were begun with, where the environment says it; "" where each run has its own."""
    seed = "" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED", "")
    return seed if seed.isdigit() else ""


def last_meta(limits: str, ended: dict[str, Any] | None, end_ns: int) -> dict[str, Any]:
    """What is added when recording ends.

    Args:
      limits: What could not be recorded, in words.
      ended: How what was recorded ended; None where nobody knows.
      end_ns: When recording ended, on the monotonic clock.
    """
    versions = {"python": sys.version.split()[0], "pyfunc_debug": version()}
    for name in ("tensorflow", "keras", "numpy"):
        module = sys.modules.get(name)
        if module is not None:
            versions[name] = str(getattr(module, "__version__", "?"))
    known = {"versions": versions, "limits": limits, "ended": ended, "cells": cells_here(), **late_role()}
    debug = {"data_debug_mode": True} if private.data_debug_mode() else {}
    return {**known, **debug, "end_ns": end_ns}


def late_role() -> dict[str, Any]:
    """The role that a strategy of several workers gave this process since recording began: by a resolver, or Ray Train.

    TF_CONFIG is not asked again: a program that starts others may set it for each of them in turn.
    """
    server = private.server()
    if server is None or launcher_rank() is not None:
        return {}
    job, task = server
    return {"role": plain_name(f"{job}-{task}"), "rank": task}


@functools.cache
def version() -> str:
    """Version of this package."""
    from importlib import metadata

    try:
        return metadata.version("pyfunc-debug")
    except metadata.PackageNotFoundError:  # used from a source tree
        return "0+source"
