"""Gradients of the user's own that finite differences of the body contradict: checked by sample as recording ended."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts, makes_node
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding, Node

NAMES = ("gradient-check",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body, or a gradient that leaves out what follows."""
    told: set[tuple[str | None, int | None]] = set()
    for number, call, noticed in facts.notices["gradient-check"]:
        node = facts.nodes[number] if number is not None else None
        if node is None or call is None:
            continue
        function, tree = facts.function(node), facts.tree(node.file)
        custom = code.own_gradients(function, tree) if function is not None and tree is not None else []
        own = custom[0] if len(custom) == 1 else None
        whose = f" of {own.name}" if isinstance(own, ast.FunctionDef) and own is not function else ""
        told.add((node.file, own.lineno if own is not None else node.line))
        place = "".join(f"[{one}]" for one in noticed["index"])
        yield Finding(
            NAMES[0], "warning", node.id, tuple(noticed["gradients"]),
            f"the gradient that @tf.custom_gradient gives {node.body}{whose} is not its slope: "
            f"d{noticed['path']}{place} is {noticed['recorded']:.4g}, and {noticed['finite']:.4g} by finite "
            f"differences of the body, in call #{call} and in each of the {len(noticed['gradients'])} calls that were "
            "checked",
            (_derived(facts, node, own) if own is not None else "")
            or "correct the inner function, whose result is the upstream gradient times the slope; or remove "
            "@tf.custom_gradient, and return only the value: TensorFlow derives the gradient",
            node.file, own.lineno if own is not None else node.line, confidence="proven",
        )  # fmt: skip
    yield from _without_upstream(facts, told)


def _derived(facts: Facts, node: Node, function: Definition) -> str:
    """The function without its own gradient: TensorFlow derives it."""
    if not isinstance(function, ast.FunctionDef) or len(function.decorator_list) != 1 or node.file is None:
        return ""
    values = pastes.returns(function)
    first, text = function.decorator_list[0].lineno, facts.source(node.file)
    pairs = [one for one in values if isinstance(one, ast.Tuple) and len(one.elts) == 2]
    if len(values) != 1 or len(pairs) != 1 or first != function.lineno - 1:
        return ""
    value = pastes.replaced(facts, node.file, {pairs[0]: pastes.text_of(facts, node.file, pairs[0].elts[0])})
    return pastes.written(Edit(node.file, first, function.lineno, (text[function.lineno - 1],)), value)


def _without_upstream(facts: Facts, told: set[tuple[str | None, int | None]]) -> Iterator[Finding]:
    """`def grad(dy): return 2 * x`: the gradient of all that follows is left out."""
    for file in sorted({frame.file for node in facts.nodes.values() for frame in node.stack}):
        for function in pastes.walk(facts.tree(file), ast.FunctionDef):
            if not any(ast.unparse(one).endswith("custom_gradient") for one in function.decorator_list):
                continue
            own = _own_gradient(function)
            if own is None or (file, function.lineno) in told:
                continue
            nodes = _nodes_in(facts, file, function, own)
            shapes = _shapes(facts, nodes)
            if not shapes or all(given == [] for _, given in shapes):
                continue  # of a number at the end, a loss, nothing may follow
            named = [one for one in code.parameters(own) if one not in ("variables", "self")]
            read = {one.id for one in ast.walk(own) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
            given = pastes.returns(own)
            if not named or read & {*named, "locals"} or not given or all(map(_is_nothing, given)):
                continue
            name, fix = getattr(own, "name", "the lambda"), ""
            if len(given) == 1 and len(named) == 1 and own.args.vararg is None and _is_one(given[0]):
                same = all(sizes == taken for taken, sizes in shapes if sizes != [] or taken != [])
                new = f"{named[0]} * {pastes.source(facts, file).atom(given[0])}"
                fix = pastes.written(pastes.replaced(facts, file, {given[0]: new})) if same else ""
            yield Finding(
                NAMES[0], "warning", nodes[0].id, (),
                f"{name}, the gradient of {function.name}, leaves out {named[0]}: that is the gradient of all that "
                f"follows {function.name}, and what {name} returns has to be its product with the slope. It is right "
                "only where nothing but a sum follows",
                fix or f"multiply what {name} returns by {named[0]}", file, own.lineno,
                evidence=(f"line {given[0].lineno}: {facts.line(file, given[0].lineno)}",), confidence="likely",
            )  # fmt: skip


def _own_gradient(function: ast.FunctionDef) -> ast.FunctionDef | ast.Lambda | None:
    """The inner function of `return y, grad`, of a function that returns once."""
    given = pastes.returns(function)
    pair = given[0] if len(given) == 1 else None
    if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
        return None
    last = pair.elts[1]
    if isinstance(last, ast.Lambda):
        return last
    inner = [one for one in function.body if isinstance(one, ast.FunctionDef) and one.name == ast.unparse(last)]
    return inner[0] if len(inner) == 1 else None


def _nodes_in(facts: Facts, file: str, function: ast.FunctionDef, own: Definition) -> list[Node]:
    """The nodes that a function made, without those of its own gradient."""

    def within(node: Node, one: Definition) -> bool:
        return any(at.file == file and one.lineno <= at.line <= (one.end_lineno or one.lineno) for at in node.stack)

    made = [one for one in facts.nodes.values() if within(one, function)]
    if isinstance(own, ast.FunctionDef):
        return [one for one in made if not within(one, own)]
    return [] if any(map(makes_node, pastes.walk(own, ast.Call))) else made  # of one line: which is whose?


def _shapes(facts: Facts, nodes: list[Node]) -> list[tuple[list[int], list[int]]]:
    """The shapes that the first calls of each node were given first, and returned first."""
    found: list[tuple[list[int], list[int]]] = []
    for node in nodes:
        rows = facts.reader.rows(
            "SELECT v.role, v.shape FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND c.kind = 'forward' "
            "AND v.position = 0 AND v.role IN ('input', 'output') AND v.shape IS NOT NULL ORDER BY v.call LIMIT 2",
            [node.id],
        )
        sizes = {role: json.loads(shape) for role, shape in rows}
        if len(sizes) == 2:
            found.append((sizes["input"], sizes["output"]))
    return found


def _is_one(node: ast.expr) -> bool:
    return not isinstance(node, (ast.Tuple, ast.List, ast.Constant))


def _is_nothing(node: ast.expr) -> bool:
    """Whether a gradient is None or zeros: cut on purpose."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(_is_nothing, node.elts))
    text = ast.unparse(node)
    return isinstance(node, ast.Constant) or "zeros" in text or text.endswith("None")
