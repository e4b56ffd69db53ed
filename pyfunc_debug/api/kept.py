"""What bodies keep in Python from call to call: containers that they fill, and what the arrays in them weigh.

Looked at once, as the recording ends: the names that a body's source fills are looked up among what the body sees.
Nothing of the user's runs: only Python's own containers are opened, and only arrays and tensors are weighed.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.bodies.replacement import definition

_OPENED = (list, dict, set, collections.deque, collections.defaultdict, collections.OrderedDict)
_MOST = 100_000
_FILLS = {"append", "appendleft", "add"}


@dataclass(frozen=True)
class Kept:
    """A container that a body fills.

    Attributes:
      name: How the body writes it: `cache`, `self.frames`.
      line: The line that fills it.
      count: How many entries it has.
      nbytes: What the arrays in them weigh, each counted once; of the first 100,000 entries.
    """

    name: str
    line: int
    count: int
    nbytes: int


def kept_by(
    file: str | None, line: int | None, own: dict[str, Any], module: dict[str, Any], weigh: Callable[[Any], int]
) -> Iterator[Kept]:
    """The containers that a body fills.

    Args:
      file: Where the body is.
      line: Where it begins.
      own: Names and values of its closure, and its `self`.
      module: Those of its module.
      weigh: Bytes of an array or tensor; 0 for everything else.
    """
    found = definition(file, line)
    if found is None:
        return
    local = code.local_names(found) - set(own)
    seen: set[str] = set()
    for node in code.own_nodes(found):
        name = _filled(node)
        if name is None or name in seen or name.partition(".")[0] in local:
            continue
        seen.add(name)
        container = _looked_up(name, {**module, **own})
        if type(container) not in _OPENED:
            continue
        values = list(container.values() if isinstance(container, dict) else container)
        sizes: dict[int, int] = {}
        for value in values[:_MOST]:
            for one in value if type(value) in (tuple, list) else (value,):
                size = weigh(one)
                if size:
                    sizes[id(one)] = size
        yield Kept(name, getattr(node, "lineno", found.lineno), len(values), sum(sizes.values()))


def _filled(node: ast.AST) -> str | None:
    """`cache` of `cache[key] = x`, `self.frames` of `self.frames.append(x)`; None for everything else."""
    owner: ast.expr | None = None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        owner = node.targets[0].value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
        owner = node.func.value
    return ast.unparse(owner) if isinstance(owner, (ast.Name, ast.Attribute)) else None


def _looked_up(name: str, variables: dict[str, Any]) -> Any:
    """What a name or `self.name` stands for; only in the objects' own `__dict__`: no property runs."""
    head, *rest = name.split(".")
    value = variables.get(head)
    for part in rest:
        try:
            value = object.__getattribute__(value, "__dict__").get(part)
        except AttributeError:
            return None
    return value
