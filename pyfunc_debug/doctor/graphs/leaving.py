"""What becomes of nodes that leave the process: saved, compiled by XLA, or run by another process or device.

Static: from the graphs alone, without a recording. The findings are those of the rules serialization, xla and
distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyfunc_debug.doctor.bodies.foreign_objects import branches
from pyfunc_debug.doctor.bodies.replacement import definition, direct_call, obstacles
from pyfunc_debug.interception.graphs.held import Held, HeldNode
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Confidence, Finding, Severity

ORDER = ("error", "warning", "note")


@dataclass(frozen=True)
class Surroundings:
    """What an object will run in.

    Attributes:
      strategy: Name of the type of its tf.distribute strategy; empty for none.
      replicas: How many replicas that has.
      eager_in_vain: Whether tf.config.run_functions_eagerly(True) is on, and tf.data's debug mode is not.
    """

    strategy: str = ""
    replicas: int = 1
    eager_in_vain: bool = False


def findings(held: Held, around: Surroundings | None = None) -> list[Finding]:
    """What happens to an object's nodes when it is saved, compiled or distributed, worst first."""
    around = around or Surroundings()
    groups = _by_line(held.nodes)
    found = [finding for nodes in groups for finding in (*_of(held, nodes), *_distributed(held, nodes[0], around))]
    if held.what == "Dataset" and around.eager_in_vain and groups:
        found.append(_traced(groups[0][0]))
    return sorted(found, key=lambda one: ORDER.index(one.severity))


def _by_line(nodes: Iterable[HeldNode]) -> list[list[HeldNode]]:
    """The nodes of one line together: each trace makes new ones."""
    groups: dict[object, list[HeldNode]] = {}
    for node in nodes:
        if node.body is not None and node.body.internal:
            continue
        key = (node.body.file, node.body.line) if node.body is not None and node.body.file else node.token
        groups.setdefault((key, node.stack[-1:]), []).append(node)
    return list(groups.values())


def _of(held: Held, nodes: Sequence[HeldNode]) -> Iterable[Finding]:
    node = nodes[0]
    if held.what == "SavedModel":
        yield _in_file(held, node)
        return
    if node.restored:
        yield _restored(held, node)
        return
    if held.what == "Dataset":
        yield _dataset(held, node)
        return
    yield _saved(held, node)
    yield _compiled(held, node)


def _finding(
    rule: str, severity: Severity, node: HeldNode, message: str, fix: str, confidence: Confidence = "measured"
) -> Finding:
    where = node.stack[-1] if node.stack else None
    body = node.body
    file = where.file if where else body.file if body else None
    line = where.line if where else body.line if body else None
    return Finding(
        rule, severity, None, (), message, fix, file, line,
        evidence=(f"op {node.op}{f' of {node.graph}' if node.graph else ''}, token {node.token}",),
        confidence=confidence,
    )  # fmt: skip


def name_of(node: HeldNode) -> str:
    """What the user calls the body."""
    if node.body is None:
        return node.token
    last = node.body.name.rpartition(".")[2]
    return f"the lambda at {source_line(node.body.file, node.body.line)}" if last == "<lambda>" else last


def _saved(held: Held, node: HeldNode) -> Finding:
    fix = replacement(node, "what is saved")
    return _finding(
        "serialization", "warning", node,
        f"the {node.kind} of {name_of(node)} does not survive saving: a file holds only the name {node.token} of its "
        "function. Another process that loads it fails at this node, or runs another function of that name",
        fix,
    )  # fmt: skip


def _compiled(held: Held, node: HeldNode) -> Finding:
    fix = replacement(node, "what is compiled")
    if held.compiled:
        return _finding(
            "xla", "error", node,
            f"jit_compile=True asks XLA to compile {held.name}, which holds the {node.kind} of {name_of(node)}. XLA "
            "cannot compile Python: the first run fails",
            fix,
        )  # fmt: skip
    if held.what == "Keras model":
        return _finding(
            "xla", "note", node,
            f"on a machine with a GPU, Keras compiles {held.name} with XLA (jit_compile=\"auto\"), which fails at the "
            f"{node.kind} of {name_of(node)}",
            "self.supports_jit = False  # in __init__ of the layer that calls it; or model.compile(..., "
            "jit_compile=False)",
            "likely",
        )  # fmt: skip
    return _finding(
        "xla", "note", node,
        f"the {node.kind} of {name_of(node)} cannot be compiled: with jit_compile=True, {held.name} fails", fix,
    )  # fmt: skip


def _dataset(held: Held, node: HeldNode) -> Finding:
    if node.generator:
        return _finding(
            "distribution", "warning", node,
            f"the elements come from the Python generator {name_of(node)}: a worker of the tf.data service, which is "
            "another process, does not have it",
            generator_fix(name_of(node)),
        )  # fmt: skip
    fix = replacement(node, "what is distributed")
    return _finding(
        "distribution", "warning", node,
        f"the {node.kind} of {name_of(node)} runs in this process only: a worker of the tf.data service, which is "
        "another process, has no function of its name",
        fix,
    )  # fmt: skip


