"""A shape that a py_function lost: TensorFlow knows only the dtypes of what a body returns."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from pyfunc_debug.doctor.bodies.decorated import in_python
from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.bodies import compiled_bodies, layer_shapes, shape_pastes, shape_vectors
from pyfunc_debug.doctor.failures.bodies.results import body_shape, is_made
from pyfunc_debug.doctor.failures.graphs import into_variables
from pyfunc_debug.doctor.failures.models import epoch_metrics
from pyfunc_debug.doctor.failures.pastes import learned_shapes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.dtypes import assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.made_values import made_return, made_shape
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    body_spot,
    owner,
    py_call,
    return_values,
    site_spot,
    traced_inputs,
    user_nodes,
    written_inputs,
)
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    Described,
    alias,
    calls,
    dtype_of,
    is_symbolic,
    ops_without_rank,
    shape_of,
    symbolic_parts,
)
from pyfunc_debug.interception.tokens import token_of

RULE = "unknown-shape"
_SAID = re.compile(
    r"as_list\(\) is not defined on an unknown TensorShape|unknown rank|contains no shape|unknown TensorShape"
    r"|(?:dimension|axis|channel)[^.]* should be defined|Found `?None`?|found ndim=None"
    r"|(?:must|should) be fully defined"
    r"|[Uu]nknown shape|[Uu]ndefined shape|Rank (?:is|must be) (?:unknown|known)|rank is unknown|<unknown>"
    r"|must (?:be at least|have) (?:three|3)[- ]dimension|'NoneType' object|NoneType|None values not supported"
    r"|Cannot infer num from shape|Cannot iterate over a (?:shape|tensor) with unknown (?:rank|first dimension)"
    r"|expected (?:min_)?ndim=\d+, found ndim=None|shape=<unknown>|static(?:ally)?[- ](?:shape|known)"
    r"|Cannot infer Tensor's rank|mask dimensions must be specified|(?:known|defined|static) rank|known statically",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"unknown TensorShape|[Uu]nknown rank|found ndim=None|Shape with unknown rank")
"""Words for a lost rank, and for nothing else. Keras cuts the frames in which the tensor was."""
_LAMBDA = "could not automatically infer the shape of the Lambda's output"
_GIVEN = re.compile(r"<KerasTensor shape=\(([^)]*)\), dtype=(\w+)")
_SIZE = re.compile(r"\w+")
_CALLING = re.compile(r"when calling (\w+)\.call\(\)")
_LOOP = re.compile(r"has shape (\([^)]*\)) before the loop, but shape <unknown> after")
_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_READ = ("ParseTensor", "DecodeImage")
_FARTHEST = 400


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a shape that a node lost is why the program failed."""
    if situation.body or situation.kind not in (
        "ValueError",
        "TypeError",
        "AttributeError",
        "IndexError",
        "InvalidArgumentError",
        "NotImplementedError",
    ):
        return None
    if not _SAID.search(situation.message) and _LAMBDA not in situation.message:
        return None
    if _LAMBDA in situation.message:
        return _in_lambda(situation)
    tensor = _unknown_tensor(situation)
    nodes = user_nodes(situation)
    found = _made_by(tensor, nodes)
    if found is None and (layer := _of_layer(situation)) is not None:
        return _explanation(situation, layer, None, tensor)
    if tensor is None and not _PLAIN.search(situation.message):
        return None
    if found is None and (tensor is None or _is_input(tensor)):  # an element of a dataset
        candidates = [node for node in nodes if node.call() is not None and _in_data(node, situation)]
        found = (candidates[0], None) if candidates else None
    if found is None and (by_file := _of_file(situation, tensor)) is not None:
        return by_file
    called = [node for node in nodes or user_nodes(situation, scratch=True) if node.call() is not None]
    if found is None and tensor is None and len({node.site for node in called}) == 1:
        found = called[-1], None  # in a replica's thread, whose frames are not there: the only one there is
    if found is None:
        return None
    node, op = found
    return _explanation(situation, node, op, tensor)


