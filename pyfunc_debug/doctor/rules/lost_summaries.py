"""`tf.summary.scalar` in a body: TensorFlow's own threads have no default writer, and what it is given is lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short
from pyfunc_debug.records import Finding, Node

NAMES = ("no-writer",)
_WRITES = {"scalar", "image", "histogram", "text", "audio", "write"}
_SETS = {"as_default", "set_as_default"}
_MAKES = "create_file_writer"
_DEPTH = 3
_CALLS = """
    SELECT call.node, count(*), sum(thread.name GLOB 'TF-[0-9]*') FROM call JOIN thread ON thread.id = call.thread
    WHERE call.kind = 'forward' GROUP BY call.node
"""
_Functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a place where bodies write summaries, and ran where nothing takes them."""
    if not any(_MAKES in line for file in facts.files for line in facts.source(file)):
        return
    about = {file for file in facts.files if any(".summary." in line for line in facts.source(file))}
    places: dict[tuple[str | None, int | None, str], list[Node]] = {}
    for node in facts.nodes.values():
        if node.file in about:
            places.setdefault((node.file, node.line, node.body), []).append(node)
    reached = [(nodes, _reached_calls(facts, nodes[0])) for nodes in places.values()]
    if any(_sets(one) for _, inside in reached for one in inside):
        return  # a body that sets one may call what leads to another
    calls: dict[int, tuple[int, int]] | None = None
    told: set[tuple[str | None, int]] = set()
    for nodes, inside in reached:
        written = _written(facts, nodes[0], inside)
        if not written or (nodes[0].file, written[0].lineno) in told:
            continue
        if calls is None:
            calls = {node: (count, apart) for node, count, apart in facts.reader.rows(_CALLS)}
        known = [calls.get(node.id, (0, 0)) for node in nodes]
        count, apart = sum(one for one, _ in known), sum(one for _, one in known)
        if apart:
            told.add((nodes[0].file, written[0].lineno))
            ran = next(node for node, one in zip(nodes, known) if one[1])
            yield _finding(facts, ran, written, count, apart)


def _finding(facts: Facts, node: Node, written: Sequence[ast.Call], count: int, apart: int) -> Finding:
    call, default = written[0], _default(facts, node.file)
    which = "all" if apart == count else f"{apart:,}"
    often = f" in {which} of its {count:,} calls" if count > 1 else ""
    where = f", which {facts.source_line(node.file, default.lineno)} sets," if default is not None else ""
    first = facts.calls(node.id).first
    return Finding(
        NAMES[0], "error", node.id, () if first is None else (first,),
        f"{dotted(call.func)} writes nothing here: TensorFlow ran {facts.name(node)} on a thread of its own{often}, "
        f"and the default writer{where} and the default step belong to the thread that sets them",
        _pasted(facts, node, written) or _words(facts, node, written), node.file, call.lineno,
    )  # fmt: skip


def _reached_calls(facts: Facts, node: Node) -> list[ast.Call]:
    """The calls of a body, and of functions of its file that it calls."""
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or tree is None:
        return []
    return [one for part in _reached(function, tree) for one in pastes.walk(part, ast.Call)]


def _sets(call: ast.Call) -> bool:
    """Whether a call makes a writer the default: not a graph, or a strategy."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _SETS else None
    return owner is not None and not ast.unparse(owner).lower().removesuffix("()").endswith("graph")


def _written(facts: Facts, node: Node, inside: Sequence[ast.Call]) -> list[ast.Call]:
    """Those of a body's calls that write summaries, to the default writer."""
    tf = pastes.module(facts, node.file, "tensorflow")
    wanted = {f"{tf}.summary.{name}" for name in _WRITES} if tf is not None else set()
    return sorted((one for one in inside if dotted(one.func) in wanted), key=lambda one: one.lineno)


def _reached(function: Definition, tree: ast.Module) -> list[Definition]:
    """A body, and the functions and methods of its file that it calls by name."""
    every: dict[str, list[ast.FunctionDef]] = {}
    for one in pastes.walk(tree, ast.FunctionDef):
        every.setdefault(one.name, []).append(one)
    found, fresh = [function], [function]
    for _ in range(_DEPTH):
        called = {dotted(one.func) for part in fresh for one in pastes.walk(part, ast.Call)}
        names = {one.removeprefix("self.") for one in called}
        fresh = [
            every[name][0] for name in sorted(names) if len(every.get(name, ())) == 1 and every[name][0] not in found
        ]
        found += fresh
    return found


def _made(facts: Facts, file: str | None) -> list[ast.Call]:
    """The calls of a file that make writers."""
    return [one for one in pastes.walk(facts.tree(file), ast.Call) if dotted(one.func).endswith(f"summary.{_MAKES}")]


def _default(facts: Facts, file: str | None) -> ast.Call | None:
    """The one call of a file that makes a writer the default; None where there are several."""
    found = [one for one in pastes.walk(facts.tree(file), ast.Call) if _sets(one)]
    return found[0] if len(found) == 1 else None


