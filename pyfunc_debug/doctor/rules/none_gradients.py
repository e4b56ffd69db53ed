"""Inputs that get no gradient, which TensorFlow silently turns into zeros."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import listed, several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.gradients.overrides import override, with_custom_gradient
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.ops.stand_ins import Way, way
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.locations import path, sites
from pyfunc_debug.doctor.rules import cut_gradients
from pyfunc_debug.records import Finding, Node

NAMES = ("none-gradient",)
_JACOBIANS = ("jacobian", "batch_jacobian")
_LEAVES = re.compile(
    r"\.numpy\(\)|\bnp\.|\bnumpy\.|\bfloat\(|\bint\(|\.item\(\)|\.tolist\(\)|tf\.stop_gradient"
    r"|tf\.(?:math\.)?(?:round|floor|ceil|sign|argmax|argmin)\(|tf\.cast\(.*, tf\.u?int\d+\)"
)
"""What takes a body out of TensorFlow."""
_MAKES_DATA = re.compile(
    r"(?:np|numpy|rng|\w+\.random|random|tf\.(?:random|zeros|ones|constant|range|fill|linspace))(?:\.\w+)*$|next$|iter$"
)
"""What makes numbers that nothing trains."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and its inputs, from the first gradient call in which it was seen.

    Labels, masks and constants have no gradient either, and need none: an input counts if it is computed from a
    variable in its graph, or if the body has no gradient for any of its inputs.
    """
    told = {(one.file, one.line) for one in failures(facts, NAMES)}
    overridden: set[int] = set()
    for group in facts.lines:
        other = _of_another_op(facts, group)
        if other is not None:
            overridden |= {one.id for one in group}
            if (other.file, other.line) not in told:
                yield other
    for dropped in _dropped(facts):
        nodes_of = {dropped.node, *dropped.nodes}
        overridden |= {one for one in nodes_of if one is not None}
        yield dropped
    seen: dict[tuple[object, ...], list[tuple[int, int | None]]] = {}
    for node, call, noticed in facts.notices["none-gradient"]:
        if node is None or node in overridden or facts.nodes[node].origin != "user":
            continue
        without = noticed["inputs"]
        trained = [position for position in without if position in noticed.get("trained", ())]
        if not trained and len(without) < len(noticed.get("wanted", without)):
            continue
        if not trained and _of_data(facts, facts.nodes[node]):
            continue
        known = facts.nodes[node]
        key = (known.body, known.file, known.line, *(trained or without))
        seen.setdefault(key, []).append((node, call))
    for node, call, position in _eagerly(facts):
        known = facts.nodes[node]
        if node not in overridden:
            seen.setdefault((known.body, known.file, known.line, position), []).append((node, call))
    for (_, file, line, *positions), found in seen.items():
        nodes = tuple(dict.fromkeys(node for node, _ in found))
        node, call = found[0]
        names = [path(facts.reader, node, position) for position in positions if isinstance(position, int)]
        which = f"input {names[0]}" if len(names) == 1 else f"inputs {', '.join(names)}"
        body, site = facts.nodes[node].body, facts.site(node)
        cut, text = _cut(facts, node)
        where = f" Line {cut} leaves TensorFlow: `{text}`." if cut else ""
        if (file, cut or line) in told:
            continue  # the program failed by it
        yield Finding(
            "none-gradient", "warning", node, () if call is None else (call,),
            f"{body} has no gradient for its {which}, so that TensorFlow uses zeros instead and nothing before it is "
            f"trained through it{sites(facts.reader, nodes)}{listed(nodes)}.{where}",
            _fix(facts, facts.nodes[node], cut),
            str(file) if file is not None else site.file if site else None,
            cut or (line if isinstance(line, int) else site.line if site else None), several(nodes),
        )  # fmt: skip


def _of_another_op(facts: Facts, nodes: Sequence[Node]) -> Finding | None:
    """The finding where the user gave a gradient to another op type than that of some nodes of one line."""
    made = pastes.call_of(facts, nodes[0])
    other = override(pastes.source(facts, made[0]), made[1], nodes[0].kind) if made is not None else None
    if made is None or other is None:
        return None
    file, call = made
    function = facts.functions.get(nodes[0].function) if nodes[0].function is not None else None
    if function is None or function.kind == "eager":
        name, tf = pastes.text_of(facts, file, call.func), pastes.module(facts, file, "tensorflow") or "tf"
        edit = with_custom_gradient(pastes.source(facts, file), call, file, tf)
        return Finding(
            "none-gradient", "warning", nodes[0].id, (),
            f"gradient_override_map is for ops that its graph makes, and {name} runs eagerly here: it has no effect. "
            f"The gradient of {facts.name(nodes[0])} is the one that TensorFlow finds in it, or none",
            pastes.written(edit) if edit is not None else
            f"give it a gradient with @tf.custom_gradient: a function that returns what {name} gives, and the function "
            "of its gradient",
            file, other.key.lineno, tuple(one.id for one in nodes) if len(nodes) > 1 else (),
            evidence=(f"line {other.key.lineno}: {facts.line(file, other.key.lineno)}",),
        )  # fmt: skip
    return Finding(
        "none-gradient", "warning", nodes[0].id, (),
        f"{other.cause(pastes.text_of(facts, file, call.func))}, and {facts.name(nodes[0])} has the one that "
        "TensorFlow finds in it, or none",
        pastes.written(pastes.replaced(facts, file, {other.key: f'"{other.made}"'})), file, other.key.lineno,
        tuple(one.id for one in nodes) if len(nodes) > 1 else (),
        evidence=(f"line {other.key.lineno}: {facts.line(file, other.key.lineno)}",),
    )  # fmt: skip


def _of_data(facts: Facts, node: Node) -> bool:
    """Whether a node of a tf.function is given its arguments only, and each call passes data for them.

    Data are drawn numbers, arrays, constants and elements of a loop; a tape that watches one wants its gradient.
    """
    function = facts.functions.get(node.function) if node.function is not None else None
    made, own = pastes.call_of(facts, node), None
    if function is not None:
        own = facts.definition(function.file, function.line)
    given = pastes.argument(made[1], 1, "inp") if made is not None else None
    if function is None or not isinstance(own, ast.FunctionDef) or not isinstance(given, (ast.List, ast.Tuple)):
        return False
    inputs = [one.id for one in given.elts if isinstance(one, ast.Name)]
    parameters = [one.arg for one in (*own.args.posonlyargs, *own.args.args) if one.arg != "self"]
    places = pastes.run_sites(facts, function.id)
    watches = any(pastes.last_name(one.func) == "watch" for one in pastes.walk(own, ast.Call))
    if len(inputs) != len(given.elts) or not set(inputs) <= set(parameters) or not places or watches:
        return False
    for file, line in places:
        call = pastes.call_at(facts, file, line, function.name.rpartition(".")[2])
        for name in inputs:
            value = pastes.argument(call, parameters.index(name), name) if call is not None else None
            if value is None or not _is_data(facts, file, value):
                return False
    return True


def _is_data(facts: Facts, file: str, value: ast.expr) -> bool:
    """Whether an expression is a constant, what draws numbers or makes an array, or a name of such."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Call):
        return _MAKES_DATA.match(ast.unparse(value.func)) is not None
    if not isinstance(value, ast.Name):
        return False
    own = pastes.source(facts, file)
    scope = _scope(own, value)
    inside = [one for one in ast.walk(scope) if _scope(own, one) is scope]
    found = [
        one.value for one in inside if isinstance(one, ast.Assign)
        if any(isinstance(part, ast.Name) and part.id == value.id for to in one.targets for part in ast.walk(to))
    ]  # fmt: skip
    watched = any(
        isinstance(one, ast.Call) and pastes.last_name(one.func) == "watch" and value.id in ast.unparse(one)
        for one in inside
    )
    looped = any(
        isinstance(part, ast.Name) and part.id == value.id
        for one in inside if isinstance(one, ast.For) for part in ast.walk(one.target)
    )  # fmt: skip
    made = all(isinstance(one, ast.Call) and _MAKES_DATA.match(ast.unparse(one.func)) for one in found)
    return not watched and (looped or bool(found)) and made


