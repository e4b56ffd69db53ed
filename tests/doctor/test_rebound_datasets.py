"""A generator that iterates the dataset made of it: the fix is found in the source, as running it would never end."""

from __future__ import annotations

import ast
from types import SimpleNamespace

import pytest

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import rebound_datasets
from pyfunc_debug.doctor.failures.reading.source import parsed


def told(monkeypatch, text):
    """What is said of the one call of from_generator in a text."""
    own = parsed(text)
    calls = [one for one in ast.walk(own.tree) if isinstance(one, ast.Call)]
    call = next(one for one in calls if pastes.last_name(one.func) == "from_generator")
    facts = SimpleNamespace(nodes={1: None}, source=lambda file: own.lines)
    monkeypatch.setattr(pastes, "dataset_call", lambda facts, node: ("program.py", call))
    return rebound_datasets.told(facts, 1)


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("dataset = Dataset.from_generator(lambda: iter(dataset), t)", "lambda data=dataset: iter(data)"),
        ("rows = Dataset.from_generator(lambda: rows, t).batch(2)", "lambda data=rows: data"),
        ("data = Dataset.from_generator(lambda: iter(data), t)", "lambda data_rows=data: iter(data_rows)"),
    ],
)
def test_a_name_that_is_bound_to_the_dataset_is_kept_by_the_lambda(line, new, monkeypatch):
    text, fix, file, at = told(monkeypatch, line)
    assert "is the dataset itself then" in text
    assert new in fix
    assert (file, at) == ("program.py", 1)


@pytest.mark.parametrize(
    "line",
    [
        "dataset = Dataset.from_generator(lambda: iter(rows), t)",
        "dataset = Dataset.from_generator(rows, t)",
        "dataset = Dataset.from_generator(lambda: read(dataset), t)",
        "def rows():\n    for one in other:\n        yield one\ndata = Dataset.from_generator(rows, t)",
        "def rows(data):\n    for one in data:\n        yield one\ndata = Dataset.from_generator(rows, t)",
        "def rows():\n    yield from range(data)\nmade = Dataset.from_generator(rows, t)",
    ],
)
def test_another_generator_is_left_alone(line, monkeypatch):
    assert told(monkeypatch, line) is None


def test_of_two_functions_of_a_name_it_is_the_last_above_the_call(monkeypatch):
    text, fix, _, at = told(
        monkeypatch,
        "other = [1]\ndef rows():\n    for one in other:\n        yield one\nmade = list(rows())\n"
        "data = [2]\ndef rows():\n    for one in data:\n        yield one\n"
        "data = Dataset.from_generator(rows, t)",
    )
    assert "rows reads data when it is called" in text
    assert "def rows(data=data):" in fix
    assert at == 7


def test_a_function_that_loops_over_the_name_keeps_it_by_a_default(monkeypatch):
    text, fix, _, at = told(
        monkeypatch,
        "data = Dataset.range(3)\ndef rows():\n    for one in data.take(2):\n        yield one\n"
        "data = Dataset.from_generator(rows, t)",
    )
    assert text.startswith("rows reads data when it is called, and data is the dataset itself then: each pass")
    assert fix == "Replace program.py:2 by:\ndef rows(data=data):"
    assert at == 2
