"""Programs that run to their end and are wrong, or slow, in the other shapes: their rule must find them, and mend."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.records import Finding
from tests.doctor.alone import alone
from tests.doctor.pasting import pastes
from tests.doctor.reshaped.engine import LESS, OTHER, TOLD, Outcome, applied
from tests.doctor.reshaped.shapes import MAIN, SHAPES, Files


@dataclass(frozen=True)
class Silent:
    """A program in a shape.

    Attributes:
      name: The rule's and the program's.
      files: Its text, by file.
      source: The program as it is.
      expected: The rule, and whether it has a paste.
      record: What its recording is asked for.
    """

    name: str
    files: Files
    source: str
    expected: str
    record: dict[str, Any] = field(default_factory=dict)


def silent(shape: str) -> list[Silent]:
    """The programs of the rules, in a shape that they can have; without those whose clock a test drives."""
    from tests.doctor.test_programs import programs  # with those of all other files

    found = []
    for rule, program, options in programs.TRIGGERS:
        if "clock" in options or "ends_with" in options:
            continue
        text = _at_module_level(program)
        files = SHAPES[shape](text) if text else None
        if files is None:
            continue
        expected = f"{rule} {'pastes' if options.get('pastes') else ''}".strip()
        source = f"{_undecorated(alone(program), program.__name__)}\n{program.__name__}()\n"
        found.append(Silent(f"{rule}-{program.__name__}", files, source, expected, options.get("record", {})))
    return found


def outcome(task: Silent, paste: bool = True) -> Outcome:
    """Runs a program, and looks whether its rule finds it; once more with the paste, where there is one."""
    rule, _, with_paste = task.expected.partition(" ")
    error, every = _recorded(task.files, task.record)
    ours = [one for one in every if one.rule == rule]
    found = Outcome(TOLD, [_text(one) for one in ours or every], "" if error is None else repr(error))
    found.verdict = _verdict(ours, bool(every), bool(with_paste), error)
    if found.verdict in LESS:
        before, then = _recorded({MAIN: task.source}, task.record)
        of_it = [one for one in then if one.rule == rule]
        if type(before) is not type(error) or _verdict(of_it, bool(then), bool(with_paste), before) in LESS:
            found.verdict = OTHER
        else:
            found.told += ["(before) " + _text(one) for one in of_it]
    if found.verdict != TOLD or not with_paste or not paste or not pastes(ours[0].fix):
        return found
    try:
        files = applied(task.files, ours[0].fix)
        error, every = _recorded(files, task.record)
        left = [_text(one) for one in every if one.rule == rule]
    except AssertionError as wrong:
        error, left = wrong, []
    if error is not None or left:
        found.verdict, found.error = "paste fails", repr(error)
        found.told += left
    return found


def _verdict(ours: list[Finding], any_: bool, with_paste: bool, error: BaseException | None) -> str:
    if not ours:
        return "other rule" if any_ else "untold"
    switched = any("exact_gradients" in one.fix for one in ours)
    return "no paste" if with_paste and not switched and not pastes(ours[0].fix) else TOLD


def _text(one: Finding) -> str:
    return f"{one.rule} {Path(one.file or '').name}:{one.line}: {one.message}\n{one.fix}"


def _recorded(files: Files, options: dict[str, Any]) -> tuple[BaseException | None, list[Finding]]:
    """Runs the files of a program in a folder of their own: its error, and what is found."""
    error = None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in files.items():
            Path(name).write_text(text)
        sys.path.insert(0, folder)
        main, own = sys.modules["__main__"], ModuleType("__main__")
        own.__file__ = str(Path(folder, MAIN))
        sys.modules["__main__"] = own
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            recording = pfd.record(**options)
            try:
                code = compile(Path(MAIN).read_text(), str(Path(folder, MAIN)), "exec")
                with recording:
                    exec(code, vars(own))
            except Exception as raised:
                error = raised
            tf.compat.v1.reset_default_graph()
            try:
                found = recording.findings()
            finally:
                recording.close()
                sys.path.remove(folder)
                sys.modules["__main__"] = main
                for name in files:
                    sys.modules.pop(name.removesuffix(".py"), None)
                os.chdir("/")
    return error, found


def _undecorated(text: str, name: str) -> str:
    """The file's text without the decorators of the program, in as many lines."""
    lines = text.split("\n")
    for one in ast.parse(text).body:
        if isinstance(one, ast.FunctionDef) and one.name == name:
            for line in range(one.decorator_list[0].lineno if one.decorator_list else one.lineno, one.lineno):
                lines[line - 1] = ""
    return "\n".join(lines)


def _at_module_level(program: Callable[..., Any]) -> str | None:
    """The program's body as a file's; None where it returns, or where its names would be those of the file."""
    tree = ast.parse(alone(program))
    own = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == program.__name__)
    if own.args.args or any(isinstance(one, (ast.Return, ast.Yield)) for one in _in_scope(own)):
        return None
    tree.body.remove(own)
    given = [*tree.body]
    body = [*map(copy.deepcopy, own.body)]
    read = {one.id for part in body for one in ast.walk(part) if isinstance(one, ast.Name)}
    bound = {
        one.id
        for part in body
        for one in _in_scope(part)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    bound |= {one.name for one in body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    if bound & {name for one in given for name in _names(one)}:
        return None
    kept: list[ast.stmt] = []
    for one in reversed(given):  # what is read is above
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            one.names = [name for name in one.names if (name.asname or name.name.partition(".")[0]) in read]
            if one.names and not (isinstance(one, ast.ImportFrom) and one.module == "__future__"):
                kept.insert(0, one)
        elif set(_names(one)) & read:
            read |= {name.id for name in ast.walk(one) if isinstance(name, ast.Name)}
            kept.insert(0, one)

    class Shared(ast.NodeTransformer):
        def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
            return ast.Global(node.names) if set(node.names) <= bound else node

    return ast.unparse(ast.fix_missing_locations(ast.Module([*kept, *map(Shared().visit, body)], [])))


def _in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are in no function or class of it."""
    for one in ast.iter_child_nodes(node):
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _in_scope(one)


def _names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a file defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        yield from map(ast.unparse, statement.targets if isinstance(statement, ast.Assign) else [statement.target])