def of_node(situation: Situation, node: Node) -> Explanation | None:
    """The explanation, if it is known that a node's result is what has no shape."""
    return _explanation(situation, node, None, None)


def _of_file(situation: Situation, tensor: Any) -> Explanation | None:
    """What TensorFlow itself reads from a file without a shape, in the only place where the program does it."""
    spot = situation.last
    if spot is None or not (tensor is None or _is_input(tensor) or any(True for _ in _made_of(tensor, _READ))):
        return None
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.Call) and _reads(one)]
    of_image = "contains no shape" in situation.message
    if len(found) != 1 or not (of_image or _PLAIN.search(situation.message)):
        return None
    if not of_image and dotted(found[0].func).rpartition(".")[2] != "decode_image":  # it may have any rank
        return None
    call, tf = found[0], alias(spot, "tensorflow")
    name, text = dotted(call.func).rpartition(".")[2], spot.source.text(call)
    if name == "decode_image":
        new = spot.source.with_argument(call, "expand_animations=False")
        what = "decode_image may give an image or an animation: at trace not even the rank is known."
    else:
        new = f"{tf}.ensure_shape({text}, [None, None, None])"
        what = f"{name} gives a tensor of unknown shape: what was written is read later."
    statement = spot.statement
    code = short(spot.source.text(statement).split("\n")[0], 34) if statement is not None else "the program"
    pasted = spot.source.replaced({call: new})
    edit = edit_of(spot.file, pasted)
    cause = f"{what} `{code}` (line {spot.line}) needs height, width and channels as axes at trace."
    return None if edit is None else Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")


def _reads(call: ast.Call) -> bool:
    name = dotted(call.func).rpartition(".")[2]
    expand = any(one.arg == "expand_animations" for one in call.keywords)
    return name == "parse_tensor" or (name == "decode_image" and not expand)


def _made_of(tensor: Any, kinds: tuple[str, ...]) -> Iterator[Any]:
    """The ops of some kinds that a tensor was computed from."""
    for op, _ in ops_without_rank(tensor, lambda one: shape_of(one) is None):
        if op.type in kinds:
            yield op


def _of_layer(situation: Situation) -> Node | None:
    """The only node of the layer whose `call` Keras says that it tried, or of all layers: it cuts the frames."""
    match = _CALLING.search(situation.text)
    found: list[Node] = []
    every = [node for node in user_nodes(situation, scratch=True) if node.call() is not None] if match else []
    if len({node.site for node in every}) == 1:
        return every[0]
    for node in user_nodes(situation, scratch=True) if match is not None else ():
        classes = [
            one for one in ast.walk(node.source.tree)
            if isinstance(one, ast.ClassDef) and match is not None and one.name == match[1]
            and node.site is not None and one.lineno <= node.site[1] <= (one.end_lineno or 0)
        ]  # fmt: skip
        found += [node] * bool(classes)
    if match is not None and not found:  # the layer calls a tf.function, which has a graph of its own
        found = [node for node in user_nodes(situation) if _is_called_by(match[1], node)]
    return found[0] if len({node.site for node in found}) == 1 else None


