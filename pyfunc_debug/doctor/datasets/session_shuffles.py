"""A shuffle behind slow Python that a session of TensorFlow 1 reads: `session.run` waits until its buffer is full.

Nothing sees the loop over such a dataset. The source says which shuffle stands behind a body, and the times of the
body's calls when the buffer was full.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.datasets.cached_chains import before, method
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Node

_ONE_SHOT = "make_one_shot_iterator"
ITERATORS = (_ONE_SHOT, "make_initializable_iterator")
"""Functions that make what a session reads a dataset by."""
_SAME = ("map", "prefetch", "repeat")
"""Methods between a body and the shuffle that give as many elements as they get."""
_FILLS_NS = 5_000_000_000
"""How long the buffer of a paste takes to be filled, at most."""


@dataclass(frozen=True)
class Filled:
    """A shuffle's buffer that a body filled, or did not come to fill.

    Attributes:
      file: The user's file.
      call: The call of `shuffle`.
      buffer: How many elements it holds.
      made: Calls of the body, up to the end.
      took_ns: How long it took to be filled, or how long it was being filled when the program ended.
      body_ns: How long the body ran in that time.
    """

    file: str
    call: ast.Call
    buffer: int
    made: int
    took_ns: int
    body_ns: int

    @property
    def full(self) -> bool:
        """Whether it was filled."""
        return self.made >= self.buffer


def filled(facts: Facts, node: Node) -> Filled | None:
    """The buffer that a body filled before a session got its first element; None where that is not known.

    Args:
      facts: The recording.
      node: A node with calls.
    """
    if facts.counted_only([node.id]) or not node.stack:
        return None
    generates = facts.is_generator(node)
    made = pastes.dataset_call(facts, node) if generates else pipelines.map_of(facts, node)
    if made is None:
        return None
    file, source = made
    own = pastes.source(facts, file)
    calls = list(pastes.walk(own.tree, ast.Call))
    shuffles = [one for one in calls if method(one) == "shuffle" and _is_of_dataset(one)]
    makers = [pastes.last_name(one.func) for one in calls]
    readers = [name for name in makers if name in ITERATORS]
    if len(shuffles) != 1 or len(readers) != 1 or not _is_used(own, shuffles[0]):
        return None
    chain = before(own, shuffles[0])
    place = next((at for at, one in enumerate(chain) if _at(one) == _at(source)), None)
    if place is None or any(method(one) not in _SAME for one in chain[place + 1 : -1]):
        return None
    repeats = [one for one in calls if method(one) == "repeat" and _at(one) not in map(_at, chain)]
    if not generates and (readers != [_ONE_SHOT] or repeats):
        return None  # when a pass ended is not seen
    buffer = _number(own.tree, argument(shuffles[0], 0, "buffer_size"))
    return _measured(facts, node, file, shuffles[0], buffer) if buffer is not None else None


def smaller(facts: Facts, one: Filled) -> tuple[str, int]:
    """A paste of a buffer that is full after some seconds, and its size; "" and 0 where none is worth it."""
    each = one.took_ns / min(one.made, one.buffer)
    size = 2 ** int(_FILLS_NS / each).bit_length() // 2
    given = argument(one.call, 0, "buffer_size")
    if given is None or not 16 <= size <= one.buffer // 2:
        return "", 0
    return pastes.written(pastes.replaced(facts, one.file, {given: str(size)})), size


def _measured(facts: Facts, node: Node, file: str, call: ast.Call, buffer: int) -> Filled | None:
    """The buffer with the times of the first pass; None where the pass ended before it was full."""
    rows = facts.reader.rows(
        "SELECT start_ns, end_ns FROM call WHERE node = ? AND kind = 'forward' AND status = 'ok' ORDER BY start_ns, id",
        (node.id,),
    )
    ends = [end for _, end in rows if end is not None]
    if not ends:
        return None
    fill = rows[:buffer]
    last = max(end for _, end in fill if end is not None)
    if facts.is_generator(node):  # beside it TensorFlow calls what begins a pass, and what ends one
        beside = [one.id for one in facts.nodes.values() if one.stack == node.stack and one.id != node.id]
        marks = ", ".join("?" * len(beside))
        turns = facts.reader.rows(f"SELECT start_ns FROM call WHERE node IN ({marks}) ORDER BY start_ns", tuple(beside))
        if len(turns) > 1 and turns[1][0] < last:
            return None  # it came to its end: the buffer holds all there is
    ran = sum(end - start for start, end in fill if end is not None)
    return Filled(file, call, buffer, len(rows), last - fill[0][0], ran)


def _at(call: ast.Call) -> tuple[int, int, int | None, int | None]:
    return call.lineno, call.col_offset, call.end_lineno, call.end_col_offset


def _is_of_dataset(call: ast.Call) -> bool:
    """Whether a call is no `random.shuffle(names)`."""
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return owner.rpartition(".")[2] != "random" and "rng" not in owner


def _is_used(own: Source, call: ast.Call) -> bool:
    """Whether the result of a call is returned, read in its statement, or has a name that is read further down."""
    above = list(own.around(call))
    statement = next((one for one in above if isinstance(one, ast.stmt)), None)
    inside = above[: above.index(statement)] if statement is not None else []
    if any(not isinstance(one, (ast.Call, ast.Attribute)) for one in inside):
        return False  # it depends, as in `ds.shuffle(9) if training else ds`
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.Return)
    made = {part.id for one in statement.targets for part in ast.walk(one) if isinstance(part, ast.Name)}
    end = statement.end_lineno or statement.lineno
    return any(
        one.id in made and isinstance(one.ctx, ast.Load) and one.lineno > end
        for one in pastes.walk(own.tree, ast.Name)
    )  # fmt: skip


def _number(tree: ast.AST | None, given: ast.expr | None) -> int | None:
    """A number that stands there, or in the one assignment of the name that does."""
    if isinstance(given, ast.Name):
        values = pastes.assigned(tree, given.id)
        given = values[0] if len(values) == 1 else None
    return given.value if isinstance(given, ast.Constant) and type(given.value) is int else None
