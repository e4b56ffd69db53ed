"""What bodies return, before TensorFlow converts it.

The body's own value lives in one local variable of TensorFlow's: `ret` of `EagerFunc._call` and of
`FuncRegistry.__call__` (script_ops.py). While on, these two are copies of TensorFlow's own text with one more call
behind the line that sets it, and one where what follows raises: same file, same line numbers, same names, so that
tracebacks read as without us.
"""

from __future__ import annotations

import ast
import functools
import types
from _thread import get_ident
from typing import Any

from pyfunc_debug.events import NotConverted, Observer
from pyfunc_debug.interception.calls import fields_of
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.program import syntax
from pyfunc_debug.program.file_lines import definition_lines
from pyfunc_debug.program.syntax import copied

FIRST = 8
"""How many calls of a node are looked at from its first on ..."""
EVERY = 16
"""... and then every sixteenth."""
_MOST = 10_000
_VALUE = "ret"
_LOOK, _DONE, _SEEN = "pyfunc_debug_look", "pyfunc_debug_done", "pyfunc_debug_seen"
_FAILED, _ERROR = "pyfunc_debug_failed", "pyfunc_debug_error"
_TYPE, _TENSOR = "pyfunc_debug_type", "pyfunc_debug_tensor"
_COUNT, _COUNTS = "pyfunc_debug_count", "pyfunc_debug_counts"
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
        self._counts: dict[str, int] = {}
        """Calls by token. Two threads may count one: it only chooses."""

    def eager_call(self, original: Any) -> Any:
        """The replacement of `EagerFunc._call`: of py_function."""
        counts, observer = self._counts, self._observer

        def look(owner: Any, value: Any) -> Any:
            call = fields_of(get_ident())
            if call is None or private.is_gradient(owner):
                return None
            count = counts.get(call[1], 0)
            counts[call[1]] = count + 1
            if count >= FIRST and count % EVERY:
                return None
            self._forget()
            return observer.returned(call[3], value, private.output_dtypes(owner))

        # A tensor is taken as it is, or not at all.
        statement = f"{_SEEN} = None if {_TYPE}({_VALUE}) is {_TENSOR} else {_LOOK}(self, {_VALUE})"
        names = {_TYPE: type, _TENSOR: self._tensor, _LOOK: look, _DONE: self._done}
        return _watched(original, statement, names) or original

    def registry_call(self, original: Any) -> Any:
        """What `FuncRegistry.__call__` was, for numpy_function. Its dtypes are compared in C++, which is strict."""

        def look(value: Any) -> Any:
            call = fields_of(get_ident())
            self._forget()
            return None if call is None else self._observer.returned(call[3], value, None)

        # Counted in place: most calls are not looked at, and calling a Python function would cost more than counting.
        statements = (
            f"{_COUNT} = {_COUNTS}.get(token, 0)\n{_COUNTS}[token] = {_COUNT} + 1\n"
            f"{_SEEN} = None if {_COUNT} >= {FIRST} and {_COUNT} % {EVERY} else {_LOOK}({_VALUE})"
        )
        return _watched(original, statements, {_COUNTS: self._counts, _LOOK: look, _DONE: self._done}) or original

    def left_out_call(self, original: Any) -> Any:
        """The same for calls that sampling leaves out, which are not looked at: that alone takes 1 us in place."""
        return _watched(original, f"{_SEEN} = None", {_DONE: self._done}) or original

    def _forget(self) -> None:
        if len(self._counts) > _MOST:  # each eager call has a token of its own
            self._counts.clear()

    def _done(self, seen: Any, outputs: Any) -> Any:
        self._observer.converted(seen, outputs)
        return outputs


def _watched(original: Any, statements: str, names: dict[str, Any]) -> Any:
    """A copy of a method of TensorFlow's that looks at `ret` and, for what that gives, calls `done(seen, outputs)`.

    An exception that is raised after that gets a `NotConverted` as its attribute `pyfunc_returned`.

    Args:
      original: The method.
      statements: Text of statements over the method's variables and `names` that look at `ret`.
      names: What the copy calls.

    Returns:
      The copy; None where the method's text is not as expected.
    """
    if not isinstance(original, types.FunctionType) or original.__closure__ or hasattr(original, "__wrapped__"):
        return None  # somebody else's wrapper
    names = {**names, _FAILED: _not_converted}
    factory = _factory(original.__code__, statements, tuple(names))
    if factory is None:
        return None
    scope: dict[str, Any] = {}
    exec(factory, original.__globals__, scope)
    made = scope["factory"](**names)
    made.__code__ = _named(made.__code__, original.__code__)
    made.__qualname__, made.__module__ = original.__qualname__, original.__module__
    return made


