"""Arithmetic with a dimension that is None at trace: `x.shape[0]` where the size is known only when the graph runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.graphs import comprehensions, open_batches
from pyfunc_debug.doctor.failures.ops.rewrites import created
from pyfunc_debug.doctor.failures.pastes import control_flow, wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import as_python
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    described,
    is_keras,
    is_symbolic,
    lookup,
    root_is,
    shape_of,
)

RULE = "symbolic-value"
_FARTHEST = 20
"""Lines from the first to the last that one paste changes."""
_LISTED = re.compile(r"Failed to convert elements of [\[(][^\])]*\bNone\b")
_NONE = re.compile(r"NoneType|\bNone\b")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a None of a shape is why the program failed."""
    spot = situation.last
    if (
        spot is None
        or situation.body
        or situation.kind not in ("TypeError", "ValueError")
        or not _NONE.search(situation.message)
    ):
        return None
    statement = spot.statement
    if statement is None:
        return None
    header = [one for one in (wrapping.value_here(spot, statement),) if one is not None]
    for node in header:
        for read, tensor, value in _reads(node, spot):
            if _size(read, value) is None:
                return _explanation(situation, statement, tensor, value, _in_place(spot, node), read, spot.line)
    return _whole(situation, spot, statement, header) or _bound_before(situation, spot, statement, header)


def listed(situation: Situation) -> Explanation | None:
    """The explanation, if `tf.reshape(x, sizes)` is given a list of sizes that was made before and holds a None."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _LISTED.search(situation.message):
        return None
    for call in calls(statement):
        given = argument(call, 1, "shape") if dotted(call.func).rpartition(".")[2] == "reshape" else None
        sizes: Any = lookup(given, spot) if isinstance(given, (ast.Name, ast.Attribute)) else None
        if given is None or type(sizes) not in (list, tuple) or not {type(one) for one in sizes} <= {int, type(None)}:
            continue
        name, count = spot.source.text(given), list(sizes).count(None)
        cause = f"{name} is {short(str(sizes), 40)} at trace: a None is a size that is known only when the graph runs."
        if count == 1 and -1 not in sizes:
            cause += " A reshape computes the size in whose place -1 stands."
            edit = edit_of(spot.file, spot.source.replaced({given: f"[-1 if n is None else n for n in {name}]"}))
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        if count:
            tf = alias(spot, "tensorflow")
            advice = f"Take sizes of {tf}.shape(x), a tensor that has them then, and leave one to -1."
            return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _whole(situation: Situation, spot: Spot, statement: ast.stmt, header: list[ast.expr]) -> Explanation | None:
    """`tf.reshape(y, x.shape)`: the whole shape, with a size in it that is None."""
    if "partially known TensorShape" not in situation.message:
        return None
    given = [
        part for node in header for call in calls(node) for part in (*call.args, *(k.value for k in call.keywords))
    ]
    for one in given:
        owner = tensor_of(one)
        value = lookup(owner, spot) if owner is not None else None
        shape = shape_of(value) if is_symbolic(value) and not is_keras(value) else None
        if owner is None or shape is None or None not in shape:
            continue
        text = spot.source.text(owner)
        edit = wrapping.replace_expression(spot, one, f"{alias(spot, 'tensorflow')}.shape({text})")
        return _explanation(situation, statement, text, value, edit, None, spot.line)
    return None


def _reads(node: ast.AST, spot: Spot) -> Iterator[tuple[ast.Subscript, str, object]]:
    """`x.shape[0]` and `x.get_shape().as_list()[0]`, with `x` and its value."""
    for one in ast.walk(node):
        if not isinstance(one, ast.Subscript):
            continue
        function = spot.function
        kept = assignments(function).get(one.value.id) if function and isinstance(one.value, ast.Name) else None
        owner = tensor_of(kept if kept is not None else one.value)
        value = lookup(owner, spot) if owner is not None else None
        if owner is not None and is_symbolic(value):
            yield one, spot.source.text(owner), value


def tensor_of(node: ast.expr) -> ast.expr | None:
    """`x` of `x.shape`, `x.shape.as_list()`, `x.get_shape()`, `tf.keras.backend.int_shape(x)`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("as_list", "get_shape")
    ):
        if node.func.attr == "get_shape":
            return node.func.value
        node = node.func.value
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return node.value
    if isinstance(node, ast.Call) and dotted(node.func).endswith("int_shape") and node.args:
        return node.args[0]
    return None


