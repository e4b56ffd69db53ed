"""Symbolic tensors among the user's variables: which they are, and how they are described. Nothing of them is run."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.interception.names.private import called_graphs, dataset_inputs
from pyfunc_debug.program.frames import is_installed, is_user

_TYPES = {"SymbolicTensor", "Tensor", "KerasTensor"}
_LIBRARIES = ("tensorflow.", "keras.")
_LOOKED_AT = 10_000


class Described:
    """A tensor of which only dtype and shape are known: a recorded input. `known` is its value where all know it."""

    def __init__(self, dtype: str, shape: tuple[int | None, ...] | None, known: int | None = None) -> None:
        self.dtype = dtype
        self.shape = shape
        self.known = known


def _attribute(value: Any, name: str) -> Any:
    """An attribute of a library's object; of an object of the user's, what it keeps: a property would be their code."""
    if isinstance(value, ModuleType):
        return vars(value).get(name)
    kind = next((one for one in type(value).__mro__ if name in vars(one)), type(value))
    if not _is_users(kind.__module__) and not (isinstance(value, type) and _is_users(value.__module__)):
        return getattr(value, name, None)
    found = inspect.getattr_static(value, name, None)
    return None if hasattr(type(found), "__get__") or _is_users(type(found).__module__) else found


def _is_users(name: str) -> bool:
    """Whether a module is the user's own, and of no installed package."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None) or ""
    return name == "__main__" or module is None or (bool(file) and is_user(file) and not is_installed(file))


def only_keeps(value: Any) -> bool:
    """Whether an object is of no library, and keeps what it is given: options, a config, a Trainer."""
    kind = value if isinstance(value, type) else type(value)
    if f"{kind.__module__}.{kind.__name__}" in ("argparse.Namespace", "types.SimpleNamespace"):
        return True
    bases = [one for one in kind.__mro__ if one is not object]
    return hasattr(value, "__dict__") and bool(bases) and all(_is_users(one.__module__) for one in bases)


def kept_by(value: Any, name: str) -> Any:
    """What such an object, or its class, keeps under a name; runs nothing."""
    return inspect.getattr_static(value, name, None)


def is_symbolic(value: Any) -> bool:
    """Whether a value is a tensor of a graph, or a Keras input: something without a value of its own."""
    kind = type(value)
    if kind is Described:
        return True
    return kind.__name__ in _TYPES and kind.__module__.startswith(_LIBRARIES)


def is_keras(value: Any) -> bool:
    """Whether it is a KerasTensor."""
    return is_symbolic(value) and type(value).__name__ == "KerasTensor"


def is_dataset(value: Any) -> bool:
    """Whether a value is a tf.data.Dataset."""
    return any(one.__name__ == "DatasetV2" and one.__module__.startswith("tensorflow.") for one in type(value).__mro__)


def is_batched(dataset: Any) -> bool:
    """Whether a dataset, or one that it is made of, was batched; also where a generator may give batches."""
    kind = type(dataset).__name__
    if "Batch" in kind or "Window" in kind or "Generator" in kind or "FlatMap" in kind or "Interleave" in kind:
        return True
    return any(map(is_batched, dataset_inputs(dataset)))


def shape_of(value: Any) -> tuple[int | None, ...] | None:
    """A symbolic tensor's static shape; None where not even the rank is known."""
    shape = _attribute(value, "shape")
    if isinstance(shape, tuple):
        return shape
    if getattr(type(shape), "rank", None) is None or shape.rank is None:
        return None
    return tuple(shape.as_list())


def shape_of_data(value: Any, texts: bool = False) -> tuple[int | None, ...] | None:
    """The shape of a number, an array, a tensor, or lists of them; None where it has none.

    Args:
      value: Any value.
      texts: Whether a text is one, too.
    """
    if isinstance(value, (bool, int, float)) or (texts and isinstance(value, str)):
        return ()
    if isinstance(value, (list, tuple)):
        inside = {shape_of_data(one, texts) for one in value[:_LOOKED_AT]}
        first = inside.pop() if len(inside) == 1 else None
        return None if first is None else (len(value), *first)
    return shape_of(value) if type(value) is Described or hasattr(type(value), "__array__") else None


def is_ndarray(value: Any) -> bool:
    """Whether a value is an array of NumPy's, and of no class derived from it."""
    return (type(value).__module__, type(value).__name__) == ("numpy", "ndarray")


def dtype_of(value: Any) -> str:
    """`float32`; of an object of the user's only what it keeps under that name."""
    dtype = _attribute(value, "dtype")
    return "" if dtype is None else str(getattr(dtype, "name", dtype))


