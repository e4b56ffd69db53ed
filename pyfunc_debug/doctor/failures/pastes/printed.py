"""What a `print` shows, part by part: `tf.print` takes values, and no text that Python has put together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.reading.source import dotted

_FORMATS = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]")
"""What `%` puts a value into."""
_FIELDS = re.compile(r"\{(?:![rs])?(?::[^{}]*)?\}")
"""What `format` puts the next value into."""


def shown(argument: ast.expr) -> list[ast.expr]:
    """The texts and values of `f"loss {x:.3f}"`, `"loss %.3f" % x`, `"loss {}".format(x)` and `"loss " + str(x)`."""
    return list(_parts(argument))


def quoted(text: str) -> str:
    """A text as it is written in a program."""
    return repr(text) if '"' in text else repr(text).replace("'", '"')


def _parts(argument: ast.expr) -> Iterator[ast.expr]:
    if isinstance(argument, ast.JoinedStr):
        for one in argument.values:
            yield one.value if isinstance(one, ast.FormattedValue) else one
    elif isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Mod):
        values = argument.right.elts if isinstance(argument.right, ast.Tuple) else [argument.right]
        yield from _filled(argument, argument.left, values, _FORMATS)
    elif isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Add) and _is_text(argument):
        yield from _parts(argument.left)
        yield from _parts(argument.right)
    elif isinstance(argument, ast.Call) and dotted(argument.func) in ("str", "repr") and len(argument.args) == 1:
        yield argument.args[0]
    elif isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and argument.func.attr == "format":
        starred = any(isinstance(one, ast.Starred) for one in argument.args)
        values = [] if argument.keywords or starred else argument.args
        yield from _filled(argument, argument.func.value, values, _FIELDS)
    else:
        yield argument


def _filled(whole: ast.expr, text: ast.expr, values: list[ast.expr], field: re.Pattern[str]) -> Iterator[ast.expr]:
    """A text's parts, and between them what is put into it; the whole where that is not plain."""
    written = text.value if isinstance(text, ast.Constant) else None
    texts = field.split(written) if isinstance(written, str) else []
    if len(texts) != len(values) + 1 or not values:
        yield whole
        return
    for words, value in zip(texts, values):
        yield ast.Constant(words)
        yield value
    yield ast.Constant(texts[-1])


def _is_text(one: ast.expr) -> bool:
    """Whether an expression is a text by how it is written."""
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
        return _is_text(one.left) or _is_text(one.right)
    if isinstance(one, ast.Call):
        return dotted(one.func) in ("str", "repr")
    return isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
