"""TensorFlow's private names, each looked up here and nowhere else.

`load` finds them all or says which are missing, so that a TensorFlow whose internals moved gets one clear sentence
instead of an AttributeError in the middle of a program. Sources: tensorflow/python/ops/script_ops.py,
eager/context.py, eager/polymorphic_function/{concrete_function,tracing_compilation}.py, autograph/impl/api.py.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pyfunc_debug.errors import UnsupportedTensorFlowError
from pyfunc_debug.interception.names.gradients import GRADIENTS
from pyfunc_debug.interception.names.lookup import find

TESTED = ("2.16", "2.17", "2.18", "2.19", "2.20", "2.21")
"""Minor versions of TensorFlow that the interception tests were run on (tests/compatibility)."""


@dataclass(frozen=True)
class TensorFlowNames:
    """The private objects of TensorFlow that interception needs; `missing` names those that were not found.

    The run-time tier needs `registry_type` and `eager_func_type` only; all else belongs to the construction tier.
    """

    version: str
    folder: str
    missing: tuple[str, ...]
    script_ops: ModuleType
    registry_type: type
    registry: Any
    eager_func_type: type
    context_module: Any
    context_type: Any
    concrete_function_type: Any
    tracing_compilation: Any
    autograph_api: Any
    control_flow: Any
    conditional_expressions: Any
    logical: Any
    runtime_function_refs: Any
    function_cache_type: Any
    function_type: Any
    gradient_tape_type: Any
    tensor_type: Any
    """The class of graphs' tensors; None where it has moved: then nobody says what printed their names."""
    nest: Any
    ops: Any
    op_error_type: Any
    func_graph_type: Any
    iterator_type: Any
    """None where iterators cannot be seen: then nobody says whether a loop waits for its input."""
    save_module: Any
    """What saves a SavedModel; None where that cannot be watched."""
    builder_type: Any
    """What saves a graph of TensorFlow 1 as a SavedModel; None where that cannot be watched."""
    session_type: Any
    """What runs graphs of TensorFlow 1; None where that cannot be watched."""
    graph_gradients: Any
    """What makes the gradients of graphs; None where that cannot be watched."""
    freezing: Any
    """What makes constants of a graph's variables; None where that cannot be watched."""
    data_service: Any
    """What hands datasets to the tf.data service; None where that cannot be watched."""
    mapping: Any
    """What vectorizes a function; None where that cannot be watched."""
    optional_type: Any
    """What holds the results of Keras' steps until they are asked for; None where that cannot be watched."""
    loop_gradients: tuple[Any, ...]
    """Where TensorFlow looks for the gradient of a loop, as {"type": function}; empty where that has moved."""
    profiler_trace: Any
    """What puts events into the profiler; None where it has moved."""
    keras_signature: Any
    """What Keras knows of a model's inputs; None where it is not Keras 3, or has moved."""
    saved_model_type: Any
    decode_error: Any
    """The exception of a file that is none."""

    @property
    def construction(self) -> bool:
        """Whether everything but the run-time tier's names was found as well."""
        return not self.missing


_SIGNATURES = {
    "tensorflow.python.ops.script_ops:_internal_py_func": (
        "func", "inp", "Tout", "stateful", "use_eager_py_func", "is_grad_func", "name",
    ),
    "tensorflow.python.ops.script_ops:py_func_common": ("func", "inp", "Tout", "stateful", "name"),
    "tensorflow.python.ops.script_ops:FuncRegistry.insert": ("self", "func"),
    "tensorflow.python.ops.script_ops:EagerFunc._call": ("self", "device", "args"),
    "tensorflow.python.eager.context:Context.call_function": ("self", "name", "tensor_inputs", "num_outputs"),
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction._call_flat": (
        "self", "tensor_inputs", "captured_inputs",
    ),
    "tensorflow.python.eager.polymorphic_function.tracing_compilation:_create_concrete_function": (
        "function_type", "type_context", "func_graph", "tracing_options",
    ),
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function.__init__": None,
    "tensorflow.core.function.polymorphism.function_cache:FunctionCache.lookup": ("self", "function_type", "context"),
    "tensorflow.python.eager.backprop:GradientTape.gradient": (
        "self", "target", "sources", "output_gradients", "unconnected_gradients",
    ),
    "tensorflow.python.autograph.impl.api:_convert_actual": ("entity", "program_ctx"),
    "tensorflow.python.eager.polymorphic_function.atomic_function:RUNTIME_FUNCTION_REFS": None,
    "tensorflow.python.util.nest:flatten_with_tuple_paths": None,
    "tensorflow.python.framework.ops:get_default_graph": None,
}  # fmt: skip
_RUNTIME = {
    "tensorflow.python.ops.script_ops:FuncRegistry.__call__": ("self", "token", "device", "args"),
    "tensorflow.python.ops.script_ops:EagerFunc.__call__": ("self", "device", "token", "args"),
    "tensorflow.python.ops.script_ops:_py_funcs": None,
}


