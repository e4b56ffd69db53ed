"""Bodies that alter their elements by random numbers, as a training wants it and a validation does not."""

from __future__ import annotations

from pyfunc_debug.doctor.code import Write
from pyfunc_debug.doctor.draws.drawn_once import draws_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_MEANT = ("noise", "mask", "negative", "corrupt", "latent")
"""In the name of a body or its map: what is drawn there is the task, for validation too."""


def altering_draw(facts: Facts, node: Node) -> Write | None:
    """The first draw of a node's body; None where it draws nothing, or what is the task.

    Args:
      facts: The recording.
      node: One of its nodes.
    """
    function = facts.function(node)
    draws = draws_of(function, facts.tree(node.file)) if function is not None else []
    made = facts.functions.get(node.function or 0)
    words = f"{node.body} {made.name if made is not None else ''} {draws[0].text if draws else ''}".lower()
    return draws[0] if draws and not any(one in words for one in _MEANT) else None