def _size(read: ast.Subscript, value: object) -> object:
    shape = shape_of(value)
    if shape is None:  # TensorFlow gives None for each size
        return None
    try:
        index = ast.literal_eval(read.slice)
        return shape[index] if isinstance(index, int) else 0
    except (ValueError, IndexError, TypeError):
        return 0


def _in_place(spot: Spot, node: ast.expr) -> Edit | None:
    tf = alias(spot, "tensorflow")
    pieces: dict[ast.expr, str] = {}
    for one, name, other in _reads(node, spot):
        if _size(one, other) is None:
            text, around = f"{tf}.shape({name})[{spot.source.text(one.slice)}]", spot.source.parent(one)
            if isinstance(around, ast.BinOp):  # a size is int32
                beside = Guess(spot).of(around.left if around.right is one else around.right)
                text = f"{tf}.cast({text}, {beside})" if "float" in (beside or "") else text
            whole = isinstance(around, ast.Call) and dotted(around.func) == "int"
            if isinstance(around, ast.Call) and dotted(around.func) == f"{tf}.constant" and not around.keywords:
                whole = len(around.args) == 1  # tf.constant takes no tensor of a graph
            pieces[around if whole and isinstance(around, ast.expr) else one] = text
    listed = comprehensions.with_sizes(spot, node, pieces)
    if listed is not None or comprehensions.keyed(node, pieces):
        return listed
    for call in ast.walk(node):  # NumPy makes no array of such a size, and range has no such length
        if isinstance(call, ast.Call) and any(_inside(part, call) for part in pieces):
            makes = created(dotted(call.func).rpartition(".")[2]) if root_is(call.func, spot, "numpy") else None
            if makes or dotted(call.func) == "range":
                pieces[call.func] = f"{tf}.{makes or 'range'}"
    found = spot.source.replaced(pieces)
    return edit_of(spot.file, found)


def _bound_before(situation: Situation, spot: Spot, statement: ast.stmt, header: list[ast.expr]) -> Explanation | None:
    """`batch = x.shape[0]` or `b, h, w = x.shape`, and a later line that computes with it."""
    used = [name for node in header for name in names(node) if name in spot.variables and spot.variables[name] is None]
    function = spot.function
    if not used or function is None:
        return None
    tf = alias(spot, "tensorflow")
    for one in own_nodes(function):
        if not isinstance(one, ast.Assign) or one.lineno > spot.line or len(one.targets) != 1:
            continue
        target = one.targets[0]
        if isinstance(target, ast.Name) and target.id in used:
            for read, tensor, value in _reads(one.value, spot):
                if _size(read, value) is None:
                    edit = _in_place(spot, one.value)
                    return _explanation(situation, statement, tensor, value, edit, read, one.lineno)
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(one.value, ast.Tuple):
            for part, value in zip(target.elts, one.value.elts):
                for read, tensor, owned in _reads(value, spot) if getattr(part, "id", "") in used else ():
                    if _size(read, owned) is None:
                        edit = _in_place(spot, one.value)
                        return _explanation(situation, statement, tensor, owned, edit, read, one.lineno)
            continue
        if isinstance(target, (ast.Tuple, ast.List)) and any(getattr(part, "id", "") in used for part in target.elts):
            sliced = one.value.slice if isinstance(one.value, ast.Subscript) else None
            owner = tensor_of(one.value.value if isinstance(one.value, ast.Subscript) else one.value)
            value = lookup(owner, spot) if owner is not None else None
            shape = shape_of(value) if is_symbolic(value) else None
            chosen = _sliced(sliced, len(shape)) if shape is not None else None
            if owner is not None and shape is not None and chosen is not None and len(chosen) == len(target.elts):
                name = spot.source.text(owner)
                sizes = [f"{tf}.shape({name})[{at}]" if shape[at] is None else str(shape[at]) for at in chosen]
                blanks = indent_of(spot.source.lines[one.lineno - 1])
                line = f"{blanks}{spot.source.text(target).strip('()')} = {', '.join(sizes)}"
                edit = Edit(spot.file, one.lineno, one.end_lineno or one.lineno, (line,))
                return _explanation(situation, statement, name, value, edit, None, one.lineno)
    return None


