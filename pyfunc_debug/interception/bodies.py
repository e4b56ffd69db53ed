"""From what TensorFlow registered to the user's function: its name, file, line and parameters.

TensorFlow wraps a body several times (EagerFunc, AutoGraph's do_not_convert, `_wrap_for_composites`), users wrap it in
partials and decorators, and a function defined inside a tf.function is AutoGraph-generated code in a temporary file.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyfunc_debug.events import Body
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.program.frames import is_generated, is_tensorflow, line_text
from pyfunc_debug.records import Frame

_DEEPEST = 32  # wrappers; a cycle of __wrapped__ must not hang us
_INNER_NAMES = ("func", "f", "fn", "py_func", "function", "original_func", "target")


class SourceMaps:
    """Lines of AutoGraph-generated files, mapped back to the user's files.

    Maps are noted while on (`note`, with the file the entity really came from); older ones are read from AutoGraph's
    cache. TensorFlow keys that cache by code objects, which compare equal across files, and its maps are shifted inside
    `functools.wraps` wrappers: both are corrected for noted entities.
    """

    def __init__(self, names: TensorFlowNames) -> None:
        self._names = names
        self._maps: dict[str, tuple[dict[int, int], str, int]] = {}
        self._moved: dict[tuple[str, str, int], tuple[str, int]] = {}
        self.converted: dict[tuple[str, int], str] = {}
        """By file and first line, the names of functions that became graphs while on."""

    def note(self, entity: Any, converted: Any) -> None:
        """Remembers the source map of a function that AutoGraph has just converted."""
        source_map = getattr(converted, "ag_source_map", None)
        module = getattr(converted, "ag_module", None)
        code = getattr(inspect.unwrap(converted), "__code__", None)
        generated = getattr(module, "__file__", None) or getattr(code, "co_filename", None)
        entity_code = getattr(entity, "__code__", None)
        if source_map is None or generated is None or entity_code is None:
            return
        file, known = entity_code.co_filename, self._maps.get(generated)
        self.converted[file, entity_code.co_firstlineno] = readable_name(entity.__qualname__)
        if known is None or known[1] != file:  # each conversion comes by here again
            lines = known[0] if known is not None else _lines(source_map, generated)
            shift = _shift(lines, entity, entity_code)
            self._maps[generated] = (lines, file, shift)
            self._note_moved(source_map, generated, file, shift)

    def _note_moved(self, source_map: Any, generated: str, file: str, shift: int) -> None:
        """Remembers lines that TensorFlow's stacks of ops confuse with others."""
        for key, origin in source_map.items():
            if key.filename == generated:
                mapped = origin.loc.filename, origin.function_name or "<lambda>", origin.loc.lineno
                if shift or file != mapped[0] or mapped in self._moved:
                    self._moved[mapped] = file, mapped[2] + shift

    def right(self, file: str, function: str, line: int) -> tuple[str, int]:
        """The true file and line of an entry in the stack of an op that was made last; see above."""
        return self._moved.get((file, function or "<lambda>", line), (file, line))

    def right_frames(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """The frames of an op that was made last, each in the file that it is of.

        A notebook's cell that runs again is of another file than the equal one, whose code AutoGraph still has.
        """
        if not self._moved:
            return frames
        return tuple(map(self._right_frame, frames))

    def _right_frame(self, frame: Frame) -> Frame:
        file, line = self.right(frame.file, frame.function, frame.line)
        same = (file, line) == (frame.file, frame.line)
        return frame if same else replace(frame, file=file, line=line, text=line_text(file, line))

    def of(self, generated: str) -> tuple[dict[int, int], str, int] | None:
        """(line -> the user's line, the user's file, what to add to lines) of a generated file noted while on."""
        return self._maps.get(generated)

    def find(self, generated: str, line: int) -> tuple[str, int] | None:
        """The user's file and line for a line of generated code, or None when no map knows it."""
        known = self._maps.get(generated) or self._from_cache(generated)
        if known is None:
            return None
        lines, file, shift = known
        for candidate in range(line, line + 4):  # a `def` line may only be mapped at its first statement
            if candidate in lines:
                return file, lines[candidate] + shift
        return None

    def _from_cache(self, generated: str) -> tuple[dict[int, int], str, int] | None:
        try:
            cache = private.converted_functions(self._names.autograph_api)
            for code, factories in list(cache.items()):
                for factory in list(factories.values()):
                    if getattr(factory.module, "__file__", None) == generated:
                        known = (_lines(factory.source_map, generated), code.co_filename, 0)
                        self._maps[generated] = known
                        return known
        except (AttributeError, RuntimeError):  # internals moved, or the dictionary changed while we read it
            pass
        return None


def _lines(source_map: Any, generated: str) -> dict[int, int]:
    return {key.lineno: origin.loc.lineno for key, origin in source_map.items() if key.filename == generated}


def _shift(lines: dict[int, int], entity: Any, code: types.CodeType) -> int:
    """What must be added to a source map's lines: not 0 inside `functools.wraps` wrappers.

    The map may have been made for another function with the same wrapper: then its last line tells.
    """
    plain = getattr(inspect.unwrap(entity), "__code__", code)
    if plain is code or not lines:
        return 0
    own = set(_code_lines(code))
    tried = (code.co_firstlineno - plain.co_firstlineno, max(own) - max(lines.values()), 0)
    return max(tried, key=lambda shift: sum(line + shift in own for line in lines.values()))


def _code_lines(code: types.CodeType) -> list[int]:
    inner = [line for one in code.co_consts if isinstance(one, types.CodeType) for line in _code_lines(one)]
    return [line for _, _, line in code.co_lines() if line] + inner


@dataclass(frozen=True)
class UserGenerator:
    """The user's generator behind a node of `Dataset.from_generator`; `asks` is the node that takes its elements."""

    function: Any
    asks: bool


def user_generator(function: Any) -> UserGenerator | None:
    """The generator function that `Dataset.from_generator` was given; None for any other body.

    tf.data makes three nodes of it (data/ops/from_generator_op.py), with its state in their closures.
    """
    owner = getattr(function, "__self__", None)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return None
    state = owner if type(owner).__name__ == "_GeneratorState" else None
    if state is None and code.co_filename.endswith("from_generator_op.py") and hasattr(function, "__closure__"):
        state = closure(function).get("generator_state")
    given = private.generator(state)
    return None if given is None else UserGenerator(given, code.co_name == "generator_py_func")


def find_body(registered: Any, names: TensorFlowNames, maps: SourceMaps) -> Body:
    """The user's function behind what is in TensorFlow's registry, or what was passed to tf.py_function.

    Never raises: an object that cannot be looked into is named after its type.
    """
    try:
        function = unwrap(registered, names)
        generator = user_generator(function)
        if generator is not None and generator.asks:  # still TensorFlow's node, but whose elements it takes is known
            return _of_elements(generator.function, names, maps)
        name, code = _name_and_code(function)
        file, line = (code.co_filename, code.co_firstlineno) if code is not None else (None, None)
        if file is not None and line is not None and is_generated(file):
            mapped = maps.find(file, line)
            if mapped is not None:
                file, line = mapped
        return Body(name, file, line, _parameters(function), internal=file is not None and is_tensorflow(file))
    except Exception:  # a hostile __getattr__, say: a name is not worth an exception in the user's program
        return Body(type(registered).__name__, None, None, (), internal=False)


def _of_elements(function: Any, names: TensorFlowNames, maps: SourceMaps) -> Body:
    """The body of a node that takes elements: the user's function that makes them, also where Keras stands between."""
    source, where = private.keras_source(function)
    if isinstance(function, type):  # a class whose objects are iterators
        made = (vars(function).get(name) for name in ("__next__", "__iter__"))
        source = next((one for one in made if isinstance(one, types.FunctionType)), None)
    if isinstance(source, types.GeneratorType):
        return _of_generator(source)
    found = find_body(function if source is None else source, names, maps)
    plain = function if hasattr(function, "__code__") else getattr(function, "__func__", type(function).__call__)
    own = source is not None or inspect.isgeneratorfunction(plain)
    return Body(found.name, found.file, found.line, (), True, where if own else "another's")


def _of_generator(generator: types.GeneratorType[Any, Any, Any]) -> Body:
    code = generator.gi_code
    return Body(readable_name(generator.__qualname__), code.co_filename, code.co_firstlineno, (), True, "own")


def element_body(source: Any, names: TensorFlowNames, maps: SourceMaps) -> Body:
    """The body behind elements that Keras takes itself, of a generator or a PyDataset."""
    if isinstance(source, types.GeneratorType):
        return _of_generator(source)
    found = find_body(source.__getitem__, names, maps)
    return Body(found.name, found.file, found.line, (), found.internal, "own")


def unwrap(registered: Any, names: TensorFlowNames) -> Any:
    """Peels TensorFlow's and Python's wrappers off a registered function; keeps bound methods and partials as given."""
    function = registered
    for _ in range(_DEEPEST):
        if isinstance(function, names.eager_func_type):
            function = private.body(function)
        elif isinstance(function, types.FunctionType) and is_tensorflow(function.__code__.co_filename):
            inner = getattr(function, "__wrapped__", None) or _enclosed(function)
            if inner is None:
                return function
            function = inner
        elif isinstance(function, types.FunctionType) and hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            inner = _held(function)
            if inner is None:
                return function
            function = inner
    return function


def _held(thing: Any) -> Any:
    """The user's function inside an object of TensorFlow's: a tf.function, a tf.custom_gradient."""
    if not type(thing).__module__.startswith("tensorflow."):
        return None
    for name in ("python_function", "__wrapped__"):
        inner = getattr(thing, name, None)
        if callable(inner):
            return inner
    return None


def _enclosed(wrapper: types.FunctionType) -> Any:
    """The user's callable inside a wrapper of TensorFlow's, through its closure."""
    cells = closure(wrapper)
    for name in _INNER_NAMES:
        if callable(cells.get(name)):
            return cells[name]
    owner = cells.get("self")  # tf.data's debug mode: py_function_wrapper of a StructuredFunctionWrapper
    inner = private.body(owner)
    return inner if callable(inner) else None


def closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Names and values of a function's closure; empty cells are left out."""
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            pass
    return cells


def scope(function: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a body sees besides its parameters.

    Args:
      function: The user's function (see `unwrap`).

    Returns:
      Names of its own (closure, defaults, what a partial holds, `self`), and its module's names.
    """
    if not callable(function):
        return {}, {}
    own: dict[str, Any] = {}
    given: tuple[Any, ...] = ()
    while isinstance(function, functools.partial):
        own.update(function.keywords)
        given, function = function.args, function.func
    first: tuple[Any, ...] = ()
    if isinstance(function, types.MethodType):
        first, function = (function.__self__,), function.__func__
    elif not isinstance(function, (types.FunctionType, types.BuiltinFunctionType)):
        first, function = (function,), type(function).__call__
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType):
        return own, {}
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    found = {**closure(function), **dict(zip(parameters[len(parameters) - len(defaults) :], defaults))}
    found.update(function.__kwdefaults__ or {})
    found.update(zip(parameters, (*first, *given)))
    return {**found, **own}, function.__globals__


def _name_and_code(function: Any) -> tuple[str, types.CodeType | None]:
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, types.MethodType):
        owner: Any = function.__self__
        if type(owner).__name__ == "TfMethodTarget":  # a decorated method: tf.function holds its object weakly
            owner = owner.target
        kind = owner if isinstance(owner, type) else type(owner)
        inner = inspect.unwrap(function.__func__)
        return f"{kind.__name__}.{function.__func__.__name__}", getattr(inner, "__code__", None)
    if isinstance(function, types.FunctionType):
        return readable_name(function.__qualname__, is_generated(function.__code__.co_filename)), function.__code__
    if isinstance(function, types.BuiltinFunctionType) or not callable(function):
        return getattr(function, "__name__", type(function).__name__), None
    name = getattr(function, "__name__", None)  # NumPy's ufuncs have one
    called = inspect.unwrap(type(function).__call__)
    return name if isinstance(name, str) else type(function).__name__, getattr(called, "__code__", None)


_SCOPES = {"<locals>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
_GENERATED = _SCOPES | {
    "outer_factory", "inner_factory", "if_body", "else_body", "loop_body", "loop_test", "extra_test",
}  # fmt: skip


def readable_name(qualname: str, generated: bool = False) -> str:
    """`train.<locals>.step` -> `train.step`; AutoGraph's own scopes are left out of the name of generated code."""
    if not generated:
        return ".".join(part for part in qualname.split(".") if part not in _SCOPES) or qualname
    parts = [part.removeprefix("tf__") for part in qualname.split(".") if part not in _GENERATED]
    # AutoGraph wraps a lambda in lambdas: one is enough
    kept = [
        part
        for position, part in enumerate(parts)
        if part != "<lambda>" or parts[position - 1 : position] != ["<lambda>"]
    ]
    return ".".join(kept) or qualname


def _parameters(function: Any) -> tuple[str, ...]:
    """Names of the positional parameters; the last may be `*args`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ()
    names = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names.append("*" + parameter.name)
    return tuple(names)


def input_names(parameters: tuple[str, ...], count: int) -> list[str]:
    """One name per argument: `x`, then `args[0]`, `args[1]`, ... for a `*args`, `in[3]` where nothing is known."""
    found: list[str] = []
    for index in range(count):
        if index < len(parameters) and not parameters[index].startswith("*"):
            found.append(parameters[index])
            continue
        stars = next((position for position, name in enumerate(parameters) if name.startswith("*")), None)
        if stars is not None and index >= stars:
            found.append(f"{parameters[stars][1:]}[{index - stars}]")
        else:
            found.append(f"in[{index}]")
    return found
