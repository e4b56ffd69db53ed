"""Texts are parsed, whatever other threads do meanwhile."""

from __future__ import annotations

import ast
import threading
import time

import pytest

from pyfunc_debug.program import syntax

TEXT = "def f(x):\n" + "    x = (x + [1, (2, 3)][0]) * g(x, y=lambda z: z)\n" * 60


class Switch:
    """Garbage whose end lets another thread in: the collector runs it in the middle of whatever makes objects."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0)


def parse_at_once(parse) -> list[BaseException]:
    failed: list[BaseException] = []

    def work():
        for _ in range(20):
            for _ in range(50):
                Switch()
            try:
                assert isinstance(parse(TEXT), ast.Module)
            except SystemError as error:
                failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def test_threads_that_parse_at_once_all_get_their_tree():
    """With `ast.parse` itself some of them fail on CPython 3.11.7 and 3.12.1."""
    assert parse_at_once(syntax.parse) == []


@pytest.mark.parametrize("failures", [1, 4, 5])
def test_an_error_of_cpythons_own_is_not_taken_for_one_of_the_text(monkeypatch, failures):
    left, parse = [SystemError("AST constructor recursion depth mismatch")] * failures, ast.parse

    def sometimes(*args):
        if left:
            raise left.pop()
        return parse(*args)

    monkeypatch.setattr(ast, "parse", sometimes)
    if failures == 5:
        with pytest.raises(SystemError):
            syntax.expression("a + b")
    else:
        assert ast.unparse(syntax.expression("a + b")) == "a + b"


def test_what_is_not_python_is_told_with_its_file():
    with pytest.raises(SyntaxError, match=r"train\.py"):
        syntax.parse("a b", "train.py")
    with pytest.raises(SyntaxError):
        syntax.expression("a = 1")


def test_a_copy_of_a_tree_is_the_same_and_of_its_own():
    text = (
        "def f(x, *, y: int = 1):\n    return [x[1:2], f'{x!r:>3}', -y, not x, {**x}] if x < y else (lambda z: z)(x)\n"
    )
    tree = ast.parse(text)
    own = syntax.copied(tree)
    assert ast.dump(own, include_attributes=True) == ast.dump(tree, include_attributes=True)
    parts = {id(one) for one in ast.walk(tree) if one._fields}
    assert parts.isdisjoint(id(one) for one in ast.walk(own))
    own.body[0].args.args.clear()
    own.body[0].body[0].value.test.left.id = "other"
    assert ast.unparse(tree) == ast.unparse(ast.parse(text))
