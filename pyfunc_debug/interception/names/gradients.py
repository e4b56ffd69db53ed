"""What exact gradients need of TensorFlow: names in script_ops.py, backprop.py, imperative_grad.py and pywrap_tfe."""

from __future__ import annotations

import importlib
import linecache
import os
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.interception.names.lookup import find
from pyfunc_debug.program.file_lines import definition_lines

GRADIENTS = {
    "tensorflow.python.ops.gen_script_ops:eager_py_func": ("input", "token", "Tout", "is_async", "name"),
    "tensorflow.python.ops.script_ops:_EagerPyFuncGrad": ("op", "dy"),
    "tensorflow.python.ops.script_ops:tape_cache": None,
    "tensorflow.python.ops.script_ops:_py_funcs": None,
    "tensorflow.python.ops.script_ops:EagerFunc.__call__": ("self", "device", "token", "args"),
    "tensorflow.python.ops.script_ops:EagerFunc._call": ("self", "device", "args"),
    "tensorflow.python.eager.backprop:GradientTape._push_tape": ("self",),
    "tensorflow.python.eager.backprop:GradientTape._pop_tape": ("self",),
    "tensorflow.python.eager.tape:watch": ("tape", "tensor"),
    "tensorflow.python.eager.imperative_grad:imperative_grad": (
        "tape", "target", "sources", "output_gradients", "sources_raw", "unconnected_gradients",
    ),
    "tensorflow.python.framework.ops:EagerTensor": None,
    "tensorflow.python.framework.ops:gradient_registry._registry": None,
    "tensorflow.python.eager.backprop_util:IsTrainable": None,
    "tensorflow.python.eager.record:could_possibly_record": (),
    "tensorflow.python.eager.record:stop_recording": None,
    "tensorflow.python.eager.record:record_operation": None,
    "tensorflow.python.eager.forwardprop_util:push_forwardprop_state": None,
    "tensorflow.python.pywrap_tfe:TFE_Py_TapeSetStopOnThread": None,
    "tensorflow.python.pywrap_tfe:TFE_Py_TapeSetRestartOnThread": None,
    "tensorflow.python.eager.context:executing_eagerly": None,
    "tensorflow.python.util.nest:pack_sequence_as": None,
}  # fmt: skip

_SAVING, _SAVED = (
    "tensorflow.python.saved_model.save:_build_meta_graph",
    ("obj", "signatures", "options", "meta_graph_def"),
)
PYFUNC = "EagerPyFunc"
"""The op type of a py_function: what its gradient is registered under."""


@dataclass(frozen=True)
class GradientNames:
    """The private objects that exact gradients need; `missing` names those that were not found.

    Attributes:
      stock_gradient: `_EagerPyFuncGrad`, which makes gradient nodes.
      stock_gradient_body: The code of their body, `eagerly_executed_grad`: a function inside the former.
      save_module: Holds what makes the graphs of a SavedModel; None where that has moved.
      gradient_registry: Op type -> {"type": what `tf.RegisterGradient` decorated, ...}.
    """

    version: str
    folder: str
    missing: tuple[str, ...]
    script_ops: Any
    gen_script_ops: Any
    registry: Any
    eager_func_type: Any
    stock_gradient: Any
    stock_gradient_body: Any
    gradient_registry: Any
    tape_type: Any
    watch: Any
    imperative_grad: Any
    eager_tensor_type: Any
    is_trainable: Any
    could_record: Any
    stop_recording: Any
    record_operation: Any
    push_forwardprop_state: Any
    tape_stop: Any
    tape_restart: Any
    executing_eagerly: Any
    nest: Any
    ops: Any
    from_capsule: Any
    save_module: Any


