"""A part of a dataset's element that lands in a parameter with a default: `map(load)` of `(path, label)` elements.

`Dataset.map`, `interleave` and the like pass each component of a tuple by its place. A function `load(path, size=32)`
gets the label as its size, without an error if it is a number too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.as_python import element_spec
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Query, Situation
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, names, parameters, read

RULE = "structure"
METHODS = ("map", "flat_map", "interleave", "filter")
_METHOD = re.compile(r"Dataset_(flat_map|interleave|map|filter)_")
_ARGUMENT = re.compile(r"\bargs_(\d+)(?:_\d+)*: (\w*)")
_DATA = re.compile(
    r"label|lbl|target|^ys?$|_y$|mask|weight|class|cls|name|path|file|text|word|image|img|feature|box|ind(?:ex|ices)|idx"
    r"|^i$|^id$|_id$|score|value|data|context|token|length|count",
    re.I,
)
"""Names of parameters that a part of an element is meant for, also where they have a default."""
_OWN = re.compile(r"^(?:num|n)_|(?:^|_)(?:size|samples|batch|seed|steps|epochs)$", re.I)
"""Names of parameters that say how much is made: as the first one with a default they are not for an element."""
_CLASS = "Dataset_{}_class"
"""How a trace is named whose function is a class."""
_KINDS = {"str": ("string",), "bool": ("bool",), "int": ("int", "uint"), "float": ("float", "bfloat", "half")}


@dataclass(frozen=True)
class Landing:
    """A function that a dataset's method calls with more than its data.

    Attributes:
      file: The user's file.
      source: Its text.
      call: The call of the method.
      given: What it is given: the function.
      function: Its definition.
      method: "map", "interleave", ...
      name: The first parameter with a default that gets a part of the element, and its place.
      place: That parameter's place.
      default: Its default, as it is written.
      parts: How many parts an element has.
      other: Whether that part is of another kind than the default: then it cannot be meant.
    """

    file: str
    source: Source
    call: ast.Call
    given: ast.expr
    function: Function
    method: str
    name: str
    place: int
    default: str
    parts: int
    other: bool

    def cause(self) -> str:
        """What happens, in two sentences."""
        called = "the lambda" if isinstance(self.given, ast.Lambda) else dotted(self.given).rpartition(".")[2]
        if not self.place:
            return f"Dataset.{self.method} calls {called} with the element, which lands in {self.name}={self.default}."
        first = f"the {('second', 'third', 'fourth', 'fifth')[self.place - 1]} one" if self.place < 5 else "one"
        return (
            f"Dataset.{self.method} calls {called} with {self.parts} arguments, one for each component of the "
            f"dataset's tuples: {first} lands in {self.name}={self.default}."
        )

    def edit(self) -> Edit | None:
        """The call with a function that leaves the other parts out; beside Keras' `fit` it hands them on."""
        listed = parameters(self.function)[: self.place]
        kept = ", ".join(listed)
        if isinstance(self.given, ast.Lambda):
            defaults = self.given.args.defaults
            named = parameters(self.given)[self.place :]
            texts = [self.source.text(one) for one in defaults[len(defaults) - len(named) :]]
            rest = ", ".join(f"{name}={text}" for name, text in zip(named, texts))
            new = f"lambda {kept}, *others, {rest}: {self.source.text(self.given.body)}"
        else:
            made = f"{self.source.text(self.given)}({kept})"
            if any(
                isinstance(one, ast.Call) and dotted(one.func).endswith(".fit") for one in ast.walk(self.source.tree)
            ):
                whole = {"map": f"({made}, *others)", "filter": made}
                made = whole.get(self.method, f"{made}.map(lambda *row: (*row, *others))") if self.place else made
            new = f"lambda {kept}, *others: {made}" if kept else f"lambda *others: {made}"
        found = self.source.replaced({self.given: new})
        return edit_of(self.file, found)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, where the line that failed reads such a parameter, or its part is of another kind."""
    for spot in situation.spots:
        function = spot.function
        if spot.by != "tf.data" or function is None:
            continue
        spec = element_spec(situation, spot)
        kinds = [str(getattr(one, "dtype", None) and one.dtype.name) for one in spec] if type(spec) is tuple else []
        for one in _of(spot.file, spot.source, function, "", kinds):
            inside = situation.spots[situation.spots.index(spot) :]
            read_there = {name for part in inside for name in _line_names(part.source, part.line)}
            if one.name in read_there or one.other:
                return _explanation(one)
    return next((_explanation(one) for one in landings(situation.rows) if one.other), None)


def at_last(situation: Situation) -> Explanation | None:
    """The same for what nothing else explains: an op of the dataset failed as it ran."""
    if not type(situation.error).__module__.startswith("tensorflow."):
        return None
    return next((_explanation(one, likely=True) for one in landings(situation.rows)), None)


def _line_names(source: Source, line: int) -> list[str]:
    statement = source.statement(line)
    if statement is None:
        return []
    first, last = source.span(statement)
    tree = [one for one in ast.walk(statement) if isinstance(one, ast.expr) and first <= one.lineno <= last]
    return [name for one in tree for name in names(one)]


def _explanation(one: Landing, likely: bool = False) -> Explanation:
    edit = one.edit()
    listed = ", ".join(parameters(one.function)[: one.place])
    advice = "" if edit else f"Give it a lambda that passes {listed} alone."
    return Explanation(RULE, one.file, one.call.lineno, one.cause(), edit, advice, "likely" if likely else "measured")


def landings(rows: Query, text: Callable[[str], Source] = read) -> Iterator[Landing]:
    """Those of the functions that a recording saw traced for a dataset, once each.

    Args:
      rows: Asks the recording.
      text: Gives a file of the user's.
    """
    seen: set[tuple[str, int]] = set()
    classes: set[str] = set()  # methods whose calls have been looked at: each call of one is traced
    for file, line, name, signature in rows(
        "SELECT f.file, f.line, t.name, t.signature FROM trace t JOIN function f ON f.id = t.function "
        "WHERE f.kind = 'tf.data' AND f.origin = 'user' ORDER BY t.id"
    ):
        method = _METHOD.search(name or "")
        if method is not None and file is None and _CLASS.format(method[1]) in name and method[1] not in classes:
            classes.add(method[1])
            yield from _of_classes(rows, text, method[1])
        if file is None or line is None or (file, line) in seen or method is None:
            continue
        seen.add((file, line))
        source = text(file)
        found = [
            one for one in ast.walk(source.tree)
            if isinstance(one, (ast.FunctionDef, ast.Lambda)) and line in (one.lineno, _decorated(one))
        ]  # fmt: skip
        kinds: dict[int, str] = {}
        for place, kind in _ARGUMENT.findall(signature or ""):
            kinds.setdefault(int(place), kind)
        for function in found:
            yield from _of(file, source, function, method[1], [kinds.get(at, "") for at in range(len(kinds))])


def _of_classes(rows: Query, text: Callable[[str], Source], method: str) -> Iterator[Landing]:
    """A class in the place of a function, `interleave(Made)`, whose first parameter is not for an element."""
    for (file,) in rows("SELECT file FROM source"):
        source = text(file)
        for call in ast.walk(source.tree):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != method:
                continue
            made = [
                part for one in ast.walk(source.tree)
                if isinstance(one, ast.ClassDef) and call.args and one.name == dotted(call.args[0])
                for part in one.body if isinstance(part, ast.FunctionDef) and part.name in ("__new__", "__init__")
            ]  # fmt: skip
            if len(made) == 1:
                yield from _first(file, source, made[0], call)


def _first(file: str, source: Source, function: Function, call: ast.Call) -> Iterator[Landing]:
    """Where the element lands in the first parameter, which has a default and says how much is made."""
    listed, defaults = [one for one in parameters(function) if one not in ("cls", "self")], function.args.defaults
    if not listed or len(defaults) != len(listed) or not _OWN.search(listed[0]):
        return
    if isinstance(defaults[0], ast.Constant) and defaults[0].value is not None and isinstance(call.func, ast.Attribute):
        yield Landing(
            file, source, call, call.args[0], function, call.func.attr, listed[0], 0, source.text(defaults[0]), 1, False
        )


def _decorated(function: Function) -> int:
    return min([function.lineno, *(int(one.lineno) for one in getattr(function, "decorator_list", ()))])


def _of(file: str, source: Source, function: Function, method: str, kinds: list[str]) -> Iterator[Landing]:
    listed, defaults = parameters(function), function.args.defaults
    first = len(listed) - len(defaults)
    given = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call) and _gives(one, function, method)]
    if len(given) == 1 and kinds and not first:
        yield from _first(file, source, function, given[0])
    for place in range(max(first, 1), min(len(kinds), len(listed))):
        default = defaults[place - first]
        if (isinstance(default, ast.Constant) and default.value is None) or _DATA.search(listed[place]):
            continue
        calls = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call) and _gives(one, function, method)]
        if len(calls) == 1:
            other = _is_other(default, kinds[place])
            called = calls[0].func.attr if isinstance(calls[0].func, ast.Attribute) else "map"
            yield Landing(
                file, source, calls[0], calls[0].args[0], function, called, listed[place], place, source.text(default),
                len(kinds), other,
            )  # fmt: skip
        return


def _gives(call: ast.Call, function: Function, method: str) -> bool:
    """Whether a call is of a dataset's method, with that function."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in METHODS or not call.args:
        return False
    if method and call.func.attr != method:
        return False
    given = call.args[0]
    if isinstance(function, ast.Lambda):
        return given is function
    name = given.attr if isinstance(given, ast.Attribute) else dotted(given)
    return name == getattr(function, "name", None)


def _is_other(default: ast.expr, kind: str) -> bool:
    """Whether a part's dtype cannot stand for a default's value."""
    if isinstance(default, ast.Constant) and kind:
        wanted = _KINDS.get(type(default.value).__name__, ())
        return bool(wanted) and not kind.startswith(wanted) and not (
            isinstance(default.value, float) and kind.startswith(("int", "uint"))
        )  # fmt: skip
    return isinstance(default, (ast.Tuple, ast.List)) and kind == "string"
