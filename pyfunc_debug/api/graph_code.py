"""A body as graph code: the same function with NumPy's names bound to tf.experimental.numpy, traced, and compared.

No source is rewritten: the copy has the body's own code object, with other globals and another closure. AutoGraph
converts its branches and loops, as tf.function does.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.reading.situation import Locate, situation
from pyfunc_debug.doctor.failures.reading.source import Function
from pyfunc_debug.places import source_line

_TOLERANCE = {
    "float16": 1e-2,
    "bfloat16": 2e-2,
    "float32": 1e-5,
    "float64": 1e-9,
    "complex64": 1e-5,
    "complex128": 1e-9,
}
"""Of the largest element: what another order of the same operations may cost."""
_METHODS = {
    "sum": "sum", "mean": "mean", "max": "max", "min": "min", "std": "std", "var": "var", "prod": "prod",
    "reshape": "reshape", "ravel": "ravel", "flatten": "ravel", "transpose": "transpose", "T": "transpose",
    "clip": "clip", "round": "around", "any": "any", "all": "all", "argmax": "argmax", "argmin": "argmin",
    "cumsum": "cumsum", "squeeze": "squeeze", "repeat": "repeat", "swapaxes": "swapaxes", "dot": "dot",
    "astype": "asarray", "copy": "copy", "size": "size",
}  # fmt: skip
"""Methods of NumPy's arrays that tensors lack, and the function that does the same to both."""


class ObstacleError(Exception):
    """Graph code cannot do it; the text says which line and why."""


def numpy_names(function: Any) -> dict[str, str]:
    """Names in a function's code that stand for NumPy or a function of its, and that function's own name or ""."""
    plain = _plain(function)
    if plain is None:
        return {}
    found = {}
    for name, value in {**plain.__globals__, **_cells(plain)}.items():
        if name not in _names(plain.__code__) and name not in plain.__code__.co_freevars:
            continue
        if value is np:
            found[name] = ""
            continue
        real = str(getattr(value, "__name__", ""))
        if value is not None and getattr(np, real, None) is value:
            found[name] = real
    return found


