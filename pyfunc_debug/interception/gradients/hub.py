"""Exact gradients: every py_function node gets a hidden output, the call id, which leads its gradient to its own tape.

TensorFlow keeps the tape of a call under the node's token, so that two calls of one node overwrite each other
(script_ops.py, `tape_cache`). Nodes made while on have one output more: a float64 scalar with the number of the call.
Their gradient is made by TensorFlow's own `_EagerPyFuncGrad`; at the op underneath we give it the id as an input.
While on, a function in its place in TensorFlow's registry notes its arguments and calls it: nothing else holds the
op that is being differentiated. No gradient is added, and no attribute to a node (a `_gradient_op_type`, which
`tf.Graph.gradient_override_map` sets, would make tf.saved_model.save trace the gradient without its op, and fail).
float64, because TensorFlow's own gradient works on such a node as well: it makes zeros for an output that has a
gradient, and fails on the None of one that has none.

Nodes made while on keep working when off: TensorFlow's own gradient finds their tapes in `tape_cache`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.errors import UnsupportedTensorFlowError
from pyfunc_debug.events import Notice
from pyfunc_debug.interception.builds import verdict
from pyfunc_debug.interception.calls import IN_PROGRESS, NOBODY, call_path, drop_our_frame
from pyfunc_debug.interception.gradients.differentiation import (
    Making,
    OutputTypes,
    Plan,
    StandIn,
    make_function_type,
    make_gradient,
    make_stock,
)
from pyfunc_debug.interception.gradients.saved import build_meta_graph
from pyfunc_debug.interception.gradients.tapes import CallTape, Owner, Tapes
from pyfunc_debug.interception.names import private
from pyfunc_debug.interception.names.gradients import PYFUNC, load_gradients, stock_callers
from pyfunc_debug.interception.patches import Patch, Patches, disguise
from pyfunc_debug.interception.tokens import MARK, plain, token_of

_KEPT_ELSEWHERE = 1024
"""Tapes kept for ids that had to be copied to another device, where their end cannot be seen."""


_LOOK_BACK = 1000
"""Ops to look at for a variable that an input of a node was computed from."""


@dataclass(eq=False)
class Use:
    """One reason to be on: a recording, or a switch of the user's."""

    exact: bool
    order: int = 1