def _distributed(held: Held, node: HeldNode, around: Surroundings) -> Iterable[Finding]:
    """What a strategy makes of it. A dataset's functions run in the process that reads it, under each strategy."""
    if held.what in ("Dataset", "SavedModel") or node.restored or not around.strategy:
        return
    name, which = f"the {node.kind} of {name_of(node)}", around.strategy
    if which.startswith("TPU"):
        yield _finding(
            "distribution", "error", node,
            f"{which}.run compiles {held.name} with XLA for a TPU, and XLA cannot compile {name}: it fails there",
            replacement(node, "strategy.run"), "likely",
        )  # fmt: skip
    elif which.startswith("ParameterServer"):
        yield _finding(
            "distribution", "warning", node,
            f"under {which}, workers run {held.name}, but {name} runs only in the process that made it: its inputs "
            "travel here and its results back, and a function that returns such a result can fail",
            replacement(node, "what the workers run"), "likely",
        )  # fmt: skip
    elif around.replicas > 1:
        yield _finding(
            "distribution", "note", node,
            f"{which}.run runs {name} once for each of {around.replicas} replicas, all in this process, where one "
            "thread at a time runs Python: the replicas take turns there",
            replacement(node, "strategy.run"),
        )  # fmt: skip


def _traced(node: HeldNode) -> Finding:
    return _finding(
        "eager-switch", "note", node,
        "tf.config.run_functions_eagerly(True) does not reach tf.data: the dataset's functions were traced, and their "
        "graphs run",
        "tf.data.experimental.enable_debug_mode()  # before the dataset is built: its functions then run in Python",
    )  # fmt: skip


def generator_fix(name: str) -> str:
    """How to make the dataset without the user's generator."""
    return (
        "apply tf.data.experimental.service.distribute(...) to a dataset of files (tf.data.TFRecordDataset), or write "
        f"what {name} gives with dataset.save(FOLDER) once and distribute tf.data.Dataset.load(FOLDER)"
    )


def _restored(held: Held, node: HeldNode) -> Finding:
    if node.body is None:
        return _finding(
            "serialization", "error", node,
            f"node {node.op} was restored from a file and needs the Python function {node.token}, which this process "
            "does not have: it fails when it runs",
            "save the model without py_function (graph code, or a custom op)",
        )  # fmt: skip
    return _finding(
        "serialization", "error", node,
        f"node {node.op} was restored from a file, and {node.token} is the name of {name_of(node)} in this process: "
        "that is what runs, right only if this process saved the model",
        "save the model without py_function (graph code, or a custom op)", "likely",
    )  # fmt: skip


def _in_file(held: Held, node: HeldNode) -> Finding:
    runs = (
        "this process has no function of that name: the node fails when it runs"
        if node.body is None else
        f"in this process that is the name of {name_of(node)}, which runs in its place"
    )  # fmt: skip
    return _finding(
        "serialization", "error", node,
        f"{held.name} holds a {node.kind} in {node.graph or 'its graph'}, and of its Python function only the name "
        f"{node.token}: {runs}",
        "save it again without py_function: pyfunc_debug.check(...) on what is saved, in the program that saves it, "
        "names the line" if not node.takes else replacement(replace(node, body=None), "what is saved"),
        "measured" if node.body is None else "likely",
    )  # fmt: skip


def replacement(node: HeldNode, outside: str, in_python: bool = True) -> str:
    """The text that keeps a node out.

    Args:
      node: The node.
      outside: What it must be kept out of, in words.
      in_python: Whether a call of Python's can be offered.
    """
    body, name = node.body, name_of(node)
    function = None if body is None else definition(body.file, body.line)
    called = name if body is not None else "its function" if node.takes else "it"
    outer = (
        f"call {called} outside of {outside}: before, and pass its result in; or behind, on its inputs, which are "
        "returned then"
    )
    if node.takes:  # nothing is left to be saved in front of it
        keys = " and ".join(f'"{one}"' for one in node.takes if one not in node.shared)
        outer = (
            f"save with what {called} returns as {f'the input in the place of {keys}' if keys else 'an input, too'}: "
            f"who loads it calls {called} first, and feeds that"
        )
    if body is None or body.file is None or function is None:
        return outer
    found = obstacles(body.file, function)
    asks = not node.graph and branches(function)
    if not found and not asks:
        for frame in reversed(node.stack):
            edit = direct_call((frame.file, frame.line))
            if edit is not None:
                return "\n".join((edit.instruction(), *edit.lines))  # its source has TensorFlow's ops only
    what = f"line {found[0].line} ({found[0].text})" if found else "a loop or a branch" if asks else "its call"
    return f"{name} runs Python at {what}: write it with TensorFlow's ops, or {outer}" + (
        f". pyfunc_debug.graduate({name if name.isidentifier() else '...'}) says whether it could be graph code"
        if in_python
        else ""
    )
