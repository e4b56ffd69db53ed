"""Run time of nodes with call ids: each call keeps its own tape, each gradient call finds the tape of its own call.

In stock mode the tapes also go where TensorFlow keeps them (`script_ops.tape_cache`, one entry a node), and gradients
are computed from what is found there, right or wrong, as TensorFlow does.
"""

from __future__ import annotations

import threading
import types
from _thread import get_ident
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfunc_debug.events import Notice
from pyfunc_debug.interception.calls import ENTERING, IN_PROGRESS, NOBODY, drop_our_frame, fields_of, innermost_call
from pyfunc_debug.interception.failures import ends_data
from pyfunc_debug.interception.gradients.tapes import CallTape
from pyfunc_debug.interception.names import private
from pyfunc_debug.interception.names.private import inner_tape, pop_tape, push_tape, supports_gradient
from pyfunc_debug.interception.tokens import MARK

if TYPE_CHECKING:
    from pyfunc_debug.interception.gradients.hub import Gradients
    from pyfunc_debug.interception.names.gradients import GradientNames

_JUST_MADE = 64
"""How many functions may have been registered since, on other threads."""
_VALUES = 8
"""How many elements of a wrong gradient and of the right one are reported."""


class Plan:
    """What a node with call ids is, and for a gradient node what its arguments are.

    Attributes:
      outputs: How many outputs the user knows of.
      level: 0 for a node of the user's, 1 for its gradient, 2 for the gradient of that.
      first, last: Which arguments are gradients that came in: the id stands before them, forward inputs behind.
      number: The forward call's number where it is known before the call (eager).
      eager: Whether it has no hidden output, since it belongs to no graph.
      used: For a gradient node: which outputs of the forward node have a gradient here.
      wanted: For a gradient node: which inputs of the forward node get one.
      trained: For a gradient node: which inputs of the forward node are computed from a variable in the same graph.
    """

    __slots__ = ("eager", "first", "last", "level", "number", "outputs", "trained", "used", "wanted")

    def __init__(self, outputs: int, level: int = 0, eager: bool = False) -> None:
        self.outputs = outputs
        self.level = level
        self.eager = eager
        self.first = 0
        self.last: int | None = None
        self.number: int | None = None
        self.used: tuple[int, ...] = ()
        self.wanted: tuple[int, ...] = ()
        self.trained: tuple[int, ...] = ()


class StandIn(NamedTuple):
    """What TensorFlow's own gradient node would have been, for nodes of a SavedModel.

    Attributes:
      body, dtypes: What it calls, and of its outputs, one an input of the forward node.
      whole: Whether our node was given what it would have been given: a gradient, one tensor, for each output.
    """

    body: Any
    dtypes: list[Any]
    whole: bool


class Making(threading.local):
    """What this thread is making.

    Attributes:
      plan: The node, if it is one of ours.
      differentiated: The op whose gradient TensorFlow is making, and the gradients that came in, one an output.
    """

    plan: Plan | None = None
    differentiated: tuple[Any, tuple[Any, ...]] | None = None


def make_function_type(hub: Gradients) -> Any:
    """The class that nodes' functions are given. Its name is TensorFlow's, since messages show it."""
    return type("EagerFunc", (TapedCalls, hub.names.eager_func_type), {"hub": hub})