class Gradients:
    """The hub of this process: what is patched, and the mode. There is one, see `hub()`.

    Attributes:
      exact: Whether calls and gradients are exact now; else they are TensorFlow's own.
      order: The highest derivative that calls keep tapes for.
      observer: To whom calls of our nodes are reported, or None; `way` holds its methods (see `calls.call_path`).
      output_types: By thread, dtypes of the outputs that the gradient call it is in has in stock mode.
      taped_caller, untaped_caller: Run a body as TensorFlow does, with a tape and without.
      failures: Where exceptions that leave their bodies are remembered.
      tokens: What nodes with call ids name their functions by: these report to the observer themselves.
    """

    def __init__(self) -> None:
        self.names = load_gradients()
        self.missing = self.names.missing
        self.exact = False
        self.order = 1
        self.observer: Any = None
        self.failures: Any = None
        self.way: Any = NOBODY
        self.tokens: set[str] = set()
        self.output_types: dict[int, tuple[Any, ...]] = {}
        self._here = Making()
        self.tapes = Tapes(self.names.from_capsule)
        self._uses: list[Use] = []
        self._patches = Patches()
        self._lock = threading.Lock()
        self._elsewhere: deque[Any] = deque(maxlen=_KEPT_ELSEWHERE)
        self._no_id: Any = None
        if not self.missing:
            self.taped_caller, self.untaped_caller = stock_callers(self.names.eager_func_type)
            self._function_type = make_function_type(self)
            disguise(Gradients._eager_gradient, self.names.stock_gradient)  # it makes ops, whose stacks users see
        os.register_at_fork(after_in_child=self._after_fork)

    # -- the switch ---------------------------------------------------------------------------------------------------

    def acquire(self, use: Use) -> Use:
        """Switches on for one more reason.

        Raises:
          UnsupportedTensorFlowError: this TensorFlow lacks something, or got a wrong gradient when it was tried out.
        """
        with self._lock:
            why = self.limits()
            if why:
                raise UnsupportedTensorFlowError(why)
            if not self._uses:
                self._patches.apply(self._wanted())
            self._uses.append(use)
            self._set()
        return use

    def release(self, use: Use) -> tuple[str, ...]:
        """Ends one reason; with the last one everything is put back.

        Returns:
          Names of attributes that somebody else replaced meanwhile and that were therefore left alone.
        """
        with self._lock:
            if use in self._uses:
                self._uses.remove(use)
            self._set()
            return self._patches.revert() if not self._uses else ()

    def _wanted(self) -> list[Patch]:
        patches = [
            Patch(self.names.gen_script_ops, "eager_py_func", self._eager_py_func),
            Patch(self.names.gradient_registry, PYFUNC, self._registered_gradient),
        ]
        if self.names.save_module is not None:
            patches.append(Patch(self.names.save_module, private.BUILD_META_GRAPH, self._build_meta_graph))
        return patches

    def connect(self, observer: Any, failures: Any) -> None:
        """Sets to whom calls are reported from now on; None for nobody."""
        self.observer, self.failures = observer, failures
        self.way = NOBODY if observer is None else call_path(observer)

    def _set(self) -> None:
        self.exact = any(use.exact for use in self._uses)
        self.order = max([use.order for use in self._uses if use.exact], default=1)

    def limits(self) -> str:
        """Why exact gradients do not work on this TensorFlow, or an empty text."""
        if self.missing:
            return f"TensorFlow {self.names.version} has moved {', '.join(self.missing)}: there are no exact gradients"
        why = verdict(self.names.folder, self.names.version).gradients
        return f"TensorFlow {self.names.version}: {why}: there are no exact gradients" if why else ""

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        IN_PROGRESS.clear()
        self.output_types.clear()

    def _build_meta_graph(self, original: Any) -> Any:
        return build_meta_graph(original, self.names.registry)

    # -- ids ----------------------------------------------------------------------------------------------------------

    def no_id(self) -> Any:
        """The prepared id of all calls that had no tape: 0."""
        if self._no_id is None:
            buffer = np.zeros(16)
            start = (-buffer.__array_interface__["data"][0]) % 64 // 8
            self._no_id = self.names.from_capsule(buffer[start, ...].__dlpack__())
        return self._no_id

    def id_of(self, tape: CallTape, device: Any) -> Any:
        """An id of the call's own, on the device of its op."""
        number = self.tapes.keep(tape)
        if device is None or "CPU" in str(device).upper():
            return number
        self._elsewhere.append(number)
        with self.names.ops.device(device):
            return private.copy_to_current_device(number)

    # -- construction -------------------------------------------------------------------------------------------------

    def _eager_py_func(self, original: Any) -> Any:
        """The replacement of `gen_script_ops.eager_py_func`, which makes the op, or runs it when executing eagerly."""
        prepare, finish, finish_eager = self._prepare, self._finish, self._finish_eager
        stop, push = self.names.stop_recording, self.names.push_forwardprop_state

        def eager_py_func(input: Any, token: Any, Tout: Any, is_async: bool = False, name: Any = None) -> Any:  # noqa: N803
            made = prepare(input, token, Tout, is_async)
            try:
                if made is None:
                    return original(input=input, token=token, Tout=Tout, is_async=is_async, name=name)
                if not made.plan.eager:
                    result = original(input=made.inputs, token=made.key, Tout=made.tout, is_async=is_async, name=name)
                    return finish(made, result)
                with stop(), push():
                    result = original(input=made.inputs, token=token, Tout=made.tout, is_async=is_async, name=name)
            except BaseException as error:
                drop_our_frame(error)
                raise
            return finish_eager(made, result)

        return eager_py_func

    def _prepare(self, inputs: Any, token: Any, tout: Any, is_async: bool) -> _Making | None:
        """What the op is to be, or None to leave it to TensorFlow."""
        function = self.names.registry.get(token)
        if is_async or not isinstance(function, self.names.eager_func_type):
            return None
        ours, self._here.plan = self._here.plan, None
        if self.names.executing_eagerly():
            if ours is None and (not self.exact or private.is_gradient(function) or not self.names.could_record()):
                return None
            plan = ours or Plan(len(tout))
            plan.eager = True
            return self._adopt(_Making(function, token, plan, list(inputs), list(tout)))
        if private.overrides_gradient(self.names.ops.get_default_graph(), PYFUNC):
            return None  # a gradient of the user's: it counts the node's outputs
        if ours is not None:
            return self._adopt(_Making(function, token, ours, list(inputs), list(tout)))
        if private.is_gradient(function):
            return self._prepare_gradient(function, token, inputs, tout)
        return self._adopt(_Making(function, token, Plan(len(tout)), list(inputs), list(tout)))

    def _adopt(self, made: _Making) -> _Making:
        import tensorflow as tf

        made.function.__class__ = self._function_type
        made.function.plan = made.plan
        made.function.token = made.token
        if not made.plan.eager:
            made.tout = [*made.tout, tf.float64]
            made.key = made.token + MARK
            private.name_again(self.names.registry, made.key, made.function)
        self.tokens.add(made.key)
        return made

    def _prepare_gradient(self, function: Any, own: str, inputs: Any, tout: Any) -> _Making | None:
        """A gradient node that TensorFlow makes: given the call id, if its forward node has one."""
        if self._here.differentiated is None:  # made by hand, by a call of TensorFlow's private function
            return None
        op, dys = self._here.differentiated
        token = token_of(op)
        forward: Any = self.names.registry.get(token)
        plan = getattr(forward, "plan", None)
        if plan is None or token == op.get_attr("token").decode():  # TensorFlow's own, or a SavedModel's
            return None
        dys = dys[: plan.outputs]
        sources = list(op.inputs)
        self._silent_second(plan, op)
        if not self.exact and (plan.level or any(dy is None for dy in dys)):
            # A gradient of a gradient may fail because the first one was pruned, and a None makes TensorFlow fail in
            # its own words: both are left to it.
            flat = self.names.nest.flatten(list(dys), expand_composites=True)
            plain = Plan(len(tout))
            plain.wanted = tuple(range(plan.first, plan.last or len(sources)))
            made = _Making(function, own, plain, flat, list(tout), unchanged=True)
            body = make_stock(self, token.encode())
            private.replace_body(function, self.names.script_ops.autograph.do_not_convert(body), tout)
            made.input_count = len(sources)
            return made
        last = plan.last if plan.last is not None else len(sources)
        candidates = range(plan.first, last) if plan.level else range(len(sources))
        more = self.order > 1 and not plan.level
        if self.order > 1 and plan.level == 1:
            candidates = range(plan.first, len(sources))
        new = Plan(0, plan.level + 1)
        new.used = tuple(index for index, dy in enumerate(dys) if dy is not None)
        new.wanted = tuple(index for index in candidates if self.names.is_trainable(sources[index]))
        new.trained = tuple(index for index in new.wanted if _reads_variable(sources[index]))
        given = [dys[index] for index in new.used]
        flat = self.names.nest.flatten(given, expand_composites=True)
        structure = given if len(flat) != len(given) else None
        new.first, new.last = 1, 1 + len(flat)
        new.outputs = len(new.wanted)
        others = () if plan.level or len(new.wanted) == len(sources) else tuple(source.dtype for source in sources)
        body = make_gradient(self, token.encode(), new, structure, others)
        dtypes = OutputTypes([sources[index].dtype for index in new.wanted], self.output_types)
        private.replace_body(function, self.names.script_ops.autograph.do_not_convert(body), dtypes)
        forward.making_ours = True
        whole = structure is None and len(new.used) == plan.outputs
        stand_in = StandIn(make_stock(self, token.encode()), list(tout), whole)
        extra = [sources[index] for index in new.wanted] if more else []
        made = _Making(function, own, new, [op.outputs[-1], *flat, *extra], list(dtypes))
        made.input_count = len(sources)
        self._adopt(made)
        function.stand_in = stand_in
        return made

    def _registered_gradient(self, entry: dict[str, Any]) -> dict[str, Any]:
        """What stands in TensorFlow's registry for `_EagerPyFuncGrad` while on: it notes what is differentiated."""
        original, here = entry["type"], self._here

        def _EagerPyFuncGrad(op: Any, *dy: Any) -> Any:  # noqa: N802 - it stands for this function
            before, here.differentiated = here.differentiated, (op, dy)
            try:
                return original(op, *dy)
            except BaseException as error:
                drop_our_frame(error)
                raise
            finally:
                here.differentiated = before

        disguise(_EagerPyFuncGrad, original)
        return {**entry, "type": _EagerPyFuncGrad}

    def _silent_second(self, plan: Plan, op: Any) -> None:
        """A derivative of a gradient node is asked for, in which the forward node's inputs count as constants."""
        observer = self.observer
        if observer is None or not plan.level or (self.order > 1 and plan.level == 1):
            return
        observer.gradient_notice(Notice.SECOND_ORDER, token_of(op), None, order=plan.level + 1)

    def _finish(self, made: _Making, result: Any) -> Any:
        """What the op's maker is given: the outputs without the id."""
        if made.unchanged:  # the id and the forward inputs of a gradient node count as constants
            return [one if index in made.plan.wanted else None for index, one in enumerate(result)]
        result[-1].set_shape([])
        visible = list(result[:-1])
        if made.input_count is None:
            return visible or result[-1].op  # TensorFlow returns the Operation when there are no outputs
        found: list[Any] = [None] * made.input_count
        for index, gradient in zip(made.plan.wanted, visible):
            found[index] = gradient
        return found

    # -- eager calls --------------------------------------------------------------------------------------------------

    def _finish_eager(self, made: _Making, result: Any) -> Any:
        """Records an eager call on the user's tapes, with a gradient of its own: its token is used only once."""
        self.tokens.discard(made.token)
        function, names = made.function, self.names
        tape, function.call_tape = function.call_tape, None
        outputs = list(result) if isinstance(result, (list, tuple)) else []
        if tape is None or not outputs:
            return result
        indices = [index for index, item in enumerate(made.inputs) if private.is_eager(item) and hasattr(item, "dtype")]
        owner = Owner(self.tapes, self.tapes.number(tape))
        plan, token = made.plan, made.token.encode()

        def backward(*dys: Any) -> Any:
            return self._eager_gradient(owner, tape_number, plan, token, made_inputs, indices, trainable, dys)

        disguise(backward, names.stock_gradient)
        tape_number = tape.number
        trainable = [index for index in indices if names.is_trainable(made.inputs[index])]
        made_inputs = [
            item if index in indices and self.order > 1 else getattr(item, "dtype", None)
            for index, item in enumerate(made.inputs)
        ]  # the tape keeps the inputs alive only where they are needed
        names.record_operation("EagerPyFunc", outputs, [made.inputs[index] for index in indices], backward)
        return result

    def _eager_gradient(
        self, owner: Owner, number: int, plan: Plan, token: bytes, inputs: list[Any], indices: list[int],
        trainable: list[int], dys: Any,
    ) -> list[Any]:  # fmt: skip
        """The gradient of an eager call: a py_function itself, so that it is recorded and can be differentiated."""
        names = self.names
        new = Plan(0, plan.level + 1)
        new.number = number
        candidates = range(plan.first, plan.last) if plan.level and plan.last is not None else range(len(inputs))
        if plan.level == 1 and self.order > 1:
            candidates = range(plan.first, len(inputs))
        new.wanted = tuple(index for index in candidates if index in trainable)
        tape = self.tapes.find(number)
        outputs = tape.outputs if tape is not None else ()
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        new.used = tuple(
            index for index, dy in enumerate(dys) if dy is not None and names.is_trainable(outputs[index])
        )  # fmt: skip
        given = [dys[index] for index in new.used]
        flat = names.nest.flatten(given, expand_composites=True)
        new.first, new.last = 0, len(flat)
        new.outputs = len(new.wanted)
        extra = (
            [inputs[index] for index in new.wanted]
            if tape is not None and tape.second is not None and not plan.level
            else []
        )
        body = make_gradient(self, token, new, given if len(flat) != len(given) else None, ())
        dtypes = [getattr(inputs[index], "dtype", inputs[index]) for index in new.wanted]
        if not dtypes:
            return [None] * len(indices)
        if not names.executing_eagerly():
            _keep_with_graph(names.ops.get_default_graph(), owner)
        if self._uses:
            self._here.plan = new
        try:
            make_node = getattr(names.script_ops, private.INTERNAL_PY_FUNC)  # ours, while interception is on
            found = make_node(func=body, inp=[*flat, *extra], Tout=dtypes, use_eager_py_func=True, is_grad_func=True)
        finally:
            self._here.plan = None
        answers = dict(zip(new.wanted, found))
        return [answers.get(index) for index in indices]


