"""A generator that gives one small element at a time, and a batch behind it: each element crosses into Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.nodes import tail
from pyfunc_debug.doctor.failures.reading.source import Source, parameters
from pyfunc_debug.doctor.generators import array_chunks
from pyfunc_debug.records import Finding, Node

NAMES = ("single-elements",)
_FEWEST, _LEAST_NS, _SHARE, _MOST_NS = 2000, 2_000_000_000, 0.3, 2_000_000
"""Elements, time in all, share of the recording's time, and time of one, from which and up to which it counts."""
_WAITED_NS = 1_000_000_000
"""The same for how long a loop waited for batches of them: TensorFlow's part of the way counts there, too."""
_SMALL_NS = 200_000
"""Time of a call up to which it is mostly the way into Python, where a loop waits for it."""
_PICKS = {"range", "len", "tuple", "list", "dict", "zip", "enumerate", "int", "float", "bool", "str", "iter"}
_PICKING = {"float32", "float64", "int32", "int64", "array", "asarray", "items", "values", "keys"}
_HELPER = """def in_batches(elements, size):  # arrays of `size` elements: one crossing for all of them
    rows = []
    for row in elements:
        rows.append(row)
        if len(rows) == size:
            yield {tf}.nest.map_structure(lambda *one: {np}.stack(one), *rows)
            rows = []
    if rows:
        yield {tf}.nest.map_structure(lambda *one: {np}.stack(one), *rows)

"""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator."""
    wall = facts.wall_ns
    if not wall:
        return
    for node, size in picking(facts).items():
        took, waited = facts.calls(node).total_ns, _waited(facts, facts.nodes[node])
        if took >= max(facts.least_ns(_LEAST_NS), _SHARE * wall):
            yield _finding(facts, facts.nodes[node], size, f"took {took / 1e9:.1f} s of {wall / 1e9:.1f} s")
        elif waited >= max(facts.least_ns(_WAITED_NS), _SHARE * wall):
            words = f"kept a loop waiting {waited / 1e9:.1f} s of {wall / 1e9:.1f} s"
            yield _finding(facts, facts.nodes[node], size, words)


def picking(facts: Facts) -> dict[int, int]:
    """Nodes of generators that only pick many small elements, and the size of the batches behind them."""
    by_token = facts.by_token
    found: dict[int, int] = {}
    for loop in facts.meta.get("inputs") or []:
        for batch, source in zip(loop["stages"], loop["stages"][1:]):  # the last first
            if batch["kind"] != "Batch" or not isinstance(batch["batch"], int) or source["kind"] != "FlatMap":
                continue
            for node in filter(None, map(by_token.get, source["tokens"])):
                calls, function = facts.calls(node.id), facts.function(node)
                if calls.count < _FEWEST or function is None or not _only_picks(function):
                    continue
                if calls.total_ns / calls.count <= _MOST_NS:
                    found.setdefault(node.id, batch["batch"])
    return found


def _waited(facts: Facts, node: Node) -> int:
    """How long loops waited for batches of a generator's elements, with the first one."""
    loops = facts.meta.get("inputs") or []
    return sum(
        loop["first_ns"] + loop["wait_ns"] for loop in loops
        if any(node.token in stage["tokens"] for stage in loop["stages"])
    )  # fmt: skip


def _only_picks(function: Any) -> bool:
    """Whether a generator computes nothing itself: then what its calls take is the way into Python and back."""
    called = [one.func for one in code.own_nodes(function) if isinstance(one, ast.Call)]
    return all(
        one.id in _PICKS if isinstance(one, ast.Name) else isinstance(one, ast.Attribute) and one.attr in _PICKING
        for one in called
    )  # fmt: skip


def _finding(facts: Facts, node: Node, size: int, took: str) -> Finding:
    calls = facts.calls(node.id)
    many = f" of {len(node.tout)} values" if len(node.tout) > 1 else ""
    return Finding(
        "single-elements", "warning", node.id, (),
        f"{facts.name(node)} gives one element at a time: its {calls.count:,} elements{many} {took}, though "
        f"it only picks them. That is the way into Python and back, for each; .batch({size}) comes behind it",
        batched(facts, node, size)
        or f"yield arrays of {size} elements in {facts.name(node)}, and leave out .batch({size})",
        node.file, node.line,
        evidence=(f"{calls.total_ns / calls.count / 1e3:.0f} us an element",), confidence="likely",
    )  # fmt: skip


