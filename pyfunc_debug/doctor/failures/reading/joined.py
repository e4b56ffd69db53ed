"""The files of a program, or the cells of a notebook, as one text: causes look for what a line needs in one file.

A loss in losses.py, the model in a cell above, the pipeline in data.py: the line that failed stands beside none of
them. The joined text has all of them, in a file of a name that only this module knows; what is found there is said and
pasted in the user's own files and lines. Its calls may be read in another form as well (`Rewrite`): the text stays.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Any, cast

from pyfunc_debug.doctor.failures.pastes.added_imports import with_lines_above
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, applied
from pyfunc_debug.doctor.failures.reading.situation import Query, Situation, lines_of, spots_of, with_places
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, parsed, put, read
from pyfunc_debug.doctor.failures.reading.text_parts import MOST_LINES, NAME, Parts, all_names, used
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.places import cell_number, cells_here, source_line
from pyfunc_debug.program.file_lines import current_lines
from pyfunc_debug.program.frames import is_installed, is_user
from pyfunc_debug.program.imported_files import is_module, names_of
from pyfunc_debug.program.syntax import copied

Rewrite = Callable[[Source, Situation], Situation]
"""Changes the tree of the joined source, whose nodes keep their places; gives the situation that belongs to it."""
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MOST_FILES = 40
_ROUNDS = 4
_MOST_EDITS = 3
_WIDEST = 60
"""Of the edits in several files that are said in words: how many, and how long a line."""


class Joined:
    """A failure with the user's files as one.

    Args:
      situation: The failure.
      files: The user's files in the order in which they ran, each with the names and values of its module.
      imports: The files that each of them imports.
      failed: The files that have a line of the failure. Of the others only what is used is read: what else stands
        there, in a large project, is about something else.
    """

    def __init__(
        self,
        situation: Situation,
        files: Mapping[str, Mapping[str, Any]],
        imports: Mapping[str, Sequence[str]],
        failed: Collection[str],
    ) -> None:
        self._parts, self._failed = Parts(), failed
        for file in files:
            own = read(file)
            if own.tree.body:  # one that is empty or no Python would make nothing of all of them
                self._parts.add(file, own.lines)
        above = self._parts.above
        self._modules = {one.file: files[one.file] for one in self._parts.files}
        every = list(reversed(self._modules.values()))
        spots = tuple(
            dataclasses.replace(
                spot, file=NAME, line=above[spot.file] + spot.line, module=_merged([spot.module, *every]),
                own=_merged([spot.module, *(files[one] for one in imports[spot.file] if one in files)]),
            ) if spot.file in above else spot
            for spot in situation.spots
        )  # fmt: skip
        self._situation = dataclasses.replace(
            situation,
            spots=spots,
            rows=self._rows(situation.rows),
        )
        self.several = len(self._parts.files) > 1
        """Whether there is more than one file."""

    @functools.cached_property
    def _tree(self) -> ast.Module:
        """All that is used, with `losses.focal` as `focal`; the imports of that are nothing: here it has its name."""
        bodies = self._bodies()
        taken = {file: _bound(body) for file, body in bodies.items()}
        tree = ast.Module([], [])
        for part in self._parts.files:
            own = _OwnNames(self._modules, part.file, taken)
            for statement in bodies[part.file]:
                gone = self._is_import(statement, part.file)
                made = ast.copy_location(ast.Pass(), statement) if gone else own.visit(copied(statement))
                tree.body.append(ast.increment_lineno(made, part.above))
        return tree

    def _bodies(self) -> dict[str, list[ast.stmt]]:
        """The statements of each file: all of those that failed and of cells, and of others what is used."""
        found: dict[str, list[ast.stmt]] = {}
        wanted: set[str] = set()
        for _ in range(_ROUNDS):  # what a file uses may stand in one below it
            before = len(wanted)
            for file in (part.file for part in reversed(self._parts.files)):
                if file in found and self._is_whole(file):
                    continue
                tree = read(file).tree
                found[file] = tree.body if self._is_whole(file) else list(used(tree, wanted))
                wanted.update(name for one in found[file] for name in all_names(one))
            if len(wanted) == before:
                break
        return {file: sorted(body, key=lambda one: one.lineno) for file, body in found.items()}

    def _is_whole(self, file: str) -> bool:
        return file in self._failed or cell_number(file) is not None

    def _is_import(self, statement: ast.stmt, file: str) -> bool:
        """Whether it imports names of another of the files, as they are called there."""
        if not isinstance(statement, ast.ImportFrom) or any(
            one.asname not in (None, one.name) for one in statement.names
        ):
            return False
        home = sys.modules.get(_home(statement, self._modules[file]))
        return is_module(home) and names_of(home).get("__file__") in self._modules

    @contextmanager
    def read(self, *rewrites: Rewrite) -> Iterator[Situation]:
        """The failure as it is read while the files are one, with their calls in another form."""
        source, found = Source(self._parts.lines, self._parts.above, copied(self._tree)), self._situation
        for rewrite in rewrites:
            with put(NAME, source):
                found = rewrite(source, self._anew(found))
            source = source.renewed()
        with put(NAME, source):
            yield self._anew(found)

    def _rows(self, rows: Query) -> Query:
        """Asks the recording, of which the joined text is the only file."""

        def here(row: Sequence[Any]) -> tuple[Any, ...]:
            above = [self._parts.above.get(one) if isinstance(one, str) else None for one in row]
            return tuple(
                NAME if above[place] is not None
                else one + lines if place and (lines := above[place - 1]) is not None and isinstance(one, int)
                else one
                for place, one in enumerate(row)
            )  # fmt: skip

        def there(given: Sequence[Any]) -> tuple[Any, ...]:
            found = list(given)
            for place, one in enumerate(given):
                line = given[place + 1] if one == NAME and len(given) > place + 1 else None
                part = self._parts.at(line) if isinstance(line, int) else None
                if part is not None and isinstance(line, int):
                    found[place : place + 2] = part.file, line - part.above
            return tuple(found)

        return lambda sql, given=(): [here(row) for row in rows(sql, *([there(given)] if given else []))]

    def forget(self) -> None:
        """Lets go of the failure: its rows lead back here, and its exception would live on in a cycle."""
        del self._situation

    @staticmethod
    def _anew(situation: Situation) -> Situation:
        """The same, for which no statement has been looked up, and whose message names lines as they are read."""
        return dataclasses.replace(
            situation, spots=tuple(map(dataclasses.replace, situation.spots)), message=with_places(situation.message)
        )

    def named(self, found: Explanation) -> Explanation:
        """An explanation that names its files with their folders, where others have the same name."""
        files = [found.file, *([found.edit.file] if found.edit is not None else [])]
        return dataclasses.replace(found, folders=any(map(self._parts.has_namesake, files)))

    def apart(self, found: Explanation) -> Explanation | None:
        """An explanation in the user's files and lines, in words where its paste goes into several files.

        None where that cannot be said in short, or a line of the paste reads what its file cannot have.
        """
        edit = found.edit
        if found.file != NAME:
            if edit is None or edit.file != NAME:
                return found
            first = next((one for one in self._parts.files if one.file == found.file), None)
            if first is None or first.above:
                return None  # its words may be about lines of either text
            found = dataclasses.replace(found, file=NAME)
        part = self._parts.at(found.line)
        if part is None:
            return None
        if edit is not None and edit.file == NAME:
            edits = self._edits(edit)
            own = self._with_names(edits[0]) if len(edits) == 1 else None
            if own is None:
                advice = (
                    _in_words(edits) if len(edits) > 1 and all(self._with_names(one) == one for one in edits) else ""
                )
                if not advice:
                    return None
                found = dataclasses.replace(found, advice=advice)
            edit = own
        return dataclasses.replace(
            found, file=part.file, line=found.line - part.above, edit=edit,
            cause=self._parts.in_files(found.cause, part), advice=self._parts.in_files(found.advice, part),
        )  # fmt: skip

    def _edits(self, edit: Edit) -> list[Edit]:
        """An edit of the joined text as those of the user's files."""
        first, last = self._parts.at(edit.first), self._parts.at(max(edit.first, edit.last))
        if first is last and first is not None:
            return [Edit(first.file, edit.first - first.above, edit.last - first.above, edit.lines)]
        old = self._parts.lines[edit.first - 1 : edit.last]
        found = []
        for kind, begin, end, start, stop in SequenceMatcher(None, old, edit.lines, False).get_opcodes():
            part = self._parts.at(edit.first + begin)
            if kind == "equal" or part is None:
                continue
            above = edit.first - part.above
            found.append(Edit(part.file, above + begin, above + end - 1, edit.lines[start:stop]))
        return found

    def _with_names(self, edit: Edit) -> Edit | None:
        """An edit with imports of the names that only the user's other files have; None where it cannot have them."""
        before, module = read(edit.file), self._modules[edit.file]
        after, old = parsed("\n".join(applied([edit], before.lines))).tree.body, before.tree.body
        lacking = sorted(_names(after, ast.Load) - _names(old, ast.Load) - _bound(after) - {*module, *vars(builtins)})
        imports = []
        for name in lacking:
            owner = next((one for one in reversed(self._modules.values()) if name in one), None)
            line = None if owner is None else _import(name, owner, module, before)
            if line is None:
                return None
            imports.append(line)
        return with_lines_above(imports, edit, before) if imports else edit