class _Making:
    """An op while it is made. `input_count`: for a gradient node, how many inputs its forward node has.

    `key` is what the op names its function by: the token, marked where the op has a call id.
    """

    __slots__ = ("function", "input_count", "inputs", "key", "plan", "token", "tout", "unchanged")

    def __init__(
        self, function: Any, token: str, plan: Plan, inputs: list[Any], tout: list[Any], unchanged: bool = False
    ) -> None:
        self.function = function
        self.token = self.key = token
        self.plan = plan
        self.inputs = inputs
        self.tout = tout
        self.input_count: int | None = None
        self.unchanged = unchanged


def _reads_variable(tensor: Any) -> bool:
    """Whether a variable is read on the way to a tensor, in its graph; looks at no more than a thousand ops."""
    todo = [tensor.op]
    seen: set[int] = set()
    while todo and len(seen) < _LOOK_BACK:
        op = todo.pop()
        if id(op) in seen:
            continue
        seen.add(id(op))
        if op.type in ("ReadVariableOp", "ResourceGather", "VariableV2"):
            return True
        todo += [one.op for one in op.inputs]
    return False


def _keep_with_graph(graph: Any, owner: Owner) -> None:
    """A graph into which an eager call's gradient was traced (by tape.jacobian) may ask for it while it lives."""
    while getattr(graph, "building_function", False):
        graph.pyfunc_debug_owners = [*getattr(graph, "pyfunc_debug_owners", ()), owner]
        graph = getattr(graph, "outer_graph", None)