def _is_called_by(layer: str, node: Node) -> bool:
    """Whether a node stands in a function of its file that a layer calls, or that such a function calls."""
    if node.site is None or node.call() is None:
        return False
    tree, line = node.source.tree, node.site[1]
    reached: list[ast.AST] = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == layer]
    seen: set[str] = set()
    while reached:
        one = reached.pop()
        for call in calls(one):
            name = dotted(call.func).rpartition(".")[2]
            if name and name not in seen:
                seen.add(name)
                reached += [each for each in all_nodes(tree) if isinstance(each, ast.FunctionDef) and each.name == name]
    around = [
        one.name for one in all_nodes(tree)
        if isinstance(one, ast.FunctionDef) and one.lineno <= line <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    return bool(seen & set(around))


_LIKE_INPUT = " The shape here is that of its input: check it."
_OF_SHAPE = " It is given the tf.shape of a tensor, and the shape here is that tensor's: check it."


def _in_lambda(situation: Situation) -> Explanation | None:
    """Keras asks a Lambda for the shape that it gives, before there is a node that is known."""
    spot = situation.last
    call = (py_call(spot.source, spot.line) or _in_its_function(spot)) if spot is not None else None
    if spot is None or call is None:
        return None
    kind = "numpy_function" if "numpy" in ast.unparse(call.func) else "py_function"
    given = argument(call, 0, "func")
    name = given.id if isinstance(given, ast.Name) else "its body"
    cause = (
        f"Keras asks what shape this Lambda gives, and a {kind} knows its dtype only: {name} runs later. output_shape "
        "alone would not help: the next layer asks the tensor."
    )
    text, tf = short(spot.source.text(call), 44), alias(spot, "tensorflow")
    size = body_shape(call, _with_inputs(situation, spot, call))
    if size is not None:
        new = f"{tf}.ensure_shape({spot.source.text(call)}, {written((None, *size[1:]))})"
        placed = spot.source.replaced({call: new})
        edit = edit_of(spot.file, placed)
        if edit is not None:
            return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
    advice = f"Say it in the Lambda: {tf}.ensure_shape({text}, [None, ...]), None for the batch."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _in_its_function(spot: Spot) -> ast.Call | None:
    """The one call of py_function in the function that the line gives to a Lambda."""
    statement = spot.statement
    names = {
        dotted(one.args[0]) for one in (calls(statement) if statement is not None else ())
        if dotted(one.func).rpartition(".")[2] == "Lambda" and one.args
    } - {""}  # fmt: skip
    functions = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name in names]
    found = [one for each in functions for one in calls(each) if is_made(one)]
    return found[0] if len(found) == 1 else None


def _with_inputs(situation: Situation, spot: Spot, call: ast.Call) -> Spot:
    """The frame, with what Keras says that the function around a call is given."""
    around = next((one for one in spot.source.around(call) if isinstance(one, (ast.Lambda, ast.FunctionDef))), None)
    given = _keras_inputs(situation)
    known = {name: Described(*one) for name, one in zip(parameters(around), given)} if around is not None else {}
    return dataclasses.replace(spot, variables={**spot.variables, **known})


def _keras_inputs(situation: Situation) -> list[tuple[str, Shape]]:
    """Dtypes and shapes of the Keras tensors that the failure names, as batches of any size."""
    return [
        (dtype, tuple(None if one == "None" or not at else int(one) for at, one in enumerate(_SIZE.findall(sizes))))
        for sizes, dtype in _GIVEN.findall(situation.text)
    ]


def _unknown_tensor(situation: Situation) -> Any:
    """A symbolic tensor of unknown rank: in the user's line, or the innermost one among the library's variables."""
    spot = situation.last
    looped = _of_loop(situation)
    if looped:
        return looped[0][1]
    if spot is not None:
        statement = spot.statement
        for value in (symbolic_parts(statement, spot) if statement is not None else {}).values():
            if shape_of(value) is None:
                return value
    innermost = None
    for value in _variables(situation.inner.__traceback__):
        if is_symbolic(value) and shape_of(value) is None:
            innermost = value
    return innermost


def _of_loop(situation: Situation) -> list[tuple[Shape, Any]]:
    """The shapes that a loop's variables had before, and what has none after a round: the refused one is first."""
    refused = _LOOP.search(situation.message)
    every = frames(situation.inner.__traceback__)
    first = [one.f_locals["nulls"] for one in every if isinstance(one.f_locals.get("nulls"), tuple)]
    for one in reversed(every) if refused is not None else ():
        known = one.f_locals
        if not {"symbol_names", "init_vars", "iter_exit_vars"} <= set(known):
            continue
        begun = first[-1] if first and len(first[-1]) == len(known["init_vars"]) else (False,) * len(known["init_vars"])
        found = [
            (str(name), shape, last)
            for name, none, before, last in zip(
                known["symbol_names"], begun, known["init_vars"], known["iter_exit_vars"]
            )
            if not none  # what begins in the loop has a 0 of AutoGraph's before it
            and is_symbolic(last)
            and shape_of(last) is None
            and (shape := () if type(before) in (int, float, bool) else shape_of(before)) is not None
        ]
        found.sort(key=lambda one: f"'{one[0]}' {refused[0]}" not in situation.message if refused else False)
        return [(shape, last) for _, shape, last in found]
    return []


