"""NumPy bodies that write into their input, or return memory that they use again: both are TensorFlow's memory too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding, Node

NAMES = ("writes-input", "reused-memory")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body. From the source: an array is what has a shape in the recorded calls."""
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            if node.kind != "py_function" and facts.calls(node.id).count:
                bodies.setdefault((node.body, node.file, node.line), []).append(node)
    for nodes in bodies.values():
        function = facts.function(nodes[0])
        if function is None:
            continue
        writes = [*code.array_writes(function), *_by_helpers(facts, nodes[0], function)]
        yield from _input(facts, nodes, function, writes)
        yield from _memory(facts, nodes, function, writes)
    yield from _batches(facts)


def _batches(facts: Facts) -> Iterator[Finding]:
    """A generator for Keras, which takes two batches before it uses the first: the second overwrote that."""
    for _, _, noticed in facts.notices.get(Notice.REUSED_BATCH, []):
        file, line, name = str(noticed["file"]), int(noticed["line"]), str(noticed["name"])
        source = pastes.source(facts, file)
        yields = [
            one.value for one in pastes.walk(facts.tree(file), ast.Yield)
            if one.value is not None and one.lineno <= line <= (one.end_lineno or line)
        ]  # fmt: skip
        pieces: dict[ast.expr, str] = {}
        for place in noticed["places"] if len(yields) == 1 else ():
            node: ast.expr | None = yields[0]
            for index in place:
                inside = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
                node = inside[index] if index < len(inside) else None
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                pieces[node] = f"{source.text(node)}.copy()"
        named = " and ".join(source.text(one) for one in pieces) or "an array"
        whole = len(pieces) == len(noticed["places"])
        yield Finding(
            "reused-memory", "warning", None, (),
            f"{name} writes into {named} again after the yield. Keras takes two batches before it uses the "
            "first, which has the values of the second then: that batch is lost, and the other is there twice",
            pastes.written(pastes.replaced(facts, file, pieces)) if whole and pieces else
            f"yield a copy of what {name} writes into again: array.copy()",
            file, line, evidence=(f"the first batch changed while the second was made, at line {line}",),
        )  # fmt: skip


def _helper(facts: Facts, node: Node, function: code.Definition, call: ast.Call) -> ast.FunctionDef | None:
    """The function of the file, or the method of the same class, that a body calls."""
    name = ast.unparse(call.func)
    tree = facts.tree(node.file)
    if name.startswith("self."):
        holders = pastes.around(tree, function.lineno, ast.ClassDef)[-1:]
        known = [one for holder in holders for one in holder.body if isinstance(one, ast.FunctionDef)]
    else:
        known = [one for one in tree.body if isinstance(one, ast.FunctionDef)] if tree is not None else []
    found = [one for one in known if one.name == name.removeprefix("self.") and one is not function]
    return found[0] if len(found) == 1 else None


def _by_helpers(facts: Facts, node: Node, function: code.Definition) -> Iterator[code.Write]:
    """Calls of functions that write into an array that the body gives them."""
    bound = {
        target.id for one in code.own_nodes(function) if isinstance(one, ast.Assign)
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for call in (one for one in code.own_nodes(function) if isinstance(one, ast.Call) and one.args):
        helper = _helper(facts, node, function, call)
        if helper is None:
            continue
        given = [one for one in code.parameters(helper) if one != "self"]
        written = {one.name for one in code.array_writes(helper)}
        for parameter, value in zip(given, call.args):
            if parameter in written and isinstance(value, ast.Name) and value.id not in bound:
                yield code.Write(call.lineno, value.id, ast.unparse(call))


def _overwritten(function: code.Definition) -> dict[str, tuple[int, str]]:
    """Arrays outside of a function that it writes into (`self.buffer[:] = x`), with the line and its text."""
    local = code.local_names(function)
    found = {}
    for one in code.own_nodes(function):
        for target in one.targets if isinstance(one, ast.Assign) else ():
            inside = target.value if isinstance(target, ast.Subscript) else None
            text = ast.unparse(inside) if isinstance(inside, (ast.Name, ast.Attribute)) else ""
            if text and (text.startswith("self.") or text not in local):
                found[text] = (getattr(one, "lineno", 0), ast.unparse(one))
    return found


def _input(facts: Facts, nodes: list[Node], function: code.Definition, writes: list[code.Write]) -> Iterator[Finding]:
    node = nodes[0]
    given = code.parameters(function)
    given = given[1:] if given[:1] == ["self"] else given
    for write in writes:
        if write.name not in given:
            continue
        position = given.index(write.name)
        call = facts.calls_of(nodes).first
        shape = _shape(facts, call, position)
        if shape is None or shape == "[]":  # a number: `x += 1` then makes a new one
            continue
        yield Finding(
            "writes-input", "warning", node.id, () if call is None else (call,),
            f"{node.body} writes into its input {write.name!r}. numpy_function hands out TensorFlow's own memory, so "
            "that this can change a constant, a variable or cached elements of the caller",
            _copied(facts, node, function, write), node.file, write.line,
            several(one.id for one in nodes), (f"line {write.line}: {write.text}",), "likely",
        )  # fmt: skip
        return


def _copied(facts: Facts, node: Node, function: code.Definition, write: code.Write) -> str:
    """The copy, once, at the beginning of the body."""
    copy, first = f"{write.name} = {write.name}.copy()", pastes.beginning(function)
    edit = pastes.above(facts, node.file, first, copy) if first is not None else None
    return pastes.written(edit) or f"{copy}  # before line {write.line}: {write.text}"


def _shape(facts: Facts, call: int | None, position: int) -> str | None:
    rows = facts.reader.rows(
        "SELECT shape FROM value WHERE call = ? AND role = 'input' AND position = ?", (call, position)
    )
    return rows[0][0] if rows else None


def _memory(facts: Facts, nodes: list[Node], function: code.Definition, writes: list[code.Write]) -> Iterator[Finding]:
    node, local = nodes[0], code.local_names(function)
    outer = {write.name: (write.line, write.text) for write in writes if write.name not in local}
    outer |= _overwritten(function)
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Return) or one.value is None:
            continue
        values = one.value.elts if isinstance(one.value, (ast.Tuple, ast.List)) else [one.value]
        for value in values:
            name, place = _reused(facts, node, function, value, outer)
            calls = facts.calls_of(nodes)
            if not name or calls.count < 2:
                continue
            text = pastes.text_of(facts, node.file, value)
            yield Finding(
                "reused-memory", "warning", node.id, (calls.first or 0, calls.last or 0),
                f"{node.body} returns {name!r}, an array that lives outside of it and that its next call overwrites. "
                "TensorFlow may still use that memory as the result of this call",
                pastes.written(pastes.replaced(facts, node.file, {value: f"{text}.copy()"})), node.file, one.lineno,
                several(one.id for one in nodes), (f"line {place[0]}: {place[1]}",), "likely",
            )  # fmt: skip
            return


def _reused(
    facts: Facts, node: Node, function: code.Definition, value: ast.expr, outer: dict[str, tuple[int, str]]
) -> tuple[str, tuple[int, str]]:
    """The array that lives on of what a body returns, or of what it returns by a function that it calls."""
    if isinstance(value, (ast.Name, ast.Attribute)):
        name = ast.unparse(value)
        return (name, outer[name]) if name in outer else ("", (0, ""))
    helper = _helper(facts, node, function, value) if isinstance(value, ast.Call) else None
    if helper is not None:
        written = _overwritten(helper)
        for one in pastes.returns(helper):
            name = ast.unparse(one)
            if name in written:
                return name, written[name]
    return "", (0, "")
