"""Bodies made in a loop that read the loop's variable: when they run, the loop is over, and all read its last value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs.functions_in_loops import traced_behind
from pyfunc_debug.doctor.models.layers_in_loops import made_in_loops
from pyfunc_debug.records import Finding, Node

NAMES = ("late-binding",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body that one graph holds several times, or several graphs that were made before any of it ran."""
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    generators = {node.id for node, _ in facts.generators.values()}
    told: set[int | None] = set()
    for node in facts.nodes.values():
        if (node.origin == "user" or node.id in generators) and node.name is not None:
            bodies.setdefault((node.body, node.file, node.line), []).append(node)
    for (_, file, _), nodes in bodies.items():
        several_in_one = len({one.name for one in nodes if one.function == nodes[0].function}) > 1
        apart = not several_in_one and _all_made_before_calls(facts, nodes)
        function = facts.function(nodes[0]) if several_in_one or apart else None
        found = _loop(facts, nodes[0], function, apart) if function is not None else None
        if function is None or found is None:
            continue
        line, names, function = found
        what = "generators" if nodes[0].id in generators else "bodies"
        told.add(function.lineno)
        yield Finding(
            "late-binding", "error", nodes[0].id, (),
            f"the loop at line {line} made {len(nodes)} {what} that read {names[0]!r} when they run, and the loop is "
            f"over then: all of their {facts.calls_of(nodes).count:,} calls used its last value",
            _bound(facts, file, function, names), file, function.lineno, several([one.id for one in nodes]),
        )  # fmt: skip
    yield from _without_nodes(facts, told)
    yield from _of_functions(facts, told)


def _of_functions(facts: Facts, told: set[int | None]) -> Iterator[Finding]:
    """tf.functions that are traced behind the loop that makes them."""
    for file, function, line, count, names in traced_behind(facts):
        if function.lineno not in told and not any(_bound_again(facts.tree(file), line, one) for one in names):
            told.add(function.lineno)
            yield Finding(
                "late-binding", "error", None, (),
                f"the loop at line {line} makes {count} tf.functions that read {names[0]!r} when they are traced, at "
                "their first calls. The loop is over then: all of them were traced with its last value",
                _bound(facts, file, function, names), file, function.lineno,
            )  # fmt: skip


def _without_nodes(facts: Facts, told: set[int | None]) -> Iterator[Finding]:
    """Layers, losses and metrics of Python only: no node says when they ran, but Keras ran models behind the loop."""
    for file, function, what, line, names in made_in_loops(facts):
        if function.lineno not in told and not any(_bound_again(facts.tree(file), line, one) for one in names):
            told.add(function.lineno)
            yield Finding(
                "late-binding", "error", None, (),
                f"the loop at line {line} makes {what} that read {names[0]!r} when Keras calls them for a batch. The "
                "loop is over then: all of them read the same value",
                _as_arguments(facts, file, function, names) or _bound(facts, file, function, names), file,
                function.lineno, confidence="likely",
            )  # fmt: skip


def _all_made_before_calls(facts: Facts, nodes: list[Node]) -> bool:
    """Whether the nodes stand in graphs of their own, each traced before the first call of any of them."""
    first = facts.calls_of(nodes).first if len(nodes) > 1 else None
    if first is None:
        return False
    numbers = {one.id for one in nodes}
    made = [one.start_ns for one in facts.traces if not numbers.isdisjoint(one.nodes)]
    if len(made) < len(nodes):
        return False
    ((began,),) = facts.reader.rows("SELECT start_ns FROM call WHERE id = ?", (first,))
    return bool(began > max(made))


