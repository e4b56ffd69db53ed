"""`tf.random.set_seed` in a program whose bodies draw by NumPy or Python, which have seeds of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.drawn_once import draws_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("unseeded-draws",)
_OF_TENSORFLOW = re.compile(r"(?:\brandom\.set_seed|(?<!utils\.)\bset_random_seed)\(")
_OF_ALL = re.compile(r"(?<!tf\.)(?<!v1\.)\bset_random_seed\(|seed_everything\(|fix_random_seeds?\(|\brandom\.seed\(|"
                     r"\bnp\.random\.RandomState\(\d")  # fmt: skip


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a program: the first body that draws without a seed."""
    seeds = [
        (file, number) for file in facts.files for number, line in enumerate(facts.code(file), 1)
        if _OF_TENSORFLOW.search(line)
    ]  # fmt: skip
    if len(seeds) != 1 or any(_OF_ALL.search(line) for file in facts.files for line in facts.code(file)):
        return
    if any(_seeds_all(facts, file) for file in facts.imported):
        return
    for node in facts.nodes.values():
        draw = _draw(facts, node)
        if draw is not None:
            yield _finding(facts, node, draw, *seeds[0])
            return


def _seeds_all(facts: Facts, file: str) -> bool:
    """Whether a module that the program imports sets other seeds: as it is imported, or in a function that is named."""
    own = pastes.source(facts, file)
    for number, line in enumerate(facts.code(file), 1):
        if not _OF_ALL.search(line):
            continue
        statement = own.statement(number)
        around = own.around(statement) if statement is not None else ()
        names = [one.name for one in around if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        texts = [line for one in facts.files for line in facts.code(one)]
        if not names or any(name in text for name in names for text in texts):
            return True
    return False


def _draw(facts: Facts, node: Node) -> code.Write | None:
    """The first draw of a body from NumPy's or Python's own generator."""
    if (node.origin != "user" and not facts.is_generator(node)) or not facts.calls(node.id).count:
        return None
    function, tree = facts.function(node), facts.tree(node.file)
    draws = draws_of(function, tree) if function is not None else []
    return next((one for one in draws if one.name in code.SHARED), None)


def _finding(facts: Facts, node: Node, draw: code.Write, file: str, line: int) -> Finding:
    which = "Python's random" if draw.name == "random" else "NumPy"
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{facts.source_line(file, line)} seeds TensorFlow's generators, and {facts.name(node)} draws by {which}, "
        "which has a seed of its own: each run gets other numbers",
        _seeded(facts, draw, file, line) or f"{draw.name}.seed(...)  # behind {facts.source_line(file, line)}",
        node.file, draw.line, evidence=(f"line {draw.line}: {draw.text}",),
    )  # fmt: skip


def _seeded(facts: Facts, draw: code.Write, file: str, line: int) -> str:
    """The seed of NumPy or Python behind TensorFlow's, with the same number."""
    own = pastes.source(facts, file)
    statement = own.statement(line)
    module = draw.name.partition(".")[0]
    name = pastes.module(facts, file, "random" if module == "random" else "numpy")
    if name is None or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return ""
    value = statement.value
    if len(value.args) != 1 or value.keywords:
        return ""
    asked = name if module == "random" else f"{name}.random"
    return pastes.written(pastes.behind(file, statement, f"{asked}.seed({own.text(value.args[0])})"))
