"""Where a node was made, in words."""

from __future__ import annotations

import json
import os

from pyfunc_debug.recording import Reader


def site(reader: Reader, node: int | None) -> str:
    """` (called at train.py:12)`: the user's line that put the node into its graph; empty when it is not known."""
    rows = reader.rows("SELECT s.frames FROM node n JOIN stack s ON s.id = n.stack WHERE n.id = ?", (node,))
    frames = json.loads(rows[0][0]) if rows else []
    return f" (called at {os.path.basename(frames[-1][0])}:{frames[-1][1]})" if frames else ""


def path(reader: Reader, node: int | None, position: int) -> str:
    """Name of a node's input."""
    rows = reader.rows("SELECT paths FROM node WHERE id = ?", (node,))
    paths = json.loads(rows[0][0]) if rows else []
    return repr(paths[position]) if position < len(paths) else f"number {position}"
