"""How a program of the corpus is written down, run, and its outcome made comparable."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[list[Any]], Any]] = {}
ALONE: set[str] = set()
"""Programs that need a process of their own."""


def program(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Puts a program into the table. It is given a list to which its bodies append: the order of side effects."""
    PROGRAMS[function.__name__] = function
    return function


def alone(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A program that is run in a process of its own."""
    ALONE.add(function.__name__)
    return program(function)


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    """What a call returns, or everything that can be said about the exception that it raises."""
    try:
        return function(*args)
    except BaseException as error:
        return {
            "type": f"{type(error).__module__}.{type(error).__qualname__}",
            "text": str(error),
            "cause": type(error.__cause__).__name__,
            "context": type(error.__context__).__name__,
            "frames": [f"{entry.filename}:{entry.lineno} {entry.name}" for entry in _frames(error)],
        }


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Where the exception passed, as the user sees it: without this helper's own frame."""
    return list(traceback.extract_tb(error.__traceback__))[1:]


_NUMBERS = (
    (re.compile(r"(__(?:inference|forward)_[\w<>]*?)(?:_\d+)+(?=\W|$)"), r"\1_N"),
    (re.compile(r"pyfunc_\d+"), "pyfunc_N"),
    # Nodes made while on have one more output, so we count the results, not C++: same type, same sentence.
    (
        re.compile(
            r"ValueError: (pyfunc_N returns \d+ values, but expects to see \d+ values\.)\nTraceback.*?\n\n\n", re.S
        ),
        r"\1\n",
    ),
    (re.compile(r"__autograph_generated_file\w+\.py"), "__autograph_generated_file.py"),
    (re.compile(r"0x[0-9a-f]+"), "0xN"),
    # A v1 Session also prints the frames of TensorFlow's own at construction, of which ours take the names.
    (re.compile(r'  File "[^"\n]*/site-packages/tensorflow/[^"\n]*", line \d+, in \S+\n(?!    )'), ""),
    (re.compile(r"(StatefulPartitionedCall|PartitionedCall)(_\d+)?"), r"\1"),
)


def plain(value: Any) -> Any:
    """A result as JSON that compares equal when, and only when, the results are equal."""
    import numpy as np
    import tensorflow as tf

    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        return [type(value).__name__, [plain(one) for one in tf.nest.flatten(value, expand_composites=True)]]
    if isinstance(value, (tf.Tensor, tf.Variable)):
        if not hasattr(value, "numpy"):
            return ["symbolic", str(value.dtype)]
        return [str(value.dtype.name), plain(value.numpy())]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), [plain(one) for one in value.reshape(-1).tolist()]]
    if isinstance(value, np.generic):
        return [str(value.dtype), plain(value.item())]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[plain(one) for one in value]]
    if isinstance(value, str):
        for pattern, replacement in _NUMBERS:
            value = pattern.sub(replacement, value)
        return value[:1600]  # TensorFlow cuts long messages, with numbers of any length before the cut
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, complex):
        return str(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    return [type(value).__name__, repr(value)]
