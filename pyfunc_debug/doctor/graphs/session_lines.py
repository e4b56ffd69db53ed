"""Lines that run sessions of TensorFlow 1, as they were noticed: what they need of Python, and whether they train."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Node

Body = tuple[str, str | None, int | None]
"""Its name, file and line: each way into a queue has a node of its own."""


@dataclass
class SessionLine:
    """A line with what it fetches.

    Attributes:
      file, line: The line.
      fetches: Names of what it fetches.
      trains: Whether that moves a trainable variable.
      changes: Whether it moves any variable that is saved.
      variables: Whether it reads a trainable variable.
      elements: Whether a number with an axis is fetched.
      nodes: Of its bodies: those in the graph of the step, and those in front of it, sure to run or not.
      step: Bodies in the graph of the step, each with whether a variable comes in.
      read: Bodies in front of the step: those that each way into their queue or Dataset holds, with the types of its
        ops.
      spans: Begin and end of its runs.
    """

    file: str
    line: int
    fetches: list[str]
    trains: bool
    changes: bool
    variables: bool
    elements: bool
    nodes: dict[Body, list[Node]] = field(default_factory=dict)
    step: dict[Body, bool] = field(default_factory=dict)
    read: dict[Body, set[str]] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)


def session_lines(facts: Facts) -> list[SessionLine]:
    """The lines of a recording, in order."""
    found: dict[tuple[str, int, tuple[str, ...]], SessionLine] = {}
    noticed = facts.notices.get(Notice.SESSION_RUNS, [])
    nodes = {one.token: one for one in facts.nodes.values() if one.token is not None} if noticed else {}
    for _, _, one in noticed:
        key = (one["file"], one["line"], tuple(one["fetches"]))
        if key not in found:
            kinds = (one["trains"], one["changes"], one["variables"], one["elements"])
            found[key] = SessionLine(one["file"], one["line"], one["fetches"], *kinds)
        _add(found[key], one, nodes)
    return list(found.values())


def body_of(node: Node) -> Body:
    """What stands for a node and those of the same function."""
    return node.body, node.file, node.line


def _add(line: SessionLine, noticed: dict[str, Any], nodes: dict[str, Node]) -> None:
    line.spans += [(begin, end) for begin, end in noticed["spans"]]
    for token, late in noticed["nodes"]:
        if token in nodes:
            body = _keep(line, nodes[token])
            line.step[body] = line.step.get(body, False) or late
    for one in noticed["read"]:
        ways = [{_keep(line, nodes[token]) for token in way if token in nodes} for way in one["ways"]]
        for body in set.intersection(*ways) if ways else set():
            line.read.setdefault(body, set()).update(one["kinds"])


def _keep(line: SessionLine, node: Node) -> Body:
    body = body_of(node)
    known = line.nodes.setdefault(body, [])
    if all(one.id != node.id for one in known):
        known.append(node)
    return body
