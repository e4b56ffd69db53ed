"""Expressions that only compute, evaluated on made inputs.

What a name stands for is a package that computes, one of Python's functions that do, a plain value or array of the
user's (a copy of it), or a tensor, for which an array is made. No function of the user's runs, and nothing that draws
from the program's random numbers, reads or writes.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import dtype_of, is_symbolic, kept_by, lookup, only_keeps, shape_of
from pyfunc_debug.program.syntax import copied

T = TypeVar("T")
_LIBRARIES = ("numpy", "scipy", "math", "tensorflow", "keras", "cv2")
_BUILTINS = {
    "abs", "all", "any", "bool", "complex", "divmod", "enumerate", "filter", "float", "int", "len", "list", "map",
    "max", "min", "pow", "range", "reversed", "round", "set", "sorted", "sum", "tuple", "zip",
}  # fmt: skip
_DOES_MORE = re.compile(
    r"(^|\.)(io|random|print|\w*py_func\w*|numpy_function|Variable|data|keras|summary|saved_model|train|function|config|"
    r"load\w*|save\w*|open\w*|file|fromfile|tofile|genfromtxt|memmap|raw_ops|debugging|distribute|cond|while_loop|map_fn|"
    r"frompyfunc|fromfunction|set\w*_?err\w*|set_\w+|ctypeslib|f2py|test|testing|experimental\.(?!numpy)\w+|dump\w*)(\.|$)"
)
_KERAS_OPS = re.compile(
    r"(?:\w+\.)?keras\.(?:ops\.(?!cond|convert|random|while_loop|map$|scan)\w+|(?:losses|metrics|activations)\.[a-z_]+|"
    r"utils\.(?:to_categorical|normalize|pad_sequences)|preprocessing\.sequence\.pad_sequences)"
)
SIZE, _MOST = 3, 300_000
"""For a size that is not known; and the elements of an input that is not made."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), slice)
_OLDER = "tensorflow.compat.v1"
_LOADERS = ("module", "LazyLoader", "KerasLazyLoader", "_KerasLazyLoader")