def batched(facts: Facts, node: Node, size: int) -> str:
    """Slices of the array that a generator goes through; else a function that makes batches in Python.

    With its call in from_generator, and the batch() behind left out.
    """
    found = pastes.dataset_call(facts, node)
    return array_chunks.pasted(facts, node) or ("" if found is None else _pieces(facts, *found, size))


def in_chunks(facts: Facts, node: Node) -> str:
    """What helps a generator that only picks many small elements: the same, in words where not in lines; else ""."""
    calls, function = facts.calls(node.id), facts.function(node)
    small = node.origin != "user" and calls.count >= _FEWEST and calls.total_ns <= _SMALL_NS * calls.count
    if not small or function is None or not _only_picks(function):
        return ""
    size = picking(facts).get(node.id)
    return (array_chunks.pasted(facts, node) if size is None else batched(facts, node, size)) or (
        f"yield arrays of many elements in {facts.name(node)}, as rows[i:i + 4096], with a signature of shape "
        "(None, ...), and put .unbatch() behind from_generator: each array is one call"
    )


def _pieces(facts: Facts, file: str, call: ast.Call, size: int) -> str:
    tree, tf, np = facts.tree(file), pastes.module(facts, file, "tensorflow"), pastes.module(facts, file, "numpy")
    named = {one.arg: one.value for one in call.keywords}
    given = call.args[0] if call.args else named.get("generator")
    signature = named.get("output_signature")
    batches = [
        one for one in pastes.walk(tree, ast.Call)
        if pastes.last_name(one.func) == "batch" and len(one.args) == 1 and not one.keywords
    ]  # fmt: skip
    if given is None or "args" in named or not tf or not np or tree is None:
        return ""
    alone = len(batches) == 1 and not _is_shared(pastes.source(facts, file), batches[0])
    shapes = pastes.argument(call, 2, "output_shapes")
    older = None if signature is not None or shapes is None else _shapes(shapes)
    if signature is None and shapes is not None and not older:
        return ""
    text = pastes.text_of(facts, file, given)
    made = f"({text})()" if isinstance(given, ast.Lambda) else f"{text}()"
    number = pastes.text_of(facts, file, batches[0].args[0]) if alone else str(size)
    specs = f"{tf}.nest.map_structure(lambda one: {tf}.TensorSpec([None, *one.shape], one.dtype), "
    pieces: dict[ast.expr, str] = {given: f"lambda: in_batches({made}, {number})"}
    if alone:
        pieces[tail(batches[0])] = ""
    else:  # the elements are single again behind it, for whatever comes: in C++
        pieces[pastes.end_of(call)] = ".unbatch()"
    if signature is not None:
        pieces[signature] = f"{specs}{pastes.text_of(facts, file, signature)})"
    for one in older or ():
        pieces[one] = f"[{', '.join(['None', *(ast.unparse(size) for size in one.elts)])}]"
    top = next(one for one in tree.body if one.lineno <= call.lineno <= (one.end_lineno or one.lineno))
    helper = pastes.above(facts, file, pastes.first_line(top), *_HELPER.format(tf=tf, np=np).split("\n"))
    return pastes.written(helper, *pastes.each_replaced(facts, file, pieces))


def _is_shared(own: Source, batch: ast.Call) -> bool:
    """Whether a batch() is asked of what a function is given, which may be other datasets, too."""
    around = [one for one in own.around(batch) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    return any(code.root(batch.func) in parameters(one) for one in around)


def _shapes(node: ast.expr) -> list[ast.List | ast.Tuple]:
    """The shapes in output_shapes, each as its list of sizes; nothing where one of them is another expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):  # `((),) * 10`
        return _shapes(node.left)
    if isinstance(node, ast.Call):
        return _shapes(node.args[0]) if len(node.args) == 1 else []
    if not isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
        return []
    parts = node.values if isinstance(node, ast.Dict) else node.elts
    if not isinstance(node, ast.Dict) and all(isinstance(one, ast.Constant) for one in parts):
        return [node]
    found = [_shapes(one) for one in parts]
    return [one for each in found for one in each] if all(found) else []
