"""What a program hands to its child processes so that each records itself: three variables of the environment."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from pyfunc_debug.job.copies import TO
from pyfunc_debug.job.waiter import VARIABLE
from pyfunc_debug.pfrec.folders import free_path
from pyfunc_debug.program.role import role, take_role

OPTIONS = "PYFUNC_DEBUG_OPTIONS"
"""JSON: the keyword arguments of `record`."""
_ON_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_path")


def record_children(folder: str, options: dict[str, Any], url: str | None = None) -> None:
    """Makes each Python process that this one starts record itself, and those which they start.

    Args:
      folder: Where; it is made if it is not there.
      options: Keyword arguments of `record`.
      url: Where each copies its recording to.
    """
    take_role()
    if url is not None:
        os.environ[TO] = url
    os.makedirs(folder, exist_ok=True)
    os.environ[VARIABLE] = f"record:{os.path.abspath(folder)}"
    os.environ[OPTIONS] = json.dumps(options)
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = _ON_PATH if not others else f"{_ON_PATH}{os.pathsep}{others}"


def file_in(place: str) -> str:
    """The file of this process, numbered where there is one already.

    Args:
      place: A folder: then it is `HOST-PID-ROLE.pfrec` there. Or the .pfrec file; "": named after the process's role.
    """
    host = socket.gethostname().partition(".")[0]
    if place.endswith(".pfrec") or not place:
        stem = place.removesuffix(".pfrec") or role().name
    else:
        os.makedirs(place, exist_ok=True)
        stem = os.path.join(place, f"{host}-{os.getpid()}-{role().name}")
    return free_path(stem)
