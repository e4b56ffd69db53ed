"""What a body asks of objects outside of it, or of its inputs' values, keeps it from being graph code."""

from __future__ import annotations

import ast

import pytest

from pyfunc_debug.doctor.bodies.foreign_objects import branches
from pyfunc_debug.doctor.bodies.replacement import obstacles
from pyfunc_debug.doctor.failures.reading.source import parsed

HEAD = """import keras
import tensorflow as tf
from parsers import Parser

parser = Parser("en")
dense = keras.layers.Dense(2)
table = tf.lookup.StaticHashTable(None, 0)


class Client:
    def encode(self, x):
        return open(str(x)).read()


class Scaler:
    def scale(self, x):
        return tf.sqrt(x)


class Own(keras.layers.Layer):
    def encode(self, x):
        return tf.sqrt(x)


class Held:
    def __init__(self):
        self.client = Client()
        self.layer = Own()

    def body(self, x):
        return BODY


client = Client()
scaler = Scaler()
own = Own()


def body(x, *more):
    return BODY
"""


def found(body):
    source = parsed(HEAD.replace("BODY", body))
    name = "Held" if "self." in body else ""
    function = next(
        one for top in source.tree.body for one in ast.walk(top)
        if isinstance(one, ast.FunctionDef) and one.name == "body" and (not name or getattr(top, "name", "") == name)
    )  # fmt: skip
    if not name:
        function = source.tree.body[-1]
    return obstacles("program.py", function, source=source), function


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("client.encode(x)", "client.encode()"),
        ("parser.parse(x)", "parser.parse()"),
        ("parser(x)", "parser()"),
        ("self.client.encode(x)", "self.client.encode()"),
        ("[tf.sqrt(t) for t in x]", "x"),
        ("tf.stack([t.strip() for t in x[0]])", "x"),
        ("x.decode()", "x.decode()"),
    ],
)
def test_python_is_seen(body, says):
    assert says in [one.text for one in found(body)[0]]


@pytest.mark.parametrize(
    "body",
    [
        "scaler.scale(x)",
        "own.encode(x)",
        "own(x)",
        "dense(x)",
        "table.lookup(x)",
        "self.layer.encode(x)",
        "tf.stack([tf.sqrt(one) for one in more])",
        'tf.strings.join([x, "A".lower()])',
    ],
)
def test_ops_are_not_taken_for_python(body):
    assert found(body)[0] == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("1 if x > 0 else 2", True),
        ("1 if x[0] else 2", True),
        ("1 if x is None else 2", False),
        ("1 if len(more) > 1 else x", False),
    ],
)
def test_branches_on_values_are_seen(body, expected):
    assert branches(found(body)[1]) is expected