def _variables(traceback: TracebackType | None) -> Iterator[Any]:
    """What the frames' variables hold, whatever their names: only what is a symbolic tensor is of interest."""
    while traceback is not None:
        for value in list(traceback.tb_frame.f_locals.values()):
            yield value
            if isinstance(value, (list, tuple)) and len(value) < 20:
                yield from value
            if isinstance(value, dict) and len(value) < 20:
                yield from list(value.values())
        traceback = traceback.tb_next


def _made_by(tensor: Any, nodes: list[Node]) -> tuple[Node, Any] | None:
    """The node whose output a tensor was computed from."""
    by_token = {node.token: node for node in nodes}
    for op in _made_of(tensor, _OPS):
        node = by_token.get(token_of(op))
        if node is not None:
            return node, op
    return None


def _place(tensor: Any, op: Any) -> int | None:
    """Which output of a node's op a tensor was computed from."""
    seen: set[int] = set()
    waiting = [tensor]
    while waiting and len(seen) < _FARTHEST:
        one = waiting.pop(0)
        if getattr(one, "op", None) is op:
            return int(one.value_index)
        if getattr(one, "op", None) is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting.extend(one for one in one.op.inputs if shape_of(one) is None)
    return None


def _is_input(tensor: Any) -> bool:
    """Whether a tensor comes from outside of its graph."""
    return any(_made_of(tensor, ("Placeholder", "IteratorGetNext")))


def _in_data(node: Node, situation: Situation) -> bool:
    rows = situation.rows("SELECT f.kind FROM node n JOIN function f ON f.id = n.function WHERE n.id = ?", (node.id,))
    return bool(rows) and rows[0][0] == "tf.data"