def _loop(
    facts: Facts, node: Node, function: code.Definition, apart: bool
) -> tuple[int, list[str], code.Definition] | None:
    """The loop around a body whose variables it reads, and the function of the loop's own that has to bind them.

    AutoGraph gives each turn of a `for` its own: only loops that were over when the node was made, and others. A loop
    around functions that are traced, each with a node of its own (`apart`), is Python's.
    """
    tree = facts.tree(node.file)
    made_by = facts.functions.get(node.function or 0)
    line = made_by.line if apart and made_by is not None and made_by.line is not None else function.lineno
    found: list[ast.ListComp | ast.GeneratorExp] = [
        *pastes.around(tree, line, ast.ListComp),
        *pastes.around(tree, line, ast.GeneratorExp),
    ]
    loops: list[tuple[ast.AST, list[ast.expr]]] = [(one, [part.target for part in one.generators]) for one in found]
    # Of graphs that are traced apart the loop is Python's; a graph of TensorFlow 1 has no AutoGraph.
    plain = apart or made_by is None or made_by.kind == "graph"
    loops += [(one, [one.target]) for one in pastes.around(tree, line, ast.For) if plain or _is_over(node, one)]
    for loop, targets in loops:
        inside = list(ast.walk(loop))
        if not any(one is function for one in inside) or any(
            isinstance(one, ast.Attribute) and one.attr in ("run", "eval") for one in inside
        ):
            continue
        names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        made = [
            one for one in inside if isinstance(one, _FUNCTIONS) and any(part is function for part in ast.walk(one))
        ]
        read = [one for one in names if all(code.reads(part, one) for part in made)]
        if read and not any(_bound_again(tree, getattr(loop, "lineno", 0), one) for one in read):
            return getattr(loop, "lineno", function.lineno), read, made[0]
    return None


_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def _bound_again(tree: ast.AST | None, line: int, name: str) -> bool:
    """Whether the scope of the `for` of a line gives a variable another value below it, which bodies may have read."""
    loops = [one for one in pastes.around(tree, line, ast.For) if one.lineno == line]
    if not loops:
        return False
    scopes = pastes.around(tree, line, ast.FunctionDef)
    scope: ast.AST | None = min(scopes, key=lambda one: -one.lineno) if scopes else tree
    return any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id == name
        and one.lineno > (loops[0].end_lineno or line)
        for one in (ast.walk(scope) if scope is not None else ())
    )  # fmt: skip


def _is_over(node: Node, loop: ast.For) -> bool:
    """Whether a loop had ended when a node was made, as where Keras calls what it was given: no frame stands in it."""
    inside = {one.name for one in ast.walk(loop) if isinstance(one, ast.FunctionDef)} | {"<lambda>"}
    lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    own = [one for one in node.stack if one.file == node.file]
    return len(own) > 0 and not any(one.line in lines and one.function not in inside for one in own)


def _as_arguments(facts: Facts, file: str, function: code.Definition, names: list[str]) -> str:
    """The names as `arguments` of a Lambda layer, which Keras saves with it; "" where it is made in another way."""
    own = pastes.source(facts, file)
    layer = own.parent(function)
    made = isinstance(layer, ast.Call) and pastes.last_name(layer.func) == "Lambda" and layer.args[:1] == [function]
    plain = not (function.args.vararg or function.args.kwonlyargs or function.args.kwarg or function.args.defaults)
    if not isinstance(layer, ast.Call) or not isinstance(function, ast.Lambda) or not made or not plain:
        return ""
    if any(word.arg in (None, "arguments") for word in layer.keywords):
        return ""
    takes = ", ".join([*code.parameters(function), *names])
    rest = [f"{word.arg}={own.text(word.value)}" for word in layer.keywords]
    given = ", ".join(f"{one!r}: {one}" for one in names)
    parts = [f"lambda {takes}: {own.text(function.body)}", *map(own.text, layer.args[1:]), *rest]
    text = f"{own.text(layer.func)}({', '.join(parts)}, arguments={{{given}}})"
    return pastes.all_replaced(facts, file, {layer: text})


def _bound(facts: Facts, file: str | None, function: code.Definition, names: list[str]) -> str:
    """The function with the names as defaults of parameters: a default is read when the function is made."""
    added = ", ".join(f"{one}={one}" for one in names)
    arguments = function.args
    if not arguments.vararg and not arguments.kwonlyargs and not arguments.kwarg and file is not None:
        if isinstance(function, ast.Lambda):
            given = ast.unparse(arguments)
            head = f"lambda {given}, {added}" if given else f"lambda {added}"
            new = f"{head}: {pastes.text_of(facts, file, function.body)}"
            return pastes.written(pastes.replaced(facts, file, {function: new}))
        last = next(iter(reversed([*arguments.posonlyargs, *arguments.args])), None)
        if last is not None and not arguments.defaults:
            piece: dict[ast.expr, str] = {last: f"{pastes.text_of(facts, file, last)}, {added}"}  # type: ignore[dict-item]
            return pastes.written(pastes.replaced(facts, file, piece))
        if last is None and facts.line(file, function.lineno).startswith(f"def {function.name}():"):
            return pastes.written(pastes.with_default(file, facts.source(file), function, added))
    return f"{added}  # as parameters of the body with these defaults: they are read when it is made"