@functools.lru_cache(maxsize=8)
def _factory(original: types.CodeType, statements: str, names: tuple[str, ...]) -> types.CodeType | None:
    """What defines `factory`, which takes what the copy calls and returns the copy. Kept: each recording begins so."""
    try:
        lines, first = definition_lines(original)
        # Inside of a class for its indentation, and as far down as it is in its file.
        tree = syntax.parse("\n" * (first - 2) + "class _:\n" + "".join(lines), original.co_filename)
    except (OSError, SyntaxError, TypeError):
        return None
    method = tree.body[0].body[0] if isinstance(tree.body[0], ast.ClassDef) else None
    if not isinstance(method, ast.FunctionDef) or method.name != original.co_name or method.decorator_list:
        return None
    inserted = syntax.parse(statements).body
    asked = {one.id for new in inserted for one in ast.walk(new) if isinstance(one, ast.Name)} & {"self", "token"}
    line = _insert(method, inserted)
    if line is None or not asked <= {one.arg for one in method.args.args}:
        return None
    factory = syntax.parse(f"def factory({', '.join(names)}): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [_Returning(line).visit(method), ast.Return(ast.Name(method.name, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    return compile(module, original.co_filename, "exec", dont_inherit=True)


def _insert(method: ast.FunctionDef, inserted: list[ast.stmt]) -> int | None:
    """Puts statements behind the line that sets the value. That line; None where there is not just one."""
    blocks: list[list[ast.stmt]] = []
    for node in ast.walk(method):
        if isinstance(node, (ast.FunctionDef, ast.With)):
            blocks.append(node.body)
        elif isinstance(node, ast.If):
            blocks += [node.body, node.orelse]
    found = [(block, index) for block in blocks for index, one in enumerate(block) if _sets_value(one)]
    if len(found) != 1:
        return None
    block, index = found[0]
    handler = f"except Exception as {_ERROR}:\n    {_FAILED}({_VALUE}, {_ERROR})\n    raise"
    guarded = syntax.parse(f"try: pass\n{handler}").body[0]
    assert isinstance(guarded, ast.Try)
    for new in (*inserted, guarded):
        for node in ast.walk(new):
            ast.copy_location(node, block[index])
    guarded.body = block[index + 1 :]
    block[index + 1 :] = [*inserted, guarded]
    return block[index].lineno


def _not_converted(value: Any, error: Exception) -> None:
    """Notes on an exception what the body had returned when it was raised: only its type and a tensor's own facts."""
    try:
        items = value[:_ITEMS] if isinstance(value, (list, tuple)) else [value]
        position, odd = next(((at, one) for at, one in enumerate(items) if _composite(one)), (0, None))
        found = NotConverted(type(value).__name__, parts=_parts(value) if isinstance(value, dict) else ())
        if odd is not None:
            rank = getattr(odd, "ragged_rank", None)
            found = NotConverted(type(odd).__name__, tuple(odd.shape.as_list()), odd.dtype.name, rank, position)
        error.pyfunc_returned = found  # type: ignore[attr-defined]
    except Exception:  # an exception that takes no attributes, a shape that is not known
        return


def _parts(value: dict[Any, Any]) -> tuple[tuple[str, str], ...]:
    """The keys of a dict and the dtypes of its values: tensors, arrays, numbers or text. Empty where one is none."""
    if len(value) > _ITEMS or not all(type(key) is str for key in value):
        return ()
    found = []
    for key in sorted(value):
        kind, dtype = type(value[key]), getattr(value[key], "dtype", None)
        name = _PLAIN.get(kind, "") if dtype is None else str(getattr(dtype, "name", dtype))
        if not name or name.startswith(("object", "str", "bytes")):
            return ()
        found.append((key, name))
    return tuple(found)


_PLAIN = {bool: "bool", int: "int64", float: "float", str: "string", bytes: "string"}
"""The dtypes that hold Python's own values; a float is float32 to TensorFlow, and float64 to NumPy."""


def _composite(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ in ("RaggedTensor", "SparseTensor") and kind.__module__.startswith("tensorflow.")


class _Returning(ast.NodeTransformer):
    """Makes `return outputs` below a line `return done(seen, outputs) if seen is not None else outputs`."""

    def __init__(self, line: int) -> None:
        self._line = line

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.lineno > self._line and node.value is not None:
            test = syntax.expression(f"{_SEEN} is not None")
            done = ast.Call(ast.Name(_DONE, ast.Load()), [ast.Name(_SEEN, ast.Load()), node.value], [])
            for one in (test, *ast.walk(test), done, done.func, done.args[0]):
                ast.copy_location(one, node.value)
            node.value = ast.copy_location(ast.IfExp(test, done, copied(node.value)), node.value)
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