class TapedCalls:
    """Calls that keep their own tapes: put before TensorFlow's `EagerFunc`, whose objects are given this behaviour.

    Attributes:
      hub: Knows the mode, and to whom calls are reported.
      plan: What the node is.
      token: Of the function. A node with a call id names it by the token with a mark.
      stand_in: Of a gradient node with a call id: what TensorFlow's own node would have been.
      call_tape: Of an eager call, its tape, until that is recorded on the user's tapes.
      making_ours: Whether the gradient node that TensorFlow is making is one of ours.
      stock_gradient: Whether a gradient node of TensorFlow's own looks for the tape in `tape_cache`.
    """

    hub: Gradients
    plan: Plan
    token: str
    stand_in: StandIn | None = None
    call_tape: CallTape | None = None
    making_ours = False
    stock_gradient = False

    def set_support_graph_mode_gradient(self) -> None:
        """TensorFlow makes a gradient node for this one."""
        super().set_support_graph_mode_gradient()  # type: ignore[misc]  # EagerFunc's
        if self.making_ours:
            self.making_ours = False
        else:
            self.stock_gradient = True
            unmark(self.hub.names, self.token)

    def __call__(self, device: Any, token: str, args: Any) -> Any:
        hub, plan, given, tape = self.hub, self.plan, args, None
        if token == self.token and not plan.eager:
            return self._call_as_stock(device, token, args)
        token = self.token
        names, way = hub.names, hub.way
        thread = get_ident()
        outer = fields_of(thread)
        if token not in way.unwanted:
            enter, leave, fail = way.path
        elif plan.level or plan.eager or supports_gradient(self) or names.could_record():
            enter, leave, fail = NOBODY.path
        else:  # the same with nothing to tell and no tape to keep
            IN_PROGRESS[thread] = (outer, token, args, None)
            try:
                outputs = hub.untaped_caller(self, device, args)
            except BaseException as error:
                if hub.failures is not None and not ends_data(error):
                    hub.failures.add(error, token, None)
                drop_our_frame(error)
                raise
            finally:
                IN_PROGRESS[thread] = outer
            return self._with_id(token, outputs, None, device)
        try:
            try:
                if plan.level:
                    args = args[plan.first : plan.last]  # what the user knows of
                    IN_PROGRESS[thread] = (outer, token, args, ENTERING, given)
                    ticket = enter(token, args)
                    IN_PROGRESS[thread] = (outer, token, args, ticket, given, None, hub.observer)
                else:
                    ticket = enter(token, args)
                    IN_PROGRESS[thread] = (outer, token, args, ticket)
            except BaseException as error:  # the call is ended before its body runs
                if hub.failures is not None:
                    hub.failures.add(error, token, None)
                drop_our_frame(error)
                raise
            if plan.eager:
                names.tape_restart()
            try:
                if supports_gradient(self) or names.could_record():
                    tape = self._new_tape(token, given, ticket)
                    outputs = self._record(tape, device, given)
                else:
                    outputs = hub.untaped_caller(self, device, given)
            except BaseException as error:
                if ends_data(error):
                    leave(ticket, ())
                else:
                    fail(ticket, error)
                    if hub.failures is not None:
                        hub.failures.add(error, token, ticket)
                drop_our_frame(error)
                raise
            finally:
                if plan.eager:
                    names.tape_stop()
            if tape is not None and (self.stock_gradient or not tape.exact) and not plan.eager:
                names.script_ops.tape_cache[token.encode()] = (tape, given, outputs)
            outputs = leave(ticket, outputs)
            if plan.eager:
                self.call_tape = tape
                return outputs
            return self._with_id(token, outputs, tape, device)
        finally:
            IN_PROGRESS[thread] = outer

    def _call_as_stock(self, device: Any, token: str, args: Any) -> Any:
        """A node without a call id names the function: one of a SavedModel, which TensorFlow leads here."""
        try:
            if self.stand_in is not None:
                names, instead = self.hub.names, self.stand_in
                body = names.script_ops.autograph.do_not_convert(instead.body)
                return names.eager_func_type(body, instead.dtypes, True)(device, token, args)
            return super().__call__(device, token, args)  # type: ignore[misc]  # EagerFunc's
        except BaseException as error:
            drop_our_frame(error)
            raise

    def _new_tape(self, token: str, given: Any, ticket: Any) -> CallTape:
        """A tape for this call, not recording yet."""
        tape = self._gradient_tape(token, given) if self.plan.level else self._forward_tape(token, given)
        tape.ticket, tape.observer = ticket, self.hub.observer
        return tape

    def _forward_tape(self, token: str, given: Any) -> CallTape:
        """Of a call of the user's body; with second derivatives, a tape for those too."""
        hub = self.hub
        make = hub.names.tape_type
        second = make(persistent=True) if hub.order > 1 else None
        return CallTape(token, make(persistent=True), list(given), second, hub.exact)

    def _gradient_tape(self, token: str, given: Any) -> CallTape:
        """Of a gradient call: the second tape of its forward call if there is one, else one of its own."""
        hub, plan = self.hub, self.plan
        own = hub.tapes.find(plan.number or int(given[0]))
        dys = list(given[plan.first : plan.last])
        rest = len(given) - plan.first - len(dys)
        before = [None] * plan.first
        if own is None or own.second is None or plan.level != 1:
            sources = [*before, *dys, *[None] * rest]
            return CallTape(token, hub.names.tape_type(persistent=True), sources, None, hub.exact)
        inputs = [own.sources[position] for position in plan.wanted][:rest] if rest else []
        tape = CallTape(token, own.second, [*before, *dys, *inputs], None, hub.exact)
        tape.guard = own.guard
        return tape

    def _record(self, tape: CallTape, device: Any, args: Any) -> Any:
        """Runs the body under the call's tape."""
        plan, recorder, second, names = self.plan, tape.tape, tape.second, self.hub.names
        trainable, watch = names.is_trainable, names.watch
        guard = tape.guard if plan.level else None
        if guard is not None:
            guard.acquire()
        try:
            if second is not None:
                push_tape(second)
            push_tape(recorder)
            try:
                for item in args[plan.first : plan.last] if plan.level else args:
                    if trainable(item):
                        watch(inner_tape(recorder), item)
                        if second is not None:
                            watch(inner_tape(second), item)
                tape.outputs = self.hub.taped_caller(self, device, args)
            finally:
                pop_tape(recorder)
                if second is not None:
                    pop_tape(second)
        except BaseException as error:
            drop_our_frame(error)
            raise
        finally:
            if guard is not None:
                guard.release()
        return tape.outputs

    def _with_id(self, token: str, outputs: Any, tape: CallTape | None, device: Any) -> list[Any]:
        """The outputs and behind them the id, as the op has it."""
        found = [] if outputs is None else list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        expected = self.plan.outputs
        if len(found) != expected:  # TensorFlow would count the hidden output
            raise ValueError(f"{token} returns {len(found)} values, but expects to see {expected} values.")
        found.append(self.hub.no_id() if tape is None else self.hub.id_of(tape, device))
        return found


