"""`y = tf.py_function(f, [x], [tf.float32])` is a list of one tensor: an op makes it a tensor with an axis more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.doctor.rules.static_shapes import common, returned_shapes
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding, Node

NAMES = ("listed-result",)
_TAKES_OFF = ("squeeze", "reshape", "unbatch")
"""Words in what follows a map by which a program may take the axis off its elements."""
_OPS = (
    "abs", "add", "cast", "divide", "einsum", "exp", "expand_dims", "identity", "matmul", "multiply", "sigmoid", "sqrt",
    "square", "subtract", "tanh", "tensordot", "transpose",
)  # fmt: skip
_MODULES = ("image", "linalg", "math", "nn")
_LISTS = ("accumulate_n", "add_n")
"""Ops that take a list of tensors."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of py_function whose result, a list of one, was used as a tensor."""
    told: set[tuple[str, int, int]] = set()
    uses = [
        (facts.nodes[node], one["file"], one["line"]) for node, _, one in facts.notices[Notice.LISTED_RESULT] if node
    ]
    for node, file, line in (*uses, *_eagerly(facts)):
        found = pastes.call_of(facts, node)
        tout = pastes.argument(found[1], 2, "Tout") if found is not None else None
        if found is None or not isinstance(tout, (ast.List, ast.Tuple)) or len(tout.elts) != 1:
            continue
        at = found[0], found[1].lineno, found[1].col_offset
        if at in told or not facts.source(file) or _is_taken_off(facts, node, found[0]):
            continue
        if not _is_list_elsewhere(facts, *found):
            told.add(at)
            yield _finding(facts, node, found, tout, file, line)


def _finding(
    facts: Facts, node: Node, found: tuple[str, ast.Call], tout: ast.List | ast.Tuple, file: str, line: int
) -> Finding:
    own, call = pastes.source(facts, found[0]), found[1]
    parent = own.parent(call)
    named = isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)
    what = ast.unparse(parent.targets[0]) if named and isinstance(parent, ast.Assign) else f"what tf.{node.kind} gives"
    returned = returned_shapes(facts, node, 0)
    shape = common([each for each, _, _ in returned]) if returned else None
    grown = f": {sizes_of(shape)} becomes {sizes_of((1, *shape))}" if shape is not None else ""
    text, one = own.text(tout), own.text(tout.elts[0])
    kind = type(tout).__name__.lower()
    where = "here" if (file, line) == (found[0], call.lineno) else f"at {facts.source_line(file, line)}"
    fix = pastes.written(pastes.replaced(facts, found[0], {tout: one}))
    return Finding(
        NAMES[0], "warning", node.id, tuple(first for _, _, first in returned[:1]),
        f"{what} is a list of one tensor, as Tout={text} is a {kind}. TensorFlow makes one tensor of it {where}, with "
        f"an axis of 1 in front{grown}",
        fix or f"Tout={one} gives the tensor itself; or take the first of the list, `[0]`, where it is used",
        found[0], call.lineno,
    )  # fmt: skip


def _is_list_elsewhere(facts: Facts, file: str, call: ast.Call) -> bool:
    """Whether the source takes the list apart somewhere: with a tensor in its place that would mean another thing."""
    own, tree = pastes.source(facts, file), facts.tree(file)
    parent, holder = own.parent(call), _holder(own, call)
    if _takes_apart(parent, call):
        return True
    if isinstance(parent, ast.Assign):
        names = {part.id for target in parent.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        every = [
            one for one in pastes.walk(holder or tree, ast.Name) if one.id in names and isinstance(one.ctx, ast.Load)
        ]
        if any(_takes_apart(own.parent(one), one) for one in every):
            return True
        handed = any(isinstance(own.parent(one), ast.Return) for one in every)
    else:
        handed = isinstance(parent, (ast.Return, ast.Lambda))
    if not handed or holder is None or isinstance(holder, ast.Lambda):
        return False
    asked = [
        one
        for name in facts.files
        for one in pastes.walk(facts.tree(name), ast.Call)
        if pastes.last_name(one.func) == holder.name
    ]
    return any(_takes_apart(pastes.source(facts, name).parent(one), one) for name in facts.files for one in asked)


def _holder(own: Source, node: ast.AST) -> Definition | None:
    """The function that holds a place: not a lambda that stands on the same line."""
    return next(
        (one for one in own.around(node) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))), None
    )


