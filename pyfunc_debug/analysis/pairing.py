"""Which calls belong together: of two recordings, or of two ways of running one function.

Calls are paired by their number. Calls that ran in parallel come in any order, so before two calls are taken for a pair
whose inputs differ, each is paired with one whose inputs are its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.analysis.equality import Tolerance, compare_values
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Call, Node

_SEARCHED = 100
"""Up to this many calls without a partner, each is compared with each."""


@dataclass(frozen=True)
class Pair:
    """Two calls that belong together; None where there is no such call.

    `moved`: their numbers differ, and their inputs brought them together.
    """

    left: Call | None
    right: Call | None
    moved: bool = False


def pair_calls(left: Sequence[Call], right: Sequence[Call], tolerance: Tolerance) -> list[Pair]:
    """Pairs the calls of one line.

    Args:
      left: Calls of the one run, in order.
      right: Calls of the other.
      tolerance: How far the inputs of a pair may be apart.

    Returns:
      All calls, in the order of the left ones; then those of the right that have no partner.
    """
    partner: dict[int, int] = {}
    free = dict.fromkeys(range(len(right)))
    for number in range(min(len(left), len(right))):
        if _same_inputs(left[number], right[number], tolerance):
            partner[number] = number
            del free[number]
    waiting: dict[object, list[int]] = defaultdict(list)
    for number in free:
        waiting[_input_key(right[number])].append(number)
    for number in _without(left, partner):
        found = waiting.get(_input_key(left[number])) if left[number].inputs else None
        if found:
            partner[number] = found.pop(0)
            del free[partner[number]]
    loose = _without(left, partner)
    if len(loose) <= _SEARCHED and len(free) <= _SEARCHED:
        for number in loose:
            near = next((other for other in free if _same_inputs(left[number], right[other], tolerance)), None)
            if near is not None:
                partner[number] = near
                del free[near]
    known = dict(partner)
    for number, other in zip(_without(left, partner), list(free)):
        partner[number] = other
        del free[other]
    pairs = [
        Pair(one, right[partner[number]] if number in partner else None, known.get(number, number) != number)
        for number, one in enumerate(left)
    ]
    return pairs + [Pair(None, right[number]) for number in free]


def _without(calls: Sequence[Call], partner: dict[int, int]) -> list[int]:
    return [number for number in range(len(calls)) if number not in partner]


def _same_inputs(one: Call, other: Call, tolerance: Tolerance) -> bool:
    if len(one.inputs) != len(other.inputs):
        return False
    return all(
        compare_values("input", mine, others, tolerance).status in ("equal", "close", "unknown")
        for mine, others in zip(one.inputs, other.inputs)
    )


def _input_key(call: Call) -> object:
    """What calls with equal inputs have in common."""
    return tuple(
        (value.dtype, value.shape, value.digest or (value.min, value.max, value.mean, value.std, value.text))
        for value in call.inputs
    )


# -- nodes of two recordings ------------------------------------------------------------------------------------------


def pair_nodes(left: Reader, right: Reader) -> Iterator[tuple[list[Node], list[Node]]]:
    """Pairs the user's nodes of two recordings, those of one line together; a list is empty where there is none.

    First by what stays the same from one recording to the next (neither tokens nor line numbers do): kind, body,
    function and name of the op. Then those that are left by body and function, then by body.
    """
    mine, others = _groups(left), _groups(right)
    found: dict[int, int] = {}
    taken: set[int] = set()
    for key in (_exactly, _in_function, _by_body):
        waiting: dict[object, list[int]] = defaultdict(list)
        for number, (node, function) in enumerate(_heads(others)):
            if number not in taken:
                waiting[key(node, function)].append(number)
        for number, (node, function) in enumerate(_heads(mine)):
            if number not in found and waiting[key(node, function)]:
                found[number] = waiting[key(node, function)].pop(0)
                taken.add(found[number])
    for number, (nodes, _) in enumerate(mine):
        yield nodes, others[found[number]][0] if number in found else []
    for number, (nodes, _) in enumerate(others):
        if number not in taken:
            yield [], nodes


_Group = tuple[list[Node], "str | None"]


def _groups(reader: Reader) -> list[_Group]:
    functions = {function.id: function.name for function in reader.functions()}
    users = [node for node in reader.nodes() if node.origin == "user"]
    return [(nodes, functions.get(nodes[0].function or 0)) for nodes in same_line(users, reader.functions())]


def _heads(groups: Iterable[_Group]) -> Iterator[tuple[Node, str | None]]:
    return ((nodes[0], function) for nodes, function in groups)


def _exactly(node: Node, function: str | None) -> object:
    return node.kind, node.body, function, node.name


def _in_function(node: Node, function: str | None) -> object:
    return node.kind, node.body, function


def _by_body(node: Node, function: str | None) -> object:
    return node.body
