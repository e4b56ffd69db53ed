"""How a file of its own gets at a recorded body: by an import, or with a copy of its source and of what that reads."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import json
import os
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.places import file_label
from pyfunc_debug.program import syntax

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_GLOBALS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
_NODE = re.compile(r"\b(?:py_function|numpy_function|py_func)\b")
_USUAL = {"np": "import numpy as np", "tf": "import tensorflow as tf"}
_LONGEST = 2000


@dataclass(frozen=True)
class Excerpt:
    """How to call a body from a file of its own.

    Attributes:
      lines: What stands at the top of the file: an import, or statements copied from the source.
      name: The expression that is called.
      copied: Why it is a copy; empty where it is imported.
      missing: What nobody can write but the user: a sentence each.
      values: Names whose values were taken from the running program.
      bound: Parameters that a functools.partial fills, in their order, as Python text; None for those that are inputs.
        Empty where there is no partial.
    """

    lines: tuple[str, ...]
    name: str
    copied: str
    missing: tuple[str, ...]
    values: tuple[str, ...]
    bound: Mapping[str, str | None] = field(default_factory=dict)

    def called(self, inputs: Sequence[str]) -> str:
        """The call of the body on its inputs."""
        if not self.bound:
            return f"{self.name}({', '.join(inputs)})"
        rest, given, by_name = iter(inputs), [], False
        for name, text in self.bound.items():
            by_name = by_name or text is not None
            value = next(rest) if text is None else text
            given.append(f"{name}={value}" if by_name else value)
        return f"{self.name}({', '.join([*given, *rest])})"


def excerpt(file: str, line: int, texts: Mapping[str, str], inputs: Sequence[str], known: Mapping[str, Any]) -> Excerpt:
    """Finds a body's source, and what it takes to run it elsewhere.

    Args:
      file: The body's file.
      line: The line it begins on.
      texts: Source texts of the program by file, that of `file` included.
      inputs: Names of the arguments that it is called with.
      known: Names that the body sees in the running program, with their values; empty where it is not there.

    Raises:
      NotKeptError: its source is not there, or several lambdas of a line may be it.
    """
    text = texts.get(file)
    if text is None:
        raise NotKeptError(f"the source of {file_label(file)} is not in the recording")
    module = _Module(text)
    body = module.definition(line, len(inputs))
    around = module.around(body)
    name = getattr(body, "name", "")
    decorated = any(_NODE.search(ast.unparse(one)) for one in getattr(body, "decorator_list", ()))
    owner = around[0] if around and isinstance(around[0], ast.ClassDef) else None
    plain = not any(isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for one in around)
    pieces = _Pieces(module, around, texts, known)
    if owner is not None and not _is_static(body):
        imported = _importable(file, module) if len(around) == 1 else None
        return _method(owner.name, body, imported, pieces, inputs, known)
    bound, missing = _bound_parameters(body, inputs, known)
    if not bound and not missing and _may_be_bound(body, inputs, texts):
        missing = (f"the program makes a functools.partial of {name}: write what it fills in into the call",)
    imported = _importable(file, module) if plain and name and not decorated else None
    if imported is not None:
        path = [one.name for one in reversed(around)] + [name]
        return Excerpt((imported[0], f"{imported[1]} import {path[0]}"), ".".join(path), "", missing, (), bound)
    why = (
        "it is a lambda" if not name else "it is decorated as a node" if decorated
        else "it is defined inside another function" if not plain
        else "it is in a cell" if not _dotted(file) else "importing its file would run the program"
    )  # fmt: skip
    source = pieces.source(body, decorated)
    lines, values = (*pieces.lines(), *source), tuple(pieces.values)
    return Excerpt(lines, name or _lambda_name(body), why, (*missing, *pieces.missing()), values, bound)


def _method(
    owner: str, body: _Definition, imported: tuple[str, str] | None, pieces: _Pieces, inputs: Sequence[str],
    known: Mapping[str, Any],
) -> Excerpt:  # fmt: skip
    """A body that belongs to an object: one with the same attributes, where they are plain values."""
    name = getattr(body, "name", "__call__")
    called = "owner" if name == "__call__" else f"owner.{name}"
    first = body.args.posonlyargs + body.args.args
    thing = known.get(first[0].arg) if first else None
    made = _made_again(owner, thing)
    if made is None:
        found = () if imported is None else (imported[0], f"{imported[1]} import {owner}")
        return Excerpt(
            (*found, f"owner = None  # the object of `{owner}` that the program had"), called, "",
            (f"the body belongs to an object of `{owner}`, which is not in the recording: make one in the line "
             "`owner =`",), (),
        )  # fmt: skip
    bound, missing = _bound_parameters(body, [first[0].arg, *inputs], known)
    bound = {one: text for one, text in bound.items() if one != first[0].arg}
    if imported is not None:
        return Excerpt((imported[0], f"{imported[1]} import {owner}", *made), called, "", missing, ("owner",), bound)
    pieces.gather(owner)
    lines, missing, values = pieces.lines(), (*missing, *pieces.missing()), (*pieces.values, "owner")
    return Excerpt((*lines, *made), called, "its class cannot be imported", missing, values, bound)


def _made_again(owner: str, thing: Any) -> list[str] | None:
    """Lines that make an object with a given one's attributes; None where that takes more than plain values."""
    kind = type(thing)
    if (
        kind.__name__ != owner
        or any("__new__" in vars(one) for one in kind.__mro__[:-1])
        or any("__slots__" in vars(one) for one in kind.__mro__[:-1])
    ):
        return None
    texts = {name: _as_text(value) for name, value in vars(thing).items()}
    if any(text is None for text in texts.values()):
        return None
    held = ", ".join(f"{name!r}: {text}" for name, text in texts.items())
    return [f"owner = object.__new__({owner})", *([f"vars(owner).update({{{held}}})"] if held else [])]


