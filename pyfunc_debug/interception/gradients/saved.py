"""SavedModels have no call ids: these are for this process alone, and another has no function of a marked token."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.gradients.differentiation import TapedCalls
from pyfunc_debug.interception.tokens import MARK, token_in

_SHAPES = "_output_shapes"
_DOUBLE = 2
"""DT_DOUBLE of TensorFlow's types.proto."""


def build_meta_graph(original: Any, registry: Any) -> Any:
    """The replacement of `saved_model.save._build_meta_graph`."""

    def _build_meta_graph(obj: Any, signatures: Any, options: Any, meta_graph_def: Any = None) -> Any:
        try:
            found = original(obj, signatures, options, meta_graph_def)
        except BaseException as error:
            drop_our_frame(error)
            raise
        without_ids(found[0].graph_def, registry)
        return found

    return _build_meta_graph


def without_ids(graph_def: Any, registry: Any) -> None:
    """Makes the py_functions of a GraphDef and of its functions, and their gradients, what they are without us.

    A call id that is handed on (out of a function, into a loop) becomes a constant: no gradient asks for it any more.
    Where one of the gradients is none that TensorFlow makes (the gradient of a gradient, or for some outputs only), all
    nodes whose call ids are asked for keep them.
    """
    bodies = [_Nodes(graph_def.node, {}, "{}:{}")]
    bodies += [_Nodes(one.node_def, one.ret, "{}:output:{}") for one in graph_def.library.function]
    known = {key: registry.get(key) for body in bodies for key in map(token_in, body.marked.values())}
    every = all(_has_stock(known[token_in(node)], node) for body in bodies for node in body.marked.values())
    for body in bodies:
        if every:
            body.rewrite(known)
        elif body.marked:
            body.strip_unused(known)


def _has_stock(function: Any, node: Any) -> bool:
    """Whether it is known what TensorFlow's own node would have been. It is not for one that came from a file."""
    if not isinstance(function, TapedCalls):
        return False
    count = len(node.attr["Tout"].list.type) - 1
    if function.plan.level == 0:
        return count == function.plan.outputs
    if function.plan.level > 1 or function.stock_gradient or function.stand_in is None:
        return False
    return function.stand_in.whole and count == len(function.plan.wanted)


class _Nodes:
    """The nodes of a graph or of a function.

    Args:
      nodes: NodeDefs.
      returned: Of a function: what it returns, by name.
      reference: How an input names an output of an op: its name and a number.

    Attributes:
      marked: Those with a call id, by name.
    """

    def __init__(self, nodes: Any, returned: Any, reference: str) -> None:
        mark = MARK.encode()
        ours = (node for node in nodes if node.op == "EagerPyFunc" and node.attr["token"].s.endswith(mark))
        self.marked = {node.name: node for node in ours}
        self._nodes = nodes
        self._returned = returned
        self._reference = reference

    def strip_unused(self, known: dict[str, Any]) -> None:
        """Takes call ids off where nothing asks for them; gradient nodes are ours altogether, and stay so."""
        texts = [*(text for node in self._nodes for text in node.input), *self._returned.values()]
        used = {_output(text) for text in texts}
        for node in self.marked.values():
            types = list(node.attr["Tout"].list.type)[:-1]
            gradient = isinstance(function := known[token_in(node)], TapedCalls) and function.plan.level > 0
            if (node.name, len(types)) not in used and not gradient:
                _set_outputs(node, types, list(range(len(types))))

    def rewrite(self, known: dict[str, Any]) -> None:
        """Makes the marked nodes TensorFlow's own, and lets others read the outputs where they are then."""
        moved: dict[tuple[str, int], str] = {}
        zeros: dict[str, Any] = {}
        for name, node in self.marked.items():
            function = known[token_in(node)]
            plan, types = function.plan, list(node.attr["Tout"].list.type)[:-1]
            zero = self._reference.format(f"{name}/number", 0)
            moved[name, len(types)], zeros[zero] = zero, node
            places = list(range(len(types)))
            if plan.level:
                places, types = list(plan.wanted), [dtype.as_datatype_enum for dtype in function.stand_in.dtypes]
                moved.update({(name, at): self._reference.format(name, place) for at, place in enumerate(places)})
                _set_inputs(node, plan.first, plan.last)
            _set_outputs(node, types, places)
        asked: set[str] = set()

        def there(text: str) -> str:
            place = text if text.startswith("^") else moved.get(_output(text), text)
            asked.add(place)
            return place

        for node in self._nodes:
            node.input[:] = [there(text) for text in node.input]
        for name, text in list(self._returned.items()):  # a protobuf map that is changed may skip some, or repeat them
            self._returned[name] = there(text)
        for place in sorted(asked & zeros.keys()):
            _make_zero(self._nodes.add(), zeros[place])


def _set_inputs(node: Any, first: int, last: int) -> None:
    """Leaves a node these of its inputs, and what it waits for."""
    data = [text for text in node.input if not text.startswith("^")]
    node.input[:] = [*data[first:last], *(text for text in node.input if text.startswith("^"))]
    types = node.attr["Tin"].list.type
    types[:] = types[first:last]


def _set_outputs(node: Any, types: list[int], places: list[int]) -> None:
    """Gives a node outputs of these types, and of no mark. `places` are where those that it has so far stand then."""
    node.attr["token"].s = token_in(node).encode()
    node.attr["Tout"].list.type[:] = types
    if _SHAPES not in node.attr:
        return
    shapes = node.attr[_SHAPES].list
    known = dict(zip(places, list(shapes.shape)))
    unknown = type(node.attr[_SHAPES].list.shape.add())(unknown_rank=True)
    texts = [known.get(place, unknown).SerializeToString() for place in range(len(types))]
    del shapes.shape[:]
    for text in texts:
        shapes.shape.add().ParseFromString(text)


def _make_zero(made: Any, node: Any) -> None:
    """Makes a new node the constant that stands for the call id of this one."""
    made.name, made.op, made.device = f"{node.name}/number", "Const", node.device
    made.attr["dtype"].type = made.attr["value"].tensor.dtype = _DOUBLE
    made.attr["value"].tensor.tensor_shape.SetInParent()
    made.attr["value"].tensor.double_val.append(0.0)
    if _SHAPES in node.attr:
        made.attr[_SHAPES].list.shape.add()


def _output(text: str) -> tuple[str, int]:
    """Op and number of the output that an input names: `op`, `op:1`, or in a function `op:output:1`."""
    name, *rest = text.split(":")
    return name, int(rest[-1]) if rest else 0