def _scope(source: Source, node: ast.AST) -> ast.AST:
    """The function, or the file, in which a node stands."""
    return next((one for one in source.around(node) if isinstance(one, (ast.FunctionDef, ast.Lambda))), source.tree)


def _dropped(facts: Facts) -> Iterator[Finding]:
    """One finding a line whose `vectorized_map` (or jacobian) does not use a gradient of the user's."""
    lines: dict[tuple[Any, Any], list[tuple[int, dict[str, Any]]]] = {}
    for number, _, noticed in facts.notices["mapped-gradient"]:
        if number is not None and facts.nodes[number].origin == "user":
            lines.setdefault((noticed["file"], noticed["line"]), []).append((number, noticed))
    for (file, line), found in lines.items():
        number, noticed = found[0]
        node = facts.nodes[number]
        numpy = node.kind != "py_function"
        own = node.stack[-1].function if node.stack else "<lambda>"
        whose = facts.name(node) if own == "<lambda>" else own
        instead = "uses zeros for its gradient" if numpy else f"differentiates {facts.name(node)} instead"
        untrained = ". Nothing before it is trained through it" if numpy else ""
        yield Finding(
            "none-gradient", "warning", number, (),
            f"the gradient that tf.custom_gradient gives {whose} is lost where it is vectorized: TensorFlow runs the "
            f"tf.{node.kind} in a loop of its own, and {instead}{untrained}",
            _with_map_fn(facts, file, line, noticed["result"]), file, line, several(one for one, _ in found),
        )  # fmt: skip