def _bound_parameters(
    body: _Definition, inputs: Sequence[str], known: Mapping[str, Any]
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Parameters that a functools.partial fills, inputs in between; and what is wrong if they are not known."""
    positional = [*body.args.posonlyargs, *body.args.args]
    written: dict[str, ast.expr | None] = dict.fromkeys(one.arg for one in (*positional, *body.args.kwonlyargs))
    written.update(
        zip([one.arg for one in positional][len(positional) - len(body.args.defaults) :], body.args.defaults)
    )
    written.update(zip([one.arg for one in body.args.kwonlyargs], body.args.kw_defaults))
    bound: dict[str, str | None] = {}
    for name, default in written.items():
        text = None if name in inputs else _as_text(known.get(name)) if name in known else None
        if text is not None and (default is None or ast.unparse(default) not in (text, name)):
            bound[name] = text
    asked = {name for name, default in written.items() if default is None} - {*inputs, *bound}
    if not bound or asked:
        return {}, _too_many(body, len(inputs))
    return {name: bound.get(name) for name in written if name in inputs or name in bound}, ()


class _Module:
    """A source text and its tree; lines for IPython alone are left out."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        try:
            self.tree = syntax.parse(text)
        except (SyntaxError, ValueError):
            lines = ["" if re.match(r"\s*[%!?]", line) else line for line in lines]
            try:
                self.tree = syntax.parse("\n".join(lines))
            except (SyntaxError, ValueError):
                self.tree = ast.Module([], [])
        self.lines = lines
        self._parents = {id(child): node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def definition(self, line: int, given: int) -> _Definition:
        """The function that begins on a line; of several lambdas the only one with this number of arguments."""
        lambdas = []
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if line in (node.lineno, *(one.lineno for one in node.decorator_list)):
                    return node
            elif isinstance(node, ast.Lambda) and node.lineno == line:
                lambdas.append(node)
        fitting = [one for one in lambdas if not _too_many(one, given)]
        if len({ast.dump(one) for one in fitting}) != 1:
            several = len(fitting) > 1
            raise NotKeptError(
                f"line {line} has several lambdas: which of them is the body is not recorded. Give it a name with def"
                if several else f"the body is not found in its source, line {line}: was the file changed meanwhile?"
            )  # fmt: skip
        return fitting[0]

    def around(self, node: ast.AST) -> list[Any]:
        """Functions and classes around a node, innermost first."""
        found = []
        parent = self._parents.get(id(node))
        while parent is not None:
            if isinstance(parent, _SCOPES):
                found.append(parent)
            parent = self._parents.get(id(parent))
        return found

    def text(self, node: ast.AST) -> list[str]:
        """The lines of a statement with its decorators, moved to the left."""
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
        return textwrap.dedent("\n".join(self.lines[first - 1 : node.end_lineno])).splitlines()  # type: ignore[attr-defined]


class _Pieces:
    """The statements that a body needs, gathered from the sources and from the running program."""

    def __init__(
        self, module: _Module, around: Sequence[Any], texts: Mapping[str, str], known: Mapping[str, Any]
    ) -> None:
        self._known = dict(known)
        self._modules = [module, *(_Module(text) for text in texts.values() if text != "\n".join(module.lines))]
        # What encloses the body comes first: there, only what means the same elsewhere.
        self._scopes: list[tuple[_Module, list[ast.stmt]]] = [
            (module, [one for one in scope.body if _is_movable(one)])
            for scope in around if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]  # fmt: skip
        own = isinstance(module.tree, ast.Module)
        self._scopes += [(one, [stmt for stmt in one.tree.body if not _is_guard(stmt)]) for one in self._modules if own]
        self._taken: dict[int, tuple[int, int, list[str]]] = {}
        self._seen: set[str] = set()
        self._missing: list[str] = []
        self._imports: list[str] = []
        self.values: dict[str, str] = {}

    def source(self, body: _Definition, decorated: bool) -> list[str]:
        """The body's own lines, once what it reads is gathered."""
        module = self._modules[0]
        if isinstance(body, ast.Lambda):
            lines = f"{_lambda_name(body)} = {ast.unparse(body)}".splitlines()
        elif decorated:
            bare = [one for one in body.decorator_list if not _NODE.search(ast.unparse(one))]
            body.decorator_list = bare
            lines = ast.unparse(body).splitlines()
        else:
            lines = module.text(body)
        self._seen.add(getattr(body, "name", None) or _lambda_name(body))
        self.gather("\n".join(lines))
        return ["", *lines] if not isinstance(body, ast.Lambda) else lines

    def gather(self, text: str) -> None:
        """Gathers what a piece of source reads."""
        for name in _reads(text):
            if name not in self._seen and not hasattr(builtins, name):
                self._seen.add(name)
                self._resolve(name)

    def _resolve(self, name: str) -> None:
        """Looks a name up: a plain value of the program, a statement of the sources, or what the program imported."""
        value = self._known.get(name)
        if name in self._known and (text := _as_text(value)) is not None:
            self.values[name] = f"{name} = {text}"
            return
        for order, (module, statements) in enumerate(self._scopes):
            found = [one for one in statements if name in _binds(one)]
            for one in found:
                if isinstance(one, (ast.Import, ast.ImportFrom)):
                    self._imports.append(_only(one, name))
                elif id(one) not in self._taken:
                    lines = module.text(one)
                    self._taken[id(one)] = (-order, one.lineno, lines)
                    self._seen |= _binds(one)
                    self.gather("\n".join(lines))
            if found:
                return
        if (line := _import_of(name, value) or _USUAL.get(name)) is not None:
            self._imports.append(line)
        elif (written := self._written(name, value)) is not None:
            self._taken[id(value)] = (1, 0, written)
            self.gather("\n".join(written))
        else:
            self._missing.append(name)

    def _written(self, name: str, value: Any) -> list[str] | None:
        """The source of a function or class of the running program: of a closure, or of another cell."""
        code = getattr(value, "__code__", None)
        own = dict(zip(code.co_freevars, value.__closure__ or ())) if code is not None else {}
        try:
            held = {one: cell.cell_contents for one, cell in own.items()}
            lines = [line.rstrip("\n") for line in inspect.findsource(value)[0]]
            if code is None:
                return textwrap.dedent(inspect.getsource(value)).splitlines()
            module = _Module("\n".join(lines))
            found = module.definition(code.co_firstlineno, code.co_argcount)
        except (OSError, TypeError, ValueError, NotKeptError):
            return None
        if any(self._known.get(one, inner) is not inner for one, inner in held.items()):
            return None  # two closures, one name, two meanings
        self._known.update(held)
        if isinstance(found, ast.Lambda):
            return f"{name} = {ast.unparse(found)}".splitlines()
        return [*module.text(found), *([f"{name} = {found.name}"] if found.name != name else [])]

    def lines(self) -> list[str]:
        """Imports first, then statements in their order, then values and what is missing."""
        texts = [lines for _, _, lines in sorted(self._taken.values(), key=lambda one: one[:2])]
        imports = [one for one in texts if one[0].startswith(("import ", "from "))]
        others = [one for one in texts if one not in imports]
        found = [*dict.fromkeys(self._imports), *(line for one in imports for line in one)]
        for one in others:
            found += ["", *one] if len(one) > 1 else one
        return [
            *found,
            *self.values.values(),
            *(f"{name} = None  # the body reads it: the value that the program had" for name in self._missing),
        ]

    def missing(self) -> list[str]:
        """What the body reads and nobody found."""
        return [
            f"the body reads `{name}`, whose value is not in the recording: write it in its line"
            for name in self._missing
        ]


def _may_be_bound(body: _Definition, inputs: Sequence[str], texts: Mapping[str, str]) -> bool:
    """Whether a partial may fill parameters that have defaults."""
    name = getattr(body, "name", None)
    names = {one.arg for one in (*body.args.posonlyargs, *body.args.args, *body.args.kwonlyargs)}
    return bool(names - {*inputs}) and any(re.search(rf"\bpartial\(\s*{name}\b", text) for text in texts.values())


def _lambda_name(body: ast.AST) -> str:
    return "body_" if "body" in _reads(ast.unparse(body)) else "body"


def _as_text(value: Any, depth: int = 3) -> str | None:
    """A plain value as Python text; None for anything else."""
    if value is None or type(value) in (bool, int, str, bytes):
        text = repr(value)
    elif type(value) is float:
        text = repr(value) if value == value and abs(value) != float("inf") else f'float("{value}")'
    elif type(value) in (list, tuple, dict) and depth:
        items = [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
        if any(_as_text(one, depth - 1) is None for one in items) or "inf" in repr(value) or "nan" in repr(value):
            return None
        text = repr(value)
    else:
        return None
    return text if len(text) <= _LONGEST else None


def _only(statement: ast.Import | ast.ImportFrom, name: str) -> str:
    """The part of an import that gives one name its meaning."""
    alias = next(one for one in statement.names if (one.asname or one.name).partition(".")[0] == name)
    if isinstance(statement, ast.Import):
        return ast.unparse(ast.Import([alias]))
    return ast.unparse(ast.ImportFrom(statement.module, [alias], statement.level))


def _import_of(name: str, value: Any) -> str | None:
    """The import that gives a value of the running program this name."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
    module, real = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if module in (None, "__main__") or getattr(sys.modules.get(str(module)), str(real), None) is not value:
        return None
    return f"from {module} import {real}" + ("" if real == name else f" as {name}")


def importable_module(file: str, text: str) -> tuple[str, str] | None:
    """The folder to import a file from, and its name there; None where that is a cell, or does more than define things.

    Args:
      file: The file.
      text: Its source.
    """
    dotted = _dotted(file)
    return None if any(_does_work(one) for one in _Module(text).tree.body) else dotted


def _importable(file: str, module: _Module) -> tuple[str, str] | None:
    """Lines up to `from module`; see `importable_module`."""
    place = importable_module(file, "\n".join(module.lines))
    return None if place is None else (f"sys.path.insert(0, {json.dumps(place[0])})", f"from {place[1]}")


def _does_work(statement: ast.stmt) -> bool:
    """Whether a statement at the top of a file is there for what it does: a call, a loop."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return isinstance(statement, (ast.For, ast.While, ast.With))


def _dotted(file: str) -> tuple[str, str] | None:
    """The folder to import a file from, and its name there; None for cells and for names that no module can have."""
    folder, base = os.path.split(os.path.abspath(file))
    parts = [base.removesuffix(".py")]
    if file.startswith("<") or not base.endswith(".py") or os.path.basename(folder).startswith("ipykernel_"):
        return None
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, part = os.path.split(folder)
        parts.insert(0, part)
    return (folder, ".".join(parts)) if all(part.isidentifier() for part in parts) else None


def _is_static(body: _Definition) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in getattr(body, "decorator_list", ()))


def _too_many(body: _Definition, given: int) -> tuple[str, ...]:
    """What is wrong with this number of arguments: the body was a partial, say."""
    required = len(body.args.posonlyargs) + len(body.args.args) - len(body.args.defaults)
    required += sum(one is None for one in body.args.kw_defaults)
    most = len(body.args.posonlyargs) + len(body.args.args)
    if required <= given and (given <= most or body.args.vararg is not None):
        return ()
    return (f"the body takes more than the {given} recorded inputs (functools.partial): write the rest into the call",)


def _is_movable(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _binds(statement: ast.stmt) -> set[str]:
    """Names that a statement gives a meaning to, at its own level."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((one.asname or one.name).partition(".")[0] for one in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        waiting += ast.iter_child_nodes(node)
    return found


def _reads(text: str) -> list[str]:
    """Global names that a piece of source reads, in order."""
    try:
        code = compile(text, "<excerpt>", "exec")
    except (SyntaxError, ValueError):
        return []
    return list(dict.fromkeys(_loads(code)))


def _loads(code: types.CodeType) -> Iterator[str]:
    instructions = list(dis.get_instructions(code))
    own = {one.argval for one in instructions if one.opname == "STORE_NAME"} if code.co_name != "<module>" else set()
    for one in instructions:
        if one.opname in _GLOBALS and one.argval not in own and not str(one.argval).startswith("__"):
            yield str(one.argval)
    inner: Iterable[Any] = code.co_consts
    for constant in inner:
        if isinstance(constant, types.CodeType):
            yield from _loads(constant)
