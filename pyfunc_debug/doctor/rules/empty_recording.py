"""Why nothing was recorded: no node or generator ran, another process did the work, or the optimizer removed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import listed
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs.untaken_branches import branch_of
from pyfunc_debug.doctor.rules import dropped_datasets, never_fetched, stale_caches
from pyfunc_debug.records import Finding, Node

NAMES = ("empty-recording",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a recording without any call, or one a node that was built and never ran."""
    meta = facts.meta
    if not facts.over or (meta.get("dropped") or {}).get("calls") or "data_debug_mode" in meta:
        return  # in tf.data's debug mode functions run that are not seen
    users = [node for node in facts.nodes.values() if node.origin == "user"]
    calls = facts.reader.rows("SELECT EXISTS (SELECT 1 FROM call)")[0][0]
    if not calls and not users:
        yield from _nothing(facts)
        yield from _never_asked(facts)
    elif not calls and not _failed(facts):
        compiled = {node for node, _, _ in facts.notices.get("compiled", [])}  # it fails: the rule xla says so
        files = {one.node.id: one for one in stale_caches.cached(facts)}
        stale = {number for number, one in files.items() if one.maker is not None or one.is_older(facts)}
        dropped = dropped_datasets.lines(facts)  # which that rule says
        lost = {node.id for node in users if any((frame.file, frame.line) in dropped for frame in node.stack)}
        lost |= {node.id for group, _ in never_fetched.unread(facts) for node in group}  # likewise
        saved = {(one["body"], one["file"], one["line"]) for _, _, one in facts.notices.get("saved", [])}
        lost |= {node.id for node in users if (node.body, node.file, node.line) in saved}  # a program that only saves
        yield from _never_ran(facts, [node for node in users if node.id not in compiled | stale | lost], files)


def _failed(facts: Facts) -> bool:
    """Whether the program ended before it could run anything."""
    ended = facts.meta.get("ended")
    return isinstance(ended, dict) and ended.get("error") is not None


def _nothing(facts: Facts) -> Iterator[Finding]:
    meta = facts.meta
    limits, wanted = str(meta.get("limits") or ""), (meta.get("options") or {}).get("nodes", "*")
    if _failed(facts) or facts.traces:
        return  # a failed trace, or functions without Python: nothing was expected
    if limits:
        why, fix = f"nothing was recorded: {limits}", "use a TensorFlow from 2.16 on"
    elif "end_ns" in meta and "tensorflow" not in (meta.get("versions") or {}):  # which is written at the end
        why = "nothing was recorded: TensorFlow was not imported in this process. If it starts others that do the "
        why += "work, record these too"
        fix = facts.again("--processes") or (
            "with pyfunc_debug.record('child.pfrec'):  # in the process that runs TensorFlow\n    ..."
        )
    elif wanted != "*":
        why = f"nothing was recorded: no py_function matches {wanted!r}"
        fix = facts.again("--nodes '*'") or "pyfunc_debug.record(nodes='*')"
    else:
        return  # a program without py_functions is healthy
    yield Finding("empty-recording", "note", None, (), why, fix, None, None)


def _never_asked(facts: Facts) -> Iterator[Finding]:
    """Generators of datasets that nothing iterated. What is kept in a file, or goes to other processes, needs none."""
    if _failed(facts):
        return
    known = {(node.body, node.file, node.line): node for node in facts.nodes.values() if facts.is_generator(node)}
    for (body, file, line), node in known.items():
        elsewhere = ("cache(", "save(", "snapshot(", "distribute(", "service")
        if any(word in text for one in facts.files for text in facts.code(one) for word in elsewhere):
            return
        site = node.stack[-1] if node.stack else None
        yield Finding(
            "empty-recording", "note", node.id, (),
            f"{body} never ran: from_generator describes a dataset, and nothing iterated it", _run(facts, node),
            site.file if site else file, site.line if site else line,
        )  # fmt: skip


def _never_ran(facts: Facts, nodes: list[Node], files: dict[int, stale_caches.Cached]) -> Iterator[Finding]:
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for node in nodes:
        bodies.setdefault((node.body, node.file, node.line), []).append(node)
    for (body, file, line), group in bodies.items():
        numbers = [node.id for node in group]
        node = group[0]
        site = node.stack[-1] if node.stack else None
        where = f" ({site.text})" if site is not None and site.text else ""
        if node.id in files:
            why = f"its elements were in the cache file {files[node.id].file}, from an earlier run"
            fix = f"{facts.name(node)} runs again when the file is gone"
        elif node.kind == "py_func_stateless":
            why = "TensorFlow's optimizer may remove, merge or run once what is declared stateless"
            fix = "tf.compat.v1.py_func(..., stateful=True)"
        elif (branch := branch_of(facts, node)) is not None:
            why, fix = branch.why, branch.fix
        else:
            why = "its graph was built, but nothing ran it, or nothing that ran needs its result"
            fix = _run(facts, node)
        yield Finding(
            "empty-recording", "note", numbers[0], (),
            f"{body} was put into a graph{where}{listed(numbers)} and never ran: {why}", fix,
            site.file if site else file, site.line if site else line, tuple(numbers) if len(numbers) > 1 else (),
        )  # fmt: skip


def _run(facts: Facts, node: Node) -> str:
    """What runs a node's graph, with the user's name of it where a statement gives it one."""
    made = facts.functions.get(node.function or 0)
    if made is not None and made.kind == "tf.function":
        name = made.name.rpartition(".")[2]
        return f"{name if name.isidentifier() else 'function'}(...)  # a tf.function runs when it is called"
    if made is not None and made.kind == "tf.data":
        for frame in reversed(node.stack):
            statement = pastes.source(facts, frame.file).statement(frame.line)
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name):
                return f"for element in {target.id}: ...  # a dataset runs when it is iterated"
        return "for element in dataset: ...  # a dataset runs when it is iterated"
    if made is not None and made.kind == "graph":
        return "session.run(...)  # a graph runs when what it gives is fetched"
    return "for element in dataset: ...  # a dataset runs when it is iterated, a tf.function when called"
