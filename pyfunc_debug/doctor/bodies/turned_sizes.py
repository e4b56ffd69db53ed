"""A body that resizes an image to (height, width), where OpenCV and Pillow take the width first."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Node

_Sizes = Sequence[int | None]


@dataclass(frozen=True)
class TurnedSize:
    """A size that is given with the height first: why that is wrong, and what to write for it."""

    why: str
    size: ast.expr
    text: str


def turned_size(own: Source, function: ast.AST | None, wanted: _Sizes, returned: Sequence[_Sizes]) -> TurnedSize | None:
    """The size that the one resize of a body is given, where all it returned has height and width exchanged.

    Args:
      own: The file of the body.
      function: The body.
      wanted: The shape that is wanted.
      returned: Those that it returned.
    """
    first = [*wanted[1::-1], *wanted[2:]]
    exchanged = all(len(one) == len(wanted) > 1 and [*one] == first for one in returned)
    resizes = [
        one for one in pastes.walk(function, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "resize"
        and pastes.last_name(one.func.value) not in ("tf", "image", "transform", "np")
    ]  # fmt: skip
    if not exchanged or len(resizes) != 1:
        return None
    call = resizes[0]
    of_opencv = ast.unparse(call.func) == "cv2.resize"
    size = pastes.argument(call, 1, "dsize") if of_opencv else pastes.argument(call, 0, "size")
    if isinstance(size, (ast.Tuple, ast.List)) and len(size.elts) == 2:
        one, other = map(own.text, size.elts)
        new = f"({other}, {one})"
    elif isinstance(size, (ast.Name, ast.Attribute)):
        new = f"{ast.unparse(size)}[::-1]"
    else:
        return None
    name = "cv2.resize" if of_opencv else "Pillow's resize"
    return TurnedSize(f". {name} takes the width first, and a shape has the height first", size, new)


def turned(facts: Facts, node: Node, wanted: _Sizes, returned: Sequence[_Sizes]) -> tuple[str, str] | None:
    """Why height and width are exchanged, and the line with the two in their order; None where they are not.

    Args:
      facts: The recording.
      node: A node of the body.
      wanted: The shape that is wanted.
      returned: Those that the body returned.
    """
    found = turned_size(pastes.source(facts, node.file), facts.function(node), wanted, returned)
    fix = pastes.written(pastes.replaced(facts, node.file, {found.size: found.text})) if found is not None else ""
    return (found.why, fix) if found is not None and fix else None
