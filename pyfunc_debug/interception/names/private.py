"""Private attributes of TensorFlow's objects, each read by a function that says what it means.

Those that only describe something are read with a default, so that a TensorFlow without them costs a detail and not a
recording. Those that calls and gradients depend on are in modules whose texts `builds` knows (`names.MODULES`).
"""

from __future__ import annotations

import operator
import os
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from pyfunc_debug.interception.tokens import MARK

_Function = TypeVar("_Function", bound=Callable[..., Any])

# -- attributes that are replaced while on (patches.py) ---------------------------------------------------------------

EAGER_CALL = "_call"
"""Of EagerFunc: calls the body and converts what it returns."""
INTERNAL_PY_FUNC = "_internal_py_func"
"""In script_ops: makes every node."""
CREATE_CONCRETE_FUNCTION = "_create_concrete_function"
"""In tracing_compilation: a graph trace."""
CALL_FLAT = "_call_flat"
"""Of ConcreteFunction: which function is about to run."""
CONVERT_ACTUAL = "_convert_actual"
"""In autograph.impl.api: a function's conversion."""
IS_EAGER = ("_context", "_thread_local_data", "is_eager")
"""Where the module `context` holds whether this thread executes eagerly."""
OP_MESSAGE = "_message"
KERAS_SIGNATURE = "_output_signature"
"""Of Keras' data adapters: the signature of the first batches."""
CREATE_ITERATOR, NEXT_INTERNAL = "_create_iterator", "_next_internal"
"""Of OwnedIterator: made, and asked for an element."""
MAP_IN_GRAPH = "_pfor_impl"
"""In parallel_for.control_flow_ops: what vectorized_map and jacobian do in a graph."""
CUSTOM_GRADIENT = "_graph_mode_decorator"
"""In custom_gradient.py: calls, in a graph, a function that has a gradient of its own."""
CUSTOM_GRADIENTS = (CUSTOM_GRADIENT, "_eager_mode_decorator")
"""The same in a graph and without one."""
GRADIENTS_HELPER = "_GradientsHelper"
"""In gradients_util: makes the gradients of a graph, for `tf.gradients` and optimizers of TensorFlow 1."""
FREEZE = "convert_variables_to_constants_from_session_graph"
"""In convert_to_constants: what tf.compat.v1.graph_util.convert_variables_to_constants calls."""
REGISTER_DATASET = "_register_dataset"
"""In data_service_ops: hands a dataset to the tf.data service."""
BUILD_META_GRAPH = "_build_meta_graph"
"""In saved_model.save: makes the graphs of a SavedModel."""
RUN_EAGERLY = "_run_functions_eagerly"
"""A property of Function: whether it runs as plain Python."""
IF_STATEMENT, WHILE_LOOP, PYTHON_LOOP = "_tf_if_stmt", "_tf_while_stmt", "_py_for_stmt"
ITERATOR_LOOP, DISTRIBUTED_LOOP = "_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"
"""In autograph.operators.control_flow: statements that become part of a graph, and a loop that does not."""
IF_EXPRESSION, LAZY_AND, LAZY_OR = "_tf_if_exp", "_tf_lazy_and", "_tf_lazy_or"
"""In autograph.operators.conditional_expressions and logical."""

# -- AutoGraph (autograph/impl/api.py) --------------------------------------------------------------------------------


def as_it_is(function: _Function) -> _Function:
    """Marks a function of ours that code which AutoGraph converted may call: it runs, as TensorFlow's own, as it is."""
    vars(function)["autograph_info__"] = {}
    return function


# -- the registry (script_ops.py) -------------------------------------------------------------------------------------


def next_token(registry: Any) -> int | None:
    """The number of the next token of the FuncRegistry; None where it does not count."""
    number = getattr(registry, "_unique_id", None)
    return number if isinstance(number, int) else None


def entries(registry: Any) -> int:
    """How many functions of a FuncRegistry are alive."""
    functions = getattr(registry, "_funcs", {})
    # Not the WeakValueDictionary itself: its iterator is Python, and other threads make nodes meanwhile.
    return sum(not key.endswith(MARK) for key in list(getattr(functions, "data", functions)))


def name_again(registry: Any, key: str, function: Any) -> None:
    """Gives a function of a FuncRegistry a second name, for as long as it lives."""
    registry._funcs[key] = function


