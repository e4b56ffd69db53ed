"""Variables that a body uses but is not given: they get no gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import sites
from pyfunc_debug.records import Finding, Node

NAMES = ("variable-no-input",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and its variables."""
    seen: dict[tuple[object, ...], list[tuple[int, int | None]]] = {}
    every = facts.notices["variable-no-input"]
    asked = {(one.body, one.file, one.line) for node, _, noticed in every if noticed.get("asked") and node is not None
             for one in [facts.nodes[node]]}  # fmt: skip
    for node, call, noticed in every:
        known = facts.nodes[node] if node is not None else None
        if known is not None and not noticed.get("asked") and (known.body, known.file, known.line) in asked:
            continue  # the same variables, by the names that TensorFlow gave them
        if node is not None and facts.nodes[node].origin == "user":
            known = facts.nodes[node]
            seen.setdefault((known.body, known.file, known.line, *noticed["variables"]), []).append((node, call))
    for (_, _, _, *variables), found in seen.items():
        nodes = tuple(dict.fromkeys(node for node, _ in found))
        node, call = found[0]
        known = facts.nodes[node]
        names = [str(name).removesuffix(":0") for name in variables]
        inside = _made_inside(facts, known)
        if inside:
            yield _remade(facts, known, inside, nodes, call)
            continue
        what = f"variable {names[0]}" if len(names) == 1 else f"variables {', '.join(names)}"
        yield Finding(
            "variable-no-input", "warning", node, () if call is None else (call,),
            f"{known.body} uses the {what}, {'not an input' if len(names) == 1 else 'no inputs'} of its py_function: "
            f"{'it has' if len(names) == 1 else 'they have'} no gradient through it, and it does not train "
            f"{'it' if len(names) == 1 else 'them'}{sites(facts.reader, nodes)}",
            _passed(facts, known, names) or _words(facts, known, names),
            known.file, known.line, several(nodes),
        )  # fmt: skip


def _made_inside(facts: Facts, node: Node) -> list[ast.Assign]:
    """The lines of a body that make a variable: `w = tf.Variable(...)`."""
    function = facts.function(node)
    own = code.own_nodes(function) if function is not None else []
    return [
        one for one in own
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and len(one.targets) == 1
        and pastes.last_name(one.value.func) in ("Variable", "add_weight") and isinstance(one.targets[0], ast.Name)
    ]  # fmt: skip


def _remade(facts: Facts, node: Node, inside: list[ast.Assign], nodes: Sequence[int], call: int | None) -> Finding:
    """Of variables that a body makes itself: each call has others, and none is trained."""
    names, line = [ast.unparse(one.targets[0]) for one in inside], inside[0].lineno
    what, one = (f"variable {names[0]}", "it") if len(names) == 1 else (f"variables {', '.join(names)}", "them")
    made = "\n".join(ast.unparse(each) for each in inside)
    return Finding(
        "variable-no-input", "warning", node.id, () if call is None else (call,),
        f"{facts.name(node)} makes the {what} in each call: each has new values, and nothing trains {one}"
        f"{sites(facts.reader, nodes)}",
        f"make {one} once, where the model is made (in a layer, in its __init__, as an attribute of self):\n{made}\n"
        f"and give {one} to the py_function: inp=[..., {', '.join(names)}], with a parameter for each in "
        f"{facts.name(node)} in the place of line {line}",
        node.file, line, several(nodes), (f"line {line}: {facts.line(node.file, line)}",),
    )  # fmt: skip


def _read(facts: Facts, node: Node, names: Sequence[str]) -> dict[str, list[ast.expr]]:
    """How a body writes each variable, and where; empty if one of them cannot be told from the source."""
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or tree is None:
        return {}
    called = {id(one.func) for one in pastes.walk(function, ast.Call)}
    outside = code.outside(function, tree)
    plain: dict[str, list[ast.expr]] = {}
    for one in ast.walk(function):
        text = ast.unparse(one) if isinstance(one, (ast.Name, ast.Attribute)) else ""
        known = text in outside or (text.startswith("self.") and text.count(".") == 1)
        if isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in called and known:
            plain.setdefault(text, []).append(one)
    found = {}
    for name in names:
        written = next((one for one in plain if one in (name, f"self.{name}")), None)
        if written is None and len(names) == 1 and len(plain) == 1 and outside <= set(plain):
            written = next(iter(plain))
        if written is None:
            return {}
        found[written] = plain[written]
    return found


def _passed(facts: Facts, node: Node, names: Sequence[str]) -> str:
    """The lines of the body and of the call with the variables among the inputs; "" where they cannot be told."""
    read, function, made = _read(facts, node, names), facts.function(node), pastes.call_of(facts, node)
    inputs = pastes.argument(made[1], 1, "inp") if made is not None else None
    body = pastes.argument(made[1], 0, "func") if made is not None else None
    owner = ast.unparse(body.value) if isinstance(body, ast.Attribute) else "self"
    if not read or function is None or made is None or made[0] != node.file or not isinstance(inputs, ast.List):
        return ""
    parameters = {text: text.rpartition(".")[2] for text in read}
    arguments = function.args
    last = next(iter(reversed([*arguments.posonlyargs, *arguments.args])), None)
    if last is None or arguments.defaults or arguments.vararg or not inputs.elts:
        return ""
    if set(parameters.values()) & set(code.parameters(function)):
        return ""
    added = ", ".join(parameters.values())
    given = [f"{owner}.{parameters[text]}" if text.startswith("self.") else text for text in read]
    pieces: dict[ast.expr, str] = {
        last: f"{pastes.text_of(facts, node.file, last)}, {added}",  # type: ignore[dict-item]  # it has a place, too
        inputs: f"{pastes.text_of(facts, node.file, inputs)[:-1].rstrip(', ')}, {', '.join(given)}]",
    }
    for text, places in read.items():
        if text != parameters[text]:
            pieces.update(dict.fromkeys(places, parameters[text]))
    return pastes.all_replaced(facts, node.file, pieces)


def _words(facts: Facts, node: Node, names: Sequence[str]) -> str:
    layers = sorted({name.partition("/")[0] for name in names if "/" in name})
    if layers:
        return f"call {', '.join(layers)} outside of the py_function: only what is in `inp` has a gradient"
    inputs = ", ".join([*(one for one in node.paths if one.isidentifier()), *names])
    return f"tf.py_function({facts.name(node)}, inp=[{inputs}], ...)  # and use the parameter in the body"