def sizes_of(shape: Iterable[int | None]) -> str:
    """`[?, 3]`: a shape as it is said."""
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def described(value: Any) -> str:
    """`float32[?, 3]`."""
    shape = shape_of(value)
    sizes = "[unknown shape]" if shape is None else sizes_of(shape)
    return f"{dtype_of(value)}{sizes}" if shape is None or shape else dtype_of(value)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor: one of a graph, a Keras input, or one with a value."""
    return is_symbolic(value) or type(value).__name__ == "EagerTensor"


def bytes_of(value: Any) -> bytes | None:
    """The bytes of a text as bodies get it, bytes or an eager tensor of one string; None of anything else."""
    if type(value).__name__ == "EagerTensor":
        value = value.numpy() if value.dtype.name == "string" and value.shape.rank == 0 else None
    return bytes(value) if isinstance(value, bytes) else None


def decoded(value: Any) -> Any:
    """A value; of a text as bodies get it, bytes or an eager tensor, Python's own text."""
    content = bytes_of(value)
    return value if content is None else content.decode("utf-8", "replace")


def lookup(node: ast.AST, spot: Spot) -> Any:
    """The value of a name, of `self.name`, of `config["size"]`; no code is run, None where it is not known."""
    if isinstance(node, ast.Name):
        return spot.value(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return item(lookup(node.value, spot), node.slice.value)
    if isinstance(node, ast.Attribute):
        owner = lookup(node.value, spot)
        try:
            return vars(owner).get(node.attr)
        except TypeError:
            return None
    return None


def item(owner: Any, key: Any) -> Any:
    """What a dict of Python keeps under a key, or a list or a tuple at a place; None for nothing, and of others."""
    if type(owner) is dict:
        return owner.get(key) if isinstance(key, (str, int)) else None
    if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return None


def held(node: ast.AST, spot: Spot) -> Any:
    """The same, and of what an object keeps under that name with an underscore, as a callback its `model`."""
    if not isinstance(node, ast.Attribute):
        return lookup(node, spot)
    owner = held(node.value, spot)
    try:
        kept = vars(owner)
    except TypeError:
        return None
    return kept.get(node.attr, kept.get(f"_{node.attr}"))


def of_package(node: ast.AST, spot: Spot) -> Any:
    """What a name or `tf.math.real` stands for: attributes are asked of packages only."""
    first, *parts = dotted(node).split(".")
    value = spot.value(first)
    if parts and not (type(value).__name__ == "module" or type(value).__name__.endswith("Loader")):
        return None
    for part in parts:
        value = getattr(value, part, None)
    return value


def of_keras(kind: type, name: str) -> bool:
    """Whether a class is one of Keras 3 of this name, or derived from it."""
    return any(one.__name__ == name and one.__module__.startswith("keras.") for one in kind.__mro__)


def is_keras_class(kind: type) -> bool:
    """Whether a class is Keras' own."""
    return kind.__module__.partition(".")[0] in ("keras", "tf_keras")


def extends_keras(kind: type) -> bool:
    """Whether a class is the user's, of Keras' kind."""
    return not is_keras_class(kind) and any(map(is_keras_class, kind.__mro__))


def is_keras_variable(value: object) -> bool:
    """Whether a value is a variable of Keras 3."""
    return of_keras(type(value), "Variable")


def is_tf_variable(value: object) -> bool:
    """Whether a value is a variable of TensorFlow 2."""
    return any(one.__name__ == "ResourceVariable" for one in type(value).__mro__)


def of_weights(tensor: Any) -> bool:
    """Whether a tensor of a graph is computed with a variable."""
    return any(op.type == "ReadVariableOp" for op in ops_before([tensor]))


def ops_before(tensors: Iterable[Any]) -> Iterator[Any]:
    """The ops that tensors of a graph are computed by, up to the 20,000th."""
    seen: set[int] = set()
    waiting = list(tensors)
    while waiting and len(seen) < _FARTHEST:
        op = getattr(waiting.pop(), "op", None)
        if op is not None and id(op) not in seen:
            seen.add(id(op))
            yield op
            waiting.extend(op.inputs)


def ops_without_rank(tensor: Any, is_open: Callable[[Any], bool]) -> Iterator[tuple[Any, list[Any]]]:
    """The ops that a tensor is computed by, nearest first, as far as their inputs have no rank: up to the 400th.

    The branches of a `tf.cond`, and a tf.function that is called, are looked into.

    Args:
      tensor: A tensor of a graph.
      is_open: Whether an input is to be followed.

    Yields:
      An op, and those of its inputs that are followed.
    """
    seen: set[int] = set()
    waiting = [tensor]
    while waiting and len(seen) < _NEAREST:
        one = waiting.pop(0)
        op = getattr(one, "op", None)
        if op is not None and id(op) not in seen:
            seen.add(id(op))
            inputs = [each for each in op.inputs if is_open(each)]
            yield op, inputs
            inside = [graph.outputs[one.value_index : one.value_index + 1] for graph in called_graphs(op)]
            waiting += [*inputs, *(each for part in inside for each in part if is_open(each))]


_FARTHEST = 20_000
_NEAREST = 400


def symbolic_parts(node: ast.AST, spot: Spot) -> dict[str, Any]:
    """The symbolic tensors that an expression reads, by how they are written."""
    found: dict[str, Any] = {}
    for name in names(node):
        value = spot.value(name)
        if is_symbolic(value):
            found[name] = value
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) and isinstance(one.value, ast.Name):
            value = spot.value(one.value.id)
            part = value.get(one.slice.value) if type(value) is dict else _element(value, one.slice.value)
            if is_symbolic(part):
                found[ast.unparse(one).replace("'", '"')] = part
        if isinstance(one, ast.Attribute) and dotted(one).startswith("self."):
            value = lookup(one, spot)
            if is_symbolic(value):
                found[dotted(one)] = value
    return found