def registered_since(registry: Any, number: int) -> list[tuple[str, Any]]:
    """Tokens and functions of a FuncRegistry that are alive and have this number or a later one, oldest first.

    Older ones are not looked at: there are as many as nodes and eager calls were made in the process.
    """
    functions = getattr(registry, "_funcs", {})
    prefix = next((token.rpartition("_")[0] for token in functions), "")
    tokens = (f"{prefix}_{one}" for one in range(number, next_token(registry) or 0))
    return [(token, function) for token in tokens if (function := functions.get(token)) is not None]


# -- EagerFunc: the function of a py_function (script_ops.py) ---------------------------------------------------------

supports_gradient = operator.attrgetter("_support_graph_mode_gradient")
"""Whether a gradient node was made for this one. Read in every call: no Python frame."""


def body(function: Any) -> Any:
    """What an EagerFunc calls; also the function inside tf.data's StructuredFunctionWrapper. None if it has none."""
    return getattr(function, "_func", None)


def element_structure(wrapper: Any) -> Any:
    """The structure of the elements that the function inside a StructuredFunctionWrapper gets; None for any other."""
    return getattr(wrapper, "_input_structure", None)


def output_dtypes(function: Any) -> Any:
    """The dtypes that an EagerFunc's outputs are converted to."""
    return function._out_dtypes


def is_gradient(function: Any) -> bool:
    """Whether an EagerFunc belongs to a gradient node."""
    return bool(getattr(function, "_is_grad_func", False))


def replace_body(function: Any, new: Any, dtypes: Any) -> None:
    """Gives an EagerFunc that nobody has called yet another body and other outputs."""
    function._func = new
    function._out_dtypes = dtypes


def converting(traceback: types.TracebackType | None) -> list[types.FrameType]:
    """Frames of a traceback in which TensorFlow converts what a body returned, outermost first."""
    frames = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "_convert":
            frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames


def in_gradient_of_body(traceback: types.TracebackType | None) -> bool:
    """Whether TensorFlow was making the gradient op of a py_function when it raised."""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "_EagerPyFuncGrad":
            return True
        traceback = traceback.tb_next
    return False


def converted_result(traceback: types.TracebackType | None) -> tuple[Any, Any]:
    """What a body had returned, and the value of it that TensorFlow was converting when it raised; else None, None."""
    returned = None
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name in ("_call", "__call__") and "ret" in frame.f_locals:
            returned = frame.f_locals["ret"]
        if frame.f_code.co_name == "_convert":
            return returned, frame.f_locals.get("value")
        traceback = traceback.tb_next
    return None, None


def converted_place(traceback: types.TracebackType | None) -> int | None:
    """Which of the values that a py_function's body returned TensorFlow was converting when it raised.

    Returns:
      None where that is not to be seen: in another exception, or where the same object was returned twice.
    """
    returned = None
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name == "_call":
            returned = frame.f_locals.get("ret")
        if frame.f_code.co_name == "_convert" and isinstance(returned, (list, tuple)):
            value = frame.f_locals.get("value")
            places = [place for place, one in enumerate(returned) if one is value]
            return places[0] if len(places) == 1 else None
        traceback = traceback.tb_next
    return None


# -- tapes and tensors (backprop.py, ops.py) --------------------------------------------------------------------------

push_tape = operator.methodcaller("_push_tape")
"""Lets a GradientTape record on this thread, without the frame of its `with`."""
pop_tape = operator.methodcaller("_pop_tape")
inner_tape = operator.attrgetter("_tape")
"""The C++ tape inside a GradientTape."""
copy_to_current_device = operator.methodcaller("_copy")


def is_eager(thing: Any) -> bool:
    """Whether `thing` is an eager tensor, or stands for one as a variable does."""
    return hasattr(thing, "_id")


def is_of_eager_type(thing: Any) -> bool:
    """The same by the class alone: runs no code of the user's, whose objects may answer to every name."""
    return hasattr(type(thing), "_id")


def handle_data(tensor: Any) -> Any:
    """Shape and dtype of the variable behind a resource tensor. Raises AttributeError where it is not known."""
    return tensor._handle_data


def type_spec(value: Any) -> Any:
    """The TypeSpec of a composite tensor; None for other values."""
    return getattr(value, "_type_spec", None)


def extension_fields(kind: Any) -> Any:
    """The fields of a tf.experimental.ExtensionType. Raises AttributeError for other classes."""
    return kind._tf_extension_type_fields()


