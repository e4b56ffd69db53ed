"""Advice against retraces, tried: the function is traced again as advised, and runs on calls that the user gives.

The advised function is a new tf.function of the same Python function, thrown away afterwards: TensorFlow runs the
user's Python again while it traces. Each run has its own copies of the arguments; variables, captured tensors and
arrays, and Python's and NumPy's random numbers are put back.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyfunc_debug.analysis.equality import Tolerance, compare_elements
from pyfunc_debug.analysis.retraces import Explanation
from pyfunc_debug.api.isolation import Isolation, random_put_back
from pyfunc_debug.interception.graphs.eagerly import Resources, take_resources
from pyfunc_debug.program.error_text import error_text

_TENSOR = re.compile(r"always pass `(.*)` as a tensor: tf\.constant\(.*, tf\.(\w+)\)")
_CAST = re.compile(r"tf\.cast `(.*)` to tf\.(\w+) before the call.*")
_KIND = re.compile(r"always pass `(.*)` as a (list|tuple|dict)")
_KEY = re.compile(r"\[('.*?'|\".*?\"|-?\d+)\]|\.(\w+)")
_KINDS: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "dict": dict}
_CLOSE = Tolerance(1e-5, 1e-6)
Change = tuple[str, Callable[[Any], Any]]


def try_advice(function: Any, explanation: Explanation, calls: Iterable[Sequence[Any]]) -> Explanation:
    """Adds to each row of an explanation what became of its advice when it was followed.

    Args:
      function: The tf.function.
      explanation: Of it.
      calls: Arguments of calls to try it on, each a tuple of positional arguments.
    """
    given = [tuple(one) for one in calls]
    found: dict[str, str] = {}
    for row in explanation.rows:
        if row.avoid is not None and row.avoid not in found:
            found[row.avoid] = _tried(function, row.avoid, given)
    notes = explanation.notes
    if len(found) > 1:
        together = _tried(function, "; ".join(dict.fromkeys("; ".join(found).split("; "))), given)
        notes = (*notes, f"all advice together {together}")
    return replace(
        explanation,
        notes=notes,
        rows=tuple(replace(row, tried=found.get(row.avoid) if row.avoid else None) for row in explanation.rows),
    )


def _tried(function: Any, advice: str, calls: list[tuple[Any, ...]]) -> str:
    """What became of one advice, in words."""
    import tensorflow as tf

    read = _read(advice, tf)
    if read is None:
        return "not tried: it changes other code than this function's"
    options, changes = read
    advised = tf.function(function.python_function, **options)
    statuses = set()
    for number, call in enumerate(calls, 1):
        isolation = Isolation(tf, [function.python_function], call, {})
        expected, error = _run(function, isolation, ())
        if error is not None:
            return f"not tried: call {number} fails as the function is: {error}"
        outputs, error = _run(advised, isolation, changes)
        if error is not None:
            return f"tried: it does not work: call {number} raised {error}"
        status, note = _compared(expected, outputs)
        if status == "different":
            return f"tried: it does not work: call {number} gives another result ({note})"
        statuses.add(status)
    graphs = advised.experimental_get_tracing_count()
    text = f"{graphs} graph{'s' if graphs != 1 else ''}" if graphs != 1 else "one graph"
    many = f"{len(calls)} call{'s' if len(calls) != 1 else ''}"
    return f"tried: {text} for {many}, results {'equal' if statuses <= {'equal'} else 'equal within rounding'}"


def _read(advice: str, tf: Any) -> tuple[dict[str, Any], list[Change]] | None:
    """Options of tf.function, and what to do with which arguments; None where advice is about other code."""
    options: dict[str, Any] = {}
    changes: list[Change] = []
    for part in advice.split("; "):
        name, _, value = part.partition("=")
        if name == "input_signature":
            options[name] = eval(value, {"tf": tf})  # text of ours, made of TensorSpecs
        elif part == "reduce_retracing=True":
            options[name] = True
        elif found := _TENSOR.fullmatch(part):
            changes.append((found[1], functools.partial(_as_tensor, dtype=found[2])))
        elif found := _CAST.fullmatch(part):
            changes.append((found[1], functools.partial(tf.cast, dtype=found[2])))
        elif found := _KIND.fullmatch(part):
            changes.append((found[1], _KINDS[found[2]]))
        else:
            return None
    return options, changes


def _as_tensor(one: Any, dtype: str) -> Any:
    import tensorflow as tf

    return one if tf.is_tensor(one) else tf.constant(one, dtype)


def _run(function: Any, isolation: Isolation, changes: Sequence[Change]) -> tuple[list[Any], str | None]:
    """Outputs of one run as arrays, or why it failed."""
    import tensorflow as tf

    resources = Resources([], 0)
    isolation.restore()
    with random_put_back():
        try:
            arguments = _changed(function, isolation.arguments()[0], changes)
            resources = take_resources(function.get_concrete_function(*arguments))
            returned = function(*arguments)
            flat = tf.nest.flatten(returned, expand_composites=True)
            return [np.array(one) for one in flat], None
        except Exception as error:
            return [], error_text(error)[0]
        finally:
            resources.restore()
            isolation.restore()


def _changed(function: Any, arguments: tuple[Any, ...], changes: Sequence[Change]) -> list[Any]:
    """The arguments as advised."""
    names = [*inspect.signature(function.python_function).parameters]
    found = list(arguments)
    signature = function.input_signature
    if signature is not None:
        found = found[: len(signature)]  # it leaves out arguments that were always the default
    for path, change in changes:
        name = re.match(r"\w+", path)
        at = names.index(name[0]) if name else 0
        if at < len(found):
            keys = [ast.literal_eval(key) if key else field for key, field in _KEY.findall(path)]
            found[at] = _replaced(found[at], keys, change)
    return found


def _replaced(thing: Any, keys: Sequence[Any], change: Callable[[Any], Any]) -> Any:
    """A structure with one of its parts changed."""
    if not keys:
        return change(thing)
    key, rest = keys[0], keys[1:]
    if isinstance(thing, dict):
        return type(thing)({**thing, key: _replaced(thing[key], rest, change)})
    if hasattr(thing, "_replace"):
        return thing._replace(**{key: _replaced(getattr(thing, key), rest, change)})
    parts = list(thing)
    parts[key] = _replaced(parts[key], rest, change)
    return type(thing)(parts)


def _compared(expected: list[Any], outputs: list[Any]) -> tuple[str, str]:
    if len(expected) != len(outputs):
        return "different", f"{len(outputs)} outputs, not {len(expected)}"
    worst = "equal"
    for one, other in zip(expected, outputs):
        if one.dtype != other.dtype or one.shape != other.shape:
            return "different", f"{other.dtype}{list(other.shape)}, not {one.dtype}{list(one.shape)}"
        status, _, note = compare_elements(one, other, _CLOSE)
        if status == "different":
            return status, note or "another value"
        worst = "close" if status == "close" else worst
    return worst, ""
