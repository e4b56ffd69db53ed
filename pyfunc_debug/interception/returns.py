"""What bodies return, before TensorFlow converts it.

The body's own value lives in one local variable of TensorFlow's: `ret` of `EagerFunc._call` and of
`FuncRegistry.__call__` (script_ops.py). While on, these two are copies of TensorFlow's own text with one more call
behind the line that sets it, and one where what follows raises: same file, same line numbers, same names, so that
tracebacks read as without us.
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import NotConverted, Observer
from pyfunc_debug.interception.calls import IN_PROGRESS
from pyfunc_debug.interception.names import TensorFlowNames, private

FIRST = 8
"""How many calls of a node are looked at from its first on ..."""
EVERY = 16
"""... and then every sixteenth."""
_MOST = 10_000
_VALUE = "ret"
_LOOK, _DONE, _SEEN = "pyfunc_debug_look", "pyfunc_debug_done", "pyfunc_debug_seen"
_FAILED, _ERROR = "pyfunc_debug_failed", "pyfunc_debug_error"
_ITEMS = 8
"""How many values of a list are looked through for one that cannot be converted."""


class Returns:
    """Makes the replacements, and tells the observer what bodies returned.

    Args:
      names: TensorFlow's.
      observer: Who is notified.
    """

    def __init__(self, names: TensorFlowNames, observer: Observer) -> None:
        self._tensor = names.ops.EagerTensor
        self._observer = observer
        self._looked: dict[str, int] = {}

    def eager_call(self, original: Any) -> Any:
        """The replacement of `EagerFunc._call`: of py_function."""
        tensor, wanted = self._tensor, self._wanted

        def look(owner: Any, value: Any) -> Any:
            if type(value) is tensor or private.is_gradient(owner):  # a tensor is taken as it is, or not at all
                return None
            ticket = wanted()
            return None if ticket is None else self._observer.returned(ticket, value, private.output_dtypes(owner))

        return _watched(original, look, self._done) or original

    def registry_call(self, original: Any) -> Any:
        """What `FuncRegistry.__call__` was, for numpy_function. Its dtypes are compared in C++, which is strict."""
        wanted = self._wanted

        def look(owner: Any, value: Any) -> Any:
            ticket = wanted()
            return None if ticket is None else self._observer.returned(ticket, value, None)

        return _watched(original, look, self._done) or original

    def _wanted(self) -> Any:
        """The ticket of the call that this thread is in, if what it returned is to be looked at."""
        call = IN_PROGRESS.get(get_ident())
        if call is None:
            return None
        token, looked = call[1], self._looked
        count = looked.get(token, 0)
        looked[token] = count + 1  # two threads may count one: it only chooses
        if count >= FIRST and count % EVERY:
            return None
        if len(looked) > _MOST:  # each eager call has a token of its own
            looked.clear()
        return call[3]

    def _done(self, seen: Any, outputs: Any) -> Any:
        self._observer.converted(seen, outputs)
        return outputs


def _watched(original: Any, look: Callable[[Any, Any], Any], done: Callable[[Any, Any], Any]) -> Any:
    """A copy of a method of TensorFlow's that calls `look(self, ret)` and, for what that gives, `done(seen, outputs)`.

    An exception that is raised after that gets a `NotConverted` as its attribute `pyfunc_returned`.

    Returns:
      The copy; None where the method's text is not as expected.
    """
    if not isinstance(original, types.FunctionType) or original.__closure__ or hasattr(original, "__wrapped__"):
        return None  # somebody else's wrapper
    try:
        lines, first = inspect.getsourcelines(original)
        # Inside of a class for its indentation, and as far down as it is in its file.
        tree = ast.parse("\n" * (first - 2) + "class _:\n" + "".join(lines), original.__code__.co_filename)
    except (OSError, SyntaxError, TypeError):
        return None
    method = tree.body[0].body[0] if isinstance(tree.body[0], ast.ClassDef) else None
    if not isinstance(method, ast.FunctionDef) or method.name != original.__name__ or method.decorator_list:
        return None
    line = _insert(method)
    if line is None:
        return None
    factory = ast.parse(f"def factory({_LOOK}, {_DONE}, {_FAILED}): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [_Returning(line).visit(method), ast.Return(ast.Name(method.name, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    scope: dict[str, Any] = {}
    exec(compile(module, original.__code__.co_filename, "exec", dont_inherit=True), original.__globals__, scope)
    made = scope["factory"](look, done, _not_converted)
    made.__code__ = _named(made.__code__, original.__code__)
    made.__qualname__, made.__module__ = original.__qualname__, original.__module__
    return made


def _insert(method: ast.FunctionDef) -> int | None:
    """Puts the calls behind the line that sets the value. That line; None where there is not just one."""
    blocks: list[list[ast.stmt]] = []
    for node in ast.walk(method):
        if isinstance(node, (ast.FunctionDef, ast.With)):
            blocks.append(node.body)
        elif isinstance(node, ast.If):
            blocks += [node.body, node.orelse]
    found = [(block, place) for block in blocks for place, one in enumerate(block) if _sets_value(one)]
    if len(found) != 1:
        return None
    block, place = found[0]
    call = ast.parse(f"{_SEEN} = {_LOOK}(self, {_VALUE})").body[0]
    guarded = ast.parse(f"try: pass\nexcept Exception as {_ERROR}:\n    {_FAILED}({_VALUE}, {_ERROR})\n    raise").body[
        0
    ]
    assert isinstance(guarded, ast.Try)
    for new in (call, guarded):
        for node in ast.walk(new):
            ast.copy_location(node, block[place])
    guarded.body = block[place + 1 :]
    block[place + 1 :] = [call, guarded]
    return block[place].lineno


def _not_converted(value: Any, error: Exception) -> None:
    """Notes on an exception what the body had returned when it was raised: only its type and a tensor's own facts."""
    try:
        items = value[:_ITEMS] if isinstance(value, (list, tuple)) else [value]
        odd = next((one for one in items if _composite(one)), value)
        facts = {"shape": tuple(odd.shape.as_list()), "dtype": odd.dtype.name} if _composite(odd) else {}
        rank = getattr(odd, "ragged_rank", None) if facts else None
        error.pyfunc_returned = NotConverted(type(odd).__name__, ragged_rank=rank, **facts)  # type: ignore[attr-defined]
    except Exception:  # an exception that takes no attributes, a shape that is not known
        return


def _composite(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ in ("RaggedTensor", "SparseTensor") and kind.__module__.startswith("tensorflow.")


class _Returning(ast.NodeTransformer):
    """Makes `return outputs` below a line `return done(seen, outputs) if seen is not None else outputs`."""

    def __init__(self, line: int) -> None:
        self._line = line

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.lineno > self._line and node.value is not None:
            test = ast.parse(f"{_SEEN} is not None", mode="eval").body
            done = ast.Call(ast.Name(_DONE, ast.Load()), [ast.Name(_SEEN, ast.Load()), node.value], [])
            for one in (test, *ast.walk(test), done, done.func, done.args[0]):
                ast.copy_location(one, node.value)
            node.value = ast.copy_location(ast.IfExp(test, done, copy.deepcopy(node.value)), node.value)
        return node


def _sets_value(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == _VALUE
        and not isinstance(statement.value, ast.List)  # `ret = [ret]`, TensorFlow's first step of converting
    )


def _named(code: types.CodeType, like: types.CodeType) -> types.CodeType:
    qualname = getattr(like, "co_qualname", None)  # since Python 3.11
    named: dict[str, Any] = {} if qualname is None else {"co_qualname": qualname}
    return code.replace(**named)