# -- tf.function and its cache (polymorphic_function.py, function_cache.py, tf_decorator.py) --------------------------


def lock(function: Any) -> Any:
    """The lock of a tf.function object: its own, and one that can be referred to weakly. None for other things."""
    return getattr(function, "_lock", None)


def default_values(function: Any) -> Any:
    """Default values of a tf.function's parameters, or None."""
    return getattr(function, "_default_values", None)


def function_cache(function: Any) -> Any:
    """The FunctionCache of a tf.function."""
    return function._function_cache


def cached_graphs(cache: Any) -> Any:
    """(context, FunctionType) -> ConcreteFunction of a FunctionCache, oldest first. Another thread may change it."""
    return cache._primary


def of_object(method: Any, owner: Any) -> Any:
    """The tf.function that an object has of its class's tf.function, once it was asked for; else the class's own."""
    kept = getattr(method, "_descriptor_cache", None)
    return method if kept is None else kept.get(owner, method)


def referent(constraint: Any) -> Any:
    """What a Weakref type in a FunctionType stands for; None if it has been deleted."""
    reference = getattr(constraint, "_ref", None)
    return reference() if callable(reference) else None


def compiled(function: Any) -> bool:
    """Whether a tf.function has jit_compile=True."""
    return getattr(function, "_jit_compile", None) is True


def must_compile(concrete: Any) -> bool:
    """Whether XLA compiles a ConcreteFunction."""
    attributes = concrete.function_def.attr
    return "_XlaMustCompile" in attributes and bool(attributes["_XlaMustCompile"].b)


def restored_name(function: Any) -> str | None:
    """The name of a function of a SavedModel; None for other tf.functions."""
    return getattr(function, "_name", None) if getattr(function, "concrete_functions", None) else None


def decorator(function: Any) -> Any:
    """The TFDecorator that a wrapper of TensorFlow's carries, or None."""
    return getattr(function, "_tf_decorator", None)


# -- AutoGraph, graphs and datasets -----------------------------------------------------------------------------------


def converted_functions(autograph_api: Any) -> Any:
    """AutoGraph's cache: code -> options -> what it made of it. Raises AttributeError where it is kept elsewhere."""
    return autograph_api._TRANSPILER._cache._cache


def nested_graphs(graph: Any) -> list[Any]:
    """Graphs of the functions that a graph calls and that were made or loaded with it; some are None."""
    return [getattr(function, "_cached_graph", None) for function in list(graph._functions.values())]


def function_nodes(graph: Any, name: str) -> list[Any]:
    """The ops of a function of a graph of TensorFlow 1, as in a GraphDef; none where it is not the graph's."""
    function = getattr(graph, "_functions", {}).get(name)
    definition = getattr(function, "cached_definition", None) or getattr(function, "definition", None)
    return list(definition.node_def) if definition is not None else []


def functions_of(op: Any) -> list[str]:
    """Names of the functions that an op of a graph runs."""
    found: list[str] = []
    for one in op.op_def.attr:
        if one.type == "func":
            found.append(op.get_attr(one.name).name)
        elif one.type == "list(func)":
            found += [each.name for each in op.get_attr(one.name)]
    return found


def loop_body(op: Any) -> Any:
    """The graph of the body of a loop (an op of type While)."""
    return op.graph._functions[op.get_attr("body").name]._cached_graph


_BRANCHES = ("then_branch", "else_branch")
_CALLED = {"If": _BRANCHES, "StatelessIf": _BRANCHES, "PartitionedCall": ("f",), "StatefulPartitionedCall": ("f",)}


def called_graphs(op: Any) -> list[Any]:
    """The graphs that an op chooses from or calls: the branches of `tf.cond`, a tf.function. Lost ones are left out."""
    names = [op.get_attr(one).name for one in _CALLED.get(op.type, ())]
    functions = [getattr(op.graph, "_functions", {}).get(name) for name in names]
    return [one for one in (getattr(each, "_cached_graph", None) for each in functions) if one is not None]


dataset_functions = operator.methodcaller("_functions")
"""The functions of one transformation of a Dataset, wrapped."""
dataset_inputs = operator.methodcaller("_inputs")
"""The Datasets that a Dataset reads from."""


