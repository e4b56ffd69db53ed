"""Methods of a class of the user's that Keras calls, or has of its own, with other parameters than they take."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.bodies import own_methods
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Source, begins, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, extends_keras, is_keras_class, lookup
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.program.frames import is_installed

RULE = "method-signature"
_CALLED = r"(?:[\w.<>]+\.)?(\w+)\.(\w+)\(\) "
_KEYWORD = re.compile(_CALLED + r"got an unexpected keyword argument '(\w+)'")
_COUNT = re.compile(_CALLED + r"takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given")
_MISSING = re.compile(_CALLED + r"missing \d+ required (?:positional|keyword-only) arguments?: (.+)")
_BOUND = re.compile(r"^(?:missing a required argument: '(\w+)'|too many positional arguments)$")
"""What Python's inspect.signature says, by which Keras looks at the arguments of `call`."""
_OF_LAYERS = {"name", "dtype", "trainable", "autocast", "activity_regularizer"}
_STEPS = ("train_step", "test_step", "predict_step")
_FLAGS = {"training": "None", "mask": "None"}
_FARTHEST = 12
"""Lines between two places that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a method of a class of Keras' kind was called with other arguments than it takes."""
    if not isinstance(situation.inner, TypeError):
        return None
    bound = _BOUND.match(situation.message)
    if bound is not None:
        return _of_call(situation, bound[1])
    for pattern in (_KEYWORD, _COUNT, _MISSING):
        said = pattern.search(situation.message)
        if said is None:
            continue
        for kind in _classes(situation, said[1]):
            found = _definition(situation, kind, said[2])
            if found is not None:
                return _told(situation, kind, *found, said, pattern)
    return None


def _told(
    situation: Situation, kind: type, file: str, source: Source, method: ast.FunctionDef, said: re.Match[str],
    pattern: re.Pattern[str],
) -> Explanation | None:  # fmt: skip
    by_keras = _asked_by_keras(situation)
    if not own_methods.takes_self(method):
        return own_methods.without_self(kind.__name__, file, source, method)
    if pattern is _KEYWORD and method.name == "__init__" and said[3] in _OF_LAYERS:
        return _handed_on(situation, kind, file, source, method, said[3])
    if pattern is _KEYWORD and method.name == "compile" and not by_keras:
        return _handed_on(situation, kind, file, source, method, said[3])
    if not by_keras:
        return None
    if pattern is _MISSING and method.name in _STEPS:
        return _unpacked(kind, file, source, method, "data", "Keras gives it one batch, which is")
    if method.name == "__call__" and "Loss" in _bases(kind):
        cause = (
            f"{kind.__name__}.__call__ is in the place of Keras', which weighs the losses and takes their mean: a loss "
            "of your own is its `call`."
        )
        return Explanation(RULE, file, method.lineno, cause, _line(source, file, method, "__call__", "call"))
    lacking = _lacking(kind, method)
    if pattern is _KEYWORD and said[3] not in lacking:
        lacking = {said[3]: "None"}
    if not lacking or pattern is _MISSING or method.args.kwarg is not None:
        return None
    added = ", ".join(map(_parameter, lacking.items()))
    edit = _with_parameters(source, file, method, added)
    theirs = _of_base(kind, method)
    if (
        pattern is _COUNT
        and set(parameters(method)) < set(theirs)
        and parameters(method) != [*theirs][: len(parameters(method))]
    ):
        edit = _with_all(source, file, method, ", ".join(map(_parameter, theirs.items())))
    cause = f"Keras calls {kind.__name__}.{method.name} with {listed(list(lacking))}, too, which it does not take."
    return Explanation(RULE, file, method.lineno, cause, edit)


def _asked_by_keras(situation: Situation) -> bool:
    """Whether the call itself stands in Keras: what is called had not begun."""
    asked = frames(situation.inner.__traceback__)[-1:]
    return bool(asked) and is_installed(asked[0].f_code.co_filename)


def _classes(situation: Situation, name: str) -> Iterator[type]:
    """The user's classes of a name, of Keras' kind."""
    held = [value for spot in situation.spots for value in (*spot.variables.values(), *spot.module.values())]
    for error in (situation.inner, situation.error):
        held += [value for frame in frames(error.__traceback__) for value in list(frame.f_locals.values())]
    seen: set[type] = set()
    for value in held:
        for kind in (value if isinstance(value, type) else type(value)).__mro__:
            if kind not in seen and kind.__name__ == name and extends_keras(kind):
                seen.add(kind)
                yield kind