def load_gradients() -> GradientNames:
    """Looks up what exact gradients need."""
    import tensorflow as tf

    found = {name.rpartition(":")[2]: find(name, parameters) for name, parameters in GRADIENTS.items()}
    missing = [name for name, parameters in GRADIENTS.items() if find(name, parameters) is None]
    stock, registry = found["_EagerPyFuncGrad"], found["gradient_registry._registry"] or {}
    body = _inner_code(stock, "eagerly_executed_grad")
    if body is None or registry.get(PYFUNC, {}).get("type") is not stock:
        missing.append("tensorflow.python.ops.script_ops:_EagerPyFuncGrad.eagerly_executed_grad")
    script_ops = importlib.import_module("tensorflow.python.ops.script_ops")
    return GradientNames(
        version=tf.__version__,
        folder=os.path.dirname(tf.__file__),
        missing=tuple(missing),
        script_ops=script_ops,
        gen_script_ops=getattr(script_ops, "gen_script_ops", None),
        registry=found["_py_funcs"],
        eager_func_type=getattr(script_ops, "EagerFunc", None),
        stock_gradient=stock,
        stock_gradient_body=body,
        gradient_registry=registry,
        tape_type=tf.GradientTape,
        watch=found["watch"],
        imperative_grad=found["imperative_grad"],
        eager_tensor_type=found["EagerTensor"],
        is_trainable=found["IsTrainable"],
        could_record=found["could_possibly_record"],
        stop_recording=found["stop_recording"],
        record_operation=found["record_operation"],
        push_forwardprop_state=found["push_forwardprop_state"],
        tape_stop=found["TFE_Py_TapeSetStopOnThread"],
        tape_restart=found["TFE_Py_TapeSetRestartOnThread"],
        executing_eagerly=found["executing_eagerly"],
        nest=importlib.import_module("tensorflow.python.util.nest"),
        ops=importlib.import_module("tensorflow.python.framework.ops"),
        from_capsule=_from_capsule(),
        save_module=None if find(_SAVING, _SAVED) is None else importlib.import_module(_SAVING.partition(":")[0]),
    )


def _inner_code(function: Any, name: str) -> types.CodeType | None:
    """The code of a function defined inside another."""
    constants = getattr(getattr(function, "__code__", None), "co_consts", ())
    return next((code for code in constants if isinstance(code, types.CodeType) and code.co_name == name), None)


def _from_capsule() -> Any:
    """DLPack capsule -> tensor without a copy: by TensorFlow's own entry (2 us) if it is there, else the public one."""
    import tensorflow as tf

    direct = find("tensorflow.python.pywrap_tfe:TFE_FromDlpackCapsule", None)
    context = find("tensorflow.python.eager.context:context", None)
    handle = find("tensorflow.python.eager.context:Context._handle", None)
    if direct is None or context is None or handle is None:
        return tf.experimental.dlpack.from_dlpack
    return lambda capsule: direct(capsule, context()._handle)  # the property starts the devices: only at a call


def stock_callers(eager_func_type: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions that run a body just as `EagerFunc.__call__` does, with a tape and without.

    Each consists of that very line of script_ops.py, at its line number: the traceback of an exception in a body
    becomes part of TensorFlow's error message, and must read as it does without us.
    """
    stock = eager_func_type.__call__
    file = stock.__code__.co_filename
    try:
        lines, start = definition_lines(stock.__code__)
        numbers = [start + index for index, line in enumerate(lines) if "outputs = self._call(device, args)" in line]
    except OSError:
        numbers = []
    if len(numbers) != 2:

        def __call__(self: Any, device: Any, args: Any) -> Any:  # noqa: N807 - its name is shown
            return self._call(device, args)

        __call__.__code__ = __call__.__code__.replace(co_filename=file, co_firstlineno=stock.__code__.co_firstlineno)
        return __call__, __call__
    made = [_line_as_function(file, number) for number in numbers]
    return made[0], made[1]


def _line_as_function(file: str, number: int) -> Callable[..., Any]:
    line = linecache.getline(file, number).rstrip()
    indent = line[: len(line) - len(line.lstrip())]
    text = "\n" * (number - 2) + f"def __call__(self, device, args):\n{line}\n{indent}return outputs\n"
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), scope)
    return scope["__call__"]  # type: ignore[no-any-return]