def _explanation(situation: Situation, node: Node, op: Any, tensor: Any) -> Explanation | None:
    spot, call = site_spot(node, situation), node.call()
    if spot is None or call is None or node.site is None:
        known, _, said = _shapes(situation, node, op)
        return compiled_bodies.shaped(situation, node, _without_batch(known, situation, node, op), said)
    known, sure, said = _shapes(situation, node, op)
    before = _LOOP.search(situation.message)
    place = _place(tensor, op) if before is not None else None
    if before is not None and place is not None and place < len(known) and known[place] is None:
        sizes = [int(one) if one.isdigit() else None for one in re.findall(r"\w+", before[1])]
        known[place] = tuple(sizes)
    for shape, last in _of_loop(situation):
        at = _place(last, op)
        one = known[at] if at is not None and at < len(known) else None
        if at is not None and at < len(known) and one is None:
            known[at] = shape
        elif at is not None and one is not None and one != shape and len(one) == len(shape):  # it grows in each round
            known[at] = tuple(a if a == b else None for a, b in zip(one, shape))
    known = _of_any_batch(known, situation, node, op, spot, call)
    into = _into_variable(situation, node, call, tensor) if not sure else None
    if into is not None:
        known, said = into[1], f" It has to have the shape of {into[0]}."
    learned = None if sure or not _in_data(node, situation) else learned_shapes.shaped(situation)
    said = said if learned is None else " The first element tells it."
    asked = shape_pastes.asked(spot, call, known[0]) if said == _LIKE_INPUT and learned is None else None
    by_layer = None
    if not sure and learned is None and into is None:
        by_layer = layer_shapes.declared(spot, call, known[0] if said != _LIKE_INPUT else None)
    if by_layer is not None:
        asked, said = None, by_layer[1]
    given = by_layer[0] if by_layer is not None else into[2] if into is not None else None
    edit = learned or given or asked
    if edit is None and (sure or None not in known or not _in_data(node, situation)):  # else only a part of them
        edit = shape_pastes.edited(node, spot, call, known)
    if edit is None and tensor is not None and op is None and not _in_data(node, situation):
        edit = asked = shape_pastes.asked(spot, call, (None, 0))  # a layer's, whose inputs are batches
        edit = edit or shape_pastes.like_its_input(spot, call)
        said = _LIKE_INPUT if edit is not None else said
    said = said if asked is None else f" {node.called} tells it here for zeros."
    if edit is None and (edit := shape_pastes.of_epoch(spot, call, node)) is not None:
        said = epoch_metrics.SAID
    if edit is None and (edit := shape_pastes.of_statistic(spot, call, node, _inputs(situation, node, op))) is not None:
        said = f" {node.called} gives a statistic and its p-value: the first is one number."
    if edit is None:
        edit = shape_pastes.of_compiled(spot, call)
        said = " For a loss or metric a list of its values will do." if edit is not None else said
    if edit is None:
        edit = _for_an_index(situation, node, op, spot, call)
        said = f" {node.called} tells how many dimensions it has, once, for index 0." if edit is not None else said
    last = situation.last
    if edit is None and (function := node.function()) is not None:
        edit = shape_pastes.of_each_number(spot, call, function)
        said = f" {node.called} computes number by number: its result has the shape of its inputs." if edit else said
    what = f"{node.opening} gave a tensor of unknown shape"
    where = ""
    if last is not None and last.line != node.site[1]:
        statement = last.statement
        code = short(last.source.text(statement).split("\n")[0], 34) if statement is not None else "the program"
        where = f" `{code}` (line {last.line}) needs it at trace."
    kind = "numpy_function" if node.kind == "numpy_function" else "py_function"
    cause = f"{what}: at trace a {kind} knows its dtype only, as {node.called} runs later.{where}{said}"
    advice = "" if edit is not None else shape_pastes.in_words(node, spot, call, known)
    return Explanation(RULE, *node.site, cause, edit, advice, "measured" if sure or learned is not None else "likely")


def _of_any_batch(
    known: list[Shape | None], situation: Situation, node: Node, op: Any, spot: Spot, call: ast.Call
) -> list[Shape | None]:
    """Shapes of a layer, loss or metric without the size of the batch that Keras happened to trace it for."""
    kinds = situation.rows("SELECT f.kind FROM node n JOIN function f ON f.id = n.function WHERE n.id = ?", (node.id,))
    methods = [one.name for one in spot.source.around(call) if isinstance(one, ast.FunctionDef)]
    if ("Keras",) not in [tuple(one) for one in kinds] and "call" not in methods:
        return known
    return _without_batch(known, situation, node, op)


def _without_batch(known: list[Shape | None], situation: Situation, node: Node, op: Any) -> list[Shape | None]:
    sizes = {shape[0] for _, shape in _inputs(situation, node, op) if shape}
    return [(None, *one[1:]) if one and one[0] in sizes else one for one in known]


def _inputs(situation: Situation, node: Node, op: Any) -> list[tuple[str, Shape | None]]:
    """Dtypes and shapes of what a node is given, known at trace; kept of a graph that is gone."""
    if op is not None:
        return [(dtype_of(one), shape_of(one)) for one in op.inputs]
    return traced_inputs(node, situation)