def _sliced(part: ast.expr | None, rank: int) -> list[int] | None:
    """Which axes `x.shape`, `x.shape[:2]` and `x.shape[1:]` name; None where the text does not say."""
    if part is None:
        return [*range(rank)]
    if not isinstance(part, ast.Slice):
        return None
    try:
        bounds = [None if one is None else ast.literal_eval(one) for one in (part.lower, part.upper, part.step)]
        return [*range(rank)][slice(*bounds)]
    except (ValueError, TypeError):
        return None


def _explanation(
    situation: Situation, statement: ast.stmt, tensor: str, value: object, edit: Edit | None,
    read: ast.Subscript | None, line: int,
) -> Explanation:  # fmt: skip
    spot = situation.spots[-1]
    if is_keras(value):
        what = f"{tensor}.shape" if read is None else spot.source.text(read)
        code = short(spot.source.text(statement).split("\n")[0], 44)
        cause = (
            f"`{code}` ran while the model was built, where {what} is None: {tensor} is a Keras input of any number of "
            "samples, and only data says how many."
        )
        advice = (
            f"Put it into the call of a layer: there {alias(spot, 'tensorflow')}.shape(x)[0] has it for each batch."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    batch = open_batches.explain(situation, spot, tensor, value, _batch_sizes(spot, tensor))
    if batch is not None:
        return batch
    wrap = None if _stays_in_graph(spot, line) else as_python(situation)
    if wrap is not None:  # Python goes on computing with it, as it may with values only
        edit = wrap.edit
    elif edit is not None:
        edit = _with_the_rest(situation, edit, line)
    code = short(spot.source.text(statement).split("\n")[0], 44)
    tf = alias(spot, "tensorflow")
    what = f"a size of {tensor}.shape" if read is None else spot.source.text(read)
    known = "and the ? is known only when the graph runs"
    known = known if shape_of(value) is not None else "known only when the graph runs"
    cause = (
        f"`{code}` ran at trace, where {what} is None: {tensor} is {described(value)}, {known}. {tf}.shape({tensor}) "
        "is a tensor that has it then."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _batch_sizes(spot: Spot, tensor: str) -> set[str]:
    """What stands for a tensor's first size in a function: `x.shape[0]` as text, and names that got it."""
    scope = spot.function if spot.function is not None else spot.source.tree
    sizes: set[str] = set()
    for one in own_nodes(scope):
        if isinstance(one, ast.Subscript) and ast.unparse(one.slice) == "0":
            owner = tensor_of(one.value)
            if owner is not None and spot.source.text(owner) == tensor:
                sizes.add(spot.source.text(one))
    for one in own_nodes(scope):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1:
            continue
        target, owner = one.targets[0], tensor_of(one.value)
        if isinstance(target, ast.Name) and spot.source.text(one.value) in sizes:
            sizes.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(target.elts[0], ast.Name):
            whole = owner is not None and spot.source.text(owner) == tensor
            first = one.value.elts[0] if isinstance(one.value, ast.Tuple) else None
            if whole or (first is not None and spot.source.text(first) in sizes):
                sizes.add(target.elts[0].id)
    return sizes


def _stays_in_graph(spot: Spot, line: int) -> bool:
    """Whether what a function computes with sizes, from a line on, are sums and products: tensors have them, too."""
    function = spot.function
    if function is None:
        return True
    sizes = {name for name in spot.variables if spot.variables[name] is None}
    for one in own_nodes(function):
        if getattr(one, "lineno", 0) < line:
            continue
        if isinstance(one, ast.Assign) and sizes & set(names(one.value)) and not isinstance(one.value, ast.Call):
            sizes |= {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        plain = isinstance(one, ast.Call) and not root_is(one.func, spot, "tensorflow") and dotted(one.func) != "range"
        if isinstance(one, ast.Call) and any(dotted(one.func) == function for function in ("print", "isinstance")):
            continue
        if plain or isinstance(one, ast.Compare) or (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)):
            inside = one.args if isinstance(one, ast.Call) else [one]
            if any(sizes & set(names(part)) for part in inside) and _computes(one, spot):
                return False
    return True


def _with_the_rest(situation: Situation, edit: Edit, line: int) -> Edit:
    """The line, and what fails after it: a loop that Python runs, and floats beside sizes, which are int32."""
    spot = situation.spots[-1]
    function, source, tf = spot.function, spot.source, alias(spot, "tensorflow")
    if not isinstance(function, ast.FunctionDef):
        return edit
    sizes = _sizes(function, spot, line)
    guess, edits = Guess(spot, assignments(function)), [edit]
    pieces: dict[ast.expr, str] = {}
    for one in own_nodes(function):
        if not isinstance(one, ast.BinOp) or not edit.last < one.lineno:
            continue
        for side, other in ((one.left, one.right), (one.right, one.left)):
            plain = names(side) and set(names(side)) <= sizes and next(calls(side), None) is None
            if plain and not set(names(other)) <= sizes and "float" in (guess.of(other) or ""):
                pieces[side] = f"{tf}.cast({source.text(side)}, {guess.of(other)})"
    loops = [one for one in own_nodes(function) if isinstance(one, ast.For) and sizes & set(names(one.iter))]
    outside = wrapping.entry(situation)[1] == "Keras" and not spot.generated and not function.decorator_list
    if loops and outside and control_flow.converts(function):
        above = wrapping.above_function(spot, function, wrapping.converting(spot, function))
        edits += [above] if above is not None else []
    for side, text in pieces.items():
        found = source.replaced({side: text})
        edits += [Edit(spot.file, found[0], found[1], (found[2],))] if found is not None else []
    whole = together(edits, source.lines)
    apart = len({one.first for one in edits}) == len(edits)
    return whole if apart and whole.last - whole.first < _FARTHEST else edit


def _sizes(function: ast.FunctionDef, spot: Spot, line: int) -> set[str]:
    """Names that hold sizes."""
    sizes = {name for name in spot.variables if spot.variables[name] is None}
    for one in own_nodes(function):
        simple = isinstance(one, ast.Assign) and isinstance(one.value, (ast.BinOp, ast.Name)) and one.lineno > line
        if simple and set(names(one.value)) <= sizes:  # type: ignore[attr-defined]
            sizes |= {name for target in one.targets for name in names(target)}  # type: ignore[attr-defined]
    return sizes


def _computes(node: ast.AST, spot: Spot) -> bool:
    """Whether it is NumPy's, Python's or an operator's, and not one of the program's own functions or a layer."""
    if not isinstance(node, ast.Call):
        return True
    known = dotted(node.func) in ("int", "float", "round", "max", "min", "abs", "divmod")
    return known or any(root_is(node.func, spot, module) for module in ("numpy", "math"))


def _inside(node: ast.AST, other: ast.AST) -> bool:
    return any(one is node for one in ast.walk(other))