def _bases(kind: type) -> set[str]:
    return {one.__name__ for one in kind.__mro__ if is_keras_class(one)}


def _definition(situation: Situation, kind: type, name: str) -> tuple[str, Source, ast.FunctionDef] | None:
    """A class's own method in the user's files."""
    code: types.CodeType | None = getattr(inspect.unwrap(vars(kind).get(name) or len), "__code__", None)
    for file, source in situation.sources():
        if code is None or file != begins(code)[0]:
            continue
        for one in ast.walk(source.tree):
            if isinstance(one, ast.ClassDef) and one.name == kind.__name__:
                for method in one.body:
                    if isinstance(method, ast.FunctionDef) and method.name == name:
                        return file, source, method
    return None


def _line(source: Source, file: str, method: ast.FunctionDef, old: str, new: str) -> Edit | None:
    """The method's first line with a word behind its name replaced."""
    text = source.lines[method.lineno - 1]
    place = text.find(old, method.col_offset + len("def "))
    if place < 0:
        return None
    return Edit(file, method.lineno, method.lineno, (f"{text[:place]}{new}{text[place + len(old) :]}",))


def _of_base(kind: type, method: ast.FunctionDef) -> dict[str, str | None]:
    """Parameters of Keras' own method, without `self`, with their defaults as text; None for those without one."""
    theirs = next(
        (vars(one)[method.name] for one in kind.__mro__ if is_keras_class(one) and method.name in vars(one)), None
    )
    try:
        named = list(inspect.signature(inspect.unwrap(theirs)).parameters.values()) if theirs is not None else []
    except (TypeError, ValueError):
        return {}
    plain = [one for one in named[1:] if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return {one.name: None if one.default is one.empty else repr(one.default) for one in plain}


def _lacking(kind: type, method: ast.FunctionDef) -> dict[str, str | None]:
    """Those of them that the user's method has not."""
    theirs, given = _of_base(kind, method), parameters(method)
    own = {*given, *(one.arg for one in method.args.kwonlyargs)}
    by_place = not set(given) <= set(theirs)  # the user's have other names
    return {
        name: default for place, (name, default) in enumerate(theirs.items())
        if name not in own and not (by_place and place < len(given))
    }  # fmt: skip


def _parameter(named: tuple[str, str | None]) -> str:
    return named[0] if named[1] is None else f"{named[0]}={named[1]}"


def _with_all(source: Source, file: str, method: ast.FunctionDef, written: str) -> Edit | None:
    """A method's head with these parameters behind `self`, for those that it has."""
    last, column = _closing(source, method)
    if last == 0:
        return None
    first = source.lines[method.lineno - 1]
    opened = first.index("(", method.col_offset)
    line = f"{first[:opened]}(self, {written}{source.lines[last - 1][column:]}"
    return Edit(file, method.lineno, last, (line,))


def _with_parameters(source: Source, file: str, method: ast.FunctionDef, added: str) -> Edit | None:
    """The lines of a method's head, with more parameters behind the last."""
    last_line, column = _closing(source, method)
    if last_line == 0:
        return None
    text = source.lines[last_line - 1]
    before = text[:column].rstrip()
    comma = (
        ""
        if before.endswith(("(", ",")) or (not before and source.lines[last_line - 2].rstrip().endswith(","))
        else ", "
    )
    space = " " if before.endswith(",") else ""
    line = f"{before or text[:column]}{comma}{space}{added}{text[column:]}"
    return Edit(file, last_line, last_line, (line,))


def _closing(source: Source, method: ast.FunctionDef) -> tuple[int, int]:
    """Line and column of the parenthesis that closes a method's parameters; (0, 0) where it is not found."""
    depth = 0
    for number in range(method.lineno, method.body[0].lineno + 1):
        text = source.lines[number - 1]
        for column, sign in enumerate(text):
            depth += (sign in "([{") - (sign in ")]}")
            if sign == "#":
                break
            if sign == ")" and depth == 0:
                return number, column
    return 0, 0


def _handed_on(
    situation: Situation, kind: type, file: str, source: Source, method: ast.FunctionDef, given: str
) -> Explanation | None:
    """`__init__` or `compile` that does not take what Keras' own takes: `**kwargs`, handed on to it."""
    asks = [
        one for one in calls(method)
        if isinstance(one.func, ast.Attribute) and one.func.attr == method.name
        and isinstance(one.func.value, ast.Call) and dotted(one.func.value.func) == "super"
    ]  # fmt: skip
    head = _with_parameters(source, file, method, "**kwargs")
    named = {one.arg for ask in asks for one in ask.keywords}
    if len(asks) != 1 or head is None or method.args.kwarg is not None or {None, given} & named:
        return None
    taken = parameters(method)
    kept = [one for one in method.body if _keeps(one, "optimizer")] if not asks[0].args and not named else []
    handed = "optimizer=optimizer, **kwargs" if kept else "**kwargs"
    first, last, lines = source.kept_lines({asks[0]: source.with_argument(asks[0], handed)})
    edits = [head, Edit(file, first, last, lines), *(Edit(file, *source.span(one), ()) for one in kept)]
    if max(one.last for one in edits) - head.first > _FARTHEST or any(one.first <= head.last for one in edits[1:]):
        return None
    takes = f"{kind.__name__}.{method.name} takes {listed(taken) + ' only' if taken else 'nothing'}"
    if not _asked_by_keras(situation) and situation.last is not None:
        cause = f"{takes}, and line {situation.last.line} gives it {given}: hand on to Keras' own what is not yours."
    elif method.name == "__init__":
        cause = (
            f"{takes}, and a model that is loaded gives it what get_config gave: Keras' name, dtype and trainable, too."
        )
    else:
        return None
    return Explanation(RULE, file, method.lineno, cause, together(edits, source.lines))


def _keeps(statement: ast.stmt, name: str) -> bool:
    """Whether it is `self.optimizer = optimizer`, which Keras' compile does as well."""
    return isinstance(statement, ast.Assign) and ast.unparse(statement) == f"self.{name} = {name}"


def _unpacked(
    kind: type, file: str, source: Source, method: ast.FunctionDef, name: str, why: str
) -> Explanation | None:
    """A method that wants as many arguments as one argument has parts."""
    wanted = parameters(method)
    named = [one for one in wanted if one not in _FLAGS]
    if len(named) < 2 or method.args.defaults or name in wanted:
        return None
    number, column = _closing(source, method)
    first = method.body[0]
    if number != method.lineno or first.lineno == method.lineno:
        return None
    text = source.lines[number - 1]
    opened = text.index("(", method.col_offset)
    flags = "".join(f", {one}=None" for one in wanted if one in _FLAGS)
    blanks = indent_of(source.lines[first.lineno - 1])
    parts = ", ".join(named)
    cause = f"{kind.__name__}.{method.name} wants {listed(named)}. {why} ({parts})."
    lines = (f"{text[:opened]}(self, {name}{flags}{text[column:]}", f"{blanks}{parts} = {name}")
    return Explanation(RULE, file, method.lineno, cause, Edit(file, number, number, lines))


def _of_call(situation: Situation, missing: str | None) -> Explanation | None:
    """`call` of a layer, whose arguments Keras binds before it calls it: its frames are cut from the traceback."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    for asked in calls(statement):
        kind = _called(spot, asked)
        found = _definition(situation, kind, "call") if kind is not None else None
        if kind is None or found is None:
            continue
        file, source, method = found
        if missing is None:
            return (
                None
                if own_methods.takes_self(method)
                else own_methods.without_self(kind.__name__, file, source, method)
            )
        if missing in _FLAGS:
            cause = f"{kind.__name__}.call wants {missing}, which Keras gives only where a call names it."
            return Explanation(
                RULE, file, method.lineno, cause, _line(source, file, method, missing, f"{missing}=None")
            )
        wanted = [one for one in parameters(method) if one not in _FLAGS]
        given = asked.args[0] if len(asked.args) == 1 else None
        parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else lookup(given, spot) if given else None
        if isinstance(parts, (list, tuple)) and len(parts) == len(wanted):
            return _unpacked(kind, file, source, method, "inputs", f"It gets one list of {len(parts)}:")
    return None


def _called(spot: Spot, asked: ast.Call) -> type | None:
    """The user's class of what a call calls: `Add()(x)`, `self.add(x)`."""
    made = isinstance(asked.func, ast.Call)
    found = lookup(asked.func.func if isinstance(asked.func, ast.Call) else asked.func, spot)
    kind = found if made and isinstance(found, type) else type(found)
    return kind if extends_keras(kind) else None