def _for_an_index(situation: Situation, node: Node, op: Any, spot: Spot, call: ast.Call) -> Edit | None:
    """The result with as many dimensions as the body gives for index 0: where all that it takes are whole numbers."""
    inputs = _inputs(situation, node, op)
    function, statement = argument(call, 0, "func"), spot.source.statement(call.lineno)
    whole = bool(inputs) and all(dtype in ("int32", "int64") and shape == () for dtype, shape in inputs)
    many = isinstance(argument(call, 2, "Tout"), (ast.List, ast.Tuple, ast.Dict))
    if not whole or many or not dotted(function) or statement is None:
        return None
    if not isinstance(statement, (ast.Assign, ast.Return)) or any(
        isinstance(one, ast.Lambda) and any(part is call for part in ast.walk(one)) for one in ast.walk(statement)
    ):
        return None
    tf = alias(spot, "tensorflow")
    eager = dotted(call.func).rpartition(".")[2] == "py_function"
    zeros = ", ".join(f"{tf}.constant(0, {tf}.{dtype}){'' if eager else '.numpy()'}" for dtype, _ in inputs)
    line = spot.source.lines[statement.lineno - 1]
    blanks = line[: len(line) - len(line.lstrip())]
    above = (
        f"{blanks}with {tf}.init_scope():  # outside of the graph: it runs once, for 0",
        f"{blanks}    rank = len({tf}.convert_to_tensor({in_python(call, dotted(function))}({zeros})).shape)",
    )
    text = f"{tf}.ensure_shape({spot.source.text(call)}, [None] * rank)"
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    return Edit(spot.file, first, last, (*above, *spot.source.spliced({call: text}, first, last)))


def _into_variable(
    situation: Situation, node: Node, call: ast.Call, tensor: Any
) -> tuple[str, list[Shape | None], Edit | None] | None:
    """The variable that the failing line assigns the tensor to, its shape, and the line for a tensor made of it."""
    last = situation.last
    statement = last.statement if last is not None else None
    found = into_variables.in_line(statement, last) if last is not None and statement is not None else None
    if last is None or found is None:
        return None
    value, into = found
    parent = node.source.parent(call)
    name = parent.targets[0] if isinstance(parent, ast.Assign) and parent.value is call else None
    own = isinstance(name, ast.Name) and isinstance(value, ast.Name) and name.id == value.id
    if len(node.tout) == 1 and (value is call or own):
        return into.name, [into.shape], None
    if not isinstance(value, ast.Name) or last.value(value.id) is not tensor:
        return None
    text = f"{alias(last, 'tensorflow')}.ensure_shape({value.id}, {written(into.shape)})"
    placed = last.source.replaced({value: text})
    return None if placed is None else (into.name, [], Edit(last.file, placed[0], placed[1], (placed[2],)))


def _shapes(situation: Situation, node: Node, op: Any) -> tuple[list[Shape | None], bool, str]:
    number = _same_body(situation, node)
    seen, calls = shapes.recorded(situation.rows, number)
    given = _inputs(situation, node, op) or _of_other_traces(node, situation) or _of_keras(situation, node)
    fits = _as_traced(situation, number, [shape for _, shape in given])
    if seen and fits:
        often = "its 1 call" if calls == 1 else f"all {calls:,} calls"
        known = [seen.get(index) for index in range(len(node.tout))]
        listed = ", ".join(written(shape) for shape in known if shape is not None)
        if any(shape is None for shape in known):
            listed = ", ".join(f"{written(shape)} as value {place + 1}" for place, shape in sorted(seen.items()))
        return known, True, f" In {often} it returned {listed}."
    function = node.function()
    inputs: dict[str, Any] = {}
    if function is not None:
        of_node = zip(parameters(function), given)
        inputs = {name: Described(dtype, shape) for name, (dtype, shape) in of_node}
    for name, number in written_inputs(node, situation).items():
        inputs[name] = Described("int64", (), number)
    spot = body_spot(node, situation, {**inputs, **owner(node, situation)})
    found = shapes.guessed(function, spot) if function is not None and spot is not None else []
    found = [*found, *[None] * (len(node.tout) - len(found))][: len(node.tout)]
    if len(found) == 1 and function is not None and spot is not None and (found[0] is None or None in found[0][1:]):
        body = functools.partial(made_return, function, spot, arrays=node.kind != "py_function")
        made = made_shape(body)
        found = [made if found[0] is None or (made is not None and len(made) == len(found[0])) else found[0]]
    found = found if fits else [(None, *one[1:]) if one else one for one in found]  # it is called with other sizes, too
    if all(one is None for one in found) and len(node.tout) == 1:
        if shape_vectors.is_given(op):
            whole = shape_vectors.kept(op, function)
            return [whole], False, _OF_SHAPE if whole is not None else ""
        same = [one for one in inputs.values() if one.shape]
        like = same and (same[0].dtype == node.tout[0] or len(inputs) == 1)
        if len(same) == 1 and like and not _is_one_of_several(function):
            return [same[0].shape if fits else (None, *same[0].shape[1:])], False, _LIKE_INPUT
    guessed = " Its source says the shape below: check it." if any(one is not None for one in found) else ""
    return found, False, guessed


