"""The nodes that an object holds, whether or not anything was recorded: read from its graphs, or from its file.

A node's token leads to its body, its op to the user's lines. Nothing runs; only a Keras model is traced once, because
it has no graph before it is exported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.events import Body
from pyfunc_debug.interception import names as _names
from pyfunc_debug.interception.bodies import SourceMaps, find_body, readable_name, unwrap, user_generator
from pyfunc_debug.interception.graphs.functions import readable
from pyfunc_debug.interception.graphs.library import PYFUNC_OPS, python_ops
from pyfunc_debug.interception.graphs.live import keras_step
from pyfunc_debug.interception.graphs.retraces import entries
from pyfunc_debug.interception.graphs.signed import Signed, signed
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.tokens import token_in, token_of
from pyfunc_debug.program.frames import is_generated, user_frames
from pyfunc_debug.records import Frame

What = Literal["tf.function", "Dataset", "Keras model", "module", "graph", "SavedModel"]


@dataclass(frozen=True)
class HeldNode:
    """A node in a graph.

    Attributes:
      token: Its body's name in TensorFlow's registry.
      kind: What made it, as far as the op shows: py_function or numpy_function.
      body: The body; None where no function of this process has that name.
      op: The op's name.
      graph: Name of the function that holds it.
      stack: The user's frames that made it, outermost first; empty for a node from a file.
      generator: Whether tf.data made it for `Dataset.from_generator`; `body` is the user's generator then.
      restored: Whether it came from a file: its body is then only whatever has its name in this process.
      takes: In a file with one signature, the signature's inputs that it is given, where it is given nothing else.
      shared: Those of them that other ops are given, too.
    """

    token: str
    kind: Literal["py_function", "numpy_function"]
    body: Body | None
    op: str
    graph: str
    stack: tuple[Frame, ...]
    generator: bool
    restored: bool
    takes: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Held:
    """An object's nodes.

    Attributes:
      what: What it is.
      name: What the user calls it.
      nodes: Its nodes, in the order in which they were made.
      compiled: Whether XLA is asked to compile it (`jit_compile=True`).
    """

    what: What
    name: str
    nodes: tuple[HeldNode, ...]
    compiled: bool = False


def held(thing: Any) -> Held:
    """Reads an object's nodes.

    Args:
      thing: A tf.function, a ConcreteFunction, a Dataset, a Keras model, a tf.Module, a tf.Graph, or the folder of a
        SavedModel.

    Raises:
      BadOptionError: it is none of these, or it has no graph yet; the message says what to pass.
    """
    import tensorflow as tf

    names = _names.load()
    if isinstance(thing, (str, os.PathLike)):
        return _saved(os.fspath(thing), names)
    reader = _Reader(names)
    if names.function_type is not None and isinstance(thing, names.function_type):
        graphs = _traced(thing)
        restored = private.restored_name(thing)
        name = restored or readable_name(getattr(thing.python_function, "__qualname__", "the function"))
        if not graphs:
            raise BadOptionError(
                f"{name} has no graph yet: call it once, or pass {name}.get_concrete_function(...) with its arguments"
            )
        return Held("tf.function", name, reader.nodes(graphs), private.compiled(thing))
    if names.concrete_function_type is not None and isinstance(thing, names.concrete_function_type):
        compiled = private.must_compile(thing)
        return Held("tf.function", readable(_text(thing.name)), reader.nodes([thing.graph]), compiled)
    if isinstance(thing, tf.Graph):
        return Held("graph", "the graph", reader.nodes([thing]))
    if isinstance(thing, tf.data.Dataset):
        return Held("Dataset", "the dataset", reader.nodes(_dataset_graphs(thing)))
    if hasattr(thing, "make_train_function"):
        return _keras(thing, reader, names)
    if isinstance(thing, (tf.Module, tf.__internal__.tracking.AutoTrackable)):
        functions = list(_methods(thing, names))
        graphs = [graph for function in functions for graph in _traced(function)]
        name = type(thing).__name__
        if not graphs:
            raise BadOptionError(f"{name} has no traced tf.function yet: call what you will save once")
        return Held("module", name, reader.nodes(graphs), any(map(private.compiled, functions)))
    name = getattr(thing, "__name__", None) or type(thing).__name__
    what = f"{name} is not a tf.function" if callable(thing) else f"a {name} has no graph"
    raise BadOptionError(
        f"{what}: pass what tf.function returned, a ConcreteFunction, a Dataset, a Keras model, a tf.Module, a "
        "tf.Graph, or the folder of a SavedModel"
    )


class _Reader:
    """Reads nodes out of graphs, each graph once."""

    def __init__(self, names: TensorFlowNames) -> None:
        self._names = names
        self._maps = SourceMaps(names)

    def nodes(self, graphs: list[Any]) -> tuple[HeldNode, ...]:
        found = (self._node(op, graph) for graph, op in python_ops(*graphs))
        return tuple(dict.fromkeys(node for node in found if node is not None))

    def _node(self, op: Any, graph: Any) -> HeldNode | None:
        token = token_of(op)
        registered = self._names.registry.get(token)
        generator = None if registered is None else user_generator(unwrap(registered, self._names))
        if generator is not None and not generator.asks:
            return None  # one of three nodes of a from_generator is reported
        body = None if registered is None else find_body(registered, self._names, self._maps)
        if body is not None and generator is not None:
            body = replace(body, internal=False)
        stack = () if op.traceback is None else tuple(map(self._mapped, user_frames(op.traceback)))
        return HeldNode(
            token, "py_function" if op.type == "EagerPyFunc" else "numpy_function", body, op.name,
            readable(getattr(graph, "name", "")), stack, generator is not None, op.traceback is None,
        )  # fmt: skip

    def _mapped(self, frame: Frame) -> Frame:
        found = self._maps.find(frame.file, frame.line) if is_generated(frame.file) else None
        return frame if found is None else Frame(found[0], found[1], frame.function.removeprefix("tf__"))


def _traced(function: Any) -> list[Any]:
    """The graphs of a tf.function, oldest first; those of a function of a SavedModel came with it."""
    restored = getattr(function, "concrete_functions", None)
    if restored:
        return [concrete.graph for concrete in restored]
    return [concrete.graph for _, _, concrete in entries(private.function_cache(function))]


def _methods(module: Any, names: TensorFlowNames) -> Iterator[Any]:
    """The tf.functions of a tf.Module and of the modules in it."""
    for one in (module, *getattr(module, "submodules", ())):
        found = [getattr(one, name, None) for kind in type(one).__mro__ for name, value in vars(kind).items()
                 if isinstance(value, names.function_type)]  # fmt: skip
        found += [value for value in vars(one).values() if isinstance(value, names.function_type)]
        yield from (function for function in found if isinstance(function, names.function_type))


def _dataset_graphs(dataset: Any) -> list[Any]:
    found: list[Any] = []
    seen: set[int] = set()
    todo = [dataset]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        found = [wrapper.function.graph for wrapper in private.dataset_functions(one)] + found
        todo.extend(private.dataset_inputs(one))
    return found


def _keras(model: Any, reader: _Reader, names: TensorFlowNames) -> Held:
    """A model's nodes: those of the steps that were traced, else of a trace of the model for its own inputs."""
    import tensorflow as tf

    name, compiled = type(model).__name__, private.keras_compiled(model)
    step = keras_step(model)
    graphs = [] if step is None or step.function is None else _traced(step.function)
    if not graphs:
        signature = names.keras_signature
        if signature is None:
            raise BadOptionError(f"{name} has no graph yet: call fit once, or pass the folder of its export")
        try:
            specs = tf.nest.map_structure(
                lambda one: tf.TensorSpec(one.shape, one.dtype) if hasattr(one, "dtype") else one, signature(model)
            )
        except (ValueError, AttributeError, TypeError) as error:
            raise BadOptionError(f"{name} has not seen any input yet: call it once ({error})") from None
        specs = specs if isinstance(specs, list) else [specs]
        graphs = [tf.function(lambda *given: model(*given)).get_concrete_function(*specs).graph]
    return Held("Keras model", name, reader.nodes(graphs), compiled)