def make_gradient(hub: Gradients, token: bytes, plan: Plan, structure: Any, others: tuple[Any, ...]) -> Any:
    """The body of a gradient node.

    Args:
      hub: Knows the mode.
      token: The forward node's.
      plan: The gradient node's.
      structure: Of the gradients that come in, if one of them is a composite tensor (IndexedSlices), else None.
      others: dtypes of all the forward node's inputs, if some of them cannot have a gradient; else nothing.
    """
    names, tapes, dtypes = hub.names, hub.tapes, hub.output_types

    def eagerly_executed_grad(*args: Any) -> Any:
        number = plan.number or int(args[0])
        dys = args[plan.first : plan.last]
        if structure is not None:
            dys = names.nest.pack_sequence_as(structure, dys, expand_composites=True)
        own = tapes.find(number)
        call = innermost_call()
        observer = call.observer if call is not None else None
        ticket = call.ticket if call is not None and observer is not None else None
        try:
            if hub.exact or (own is not None and own.exact):
                _report_pair(observer, ticket, own, own, plan)
                if own is None:
                    raise LookupError(_no_tape(token, number))
                own.times += 1
                found = _own_gradient(hub, own, plan, dys)
                if observer is not None and any(one is None for one in found):
                    _report_none(observer, ticket, own, plan, found)
                if observer is not None:
                    _report_variables(observer, ticket, own)
                return [
                    _zeros(own.sources[position]) if one is None else one for position, one in zip(plan.wanted, found)
                ]
            return stock(own, dys, observer, ticket)
        except BaseException as error:
            drop_our_frame(error)
            raise

    def stock(own: CallTape | None, dys: Any, observer: Any, ticket: Any) -> Any:
        entry = names.script_ops.tape_cache.pop(token, None)
        used = entry[0] if entry is not None and isinstance(entry[0], CallTape) else None
        _report_pair(observer, ticket, own, used, plan)
        function = _stock_body(names, token, entry)
        found: Any = None
        try:
            all_found = function(*dys)
            found = [all_found[position] for position in plan.wanted]
            if others:  # an int or string input: TensorFlow fails to make a zero for it, and must fail here too
                dtypes[get_ident()] = others
                return all_found
            return found
        except BaseException as error:
            drop_our_frame(error)
            raise
        finally:
            if observer is not None:
                if own is not None and used is not own:
                    _report_wrong(hub, observer, ticket, own, used, plan, dys, found)
                elif own is not None and found is not None:
                    if any(one is None for one in found):
                        _report_none(observer, ticket, own, plan, found)
                    _report_variables(observer, ticket, own)

    return eagerly_executed_grad


