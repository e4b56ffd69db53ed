"""A map with a batch behind it, the other way round: where its body computes the same of a batch as of each element."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.datasets.cached_chains import before, mapped_function, method, reordered
from pyfunc_debug.doctor.datasets.pipelines import map_of
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.rules.needless_python import CROSSING_NS, MANY_CALLS
from pyfunc_debug.records import Node

_BETWEEN = {"shuffle", "repeat", "take", "skip"}
"""Methods of a dataset that do the same before a map as behind it."""
_EACH = {"sin", "cos", "tan", "tanh", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "square", "abs",
         "sign", "absolute", "floor", "ceil", "negative", "reciprocal", "float32", "float64"}  # fmt: skip
"""NumPy's functions that work on each number by itself."""
_ARRAYS = {"array", "asarray", "arange", "linspace", "zeros", "ones", "full", "load", "loadtxt", "genfromtxt", "rand",
           "randn", "random", "normal", "uniform", "randint", "standard_normal", "permutation"}  # fmt: skip
BATCHED = "written to take arrays"
"""In the words of a body that is called for too little."""
_WAITS = 0.25
"""Share of waiting from which parallel calls of a body took turns."""


def is_tiny(facts: Facts, node: Node) -> bool:
    """Whether a body of many calls takes less time than the way into Python and back.

    Args:
      facts: The recording.
      node: A node of its line.
    """
    group = next((one for one in facts.lines if any(each.id == node.id for each in one)), [node])
    calls = facts.calls_of(group)
    if calls.count < MANY_CALLS or calls.errors or group[0].kind not in CROSSING_NS:
        return False
    mean = calls.total_ns / calls.count
    for stage in facts.stages:
        one = stage.contention
        if one.node.id in {each.id for each in group} and (one.wait_share or 0.0) >= _WAITS:
            mean /= max(1.0, stage.at_once)  # they took turns: of the time of each, a part was the others'
    return mean < CROSSING_NS[group[0].kind]


def words(facts: Facts, node: Node, size: int | None) -> str:
    """What to do with a body that is called for too little: in words, for one that cannot be pasted."""
    calls, many = facts.calls(node.id).count, size or 256
    return (
        f"batch({many}) before {facts.name(node)}, {BATCHED} of {many} elements: {calls:,} calls become "
        f"{-(-calls // many):,}"
    )


def batched_first(facts: Facts, node: Node) -> str:
    """The lines of a map and of the batch behind it, with the batch first; "" where the body may need single elements.

    Args:
      facts: The recording.
      node: A node in the function given to `map`.
    """
    found, function, tree = map_of(facts, node), facts.function(node), facts.tree(node.file)
    if found is None or function is None or tree is None or found[0] != node.file:
        return ""
    file, call = found
    own = pastes.source(facts, file)
    given = mapped_function(own, call.args[0])
    made = pastes.call_of(facts, node)
    if given is None or made is None or not _only_calls(given, made[1]) or not _same_shapes(facts, node):
        return ""
    if not _elementwise(function, own):
        return ""
    chains = [
        chain[chain.index(call) :] for one in pastes.walk(own.tree, ast.Call)
        if method(one) == "batch" and call in (chain := before(own, one))
    ]  # fmt: skip
    chains.sort(key=len)
    if not chains or any(method(one) not in _BETWEEN for one in chains[0][1:-1]):
        return ""
    statements = {id(one): one for one in (own.statement(each.lineno) for each in chains[0]) if one is not None}
    if any(isinstance(one, (ast.For, ast.While, ast.With)) for one in statements.values()):
        return ""
    edit = reordered(own, file, chains[0], [*chains[0][1:], call])
    return "" if edit is None else pastes.written(edit)


def _only_calls(given: ast.FunctionDef | ast.Lambda, made: ast.Call) -> bool:
    """Whether a map's function is one py_function of its own parameters, and nothing else."""
    if isinstance(given, ast.Lambda):
        value: ast.expr | None = given.body
    else:
        last = given.body[-1]
        value = last.value if len(given.body) == 1 and isinstance(last, ast.Return) else None
    inputs = pastes.argument(made, 1, "inp")
    return (
        value is not None
        and ast.unparse(value) == ast.unparse(made)
        and isinstance(inputs, (ast.List, ast.Tuple))
        and [ast.unparse(one) for one in inputs.elts] == code.parameters(given)
    )


def _same_shapes(facts: Facts, node: Node) -> bool:
    """Whether all that a body was given and gave had one shape, or it was given single numbers only."""
    rows = facts.reader.rows(
        "SELECT DISTINCT v.role, v.shape FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND c.kind = "
        "'forward'", (node.id,),
    )  # fmt: skip
    shapes = {str(shape) for _, shape in rows}
    roles = {role for role, _ in rows}
    return roles == {"input", "output"} and len(shapes) == 1


def _elementwise(function: Definition, own: Source) -> bool:
    """Whether a body only computes number by number: with its parameters, numbers, and rows of NumPy's arrays."""
    known = set(code.parameters(function))
    modules = imports(own)
    if isinstance(function, ast.Lambda):
        return _each(function.body, known, own, modules)
    for one in function.body[:-1]:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            continue
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
            return False
        if not _each(one.value, known, own, modules):
            return False
        known.add(one.targets[0].id)
    last = function.body[-1]
    return isinstance(last, ast.Return) and last.value is not None and _each(last.value, known, own, modules)


def _each(node: ast.expr, known: set[str], own: Source, modules: Mapping[str, str]) -> bool:
    """Whether an expression is computed number by number, of at least one name that is known."""
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        sides = [one for one in (node.left, node.right) if not code.is_number(one)]
        return bool(sides) and all(_each(one, known, own, modules) for one in sides)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _each(node.operand, known, own, modules)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Name) and node.slice.id in known and _is_array(node.value, known, own)
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "astype"):
        inner = node.func.value
        return len(node.args) == (node.func.attr == "astype") and _each(inner, known, own, modules)
    head, _, name = dotted(node.func).rpartition(".")
    numpy = modules.get(head) == "numpy" and name in _EACH
    return numpy and len(node.args) == 1 and _each(node.args[0], known, own, modules)


def _is_array(node: ast.expr, known: set[str], own: Source) -> bool:
    """Whether a name stands for an array that one of NumPy's functions made, once."""
    if not isinstance(node, ast.Name) or node.id in known:
        return False
    stored = [one for one in pastes.walk(own.tree, ast.Name) if one.id == node.id and isinstance(one.ctx, ast.Store)]
    made = pastes.assigned(own.tree, node.id)
    if len(stored) != 1 or len(made) != 1 or not isinstance(made[0], ast.Call):
        return False
    value: ast.expr = made[0]
    while isinstance(value, ast.Call) and pastes.last_name(value.func) in ("astype", "reshape"):
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.func
    if not isinstance(value, ast.Call) or pastes.last_name(value.func) not in _ARRAYS:
        return False
    holder: ast.expr = value
    while isinstance(holder, (ast.Call, ast.Attribute)):
        holder = holder.func if isinstance(holder, ast.Call) else holder.value
    return isinstance(holder, ast.Name) and imports(own).get(holder.id) == "numpy"
