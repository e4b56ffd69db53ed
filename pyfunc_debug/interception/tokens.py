"""Tokens, by which nodes name their functions, and the mark of nodes with a call id.

TensorFlow gives each function a token (`pyfunc_7`) and calls it for whatever node names that: also for one of a
SavedModel, whose tokens another process gave. Such a node has no output for the number of the call. So a node with one
names its function by the token with a mark: under both names it is one object in TensorFlow's registry, which lives as
long as ever. The mark is part of the op only; to everybody else the node is known by its token.
"""

from __future__ import annotations

from typing import Any

MARK = "+"


def plain(token: str | bytes) -> str:
    """A token without the mark."""
    text = token.decode() if isinstance(token, bytes) else token
    return text.removesuffix(MARK)


def token_of(op: Any) -> str:
    """The token of an op."""
    return plain(op.get_attr("token"))


def token_in(node_def: Any) -> str:
    """The token of an op in a GraphDef or a FunctionDef."""
    return plain(node_def.attr["token"].s)