class _OwnNames(ast.NodeTransformer):
    """Attributes of the user's modules, where no other file has the name, as that name in the same place."""

    def __init__(
        self, modules: Mapping[str, Mapping[str, Any]], file: str, taken: Mapping[str, Collection[str]]
    ) -> None:
        self._modules, self._file, self._taken = modules, file, taken

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        first, *parts = dotted(node.value).split(".")
        owner: Any = self._modules[self._file].get(first)
        for one in parts:
            owner = names_of(owner).get(one) if is_module(owner) else None
        home = names_of(owner).get("__file__") if is_module(owner) else None
        taken = any(node.attr in names for file, names in self._taken.items() if file != home)
        if home not in self._modules or home == self._file or taken or node.attr not in self._taken[str(home)]:
            return node
        return ast.copy_location(ast.Name(node.attr, node.ctx), node)


def _in_words(edits: Sequence[Edit]) -> str:
    """Edits of several files in a sentence; empty where they are long."""
    told = []
    for one in edits:
        first, text = source_line(one.file, one.first), " ".join(line.strip() for line in one.lines)
        if len(one.lines) > 1 or one.last > one.first or len(text) > _WIDEST:
            return ""
        told.append(f"{first} to `{text}`" if text and one.last == one.first else "")
    return f"Change {listed(told)}." if all(told) and len(told) <= _MOST_EDITS else ""


