"""A cast to whole numbers in a body as one to float32, together with what the node declares."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.records import Node


def in_floats(dtype: str) -> str:
    """`np.float32` of `np.uint8`, with the module or the quotes that it is written with."""
    return re.sub(r"\w+(?=['\"]?$)", "float32", dtype)


def as_floats(facts: Facts, node: Node, dtype: ast.expr) -> str:
    """The paste that makes float32 of a dtype in a body, and of the one in Tout; "" where Tout has several such.

    Args:
      facts: The recording.
      node: A node of the body.
      dtype: The dtype of a cast in the body, as `np.uint8`.
    """
    own = pastes.source(facts, node.file)
    made = pastes.call_of(facts, node)
    tout = argument(made[1], 2, "Tout") if made is not None and made[0] == node.file else None
    listed = tout.elts if isinstance(tout, (ast.List, ast.Tuple)) else [tout]
    whole = own.text(dtype).strip("'\"").rpartition(".")[2]
    declared = [one for one in listed if isinstance(one, ast.Attribute) and one.attr == whole]
    if len(declared) != 1:
        return ""
    pieces: dict[ast.expr, str] = {
        dtype: in_floats(own.text(dtype)), declared[0]: f"{own.text(declared[0].value)}.float32",
    }  # fmt: skip
    return pastes.all_replaced(facts, node.file, pieces)
