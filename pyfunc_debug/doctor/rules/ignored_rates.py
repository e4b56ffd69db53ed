"""`optimizer.lr = rate` with Keras 3: an attribute of that name is made, and the learning rate stays as it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import files_of_keras
from pyfunc_debug.records import Finding

NAMES = ("ignored-rate",)
_OPTIMIZER = re.compile(r"(?:^|\.)optimizer$")
_MADE = re.compile(r"\boptimizers\.\w+\(|^(?:Adam|SGD|RMSprop|Adagrad|Adadelta|AdamW|Nadam|Adamax|Ftrl|Lion)\(")
_OTHERS = re.compile(r"\b(?:tf_keras|TF_USE_LEGACY_KERAS|torch|keras\.optimizers\.legacy)\b")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a file."""
    files = files_of_keras(facts) if facts.has_keras_3 else []
    for file in dict.fromkeys([*files, *(one.file for one in facts.functions.values() if one.file and files)]):
        tree, code = facts.tree(file), "\n".join(facts.code(file))
        if _OTHERS.search(code):
            continue
        found = [
            target for one in pastes.walk(tree, ast.Assign) for target in one.targets
            if isinstance(target, ast.Attribute) and target.attr == "lr" and _is_optimizer(tree, target.value)
        ]  # fmt: skip
        if found:
            texts: dict[ast.expr, str] = {
                one: f"{pastes.text_of(facts, file, one.value)}.learning_rate" for one in found
            }
            name = pastes.text_of(facts, file, found[0])
            yield Finding(
                NAMES[0], "warning", None, (),
                f"Keras 3 knows no lr: {name} = ... makes an attribute that nothing reads, and the learning rate stays "
                "as it was",
                pastes.all_replaced(facts, file, texts), file, found[0].lineno,
                evidence=(f"line {found[0].lineno}: {facts.line(file, found[0].lineno)}",), confidence="likely",
            )  # fmt: skip


def _is_optimizer(tree: ast.AST | None, owner: ast.expr) -> bool:
    """Whether a name is that of an optimizer: `model.optimizer`, or what the file makes of `keras.optimizers`."""
    text = ast.unparse(owner)
    made = pastes.assigned(tree, text)
    if made:
        return all(_MADE.search(ast.unparse(one)) for one in made)
    return isinstance(owner, ast.Attribute) and _OPTIMIZER.search(text) is not None
