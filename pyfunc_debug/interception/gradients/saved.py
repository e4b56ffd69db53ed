"""SavedModels have no call ids: these are for this process alone, and another has no function of a marked token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.tokens import MARK, token_in

_SHAPES = "_output_shapes"


def build_meta_graph(original: Any) -> Any:
    """The replacement of `saved_model.save._build_meta_graph`."""

    def _build_meta_graph(obj: Any, signatures: Any, options: Any, meta_graph_def: Any = None) -> Any:
        try:
            found = original(obj, signatures, options, meta_graph_def)
        except BaseException as error:
            drop_our_frame(error)
            raise
        without_ids(found[0].graph_def)
        return found

    return _build_meta_graph


def without_ids(graph_def: Any) -> None:
    """Takes the hidden outputs off the py_functions of a GraphDef and of its functions.

    A node whose call id is used keeps it: the gradient of a py_function, made inside what is saved, asks for it.
    """
    _strip(graph_def.node, ())
    for function in graph_def.library.function:
        _strip(function.node_def, function.ret.values())


def _strip(nodes: Any, returned: Iterable[str]) -> None:
    counted = [node for node in nodes if node.op == "EagerPyFunc" and node.attr["token"].s.endswith(MARK.encode())]
    if not counted:
        return
    used = {_output(text) for node in nodes for text in node.input} | {_output(text) for text in returned}
    for node in counted:
        types = node.attr["Tout"].list.type
        if (node.name, len(types) - 1) in used:
            continue
        node.attr["token"].s = token_in(node).encode()
        del types[-1]
        if _SHAPES in node.attr:
            shapes = node.attr[_SHAPES].list.shape
            del shapes[len(types) :]


def _output(text: str) -> tuple[str, int]:
    """Op and number of the output that an input names: `op`, `op:1`, or in a function `op:output:1`."""
    name, *rest = text.split(":")
    return name, int(rest[-1]) if rest else 0
