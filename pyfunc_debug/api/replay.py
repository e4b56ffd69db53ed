"""What it takes to run a recorded call again: all its inputs, in full, and its body."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from pyfunc_debug.errors import BadOptionError, NotKeptError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.program.random_state import RandomState, set_to
from pyfunc_debug.records import Call, Node, Value


def whole_inputs(call: Call, instead: Mapping[str, Any] | None = None) -> list[np.ndarray[Any, Any]]:
    """The inputs of a call, in their order.

    Args:
      call: The call.
      instead: Other values, by the inputs' names; each gets the recorded type.

    Raises:
      NotKeptError: one was not kept in full, and nothing is given instead.
      BadOptionError: there is no input of that name, or the value does not have its type.
    """
    given = dict(instead or {})
    unknown = given.keys() - {value.path for value in call.inputs}
    if unknown:
        names = ", ".join(value.path for value in call.inputs) or "none"
        raise BadOptionError(f"call #{call.id} has no input {sorted(unknown)[0]!r}; there are: {names}")
    lost = [value for value in call.inputs if value.kept != "full" and value.path not in given]
    if lost:
        which = ", ".join(repr(value.path) for value in lost)
        why = next((f" ({value.note})" for value in lost if value.note), "")
        raise NotKeptError(
            f"call #{call.id} cannot run again: its {'input' if len(lost) == 1 else 'inputs'} {which} "
            f'{"was" if len(lost) == 1 else "were"} not kept in full{why}. Record with values="full" '
            "(%%pyfunc_trace --values full)"
        )
    return [_as(value, given[value.path]) if value.path in given else value.array() for value in call.inputs]


def forward_only(call: Call) -> None:
    """Refuses gradient calls.

    Raises:
      NotKeptError: it is one; the message names its forward call.
    """
    if call.kind == "gradient":
        forward = f": replay its forward call, #{call.forward}" if call.forward is not None else ""
        raise NotKeptError(f"call #{call.id} is a gradient call, which TensorFlow computes{forward}")


@contextlib.contextmanager
def as_recorded(call: Call, reader: Reader) -> Iterator[None]:
    """Python's and NumPy's global random generators are meanwhile what they were as a call began.

    Args:
      call: The call.
      reader: Its recording.

    Raises:
      NotKeptError: that was not kept, or cannot be set here.
    """
    found = reader.random_state(call.id)
    if found is None:
        raise NotKeptError(
            f"the random state of call #{call.id} was not kept: record with random_state=True "
            "(--random-state, %%pyfunc_trace --random-state)"
        )
    facts, python, numpy = found
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(set_to(RandomState(python, numpy, facts)))
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise NotKeptError(f"the random state of call #{call.id} cannot be set: {error}") from None
        yield


def given_runner(
    function: Callable[..., Any], node: Node, through: Callable[..., Any] | None
) -> Callable[..., list[Any]]:
    """What runs a function in the place of a node's body: as TensorFlow would, on flat arrays.

    Args:
      function: It takes what the body takes.
      node: The node.
      through: Is given the function and its arguments, to call it.
    """
    import tensorflow as tf

    from pyfunc_debug.interception.rerun import runner

    eager = node.kind == "py_function"
    return runner(function, [tf.as_dtype(one) for one in node.tout] if eager else None, through)


def function_here(call: Call, node: Node, text: str | None) -> Callable[..., Any]:
    """A node's body in another process than the one that recorded: from its module, loaded or imported from its file.

    Nothing is run of what the recording holds: as a recording may come from anywhere, only files of this machine are.

    Args:
      call: The call, for the message.
      node: Its node.
      text: The recorded source of the body's file.

    Raises:
      NotKeptError: no module of this process has it under its name.
    """
    from pyfunc_debug.report.excerpt import importable_module

    problem = "is not written in Python" if node.file is None else f"was not found under its name in {node.file}"
    if node.file is not None:
        loaded = {os.path.abspath(getattr(one, "__file__", None) or "?"): one for one in [*sys.modules.values()]}
        module: Any = loaded.get(os.path.abspath(node.file))
        if module is None and os.path.exists(node.file):
            place = importable_module(node.file, text or "")
            if place is not None:
                module = _imported(*place)
            elif importable_module(node.file, "") is not None:
                problem = f"was not taken from {node.file}: importing it would run the program"
        try:
            found = attrgetter(node.body)(module)
            first = (getattr(getattr(found, "__code__", None), "co_varnames", ()) or ("",))[0]
            if callable(found) and (first != "self" or not found.__qualname__.rpartition(".")[0]):
                return found  # type: ignore[no-any-return]
            problem = "belongs to an object"
        except AttributeError:
            pass
    raise NotKeptError(
        f"the body of call #{call.id}, {node.body}, {problem}; this is not the process that recorded it. Give it: "
        f"recording.call({call.id}).replay(function=...)"
    )


def _imported(folder: str, name: str) -> Any:
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def _as(value: Value, other: Any) -> np.ndarray[Any, Any]:
    """A value in the type of a recorded one."""
    dtype = None if value.dtype in ("string", "bfloat16") else value.dtype
    try:
        return np.asarray(other, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise BadOptionError(f"{other!r} cannot be {value.dtype} for {value.path!r}: {error}"[:500]) from None


def same_as_recorded(call: Call, outputs: list[Any]) -> bool | None:
    """Whether a replay returned what was recorded; None if that was not kept in full."""
    if call.status != "ok" or any(value.kept != "full" for value in call.outputs):
        return None
    recorded = [value.array() for value in call.outputs]
    return len(recorded) == len(outputs) and all(
        np.array_equal(np.asarray(one), other, equal_nan=other.dtype.kind in "fc")
        for one, other in zip(outputs, recorded)
    )