def count_of(dataset: Any) -> int | None:
    """The number of a dataset's elements, -1 where it has no end, -2 where it is not known; None of one of a graph."""
    return int(dataset.cardinality()) if hasattr(dataset._variant_tensor, "numpy") else None


def mapped_function(wrapper: Any) -> Any:
    """The Python function of one of them, as the user gave it; None where it is kept elsewhere."""
    return vars(wrapper).get("_func")


def iterated(iterator: Any) -> Any:
    """The Dataset that an iterator of eager code goes over; None of other values."""
    return vars(iterator).get("_dataset") if type(iterator).__name__ == "OwnedIterator" else None


_SAME_ROWS = frozenset((
    "BatchDataset", "CacheDataset", "OptionsDataset", "ParallelBatchDataset", "PrefetchDataset", "RepeatDataset",
    "ShuffleDataset",
))  # fmt: skip


def sliced_labels(dataset: Any) -> Any:
    """The labels of a Dataset of (x, y) that was made of arrays, and only batched or shuffled since; else None."""
    spec = getattr(dataset, "element_spec", None)
    while type(dataset).__name__.strip("_") in _SAME_ROWS:
        dataset = dataset_inputs(dataset)[0]
    if type(dataset).__name__.strip("_") != "TensorSliceDataset" or not isinstance(spec, tuple) or len(spec) != 2:
        return None
    tensors = getattr(dataset, "_tensors", None)
    return tensors[-1].numpy() if hasattr(spec[1], "dtype") and tensors and is_eager(tensors[-1]) else None


def overrides_gradient(graph: Any, op_type: str) -> bool:
    """Whether ops of a type that a graph gets now have a gradient of the user's (`Graph.gradient_override_map`)."""
    return op_type in getattr(graph, "_gradient_override_map", ())


GENERATOR_STARTS = "_from_generator.get_iterator_id_fn"
"""What a recording calls the function of a pass over a dataset of from_generator that begins it."""


def generator(state: Any) -> Any:
    """The function that Dataset.from_generator was given, of the state that its nodes share; None if it has none."""
    return getattr(state, "_generator", None)


GET_ITERATOR = "get_iterator"
"""The method by which `Dataset.from_generator` finds the iterator of a pass, of the state that its nodes share."""


def generator_state(cells: Mapping[str, Any]) -> Any:
    """The state of a generator, in the closure of the function that takes its elements; None where it is another's."""
    state = cells.get("generator_state")
    return state if hasattr(type(state), GET_ITERATOR) and hasattr(state, "__dict__") else None


def keras_source(function: Any) -> tuple[Any, Literal["own", "threads", "processes"]]:
    """What makes the elements of a function of Keras' own that `fit` has given to tf.data.

    Returns:
      A PyDataset's `__getitem__`, or the generator that `fit` was given; None for other functions. And whether Keras
      calls it on threads or in processes of its own.
    """
    adapter = getattr(function, "__self__", None)
    dataset = getattr(adapter, "py_dataset", None)
    if dataset is not None and type(adapter).__name__ == "PyDatasetAdapter":
        if getattr(adapter, "enqueuer", None) is None:
            return dataset.__getitem__, "own"
        return dataset.__getitem__, "processes" if getattr(dataset, "use_multiprocessing", False) else "threads"
    if getattr(function, "__name__", "") == "get_tf_iterator" and (cells := getattr(function, "__closure__", None)):
        held = dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells))).get("self")
        restored = getattr(held, "generator", None)
        for cell in getattr(restored, "__closure__", None) or ():
            if isinstance(cell.cell_contents, types.GeneratorType):
                return cell.cell_contents, "own"
    return None, "own"


KERAS_DATASETS = "keras.src.trainers.data_adapters.py_dataset_adapter"
KERAS_GENERATORS = "keras.src.trainers.data_adapters.generator_data_adapter"
KERAS_SLICES = "keras.src.trainers.data_adapters.array_slicing"
KERAS_WEIGHTS = "keras.src.trainers.data_adapters.data_adapter_utils"
KERAS_WEIGHTED = "keras.src.trainers.data_adapters.tf_dataset_adapter"
KERAS_TRAINER = "keras.src.backend.tensorflow.trainer"
KERAS_EPOCHS = "keras.src.trainers.trainer"
KERAS_LAMBDAS = "keras.src.layers.core.lambda_layer"
KERAS_OLD_BACKEND = "keras.src.legacy.backend"
"""What `from keras import backend as K` gives of Keras 2."""
METRICS_OF_V1 = "tensorflow.python.ops.metrics_impl"