def _names(body: Sequence[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    every = (one for statement in body for one in ast.walk(statement))
    return {one.id for one in every if isinstance(one, ast.Name) and isinstance(one.ctx, context)}


def _bound(body: Sequence[ast.stmt]) -> set[str]:
    """The names to which statements give a meaning, in any of their functions."""
    found = _names(body, ast.Store)
    for one in (each for statement in body for each in ast.walk(statement)):
        if isinstance(one, ast.arg):
            found.add(one.arg)
        elif isinstance(one, (*_DEFINED, ast.ExceptHandler)) and one.name:
            found.add(one.name)
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            found |= {each.asname or each.name.partition(".")[0] for each in one.names}
    return found


def _import(name: str, owner: Mapping[str, Any], module: Mapping[str, Any], source: Source) -> str | None:
    """How a file imports a name of another module; None where that one may import the file itself."""
    value, home = owner[name], owner.get("__name__")
    if is_module(value):
        own = names_of(value).get("__name__")
        return f"import {own}{'' if own == name else f' as {name}'}"
    imports = [one for one in ast.walk(source.tree) if isinstance(one, (ast.Import, ast.ImportFrom))]
    tails = {
        part.name.rpartition(".")[2] if isinstance(one, ast.Import) else str(one.module or "").rpartition(".")[2]
        for one in imports for part in one.names
    }  # fmt: skip
    known = module.get("__name__") == "__main__" or str(home).rpartition(".")[2] in tails
    return f"from {home} import {name}" if known and home in sys.modules and home != "__main__" else None


def joined(situation: Situation) -> Joined | None:
    """The same failure with the user's files as one; None where no file of theirs is known."""
    files: dict[str, Mapping[str, Any]] = {spot.file: spot.module for spot in reversed(situation.spots)}
    for spot in spots_of(lines_of((situation.error,)), lambda file, line: (file, line)):
        files.setdefault(spot.file, spot.module)  # the spots of a body's failure are those of its thread
    failed = set(files)
    reached: dict[str, list[str]] = {}
    waiting = list(files.items())
    while waiting and len(reached) < _MOST_FILES:
        file, module = waiting.pop(0)
        if file not in reached:
            files.setdefault(file, module)
            found = list(_reached(file, module))
            reached[file] = [one for one, _ in found]
            waiting += found
    gone = _run_again([one for one in reached if all(one != spot.file for spot in situation.spots)], list(reached))
    near, count = set[str](), 0
    for file in reached:
        if file not in gone and count + len(read(file).lines) <= MOST_LINES:
            near.add(file)
            count += len(read(file).lines)
    ordered = {file: files[file] for file in _in_order(reached) if file in near}
    return Joined(situation, ordered, reached, failed) if ordered else None


def _merged(modules: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The names of several modules, those of the first one first."""
    found: dict[str, Any] = {}
    for one in modules:
        for name, value in list(one.items()):
            found.setdefault(name, value)
    return found


def _reached(file: str, module: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The user's modules that one of theirs imports, and the cells of its notebook, newest first."""
    for value in [*_imported(file, module), *list(module.values())]:
        found = _of(value)
        if found is not None and is_user(found[0]) and not is_installed(found[0]):
            yield found
    if cell_number(file) is not None:
        yield from ((cell, module) for cell, _ in sorted(cells_here().items(), key=lambda one: -one[1]))


def _in_order(reached: Mapping[str, list[str]]) -> list[str]:
    """The files in the order in which they ran: what a file imports is above it, and cells stand by their numbers."""
    found: list[str] = []
    seen: set[str] = set()

    def visit(file: str) -> None:
        if file in reached and file not in seen:
            seen.add(file)
            for one in reached[file]:
                visit(one)
            found.append(file)

    for file in reached:
        visit(file)
    cells = iter(sorted((one for one in found if cell_number(one) is not None), key=lambda one: cell_number(one) or 0))
    return [one if cell_number(one) is None else next(cells) for one in found]


def _run_again(older: Sequence[str], files: Sequence[str]) -> set[str]:
    """Those of some cells that were changed and ran once more: a later one defines again all that they define."""
    numbers = {one: number for one in files if (number := cell_number(one)) is not None}
    made = {one: {each.name for each in read(one).tree.body if isinstance(each, _DEFINED)} for one in numbers}
    return {
        one for one in older for later, number in numbers.items()
        if number > numbers.get(one, number) and (made[one] or _text(one) == _text(later)) and made[one] <= made[later]
    }  # fmt: skip


def _text(file: str) -> str:
    return "".join(current_lines(file))


def _imported(file: str, module: Mapping[str, Any]) -> Iterator[types.ModuleType]:
    """The modules that a file's lines import, also from its own package."""
    for one in ast.walk(read(file).tree):
        names = [part.name for part in one.names] if isinstance(one, (ast.Import, ast.ImportFrom)) else []
        if isinstance(one, ast.ImportFrom):
            home = _home(one, module)
            names = [home, *(f"{home}.{name}" for name in names)]
        yield from (sys.modules[name] for name in names if name in sys.modules)


def _home(statement: ast.ImportFrom, module: Mapping[str, Any]) -> str:
    """The module that `from .losses import focal` is of."""
    package = str(module.get("__package__") or "").split(".") if statement.level else []
    return ".".join(filter(None, [*package[: len(package) + 1 - statement.level], statement.module]))


def _of(value: object) -> tuple[str, Mapping[str, Any]] | None:
    """The file of a module, or of the module in which a function, a class or an object's class was made."""
    if issubclass(type(value), types.FunctionType):
        wrapped = vars(value).get("__wrapped__")  # of functools.wraps
    else:
        wrapped = None if is_module(value) else inspect.getattr_static(value, "__wrapped__", None)  # of a tf.function
    value = wrapped if type(wrapped) is types.FunctionType else value
    if type(value) is types.FunctionType:
        return value.__code__.co_filename, value.__globals__
    if not is_module(value):
        kind = cast("type", value) if issubclass(type(value), type) else type(value)
        named = type.__getattribute__(kind, "__module__")
        value = sys.modules.get(named) if isinstance(named, str) else None
        top = kind.__qualname__.partition(".")[0]
        if named == "__main__" and names_of(sys.modules["__main__"]).get(top) is None:
            return None  # of a program that another one has executed
    known = names_of(value) if is_module(value) else {}
    file = known.get("__file__")
    return (file, known) if isinstance(file, str) else None