_OP_ERROR = "tensorflow.python.framework.errors_impl:OpError.__init__"
_WHOLE_MODULES = (
    "tensorflow.python.autograph.operators.conditional_expressions",
    "tensorflow.python.autograph.operators.control_flow",
    "tensorflow.python.autograph.operators.logical",
    "tensorflow.python.autograph.pyct.origin_info",
    "tensorflow.python.autograph.pyct.transpiler",
    "tensorflow.python.data.ops.structured_function",
    "tensorflow.python.framework.func_graph",
)
MODULES = tuple(
    sorted({name.partition(":")[0] for name in (*_SIGNATURES, *_RUNTIME, *GRADIENTS, _OP_ERROR)} | {*_WHOLE_MODULES})
)
"""The modules of TensorFlow whose private names are used: their texts identify builds (builds.py)."""


def load() -> TensorFlowNames:
    """Looks the names up in the installed TensorFlow, importing it if the program did not yet.

    Raises:
      UnsupportedTensorFlowError: even the run-time tier's names are not there.
    """
    import tensorflow as tf

    gone = [name for name, parameters in _RUNTIME.items() if find(name, parameters) is None]
    if gone:
        raise UnsupportedTensorFlowError(
            f"TensorFlow {tf.__version__} has moved what recording needs: {_readable(gone)}. Nothing was changed. "
            f"Tested versions: {TESTED[0]} to {TESTED[-1]}"
        )
    found = {name: find(name, parameters) for name, parameters in _SIGNATURES.items()}

    def module(name: str) -> Any:
        try:
            return importlib.import_module(name)
        except ImportError:
            return None

    script_ops = importlib.import_module("tensorflow.python.ops.script_ops")
    context = module("tensorflow.python.eager.context")
    concrete = module("tensorflow.python.eager.polymorphic_function.concrete_function")
    polymorphic = module("tensorflow.python.eager.polymorphic_function.polymorphic_function")
    cache = module("tensorflow.core.function.polymorphism.function_cache")
    return TensorFlowNames(
        version=tf.__version__,
        folder=os.path.dirname(tf.__file__),
        missing=tuple(name for name, value in found.items() if value is None),
        script_ops=script_ops,
        registry_type=script_ops.FuncRegistry,
        registry=script_ops._py_funcs,
        eager_func_type=script_ops.EagerFunc,
        context_module=context,
        context_type=getattr(context, "Context", None),
        concrete_function_type=getattr(concrete, "ConcreteFunction", None),
        tracing_compilation=module("tensorflow.python.eager.polymorphic_function.tracing_compilation"),
        autograph_api=module("tensorflow.python.autograph.impl.api"),
        control_flow=module("tensorflow.python.autograph.operators.control_flow"),
        conditional_expressions=module("tensorflow.python.autograph.operators.conditional_expressions"),
        logical=module("tensorflow.python.autograph.operators.logical"),
        runtime_function_refs=found[
            "tensorflow.python.eager.polymorphic_function.atomic_function:RUNTIME_FUNCTION_REFS"
        ],
        function_cache_type=getattr(cache, "FunctionCache", None),
        function_type=getattr(polymorphic, "Function", None),
        gradient_tape_type=find("tensorflow.python.eager.backprop:GradientTape", None),
        tensor_type=find("tensorflow.python.framework.tensor:Tensor", None),
        nest=module("tensorflow.python.util.nest"),
        ops=module("tensorflow.python.framework.ops"),
        op_error_type=getattr(module("tensorflow.python.framework.errors_impl"), "OpError", None)
        if find(_OP_ERROR, ("self", "node_def", "op", "message", "error_code", "args")) is not None
        else None,
        iterator_type=_iterator_type(),
        func_graph_type=find("tensorflow.python.framework.func_graph:FuncGraph", None),
        save_module=_holding(
            "tensorflow.python.saved_model.save:save_and_return_nodes",
            ("obj", "export_dir", "signatures", "options", "experimental_skip_checkpoint"),
        ),
        builder_type=_method_of("tensorflow.python.saved_model.builder_impl:_SavedModelBuilder", "save"),
        session_type=_method_of("tensorflow.python.client.session:BaseSession", "run"),
        graph_gradients=_holding("tensorflow.python.ops.gradients_util:_GradientsHelper", None),
        freezing=_holding(
            "tensorflow.python.framework.convert_to_constants:convert_variables_to_constants_from_session_graph",
            ("session", "graph_def", "output_node_names", "variable_names_allowlist", "variable_names_denylist"),
        ),
        data_service=_holding(
            "tensorflow.python.data.experimental.ops.data_service_ops:_register_dataset",
            ("service", "dataset", "compression", "dataset_id"),
        ),
        mapping=_holding("tensorflow.python.ops.parallel_for.control_flow_ops:_pfor_impl", None),
        optional_type=_method_of("tensorflow.python.data.ops.optional_ops:_OptionalImpl", "get_value"),
        loop_gradients=_loop_gradients(),
        profiler_trace=module("tensorflow.python.profiler.trace"),
        keras_signature=_loaded("keras.src.export.export_utils", "get_input_signature"),
        saved_model_type=find("tensorflow.core.protobuf.saved_model_pb2:SavedModel", None),
        decode_error=find("google.protobuf.message:DecodeError", None) or ValueError,
    )


