"""A PyDataset with an `on_epoch_start`, which nobody calls: Keras calls `on_epoch_begin` and `on_epoch_end`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

_CALLED = {"on_epoch_begin", "on_epoch_end"}
_MEANT = {
    "on_epoch_start", "on_epoch_starts", "on_epoch_begins", "on_epoch_ends", "on_epoch_finish", "on_epoch_finished",
    "on_epoch_stop", "on_epoch_over", "on_epochs_end", "on_epoch", "on_epoch_End", "on_epochend", "epoch_end",
    "end_of_epoch", "on_end_epoch", "on_end_of_epoch", "on_train_epoch_end", "on_train_epoch_start",
}  # fmt: skip


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a class whose elements Keras took.

    Args:
      facts: The recording.
      rule: The rule's name.
    """
    taken = {(node.file, node.body.rpartition(".")[0].rpartition(".")[2]) for node, _ in facts.generators.values()}
    for file in facts.files:
        tree = facts.tree(file)
        for holder in pastes.walk(tree, ast.ClassDef):
            methods = {one.name: one for one in holder.body if isinstance(one, ast.FunctionDef)}
            found = [one for name, one in methods.items() if name in _MEANT]
            if (file, holder.name) not in taken or "__getitem__" not in methods or len(found) != 1:
                continue
            method = found[0]
            calls = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == method.name]
            made = list(ast.walk(methods["__init__"])) if "__init__" in methods else []
            if _CALLED & set(methods) or not all(one in made for one in calls):
                continue
            yield _finding(facts, rule, file, holder, method, calls)


def _finding(
    facts: Facts, rule: str, file: str, holder: ast.ClassDef, method: ast.FunctionDef, calls: list[ast.Call]
) -> Finding:
    lines = facts.source(file)
    new = "on_epoch_end" if calls else "on_epoch_begin"
    edits: list[Edit | None] = [
        Edit(file, method.lineno, method.lineno, (lines[method.lineno - 1].replace(method.name, new, 1),)),
        *(
            pastes.replaced(facts, file, {one.func: pastes.text_of(facts, file, one.func).replace(method.name, new)})
            for one in calls
        ),
    ]
    ran = f"it ran in __init__ (line {calls[0].lineno}), and not once an epoch" if calls else "it never ran"
    return Finding(
        rule, "warning", None, (),
        f"nobody calls {holder.name}.{method.name} for an epoch: {ran}. Keras calls on_epoch_begin and on_epoch_end",
        pastes.written(*edits), file, method.lineno,
    )  # fmt: skip
