"""docs/reference.md says of every public name what it takes, returns and raises, and is what the docstrings say now."""

from __future__ import annotations

import ast

import pytest

from docs import build


def test_every_public_name_says_what_it_takes_returns_and_raises_with_an_example():
    assert build.problems() == []


def test_the_reference_is_what_the_docstrings_say():
    assert build.REFERENCE.read_text(encoding="utf-8") == build.build(), "run python -m docs.build and commit it"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('def f(x: int) -> None:\n    """Does."""', "f: Args lacks x"),
        (
            'def f() -> None:\n    """Does.\n\n    Args:\n      x: One.\n    """',
            "f: Args names x, which it does not take",
        ),
        ('def f() -> int:\n    """Does."""', "f: no Returns"),
        ('def f() -> None:\n    """Does."""\n    raise NotKeptError("x")', "f: Raises lacks NotKeptError"),
        ("def f() -> None: ...", "f: no docstring"),
    ],
    ids=["argument", "unknown argument", "result", "error", "docstring"],
)
def test_what_a_docstring_lacks_is_named(source, said):
    (function,) = ast.parse(source).body
    assert build.wrong_with_function("f", function, needs_example=False) == [said]


def test_a_method_that_gives_something_needs_an_example():
    (one,) = ast.parse(
        'class A:\n    """An a.\n\n    Example:\n      A()\n    """\n'
        '    def f(self) -> int:\n        """One.\n\n        Returns:\n          It.\n        """'
    ).body
    assert build.wrong_with_class("A", one, needs_example=True) == ["A.f: no Example"]


def test_a_field_without_a_word_is_named():
    (one,) = ast.parse(
        'class A:\n    """An a.\n\n    Attributes:\n      x, y: Two.\n    """\n    x: int\n    y: int\n    z: int'
    ).body
    assert build.wrong_with_class("A", one, needs_example=False) == ["A: Attributes lacks z"]