def _is_one_of_several(function: Any) -> bool:
    """Whether a body returns one of the results of a call, `f, t, s = spectrogram(x)`: they differ in their shapes."""
    if not isinstance(function, ast.FunctionDef):
        return False
    returned = {one.id for one in return_values(function) if isinstance(one, ast.Name)}
    several = [
        target for one in own_nodes(function) if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        for target in one.targets if isinstance(target, ast.Tuple)
    ]  # fmt: skip
    return any(isinstance(part, ast.Name) and part.id in returned for one in several for part in one.elts)


def _of_other_traces(node: Node, situation: Situation) -> list[tuple[str, Shape | None]]:
    """What a node is given that was made by the same line in a graph: an eager call has no inputs known at trace."""
    others = (traced_inputs(one, situation) for one in user_nodes(situation) if one.site == node.site)
    return next((inputs for inputs in others if inputs), [])


def _of_keras(situation: Situation, node: Node) -> list[tuple[str, Shape | None]]:
    """What a layer hands on to its node, by the Keras inputs that the failure names: batches, of any size."""
    call, given = node.call(), _keras_inputs(situation)
    around = node.source.around(call) if call is not None else ()
    method = next((one for one in around if isinstance(one, ast.FunctionDef)), None)
    inp = argument(call, 1, "inp") if call is not None else None
    if method is None or not given or not isinstance(inp, (ast.List, ast.Tuple)):
        return []
    known, made = dict(zip(parameters(method), given)), assignments(method)
    names = [dotted(one) for one in inp.elts]
    return [known[name] for name in names] if all(name in known and name not in made for name in names) else []


def _as_traced(situation: Situation, number: int, inputs: list[Shape | None]) -> bool:
    """Whether calls of a node were given what is traced now: an eager try before may have had another size."""
    if any(one is None for one in inputs) and _of_eager(situation, number):
        return False
    rows = situation.rows(
        "SELECT DISTINCT v.position, v.shape FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND "
        "c.kind = 'forward' AND v.role = 'input' AND v.shape IS NOT NULL", (number,),
    )  # fmt: skip
    for position, text in rows:
        traced = inputs[position] if position < len(inputs) else None
        given = tuple(json.loads(text))
        if traced is not None and (
            len(traced) != len(given) or any(one not in (None, other) for one, other in zip(traced, given))
        ):
            return False
    return True


def _of_eager(situation: Situation, number: int) -> bool:
    """Whether a node's calls came from eager code."""
    return bool(situation.rows("SELECT id FROM node WHERE id = ? AND token IS NULL", (number,)))


def _same_body(situation: Situation, node: Node) -> int:
    """The node of the same body and line with most calls: each graph trace makes a new node for it."""
    rows = situation.rows(
        "SELECT n.id FROM node n JOIN call c ON c.node = n.id JOIN node own ON own.id = ? WHERE n.body = own.body "
        "AND n.file IS own.file AND n.line IS own.line GROUP BY n.id ORDER BY count(*) DESC LIMIT 1",
        (node.id,),
    )
    return int(rows[0][0]) if rows else node.id