def given_names(tree: ast.AST, spot: Spot, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the names of an expression stand for, beside its tensors; None where it does more than compute.

    Args:
      tree: The expression.
      spot: The frame that knows its names.
      known: Values of other names.
    """
    if not computes(tree):
        return None
    found: dict[str, Any] = {}
    for name in names(tree):
        value = known[name] if name in known else spot.value(name)
        if name in known:
            found[name] = value
        elif is_symbolic(value) or (value is None and name in _BUILTINS):
            continue
        elif (module := library(value, name)) is not None:
            found[name] = module
        elif value is not None and _is_plain(value):
            found[name] = copy.deepcopy(value)
        elif value is not None and only_keeps(value):
            nodes = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == name]
            found[name] = _stand_in(tree, list(nodes), value)
            if found[name] is None:
                return None
        else:
            return None
    return found


def _stand_in(tree: ast.AST, nodes: list[ast.AST], value: Any) -> types.SimpleNamespace | None:
    """An object with what an expression asks of `args` or `self.config`; None where it asks for more than plain values.

    Args:
      tree: The expression.
      nodes: Where it names the object.
      value: The object.
    """
    asked: dict[str, list[ast.AST]] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.Attribute) and one.value in nodes:
            asked.setdefault(one.attr, []).append(one)
    if sum(map(len, asked.values())) != len(nodes):
        return None
    made = types.SimpleNamespace()
    for name, places in asked.items():
        kept = kept_by(value, name)
        if kept is not None and _is_plain(kept):
            setattr(made, name, copy.deepcopy(kept))
            continue
        inner = _stand_in(tree, places, kept) if only_keeps(kept) else None
        if inner is None:
            return None
        setattr(made, name, inner)
    return made


def computes(tree: ast.AST) -> bool:
    """Whether an expression names nothing that does more than compute: random numbers, files, the program's state."""
    only_compute = {
        part for one in ast.walk(tree) if isinstance(one, ast.Attribute) and _KERAS_OPS.fullmatch(dotted(one))
        for part in ast.walk(one)
    }  # fmt: skip
    for one in ast.walk(tree):
        if one in only_compute:
            continue
        if isinstance(one, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(one, (ast.Attribute, ast.Name)) and _DOES_MORE.search(dotted(one)):
            return False
        if isinstance(one, ast.Attribute) and (one.attr.startswith("_") or _DOES_MORE.search(one.attr)):
            return False
    return True


def evaluated(tree: ast.expr, given: Mapping[str, Any]) -> Any:
    """What an expression gives, as Python gives it.

    Args:
      tree: The expression, of which `given_names` says that it only computes.
      given: What its names stand for.

    Raises:
      Exception: whatever it raises.
    """
    # a copy: its places in the file are the user's, and the tree is read by others
    code = compile(ast.fix_missing_locations(ast.Expression(copied(tree))), "<made>", "eval")
    own = {name: getattr(builtins, name) for name in (*_BUILTINS, "__import__")}  # with which NumPy loads parts of it
    return eval(code, {"__builtins__": own, **given})


@contextmanager
def eagerly() -> Iterator[None]:
    """Outside of the graph that is being traced, and without warnings. No tape sees what runs."""
    with sys.modules["tensorflow"].init_scope(), quietly():
        yield


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings."""
    with warnings.catch_warnings(), sys.modules["numpy"].errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


ONES = -1
"""The number of the values that are all the same."""


def apart(function: Callable[..., T], *given: Any) -> T | None:
    """What a function gives in a thread of its own, where no graph of the program's is open and tapes see what runs.

    Args:
      function: The function.
      given: What it is given.

    Returns:
      None where it raises.
    """
    found: list[T] = []

    def run() -> None:
        with suppress(Exception):
            found.append(function(*given))

    # in a copy of the context: there, too, files are read as they are here
    thread = threading.Thread(target=copy_context().run, args=(run,), name="pyfunc-debug-explain", daemon=True)
    thread.start()
    thread.join()
    return found[0] if found else None


def made_array(tensor: Any, number: int = 0, size: int = SIZE) -> Any:
    """Values for a tensor, by its dtype and shape; None where these are not known, or hold too much or text.

    Args:
      tensor: A symbolic tensor, or what is known of one.
      number: Another number gives other values; that of `ONES` gives ones.
      size: What stands for a size that is not known.
    """
    numpy, shape, dtype = sys.modules["numpy"], shape_of(tensor), dtype_of(tensor)
    if shape is None:
        return None
    sizes = tuple(size if one is None else one for one in shape)
    if numpy.prod(sizes, dtype=float) > _MOST:
        return None
    if number == ONES:
        return numpy.ones(sizes, dtype) if dtype == "bool" or "int" in dtype or "float" in dtype else None
    random = numpy.random.default_rng(number)  # a generator of its own: the program's numbers stay its own
    if "float" in dtype or "complex" in dtype:
        found = random.uniform(0.1, 0.9, sizes) if number == 0 else random.normal(size=sizes)
    elif "int" in dtype:
        found = random.integers(0, 3, sizes)
    elif dtype == "bool":
        found = random.integers(0, 2, sizes)
    else:
        return None
    return numpy.asarray(found).astype(dtype)


class _Newer:
    """TensorFlow 1's module as pastes see it: TensorFlow 2's names first."""

    def __init__(self, older: Any) -> None:
        self._older = older

    def __getattr__(self, name: str) -> Any:
        newer = sys.modules["tensorflow"]
        return getattr(newer if hasattr(newer, name) else self._older, name)


def library(value: object, name: str) -> Any:
    """The package that a name stands for, if it is one that computes."""
    if name == "tf" and value is None:
        return sys.modules.get("tensorflow")
    module = str(getattr(value, "__name__", "")) if type(value).__name__ in _LOADERS else ""
    if module.replace("._api.v2", "") == _OLDER and "tensorflow" in sys.modules:
        return _Newer(value)
    return sys.modules.get(module) if module.partition(".")[0] in _LIBRARIES else None


def computed(node: ast.expr, spot: Spot) -> Any:
    """The value of a name, or of an expression of plain values; None of any other."""
    given = given_names(node, spot, {})
    with suppress(Exception):
        return lookup(node, spot) if given is None else evaluated(node, given)
    return None


def _is_plain(value: Any) -> bool:
    """Whether a value is one of Python's own, or an array: nothing of it runs a user's code."""
    if isinstance(value, (list, tuple)):
        return type(value) in (list, tuple) and len(value) < 100 and all(map(_is_plain, value))
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return bool(value.dtype.kind in "biufc" and value.size <= _MOST)
    return type(value) in _PLAIN or type(value).__module__ == "numpy"