def _stock_body(names: GradientNames, token: bytes, entry: Any) -> Any:
    """The body of TensorFlow's own gradient node, which finds this entry or none under the token."""
    scope = {
        "tape_cache": {} if entry is None else {token: entry},
        "compat": names.script_ops.compat,
        "__name__": names.script_ops.__name__,
    }
    return types.FunctionType(
        names.stock_gradient_body, scope, "eagerly_executed_grad", None, (types.CellType(token),)
    )  # fmt: skip


def make_stock(hub: Gradients, token: bytes) -> Any:
    """The body of a gradient node that is left to TensorFlow; its forward node, whose token it is, has a call id."""
    names = hub.names

    def eagerly_executed_grad(*dy: Any) -> Any:
        entry = names.script_ops.tape_cache.pop(token, None)
        try:
            return _stock_body(names, token, entry)(*dy)
        except BaseException as error:
            drop_our_frame(error)
            raise

    return eagerly_executed_grad


def unmark(names: GradientNames, token: str) -> None:
    """Lets a gradient that TensorFlow itself has just made of a node look for tapes under the node's plain token.

    It is a function inside `_EagerPyFuncGrad`, which has the token from the op.
    """
    newest = private.next_token(names.registry) or 0
    for _, function in reversed(private.registered_since(names.registry, max(0, newest - _JUST_MADE))):
        body = private.body(function) if isinstance(function, names.eager_func_type) else None
        while body is not None and getattr(body, "__code__", None) is not names.stock_gradient_body:
            body = getattr(body, "__wrapped__", None)
        if body is None:
            continue
        cell = body.__closure__[body.__code__.co_freevars.index("token")]
        if cell.cell_contents == token.encode() + MARK.encode():
            cell.cell_contents = token.encode()


class OutputTypes(list[Any]):
    """dtypes of a gradient node's outputs; in stock mode those that TensorFlow's own node would have had."""

    def __init__(self, dtypes: list[Any], others: dict[int, tuple[Any, ...]]) -> None:
        super().__init__(dtypes)
        self._others = others

    def __iter__(self) -> Iterator[Any]:
        wanted = self._others.pop(get_ident(), None) if self._others else None
        return iter(wanted) if wanted else super().__iter__()