_hub: Gradients | None = None
_hub_lock = threading.Lock()


def hub() -> Gradients:
    """The hub of this process. Imports TensorFlow if the program did not."""
    global _hub
    with _hub_lock:
        if _hub is None:
            _hub = Gradients()
        return _hub


def stock_tapes() -> dict[str, int]:
    """Tokens of the nodes whose tapes TensorFlow keeps, with the bytes of inputs and outputs that these keep alive.

    Memory that several of them share is counted for the first.
    """
    found = {}
    seen: set[int] = set()
    for token, entry in list(hub().names.script_ops.tape_cache.items()):
        size = 0
        for one in [*entry[1], *(entry[2] if isinstance(entry[2], (list, tuple)) else [entry[2]])]:
            address = _memory(one) if private.is_eager(one) else None
            if address is not None and address not in seen:
                seen.add(address)
                size += (one.shape.num_elements() or 0) * one.dtype.size
        found[plain(token)] = size
    return found


def _memory(tensor: Any) -> int:
    """What identifies a tensor's memory: its address where that can be read without a copy."""
    try:
        if "CPU" in tensor.device.upper() and (tensor.dtype.is_floating or tensor.dtype.is_integer):
            return int(np.asarray(memoryview(tensor)).__array_interface__["data"][0])
    except ValueError:  # a bfloat16, say
        pass
    return id(tensor)


def live_tapes() -> int:
    """How many calls can still be differentiated exactly, and therefore keep their tapes."""
    with contextlib.suppress(AttributeError):
        return len(_hub.tapes.kept)  # type: ignore[union-attr]
    return 0