def _with_map_fn(facts: Facts, file: str | None, line: int, result: str | None) -> str:
    """The call of vectorized_map as one of map_fn, which keeps gradients; a jacobian without vectorization."""
    calls = pastes.around(facts.tree(file), line, ast.Call)
    mapped = [one for one in calls if pastes.last_name(one.func) == "vectorized_map"]
    if not mapped and any(pastes.last_name(one.func) in _JACOBIANS for one in calls):
        return "pass experimental_use_pfor=False, with GradientTape(persistent=True) where that is not in a tf.function"
    call = mapped[0] if len(mapped) == 1 else None
    fn, elems = (pastes.argument(call, *one) if call is not None else None for one in ((0, "fn"), (1, "elems")))
    tf = pastes.module(facts, file, "tensorflow") or (ast.unparse(call.func).rpartition(".")[0] if call else "")
    if call is None or fn is None or elems is None or not tf or result is None:
        return "call tf.map_fn in place of tf.vectorized_map, with fn_output_signature=... of what the function returns"
    parts = (pastes.text_of(facts, file, fn), pastes.text_of(facts, file, elems))
    signature = result.replace("tf.", f"{tf}.")
    text = f"{tf}.map_fn({', '.join(parts)}, fn_output_signature={signature})"
    return pastes.all_replaced(facts, file, {call: text})


def _eagerly(facts: Facts) -> Iterator[tuple[int, int, int]]:
    """Node, call and input of eager gradient calls that gave nothing for any input.

    TensorFlow makes one 0 of what is missing there, whatever shape the input has.
    """
    rows = facts.reader.rows(
        "SELECT c.node, c.id, x.position FROM call c JOIN value o ON o.call = c.id AND o.role = 'output' "
        "JOIN value x ON x.call = c.forward AND x.role = 'input' AND o.path = 'd' || x.path "
        "JOIN node n ON n.id = c.node WHERE c.kind = 'gradient' AND n.origin = 'user' AND n.graph IS NULL "
        "GROUP BY c.id "
        "HAVING sum(o.shape = '[]' AND x.shape <> '[]' AND o.min = 0 AND o.max = 0) = count(*) ORDER BY c.id"
    )
    yield from ((int(node), int(call), int(position)) for node, call, position in rows)


def _fix(facts: Facts, node: Node, cut: int | None) -> str:
    """What gives the inputs a gradient."""
    through, moves = cut_gradients.straight_through(facts, node), way(facts.function(node))
    if through or moves in (Way.FOLLOWS, Way.STEPS):
        return through or (
            f"{facts.name(node)} moves in steps, whose gradient is zero or none in ops, too: use it for a metric, or "
            "give it a gradient of its own with @tf.custom_gradient"
        )
    own = _in_ops(facts, node) or _ported(facts, node)
    if own or not cut:
        return own or (
            "compute with TensorFlow's ops from input to output, or give the function a gradient of its own with "
            "@tf.custom_gradient; do not pass an input that has no influence"
        )
    return pastes.by_differences(facts, node) or (
        f"compute line {cut} with TensorFlow's ops (tf.* instead of np.*, no .numpy()), or give "
        f"{facts.name(node)} a gradient of its own with @tf.custom_gradient"
    )


def _ported(facts: Facts, node: Node) -> str:
    """The call of a py_function that is given a function of NumPy's, with TensorFlow's of the same name."""
    made = pastes.call_of(facts, node)
    body = pastes.argument(made[1], 0, "func") if made is not None else None
    numpy = pastes.module(facts, made[0], "numpy") if made is not None else None
    if made is None or numpy is None or not isinstance(body, ast.Attribute) or ast.unparse(body.value) != numpy:
        return ""
    tf = pastes.module(facts, made[0], "tensorflow") or "tf"
    return pastes.written(pastes.replaced(facts, made[0], {body: f"{tf}.experimental.numpy.{body.attr}"}))


def _cut(facts: Facts, node: int) -> tuple[int | None, str]:
    """The first line of the body that leaves TensorFlow."""
    known = facts.nodes[node]
    for number, text in facts.body(known):
        if _LEAVES.search(text):
            return number, text.strip()
    return None, ""


def _in_ops(facts: Facts, node: Node) -> str:
    """The body's lines in TensorFlow's ops; "" where some of it has no such op."""
    pieces = pastes.in_ops(facts, node)
    return pastes.differentiated(facts, node.file, pieces) if pieces and node.file is not None else ""