def _iterator_type() -> Any:
    """The type of Python's iterators over datasets, when it can be watched."""
    owner = "tensorflow.python.data.ops.iterator_ops:OwnedIterator"
    parts = (("_create_iterator", ("self", "dataset")), ("_next_internal", ("self",)))
    known = all(find(f"{owner}.{name}", parameters) is not None for name, parameters in parts)
    return find(owner, None) if known else None


def _loop_gradients() -> tuple[Any, ...]:
    """The entries of TensorFlow's registry of gradients that are about loops."""
    registry = find("tensorflow.python.framework.ops:gradient_registry._registry", None) or {}
    return tuple(registry[name] for name in ("While", "StatelessWhile") if callable(registry.get(name, {}).get("type")))


def _holding(name: str, parameters: tuple[str, ...] | None) -> Any:
    """The module of a function that is as expected, else None."""
    return None if find(name, parameters) is None else importlib.import_module(name.partition(":")[0])


def _method_of(name: str, method: str) -> Any:
    """A type that has a method, else None."""
    return None if find(f"{name}.{method}", None) is None else find(name, None)


def _loaded(module: str, name: str) -> Any:
    """A name of a package that the program may not use: it is not imported for us."""
    if module.partition(".")[0] not in sys.modules:
        return None
    return find(f"{module}:{name}", None)


def _readable(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(name.replace("tensorflow.python.", "").replace(":", ".") for name in names)


def explain_missing(names: TensorFlowNames) -> str:
    """One sentence on what this TensorFlow lacks and what still works."""
    return (
        f"TensorFlow {names.version} has moved {_readable(names.missing)}: only calls are recorded, without graph "
        f"traces, runs and call sites. Tested versions: {TESTED[0]} to {TESTED[-1]}"
    )