def keras_function(module: Any, owner: str, name: str) -> Any:
    """What holds a function of one of these modules, the module or a class in it; None where it has moved."""
    holder = getattr(module, owner, None) if owner else module
    return holder if isinstance(vars(holder).get(name) if holder is not None else None, types.FunctionType) else None


def keras_shared(module: Any, uid: Any) -> Any:
    """The PyDataset that Keras' own threads read; None where it is not known."""
    shared = getattr(module, "_SHARED_SEQUENCES", None)
    return shared.get(uid) if isinstance(shared, dict) else None


def keras_compiled(model: Any) -> bool:
    """Whether a Keras model was compiled with jit_compile=True."""
    return getattr(model, "_jit_compile", None) is True


def declared_sizes(layer: Any) -> tuple[int, ...] | None:
    """The sizes behind the batch that the output_shape of a Lambda lists; None where it has no such list."""
    kept = vars(layer).get("_output_shape")
    sizes = tuple(kept) if isinstance(kept, (list, tuple)) else ()
    return sizes if sizes and all(type(one) is int for one in sizes) else None


_OF_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy")


def keras_output(model: Any) -> dict[str, Any] | None:
    """The last layer of a model with one output, and which crossentropy it was compiled with.

    Returns:
      The loss's name, whether it takes logits, the layer's class, its activation and the size of its last axis; None
      where one of them is not known. Runs no function of the user's.
    """
    outputs, loss = getattr(model, "_outputs", None), getattr(model, "loss", None)
    if outputs is None:  # a Sequential has a functional model inside
        outputs = getattr(getattr(model, "_functional", None), "_outputs", None)
    tensors = [outputs] if hasattr(outputs, "_keras_history") else outputs
    if not isinstance(tensors, list) or len(tensors) != 1:
        return None
    tensor = tensors[0]
    layer, activation = _last_activation(tensor)
    name, logits = _crossentropy(loss)
    if layer is None or activation is None or not name:
        return None
    return {
        "loss": name, "logits": logits, "layer": type(layer).__name__, "activation": activation,
        "units": tensor.shape[-1] if tensor.shape else None, "named": isinstance(loss, str),
    }  # fmt: skip