def _step(facts: Facts, file: str | None, written: Sequence[ast.Call]) -> str | None:
    """What `as_default` is given besides: a step, where the calls have none; None where it is not known."""
    if all(any(one.arg in ("step", None) for one in call.keywords) for call in written):
        return ""
    tree = facts.tree(file)
    given = [
        value for one in pastes.walk(tree, ast.Call)
        for value in (
            one.args[:1] if dotted(one.func).endswith("experimental.set_step")
            else [more.value for more in one.keywords if more.arg == "step" and dotted(one.func).endswith("as_default")]
        )
    ]  # fmt: skip
    plain = len(given) == 1 and (isinstance(given[0], ast.Constant) or _is_global(given[0], tree))
    return f"step={ast.unparse(given[0])}" if plain else None


def _is_global(node: ast.expr, tree: ast.Module | None) -> bool:
    """Whether a name is one that the module itself binds."""
    return isinstance(node, ast.Name) and tree is not None and any(
        isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Store)
        for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.ClassDef)) for part in ast.walk(one)
    )  # fmt: skip


def _writer(facts: Facts, node: Node, written: Sequence[ast.Call]) -> tuple[str, Edit | None] | None:
    """How the lines can name the one writer that they see, and the edit that gives it a name; None if they cannot."""
    source = pastes.source(facts, node.file)
    around = [list(source.around(call)) for call in written]
    found = []
    for one in _made(facts, node.file):
        function = next((part for part in source.around(one) if isinstance(part, _Functions)), None)
        kind = next((part for part in source.around(one) if isinstance(part, ast.ClassDef)), None)
        seen = function is None or all(function in parts for parts in around)
        own = kind is not None and all(
            kind in parts and _has_self(source, call) for call, parts in zip(written, around)
        )
        if seen or own:
            found.append((one, seen))
    if len(found) != 1 or node.file is None:
        return None
    made, seen = found[0]
    statement = next((one for one in source.around(made) if isinstance(one, ast.stmt)), None)
    if isinstance(statement, ast.Assign) and statement.value is made and len(statement.targets) == 1:
        kept = dotted(statement.targets[0])
        if "." not in kept:
            return (kept, None) if kept and seen else None
        return (kept, None) if kept.startswith("self.") and kept.count(".") == 1 and not seen else None
    if not isinstance(statement, ast.With) or not seen:
        return None
    item = next((one for one in statement.items if made in list(ast.walk(one))), None)
    plain = (
        item is not None
        and isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
    )
    if not plain or len(statement.items) != 1 or statement.items[0].optional_vars is not None:
        return None
    name = source.unused_name("writer")
    placed = source.replaced({made: name})
    if placed is None:
        return None
    first, last, text = placed
    indent = indent_of(facts.source(node.file)[statement.lineno - 1])
    lines = (f"{indent}{name} = {source.text(made)}", *text.split("\n"))
    return name, Edit(node.file, first, last, lines) if first == statement.lineno else None


def _has_self(source: Source, call: ast.Call) -> bool:
    return any(
        one.arg == "self" for function in source.around(call) if isinstance(function, _Functions)
        for one in function.args.args[:1]
    )  # fmt: skip


def _pasted(facts: Facts, node: Node, written: Sequence[ast.Call]) -> str:
    """The lines that write, in a `with` of their own; "" where the writer or the step has no name for them."""
    named, step = _writer(facts, node, written), _step(facts, node.file, written)
    if named is None or step is None or node.file is None:
        return ""
    source, lines = pastes.source(facts, node.file), facts.source(node.file)
    statements: list[ast.stmt] = []
    for call in written:
        one = next((part for part in source.around(call) if isinstance(part, ast.stmt)), None)
        plain = (
            isinstance(one, (ast.Expr, ast.Assign, ast.Return)) and not lines[one.lineno - 1][: one.col_offset].strip()
        )
        if one is None or not plain or _spans(one) or any(isinstance(part, ast.Lambda) for part in source.around(call)):
            return ""
        statements += [one] * (one not in statements)
    edits = [] if named[1] is None else [named[1]]
    for group in _groups(source, statements):
        first, last = group[0].lineno, group[-1].end_lineno or group[-1].lineno
        indent = indent_of(lines[first - 1])
        inner = [f"    {line}" if line.strip() else line for line in lines[first - 1 : last]]
        edits.append(Edit(node.file, first, last, (f"{indent}with {named[0]}.as_default({step}):", *inner)))
    return pastes.written(*edits) if len(edits) <= pastes.MOST else ""


def _spans(statement: ast.stmt) -> bool:
    """Whether a text of a statement goes over several lines: it would not stay the same further to the right."""
    return any(
        isinstance(one, (ast.Constant, ast.JoinedStr)) and one.lineno != one.end_lineno for one in ast.walk(statement)
    )


def _groups(source: Source, statements: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Statements that follow each other in one block together."""
    found: list[list[ast.stmt]] = []
    for one in statements:
        block = source.block(one) or []
        before = block[block.index(one) - 1] if one in block and block.index(one) else None
        if found and before is found[-1][-1]:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _words(facts: Facts, node: Node, written: Sequence[ast.Call]) -> str:
    named, step = _writer(facts, node, written), _step(facts, node.file, written)
    given = "step=..." if step is None else step
    text = short(ast.unparse(written[0]), 60)
    kept = (
        "" if named is not None and named[1] is None else "keep the writer in a variable that the body sees, and there "
    )
    name = named[0] if named is not None else "writer"
    return f"{kept}write\nwith {name}.as_default({given}):\n    {text}"
