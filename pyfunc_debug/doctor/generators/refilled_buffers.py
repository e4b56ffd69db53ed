"""Validation data of a generator that are shuffled: each validation fills the buffer again before its first batch."""

from __future__ import annotations

import ast

from pyfunc_debug.analysis.inputs import Loop
from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_SHARE = 0.5
"""Of a generator's elements, those that went into buffers at least."""
_PASSES = 3


def refilled(facts: Facts, loop: Loop, slow: Node | None) -> tuple[str, str] | None:
    """What the buffers took, in words, and the line of the data without `shuffle`; None where they are small.

    Args:
      facts: The recording.
      loop: The loop of `fit`, which waits for its input.
      slow: What it waits for.
    """
    site = loop.site
    if site is None or slow is None or slow.origin == "user":
        return None
    tree = facts.tree(site.file)
    given = [
        word.value.id for call in pastes.around(tree, site.line, ast.Call) for word in call.keywords
        if word.arg == "validation_data" and isinstance(word.value, ast.Name)
    ]  # fmt: skip
    made = [
        one.value
        for one in pastes.walk(tree, ast.Assign)
        if given[:1] == [ast.unparse(target) for target in one.targets]
    ]
    shuffles = [
        one for value in made for one in pastes.walk(value, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "shuffle"
    ]  # fmt: skip
    if len(made) != 1 or len(shuffles) != 1 or not isinstance(shuffles[0].func, ast.Attribute):
        return None
    size = pastes.argument(shuffles[0], 0, "buffer_size")
    count = size.value if isinstance(size, ast.Constant) and isinstance(size.value, int) else 0
    passes = max((
        one["iterators"] for one in facts.meta.get("inputs") or ()
        if one["site"] and tuple(one["site"][:2]) == (site.file, site.line)
        and any(stage["kind"].startswith("Shuffle") for stage in one["stages"])
    ), default=0)  # fmt: skip
    if passes < _PASSES or count * passes < _SHARE * facts.calls(slow.id).count:
        return None
    owner = pastes.text_of(facts, site.file, shuffles[0].func.value)
    said = (
        f"{passes} passes each filled the buffer of shuffle({count}) before their first batch: {count * passes:,} of "
        f"the {facts.calls(slow.id).count:,} elements; validation needs no shuffle"
    )
    return said, pastes.written(pastes.replaced(facts, site.file, {shuffles[0]: owner}))
