"""A body that resizes an image to (height, width), where OpenCV and Pillow take the width first."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node


def turned(
    facts: Facts, node: Node, static: Sequence[int | None], returned: Sequence[Sequence[int | None]]
) -> tuple[str, str] | None:
    """Why height and width are exchanged, and the line with the two in their order; None where they are not.

    Args:
      facts: The recording.
      node: A node of the body.
      static: The shape that is wanted.
      returned: Those that the body returned.
    """
    function = facts.function(node)
    exchanged = all(
        len(one) == len(static) > 1 and tuple(one) == (static[1], static[0], *static[2:]) for one in returned
    )
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
        one, other = (pastes.text_of(facts, node.file, part) for part in size.elts)
        new = f"({other}, {one})"
    elif isinstance(size, (ast.Name, ast.Attribute)):
        new = f"{ast.unparse(size)}[::-1]"
    else:
        return None
    name = "cv2.resize" if of_opencv else "Pillow's resize"
    fix = pastes.written(pastes.replaced(facts, node.file, {size: new}))
    return (f". {name} takes the width first, and a shape has the height first", fix) if fix else None