def _own_gradient(hub: Gradients, own: CallTape, plan: Plan, dys: Any) -> list[Any]:
    """Gradients from the call's own tape, one a wanted input; None where the body does not connect them."""
    outputs = own.outputs if isinstance(own.outputs, (list, tuple)) else [own.outputs]
    targets, gradients = [], []
    for position, dy in zip(plan.used, dys):
        if dy is not None and hub.names.is_trainable(outputs[position]):
            targets.append(outputs[position])
            gradients.append(dy)
    asked = [position for position in plan.wanted if own.sources[position] is not None]
    if not targets or not asked:
        return [None] * len(plan.wanted)
    known = dict(
        zip(asked, _gradient(hub.names, own.tape, targets, [own.sources[position] for position in asked], gradients))
    )
    return [known.get(position) for position in plan.wanted]


def _gradient(names: GradientNames, tape: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> Any:
    """`tape.gradient` without what it does for variables and composite tensors, unless there are such."""
    kind = names.eager_tensor_type
    for one in gradients:
        if not isinstance(one, kind):  # IndexedSlices
            return tape.gradient(targets, sources, output_gradients=gradients)
    return names.imperative_grad(inner_tape(tape), targets, sources, gradients)


def _zeros(source: Any) -> Any:
    import tensorflow as tf

    return None if source is None else tf.zeros_like(source)


def _no_tape(token: bytes, number: int) -> str:
    if number:
        return f"pyfunc_debug: the tape of call {number} of {token.decode()} is gone: nothing could ask for it any more"
    return (
        f"pyfunc_debug: this call of {token.decode()} ran without a tape, because its gradient was built only "
        "afterwards (TensorFlow itself raises KeyError here): build the gradient before the forward pass runs"
    )


# -- what is reported to the observer ---------------------------------------------------------------------------------


def _ticket(tape: CallTape | None, observer: Any) -> Any:
    return tape.ticket if tape is not None and tape.observer is observer else None


def _report_pair(observer: Any, ticket: Any, own: CallTape | None, used: CallTape | None, plan: Plan) -> None:
    if observer is not None:
        named = plan.level == 1  # the gradient of a gradient has other outputs than the forward node's
        observer.paired(
            ticket, _ticket(own, observer), _ticket(used, observer), plan.used if named else (),
            plan.wanted if named else (),
        )  # fmt: skip


def _report_none(observer: Any, ticket: Any, own: CallTape, plan: Plan, found: list[Any]) -> None:
    positions = [
        position for position, one in zip(plan.wanted, found) if one is None and own.sources[position] is not None
    ]
    if positions and not plan.level > 1:
        observer.gradient_notice(
            Notice.NONE_GRADIENT, own.token, ticket, inputs=positions, wanted=plan.wanted, trained=plan.trained
        )


def _report_variables(observer: Any, ticket: Any, own: CallTape) -> None:
    try:
        variables = own.tape.watched_variables()
    except Exception:
        return
    if variables:
        names = sorted({str(getattr(one, "path", None) or getattr(one, "name", "?")) for one in variables})
        observer.gradient_notice(Notice.VARIABLE_NO_INPUT, own.token, ticket, variables=names)


def _report_wrong(
    hub: Gradients, observer: Any, ticket: Any, own: CallTape, used: CallTape | None, plan: Plan, dys: Any, found: Any
) -> None:
    """TensorFlow used another call's tape, or found none. The true gradient is computed as well, to show both."""
    try:
        true = _text(_own_gradient(hub, own, plan, dys))
    except Exception as error:
        true = f"not known ({type(error).__name__})"
    observer.gradient_notice(
        Notice.WRONG_TAPE, own.token, ticket, found=used is not None,
        stock=None if found is None else _text(found), true=true, wanted=plan.wanted if plan.level == 1 else (),
    )  # fmt: skip


def _text(values: list[Any]) -> str:
    texts = []
    for value in values:
        if value is None:
            texts.append("None")
            continue
        array = np.asarray(value)
        flat = array.reshape(-1)[:_VALUES]
        text = ", ".join(f"{item:.6g}" if np.isrealobj(flat) else str(item) for item in flat)
        if array.ndim:
            text = f"[{text}{', ...' if array.size > _VALUES else ''}]"
        texts.append(text)
    return "; ".join(texts)