def _element(value: Any, index: Any) -> Any:
    """An element of a list, as a layer of several inputs is given."""
    inside = type(value) in (list, tuple) and type(index) is int and -len(value) <= index < len(value)
    return value[index] if inside else None


def alias(spot: Spot, module: str) -> str:
    """How the user's module calls a package: `tf`, `np`; the package's own name where it is not imported."""
    for name, value in spot.module.items():
        loaded = type(value).__name__ == "module" or type(value).__name__.endswith("Loader")
        called = str(getattr(value, "__name__", "")).replace("._api.v2", "").removesuffix(".compat.v2")
        if loaded and called == module and not name.startswith("_"):
            return name
    return {"tensorflow": "tf", "numpy": "np"}.get(module, module)


def keras_name(spot: Spot) -> str:
    """How the user's module calls Keras."""
    for name, value in spot.module.items():
        called = str(getattr(value, "__name__", ""))
        if (
            not name.startswith("_")
            and (called == "keras" or called.endswith(".keras"))
            and not isinstance(value, type)
        ):
            return name
    return f"{alias(spot, 'tensorflow')}.keras"


_LOOPS = {"predict", "predict_on_batch", "fit", "evaluate", "train_on_batch", "test_on_batch", "get_weights"}
"""Methods of a model's that run graphs of their own, or give arrays."""
_GRAPHS = ("tensorflow.", "keras.", "tf_keras.")
"""Packages whose functions and methods take tensors of a graph."""


def takes_tensors(call: ast.Call, spot: Spot) -> bool:
    """Whether a layer, loss or metric of Keras' is called, or a function or method of Keras' or TensorFlow's.

    Methods of tensors are none of them: `x.numpy()`.
    """
    value = lookup(call.func, spot)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _LOOPS:
        return False
    own = [one.__name__ for one in type(value).__mro__ if one.__module__.startswith(("keras.", "tf_keras."))]
    if any(name in own for name in ("Layer", "Loss", "Metric")):
        return True
    if str(getattr(value, "__module__", "")).startswith(_GRAPHS):
        return not hasattr(value, "__array__")
    owner = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    if (is_keras_variable(owner) or is_tf_variable(owner)) and call.func.attr.startswith("assign"):  # type: ignore[attr-defined]
        return True
    if owner is None or hasattr(type(owner), "__array__") or isinstance(owner, (type, list, dict, set)):
        return False  # Keras' own lists and dicts, which a model keeps its attributes in, are Python's, too
    makers = [one for one in type(owner).__mro__ if call.func.attr in vars(one)]  # type: ignore[attr-defined]
    return bool(makers) and makers[0].__module__.startswith(_GRAPHS)


def root_is(node: ast.AST, spot: Spot, module: str) -> bool:
    """Whether `np.fft.fft` and the like begin at a package."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    value = spot.value(node.id)
    return str(getattr(value, "__name__", "")).split(".")[0] == module and not callable(value)


def method_calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """The calls of methods of these names, also behind other calls."""
    return [one for one in calls(node) if isinstance(one.func, ast.Attribute) and one.func.attr in names]


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """All calls in an expression or statement."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            yield one
