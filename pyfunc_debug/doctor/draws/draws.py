"""A draw of NumPy's or Python's random numbers, written as TensorFlow's op that draws in the graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from pyfunc_debug.program import syntax

IsNumber = Callable[[str], bool]
SEEDS = re.compile(r"random\.seed\(|set_seed\(|set_random_seed\(")
"""What seeds Python's, NumPy's or TensorFlow's global random numbers."""


def in_graph(line: str, draw: str, called: str, is_number: IsNumber) -> str | None:
    """A line of the user's with a draw of TensorFlow's in place of Python's; None where there is no such op.

    Args:
      line: The line, stripped.
      draw: The call in it, as `ast.unparse` writes it.
      called: The function that draws, as its module has it: "random.randint".
      is_number: Whether an argument is a whole number: how many places there are, rather than an array.
    """
    head = line.rstrip(":") + ": pass" if line.endswith(":") else line
    head = head.removeprefix("el") if head.startswith("elif ") else head
    try:
        tree = syntax.parse(head)
    except SyntaxError:
        return None
    drawn = _Drawn(draw, called, is_number)
    new = ast.unparse(drawn.visit(tree))
    if not drawn.found:
        return None
    return new.split("\n")[0] if line.endswith(":") else new


def op_of(draw: str, called: str, is_number: IsNumber) -> str | None:
    """TensorFlow's draw for one of Python's, as text; None where there is no such op, or of a part of an array.

    Args:
      draw: The call, as `ast.unparse` writes it.
      called: The function that draws, as its module has it: "random.randint".
      is_number: Whether an argument is a whole number: how many places there are, rather than an array.
    """
    call = _parsed(draw)
    new = _op(call, called, is_number) if isinstance(call, ast.Call) else None
    return None if new is None or "tf.gather(" in ast.unparse(new) else ast.unparse(new)


_CASTS = {
    "float": "float32", "int": "int32",
    **{one: one for one in ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64")},
}  # fmt: skip
"""What makes a number of one in Python, and the dtype that a tensor has then."""


class _Drawn(ast.NodeTransformer):
    def __init__(self, draw: str, called: str, is_number: IsNumber) -> None:
        self._draw = draw
        self._called = called
        self._is_number = is_number
        self.found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(inner, ast.Call) and ast.unparse(inner) == self._draw and node.func.attr == "astype":  # type: ignore[attr-defined]
            new = _op(inner, self._called, self._is_number)
            if new is not None:
                self.found = True
                dtype = ast.unparse(node.args[0]).rpartition(".")[2].strip("'\"") if node.args else "float32"
                return new if dtype == "float32" else _parsed(f"tf.cast({ast.unparse(new)}, tf.{dtype})")
        cast = _CASTS.get(ast.unparse(node.func).rpartition(".")[2])
        if cast is not None and [ast.unparse(one) for one in node.args] == [self._draw]:  # np.float32(...), int(...)
            new = _op(node.args[0], self._called, self._is_number)  # type: ignore[arg-type]  # a call, by its text
            if new is not None:
                self.found = True
                whole = ast.unparse(new).endswith("tf.int32)")
                plain = cast == ("int32" if whole else "float32")
                return new if plain else _parsed(f"tf.cast({ast.unparse(new)}, tf.{cast})")
        if ast.unparse(node) == self._draw:
            new = _op(node, self._called, self._is_number)
            if new is not None:
                self.found = True
                return new
        return self.generic_visit(node)


def _op(call: ast.Call, called: str, is_number: IsNumber) -> ast.expr | None:
    python, last = called.startswith("random."), called.rpartition(".")[2]
    given = [ast.unparse(one) for one in call.args]
    keywords = {one.arg: ast.unparse(one.value) for one in call.keywords}

    def argument(index: int, *names: str, default: str) -> str:
        return next(
            (keywords[one] for one in names if one in keywords), given[index] if index < len(given) else default
        )

    shape = argument(2, "size", default="[]") if not python else "[]"
    shape = _as_shape(shape)
    if last in ("rand", "randn"):
        return _parsed(f"tf.random.{'uniform' if last == 'rand' else 'normal'}([{', '.join(given)}])")
    if last in ("random", "random_sample", "standard_normal"):
        size = _as_shape(argument(0, "size", default="[]"))
        return _parsed(f"tf.random.{'normal' if last == 'standard_normal' else 'uniform'}({size})")
    if last == "uniform":
        low, high = argument(0, "low", "a", default="0.0"), argument(1, "high", "b", default="1.0")
        return _parsed(f"tf.random.uniform({shape}, {low}, {high}{_like(shape)})")
    if last in ("normal", "gauss"):
        mean, deviation = argument(0, "loc", "mu", default="0.0"), argument(1, "scale", "sigma", default="1.0")
        return _parsed(f"tf.random.normal({shape}, {mean}, {deviation}{_like(shape)})")
    if last in ("randint", "integers", "randrange"):
        low, high = argument(0, "low", default="0"), argument(1, "high", default="")
        if not high:
            low, high = "0", low
        if python and last == "randint":  # the upper end counts
            high = str(int(high) + 1) if high.isdigit() else f"{high} + 1"
        return _parsed(f"tf.random.uniform({shape}, {low}, {high}, tf.int32)")
    if last == "beta" and len(given) >= 2:  # of two gammas a / (a + b)
        a, b = (f"tf.math.log(tf.random.gamma({shape}, {one}))" for one in given[:2])
        return _parsed(f"tf.sigmoid({a} - {b})")
    numbers = _numbers(given[0], python, is_number) if given else None
    if last == "permutation" and numbers is not None and len(given) == 1 and not keywords:
        return _parsed(f"tf.random.shuffle({numbers})")
    if last == "sample" and python and numbers is not None and len(given) == 2:
        return _parsed(f"tf.random.shuffle({numbers})[:{given[1]}]")
    if last == "choice" and len(given) == 1 and not keywords:
        return _parsed(f"tf.gather({given[0]}, tf.random.uniform([], 0, len({given[0]}), tf.int32))")
    if last == "choice" and given and set(keywords) <= {"size", "replace"} and len(given) <= 3:
        return _chosen(given[0], argument(1, "size", default=""), argument(2, "replace", default="True"), is_number)
    return None


def _chosen(of: str, size: str, replace: str, is_number: IsNumber) -> ast.expr | None:
    """Some of the numbers below `of`."""
    if not is_number(of) or not size or size.startswith(("[", "(")):
        return None
    if replace == "False":
        return _parsed(f"tf.random.shuffle(tf.range({of}))[:{size}]")
    return _parsed(f"tf.random.uniform([{size}], 0, {of}, tf.int32)") if replace == "True" else None


def _numbers(text: str, python: bool, is_number: IsNumber) -> str | None:
    """The numbers that `random.sample(range(n), k)` and `np.random.permutation(n)` draw from, as a tensor."""
    if python:
        return f"tf.{text}" if text.startswith("range(") else None
    return f"tf.range({text})" if is_number(text) else None


def _like(shape: str) -> str:
    """The dtype of the tensor that has this shape, `x.shape`, as one argument more."""
    return f", {shape.removesuffix('.shape')}.dtype" if shape.endswith(".shape") else ""


def _as_shape(size: str) -> str:
    """A size as TensorFlow takes it: a list, or what has a shape already."""
    whole = size.startswith(("[", "(")) or size.endswith(".shape") or re.fullmatch(r".*\.shape\[[^\]]*:[^\]]*\]", size)
    return size if whole else f"[{size}]"


def _parsed(text: str) -> ast.expr:
    return syntax.expression(text)