def _takes_apart(parent: ast.AST | None, part: ast.expr) -> bool:
    """Whether an expression is used as a list: its first, its names, its length, a loop over it."""
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, (ast.List, ast.Tuple)) for target in parent.targets)
    if isinstance(parent, ast.Call):
        return pastes.last_name(parent.func) in ("len", "list", "tuple", "stack", "concat", "enumerate", "zip", "add_n")
    return isinstance(parent, (ast.Starred, ast.For, ast.comprehension)) or (
        isinstance(parent, ast.Subscript) and parent.value is part
    )


def _is_taken_off(facts: Facts, node: Node, file: str) -> bool:
    """Whether the axis of a dataset's elements may be wanted, or a later step may take it off."""
    function = facts.functions.get(node.function or 0)
    if function is None or function.kind != "tf.data":
        return False
    if not any(pastes.last_name(one.func).endswith("batch") for one in pastes.walk(facts.tree(file), ast.Call)):
        return True  # an element with an axis of one in front may be meant for a batch of one
    return any(
        (isinstance(one, ast.Subscript) and ast.unparse(one.slice) == "0")
        or (isinstance(one, (ast.Name, ast.Attribute)) and ast.unparse(one).rpartition(".")[2] in _TAKES_OFF)
        for one in pastes.walk(facts.tree(file), ast.expr)
    )


def _eagerly(facts: Facts) -> Iterator[tuple[Node, str, int]]:
    """Eager nodes whose list is a side of arithmetic, or what an op of TensorFlow's is given: node, file, line."""
    for node in facts.nodes.values():
        function = facts.functions.get(node.function or 0)
        eager = function is not None and function.kind == "eager"
        if not eager or node.origin != "user" or node.kind != "py_function":  # numpy_function gives the tensor there
            continue
        found = pastes.call_of(facts, node)
        if found is None or len(node.out_paths) != 1:
            continue
        file, call = found
        used = [one for one in _uses(facts, file, call) if _stacks(facts, file, call, one)]
        used = [one for one in used if not _is_folded(facts, file, one)]
        if used:
            yield node, file, used[0].lineno


def _uses(facts: Facts, file: str, call: ast.Call) -> list[ast.expr]:
    """The call itself, or where its function reads the name that it is given, until that is given another value."""
    own, tree = pastes.source(facts, file), facts.tree(file)
    parent, holder = own.parent(call), _holder(own, call)
    if not isinstance(parent, ast.Assign):
        return [call]
    if len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name) or not isinstance(tree, ast.Module):
        return []
    after = [
        one for one in code.own_nodes(holder or tree)
        if isinstance(one, ast.Name) and one.id == parent.targets[0].id and one.lineno > (parent.end_lineno or 0)
    ]  # fmt: skip
    end = min((one.lineno for one in after if isinstance(one.ctx, ast.Store)), default=None)
    return [one for one in after if isinstance(one.ctx, ast.Load) and (end is None or one.lineno <= end)]


def _stacks(facts: Facts, file: str, call: ast.Call, one: ast.expr) -> bool:
    """Whether the expression around a list of one makes a tensor of it, for sure."""
    own, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow")
    parent = own.parent(one)
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is one else parent.left
        given = pastes.argument(call, 1, "inp")
        tensors = [ast.unparse(each) for each in given.elts] if isinstance(given, (ast.List, ast.Tuple)) else []
        known = ast.unparse(other) in tensors or (
            isinstance(other, ast.Call) and code.root(other.func) == tf and tf is not None
        )
        return known and isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult))
    if not isinstance(parent, ast.Call) or one not in parent.args or tf is None or code.root(parent.func) != tf:
        return False
    path = ast.unparse(parent.func).split(".")
    return path[1] in _OPS if len(path) == 2 else path[1] in _MODULES and path[-1] not in _LISTS


def _is_folded(facts: Facts, file: str, one: ast.expr) -> bool:
    """Whether the statement folds what it makes of a list, or takes a part of it: no axis of one is left, maybe."""
    own = pastes.source(facts, file)
    for outer in own.around(one):
        if isinstance(outer, ast.stmt):
            names = [target.id for target in getattr(outer, "targets", ()) if isinstance(target, ast.Name)]
            scope = _holder(own, one) or facts.tree(file)
            return any(
                _folds(own.parent(used)) for used in pastes.walk(scope, ast.Name)
                if used.id in names and isinstance(used.ctx, ast.Load)
            )  # fmt: skip
        if _folds(outer):
            return True
    return False


def _folds(node: ast.AST | None) -> bool:
    name = pastes.last_name(node.func) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Subscript) or name.startswith("reduce_") or name in _TAKES_OFF