def as_graph_code(function: Any, tf: Any) -> Any:
    """The function with NumPy's names bound to tf.experimental.numpy; the function itself where it uses none.

    Args:
      function: A function, a method or a partial.
      tf: TensorFlow.
    """
    if isinstance(function, functools.partial):
        return functools.partial(as_graph_code(function.func, tf), *function.args, **function.keywords)
    if isinstance(function, types.MethodType):
        return types.MethodType(as_graph_code(function.__func__, tf), function.__self__)
    if not isinstance(function, types.FunctionType):
        return function
    names = numpy_names(function)
    if not names:
        return function
    ported = tf.experimental.numpy
    other = {name: ported if not real else getattr(ported, real, np) for name, real in names.items()}
    cells = tuple(
        types.CellType(other[name]) if name in other else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
    )
    copied = types.FunctionType(
        function.__code__, {**function.__globals__, **other}, function.__name__, function.__defaults__, cells or None
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__ = function.__qualname__
    copied.__module__ = function.__module__
    return copied


def _plain(function: Any) -> types.FunctionType | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return function if isinstance(function, types.FunctionType) else None


def _cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def code_of(function: Any) -> types.CodeType | None:
    """The code object of the user's function."""
    plain = _plain(function)
    return None if plain is None else plain.__code__


# -- tracing ------------------------------------------------------------------------------------------------------


def traced(
    function: Any, specs: Sequence[Any], tf: Any, locate: Locate, definition: Function | None, converted: bool
) -> Any:
    """The tf.function of some graph code, traced for all these inputs at once.

    Args:
      function: What `as_graph_code` made.
      specs: TensorSpecs that fit all recorded inputs.
      tf: TensorFlow.
      locate: The user's line for a line of AutoGraph's.
      definition: The function's syntax tree, if its source is there.
      converted: Whether AutoGraph made its code already.

    Raises:
      ObstacleError: it cannot be traced, or it still needs Python.
    """
    made = tf.function(function, input_signature=list(specs), autograph=not converted)
    try:
        concrete = made.get_concrete_function()
    except Exception as error:  # the user's function ran on symbolic tensors: anything may come out of it
        raise ObstacleError(_obstacle(error, function, locate, definition)) from None
    python = [op for op in concrete.graph.get_operations() if "PyFunc" in op.type]
    if python:
        raise ObstacleError(f"it calls tf.{'py' if python[0].type == 'EagerPyFunc' else 'numpy'}_function itself")
    results = tf.nest.flatten(concrete.structured_outputs)
    if not results or any(one is None for one in results):
        raise ObstacleError("it returns nothing: what it does, it does in Python")
    return made


def _obstacle(error: BaseException, function: Any, locate: Locate, definition: Function | None) -> str:
    found = situation(error, locate, lambda *_: [])
    code = code_of(function)
    spot = next((one for one in reversed(found.spots) if code is None or one.file == code.co_filename), found.last)
    where = "" if spot is None else f"line {spot.line} "
    inner: Any = found.inner
    name, owner = getattr(inner, "name", None), getattr(inner, "obj", None)
    if isinstance(inner, AttributeError) or "has no attribute" in found.message:
        match = re.search(r"has no attribute '(\w+)'", found.message)
        name = name or (match[1] if match else None)
    text = "" if spot is None else linecache.getline(spot.file, spot.line).strip()
    if name is not None:
        if isinstance(owner, types.ModuleType) or "module" in found.message[:40]:
            written = re.search(rf"[\w.]*\.{name}\b", text)
            return f"{where}uses {written[0] if written else f'np.{name}'}, which tf.experimental.numpy does not have"
        written = re.search(rf"(\w+(?:\[[^\]]*\])?)\.{name}\b", text)
        what = f"{written[0] if written else f'.{name}'}{'' if name in ('T', 'size') else '()'}"
        other = _METHODS.get(name)
        hint = "" if other is None else f": write np.{other}({written[1] if written else '...'}{_more(name)})"
        return f"{where}uses {what}, which NumPy's arrays have and tensors do not{hint}"
    if found.kind == "InaccessibleTensorError" and (line := _appends(definition)) is not None:
        return (
            f"line {line} puts tensors into a Python list in a loop that the graph runs: tf.map_fn(...) gives one "
            "result for each element"
        )
    said = found.message.strip().splitlines()
    said_first = next((line.strip() for line in said if line.strip() and not line.startswith("in user code")), "")
    quoted = f"({text[:60]}) " if text else ""
    return f"{where}{quoted}does not work on tensors of a graph: {found.kind}: {said_first[:160]}"


def _appends(tree: Function | None) -> int | None:
    """The line on which a function appends to something in a loop."""
    loops = [one for one in ast.walk(tree) if isinstance(one, (ast.For, ast.While))] if tree is not None else []
    for loop in loops:
        for one in ast.walk(loop):
            if isinstance(one, ast.Attribute) and one.attr in ("append", "extend", "insert"):
                return one.lineno
    return None


def _more(name: str) -> str:
    return ", dtype" if name == "astype" else ", ..." if name in ("reshape", "clip", "repeat", "swapaxes") else ""


def merged_specs(calls: Sequence[Sequence[np.ndarray[Any, Any]]], tf: Any) -> list[Any] | None:
    """TensorSpecs that fit the inputs of all calls; None where their number, dtypes or ranks differ."""
    first = calls[0]
    if any(len(call) != len(first) for call in calls):
        return None
    specs = []
    for position, array in enumerate(first):
        arrays = [call[position] for call in calls]
        if any(one.dtype != array.dtype or one.ndim != array.ndim for one in arrays):
            return None
        shape = [
            array.shape[axis] if all(one.shape[axis] == array.shape[axis] for one in arrays) else None
            for axis in range(array.ndim)
        ]
        specs.append(tf.TensorSpec(shape, tf.as_dtype(array.dtype) if array.dtype != object else tf.string))
    return specs


# -- comparing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What two lists of results have in common: the largest difference, or why they are not the same."""

    difference: float
    unlike: str = ""


def outcome(expected: Sequence[Any], found: Sequence[Any], paths: Sequence[str]) -> Outcome:
    """Compares results one by one: number, shapes, dtypes, then values, with a tolerance for floats."""
    if len(expected) != len(found):
        return Outcome(0.0, f"returns {len(found)} values and not {len(expected)}")
    worst = 0.0
    for position, (one, other) in enumerate(zip(expected, found)):
        path = paths[position] if position < len(paths) else f"out[{position}]"
        left, right = np.asarray(one), np.asarray(other)
        if left.shape != right.shape:
            return Outcome(0.0, f"{path} has the shape {list(right.shape)} and not {list(left.shape)}")
        if left.dtype != right.dtype and not (left.dtype.kind in "SUO" and right.dtype.kind in "SUO"):
            return Outcome(0.0, f"{path} has the dtype {right.dtype} and not {left.dtype}")
        tolerance = _TOLERANCE.get(str(left.dtype))
        if tolerance is None:
            if not np.array_equal(left, right):
                return Outcome(0.0, f"{path} differs{_first_difference(left, right)}")
            continue
        finite = np.isfinite(left)
        same_rest = np.array_equal(left[~finite], right[~finite], equal_nan=True)
        if not same_rest or not np.isfinite(right[finite]).all():
            return Outcome(0.0, f"{path} has NaN or infinity elsewhere")
        if not finite.any():
            continue
        wide = np.complex128 if left.dtype.kind == "c" else np.float64
        apart = np.abs(left[finite].astype(wide) - right[finite].astype(wide))
        scale = max(1.0, float(np.abs(left[finite].astype(wide)).max()))
        worst = max(worst, float(apart.max()))
        if float(apart.max()) > tolerance * scale:
            return Outcome(worst, f"{path} differs by {apart.max():.3g}{_first_difference(left, right)}")
    return Outcome(worst)


def _first_difference(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str:
    if not left.size:
        return ""
    apart = left != right
    index = tuple(int(one) for one in np.argwhere(apart)[0]) if np.any(apart) else ()
    where = f" at {list(index)}" if index else ""
    return f"{where}: {left[index]!s:.20} in Python, {right[index]!s:.20} as graph code"


def flat(found: Any, tf: Any, dtypes: Sequence[str], eager: bool) -> list[Any]:
    """What a body returned, as TensorFlow would make tensors of it (py_func.cc, EagerFunc._convert)."""
    parts = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
    made = []
    for position, part in enumerate(parts):
        dtype = dtypes[position] if position < len(dtypes) else None
        if isinstance(part, tf.Tensor):
            part = part.numpy()
        elif dtype not in (None, "string") and (eager or not isinstance(part, (np.ndarray, np.generic))):
            part = tf.convert_to_tensor(part, dtype).numpy()
        made.append(np.asarray(part))
    return made


# -- inputs -------------------------------------------------------------------------------------------------------


def perturbed(arrays: Sequence[np.ndarray[Any, Any]], kind: int, random: np.random.Generator) -> list[Any]:
    """Other inputs of the same shapes and dtypes: moved a little, mirrored, spread, or in another order."""
    return [_other(array, kind, random) for array in arrays]


KINDS = 4


def _other(array: np.ndarray[Any, Any], kind: int, random: np.random.Generator) -> Any:
    if array.dtype.kind == "f" and array.size:
        scale = float(np.nanmax(np.abs(np.where(np.isfinite(array), array, 0)))) or 1.0
        if kind == 0:
            return (array + scale * 1e-2 * random.standard_normal(array.shape)).astype(array.dtype)
        if kind == 1:
            return (-array).astype(array.dtype)
        if kind == 2:
            return (scale * 3 * random.standard_normal(array.shape)).astype(array.dtype)
        return np.zeros_like(array)
    if array.ndim and array.size > 1:
        return random.permuted(array.reshape(-1)).reshape(array.shape)
    if array.dtype.kind == "b":
        return np.logical_xor(array, bool(kind % 2))
    return array


class LinesRun:
    """Which lines of a function ran: a trace function on this thread, for one code object."""

    def __init__(self, code: types.CodeType | None) -> None:
        self._code = code
        self.ran: set[int] = set()

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function and notes the lines."""
        if self._code is None:
            return function(*args)
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return function(*args)
        finally:
            sys.settrace(before)

    def _enter(self, frame: Any, event: str, _: Any) -> Any:
        return self._line if frame.f_code is self._code else None

    def _line(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self.ran.add(frame.f_lineno)
        return self._line

    def missed(self) -> list[int]:
        """Lines that have code and never ran."""
        if self._code is None:
            return []
        first = self._code.co_firstlineno
        every = {line for _, _, line in self._code.co_lines() if line is not None and line > first}
        return sorted(every - self.ran) if self.ran else []


__all__ = [
    "KINDS", "LinesRun", "ObstacleError", "Outcome", "as_graph_code", "code_of", "flat", "merged_specs",
    "numpy_names", "outcome", "perturbed", "source_line", "traced",
]  # fmt: skip