def _saved(folder: str, names: TensorFlowNames) -> Held:
    """The nodes in a SavedModel's file."""
    file = os.path.join(folder, "saved_model.pb")
    if not os.path.isfile(file):
        what = "is not a SavedModel's folder: it has no saved_model.pb" if os.path.isdir(folder) else "is not a folder"
        raise BadOptionError(f"{folder} {what}")
    if names.saved_model_type is None:
        raise BadOptionError(f"TensorFlow {names.version} has moved what reads a SavedModel's file")
    saved = names.saved_model_type()
    try:
        with open(file, "rb") as opened:
            saved.ParseFromString(opened.read())
    except (OSError, ValueError, TypeError, names.decode_error) as error:
        raise BadOptionError(f"{file} cannot be read: {error}") from error
    return Held("SavedModel", folder, _defined([(one.graph_def, signed(one)) for one in saved.meta_graphs], names))


def held_in(graph_def: Any, name: str) -> Held:
    """The nodes of a GraphDef, which is about to be written to a file."""
    return Held("graph", name, _defined([(graph_def, None)], _names.load()))


def _defined(graph_defs: Iterable[tuple[Any, Signed | None]], names: TensorFlowNames) -> tuple[HeldNode, ...]:
    """The nodes of graphs; of those with signatures only what these run."""
    maps = SourceMaps(names)
    found: list[HeldNode] = []
    for graph_def, run in graph_defs:
        held_by = [("", graph_def.node)]
        held_by += [(one.signature.name, one.node_def) for one in graph_def.library.function]
        for function, nodes in held_by:
            for node in nodes:
                if node.op in PYFUNC_OPS and (run is None or run.has(function, node.name)):
                    token = token_in(node)
                    takes = () if run is None or function else run.takes.get(node.name, ())
                    registered = names.registry.get(token)
                    body = None if registered is None else find_body(registered, names, maps)
                    found.append(
                        HeldNode(
                            token, "py_function" if node.op == "EagerPyFunc" else "numpy_function", body, node.name,
                            readable(function), (), False, True, takes,
                            tuple(one for one in takes if run is not None and one in run.shared),
                        )
                    )  # fmt: skip
    found.sort(key=lambda one: (len(one.token), one.token))  # the file's functions come in a hash table's order
    return tuple(dict.fromkeys(found))


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