def generated_rows(epochs: Any) -> int | None:
    """The rows of the first batch that a generator given to `fit` made; None of other data (Keras' EpochIterator)."""
    batches = getattr(getattr(epochs, "data_adapter", None), "_first_batches", None)
    part = batches[0][0] if batches and isinstance(batches[0], tuple) and batches[0] else None
    while isinstance(part, (list, tuple, dict)) and part:
        part = next(iter(part.values())) if isinstance(part, dict) else part[0]
    shape = getattr(part, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape else None


def keras_reach(model: Any) -> tuple[str, str, str] | None:
    """The class of the last layer of a model with one output, its activation, and the name of the loss.

    Returns:
      None where one of them is not known, or the loss is none of Keras'. Runs no function of the user's.
    """
    outputs, loss = keras_outputs(model), getattr(model, "loss", None)
    tensors = [outputs] if hasattr(outputs, "_keras_history") else outputs
    if not isinstance(tensors, list) or len(tensors) != 1:
        return None
    layer, activation = _last_activation(tensors[0])
    name = loss if isinstance(loss, str) else ""
    if not name and getattr(loss, "__module__", type(loss).__module__).startswith("keras."):
        name = getattr(loss, "__name__", type(loss).__name__)
    if layer is None or activation is None or not name:
        return None
    return type(layer).__name__, activation, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _last_activation(tensor: Any) -> tuple[Any, str | None]:
    """The layer that gives an output, and the name of its activation; a linear one hands on that before it."""
    for _ in range(3):
        layer = keras_maker(tensor)
        if not type(layer).__module__.startswith("keras."):
            return None, None
        kind = type(layer).__name__
        if kind in ("Softmax", "Sigmoid"):
            return layer, kind.lower()
        activation = getattr(getattr(layer, "activation", None), "__name__", None)
        if kind != "Activation" or activation != "linear":
            return layer, activation
        given = getattr(layer, "input", None)
        if not hasattr(given, "_keras_history"):
            return None, None
        tensor = given
    return None, None


def _crossentropy(loss: Any) -> tuple[str, bool]:
    """The name of a crossentropy of Keras' and whether it takes logits; "" for other losses."""
    if isinstance(loss, str):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", loss).lower()
        return (name if name in _OF_CLASSES else ""), False
    if not getattr(loss, "__module__", "").startswith("keras."):
        return "", False
    function = getattr(loss, "fn", loss)
    name = getattr(function, "__name__", "")
    logits = getattr(loss, "_fn_kwargs", {}).get("from_logits", False) is True
    return (name if name in _OF_CLASSES else ""), logits


_KERAS_VARIABLES = "keras/src/backend/common/variables.py"


def keras_weighted(layer: Any) -> bool:
    """Whether a layer of Keras' holds weights that are trained, or other layers. Runs no property of it."""
    state = vars(layer)
    return bool(keras_layers(layer)) or any(state.get(one) for one in ("_trainable_variables", "_trainable_weights"))


def keras_trained(layer: Any, depth: int = 5) -> bool:
    """Whether a layer of Keras', or one inside it, holds weights that are trained. Runs no property of it."""
    if not any(one.__module__.startswith("keras.") for one in type(layer).__mro__):
        return False
    state = vars(layer)
    if any(state.get(one) for one in ("_trainable_variables", "_trainable_weights")):
        return True
    return depth > 0 and any(keras_trained(one, depth - 1) for one in state.get("_layers") or ())


def keras_building() -> bool:
    """Whether Keras builds a layer, or asks it for its shape, on this thread: its weights may have no values."""
    asked = getattr(sys.modules.get("keras.src.backend.common.stateless_scope"), "in_stateless_scope", None)
    return asked is not None and bool(asked())


def keras_initial(graph: Any) -> bool:
    """Whether a graph that reads no weight has ops by which a weight of Keras' without a value made one."""
    return not graph.variables and any(
        one.name == "value" and one.filename.replace("\\", "/").endswith(_KERAS_VARIABLES)
        for op in graph.get_operations() if op.type != "Placeholder" for one in op.traceback
    )  # fmt: skip


def keras_layers(model: Any) -> Any:
    """The layers of a model or layer of Keras', as a list; None where that is not known. Runs no property of it."""
    return vars(model).get("_layers")


def keras_maker(tensor: Any) -> Any:
    """The layer or operation that a Keras tensor was made by; None where that is not known."""
    return getattr(getattr(tensor, "_keras_history", None), "operation", None)


def keras_given(layer: Any) -> list[Any]:
    """The Keras tensors that a layer or operation was called on first; none where it was not called."""
    nodes = keras_nodes(layer)
    return list(getattr(nodes[0], "input_tensors", ())) if nodes else []


def keras_nodes(layer: Any) -> list[Any]:
    """What Keras keeps of each call of a layer on Keras tensors."""
    return list(vars(layer).get("_inbound_nodes") or ())


def keras_outputs(model: Any) -> Any:
    """What a model of layers gives, a list of Keras tensors; None where it has none (yet)."""
    state = vars(model)
    return state.get("_outputs") or getattr(state.get("_functional"), "_outputs", None)


def optimized(optimizer: Any) -> list[Any]:
    """The variables that an optimizer of Keras 3 was made for; none where that is not known."""
    return list(getattr(optimizer, "_trainable_variables", None) or ())


def parallel_calls(dataset: Any) -> Any:
    """num_parallel_calls of a transformation, perhaps as a tensor; None where it has no such setting."""
    return getattr(dataset, "_num_parallel_calls", None)


def profiling(profiler_trace: Any) -> Callable[[], bool]:
    """What says whether a profiler's session runs. A variable before TensorFlow 2.17, which C++ sets."""
    asked = getattr(profiler_trace, "enabled", False)
    return asked if callable(asked) else lambda: bool(getattr(profiler_trace, "enabled", False))


def profiling_level(profiler_trace: Any) -> int:
    """The address of the number by which C++ knows whether a session runs: above 0 then. 0: not known.

    `tsl::profiler::internal::g_trace_level` (xla/tsl/profiler/utils/traceme_recorder): `TraceMe::Active` reads it.
    """
    import ctypes

    folder = os.path.dirname(sys.modules["tensorflow"].__file__ or "")
    try:
        library = ctypes.CDLL(os.path.join(folder, "libtensorflow_framework.so.2"), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        level = ctypes.c_int.in_dll(library, "_ZN3tsl8profiler8internal13g_trace_levelE")
    except (OSError, ValueError, AttributeError):
        return 0
    return ctypes.addressof(level) if (level.value > 0) == profiling(profiler_trace)() else 0


def eager_test(context_module: Any) -> Callable[[], bool]:
    """What says whether this thread executes eagerly; `executing_eagerly` says so too, in three calls of Python."""
    eager = operator.attrgetter(".".join(IS_EAGER))

    def eagerly() -> bool:
        try:
            return bool(eager(context_module))
        except AttributeError:  # there is no context yet, or it is another TensorFlow
            return bool(context_module.executing_eagerly())

    return eagerly


def server() -> tuple[str, int] | None:
    """Job and task of TensorFlow's own server in this process, as a strategy of several workers set it up."""
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    found = getattr(context, "_server_def", None) or getattr(context, "_collective_ops_server_def", None)
    if found is None or found.job_name == "localhost":  # what a process is called that only asks other machines
        return None
    return str(found.job_name), int(found.task_index)


def data_debug_mode() -> bool:
    """Whether functions of tf.data run in Python (`tf.data.experimental.enable_debug_mode`)."""
    return bool(getattr(sys.modules.get("tensorflow.python.data.ops.debug_mode"), "DEBUG_MODE", False))


def reshuffles(dataset: Any) -> Any:
    """Whether a shuffle gives another order in each pass, perhaps as a tensor; None for other transformations."""
    return getattr(dataset, "_reshuffle_each_iteration", None)


def shuffle_order(dataset: Any) -> tuple[Any, Any, Any] | None:
    """Both seeds of a shuffle and the size of its buffer, perhaps as tensors; None for other transformations."""
    if reshuffles(dataset) is None:
        return None
    return tuple(getattr(dataset, name, None) for name in ("_seed", "_seed2", "_buffer_size"))  # type: ignore[return-value]


def dispatched(handler: Any) -> str:
    """Name of the public function that TensorFlow's handler of exceptions calls, "numpy_function"; "" of none."""
    name: str = getattr(handler, "__name__", "")
    if name != "op_dispatch_handler":
        return name
    held = [cell.cell_contents for cell in handler.__closure__ or ()]
    return next((one.__name__ for one in held if isinstance(one, types.FunctionType) and one.__name__[0] != "_"), "")


def cache_name(dataset: Any) -> Any:
    """Where a cache keeps its elements, as a tensor; b"" is in memory. None for other transformations."""
    return getattr(dataset, "_filename", None) if type(dataset).__name__ == "CacheDataset" else None


def snapshot_path(dataset: Any) -> Any:
    """Where a snapshot keeps its elements; None for other transformations."""
    return getattr(dataset, "_path", None) if "Snapshot" in type(dataset).__name__ else None


def batch_size(dataset: Any) -> Any:
    """batch_size of a transformation, perhaps as a tensor; None where it has no such setting."""
    return getattr(dataset, "_batch_size", None)


def counted(dataset: Any) -> Any:
    """The count of a take or skip, perhaps as a tensor; None of other transformations."""
    return getattr(dataset, "_count", None) if type(dataset).__name__ in ("_TakeDataset", "_SkipDataset") else None


def shards(dataset: Any) -> Any:
    """Of how many parts a shard gives one, perhaps as a tensor; None of other transformations."""
    return getattr(dataset, "_num_shards", None) if type(dataset).__name__ == "_ShardDataset" else None


def keras_steps_begun(epoch_iterator: Any) -> int | None:
    """How many batches Keras' loop of an epoch has asked for; None of other values."""
    known = getattr(epoch_iterator, "__dict__", {})
    begun, each = known.get("_steps_seen"), known.get("steps_per_execution")
    return -(-begun // each) if isinstance(begun, int) and isinstance(each, int) and each > 0 else None


def repeats(dataset: Any) -> Any:
    """How often a repeat gives its elements, perhaps as a tensor: -1 for without an end; None of others."""
    return getattr(dataset, "_count", None) if type(dataset).__name__ in ("_RepeatDataset", "RepeatDataset") else None


def slices(dataset: Any) -> list[Any]:
    """The eager tensors whose rows are the elements of a dataset; none of other transformations."""
    if type(dataset).__name__ not in ("_TensorSliceDataset", "TensorSliceDataset"):
        return []
    return [one for one in getattr(dataset, "_tensors", ()) if is_eager(one)]
