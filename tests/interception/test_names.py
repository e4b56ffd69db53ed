"""TensorFlow's private names, and all that others keep private, are named in one room: interception/names."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "pyfunc_debug" / "interception" / "names"
PRIVATE_MODULES = re.compile(r"(tensorflow\.(python|core|compiler|lite)|keras\.src)(\.|:|$)")
PRIVATE = re.compile(r"_[a-zA-Z]\w*")
ASKING = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller", "Patch"}
OTHERS = {
    "_getframe": "sys: documented",
    "_current_frames": "sys: documented",
    "_is_gil_enabled": "sys: documented since 3.13",
    "_asdict": "NamedTuple: documented",
    "_replace": "NamedTuple: documented",
    "_fields": "NamedTuple: documented",
    "_repr_html_": "IPython: documented",
    "_dangling": "multiprocessing: the processes that it started; active_children() would wait for some",
    "_popen": "multiprocessing: how a process ended, where somebody has asked; its exitcode would ask",
    "_parent_pid": "multiprocessing: whose child a process is",
    "_pool": "multiprocessing: the pool of a result, and the processes of a pool",
    "_active": "threading: without it a look at a thread would change the program",
    "_DummyThread": "threading: documented as a kind of thread",
    "_getval": "pdb: ours replaces it",
    "_getval_except": "pdb: ours replaces it",
    "_set_caller_tracefunc": "pdb of Python 3.13",
    "_cache": "pydevd: the lines that it shows for a file's",
    "_FrameVariable": "pydevd: a frame's variables",
    "_group_entries": "pydevd: which of a frame's variables it shows",
    "_original_tracing": "pydevd: sys.settrace behind its own",
    "_filename_map": "IPython: the number of a cell",
    "_input_request": "ipykernel: a cell's input()",
    "_parent_ident": "ipykernel: who asked for the cell",
    "_reply_subshell_for": "ipykernel: where a comm is answered",
    "_shape_tuple": "EagerTensor's: the C in values calls it, and values knows nothing of interception",
    "_init_pdb": "pytest: the debugger that gives its terminal back before it prompts",
    "_excinfo": "pytest: the exceptions that a TestCase ended with",
    "_exit": "os: documented",
    "_run_exitfuncs": "atexit: exit handlers, before a process ends without what comes after them",
    "_is_owned": "threading.Condition: whether this thread has the lock, when an exception may have come in between",
    "_set_stopinfo": "bdb's: where it stops next, which AutoGraph's frames are kept out of",
    "_pluginmanager": "pytest: where its capturing of output is found",
    "_pyfunc_debug": "ours, in IPython's user namespace",
}
"""Private names of others that may stand elsewhere, with the reason."""


@functools.cache
def tensorflows() -> set[str]:
    """Every private name that the room knows."""
    found: set[str] = set()
    for file in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                found.update(re.split(r"[.:]", node.value))
    return {name for name in found if PRIVATE.fullmatch(name)}


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of what belongs into the room."""
    known = tensorflows()
    slots = {
        id(text)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__slots__"
        for text in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.lineno, node.module) for _ in PRIVATE_MODULES.finditer(node.module))
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if PRIVATE_MODULES.match(one.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in slots:
            if PRIVATE_MODULES.match(node.value) or (node.value in known and node.value not in OTHERS):
                yield node.lineno, node.value
        elif isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr) and node.attr not in OTHERS:
            owner = node.value
            mine = isinstance(owner, ast.Name) and (owner.id in ("self", "cls") or owner.id[0] in OWN)
            if not mine and ast.unparse(owner) != "super()":
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            own = bool(node.args) and getattr(node.args[0], "id", "") == "self"
            for one in node.args if name in ASKING and not own else ():
                text = one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else ""
                if PRIVATE.fullmatch(text) and text not in OTHERS and text not in known:
                    yield node.lineno, text


OWN = "_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""How names of classes begin. A class may name parts of its own: that they are its own is what ruff's SLF001 checks."""


def test_private_names_are_in_one_room():
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for package in ("pyfunc_debug", "jupyter_ext")
        for file in sorted((ROOT / package).rglob("*.py"))
        if ROOM not in file.parents
        for line, text in private_names(ast.parse(file.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "from tensorflow.python.eager import context",
        "import tensorflow.python.eager.context as context",
        "from keras.src import backend",
        "module = import_module('tensorflow.python.ops.script_ops')",
        "function._out_dtypes",
        "self.names.registry._anything",
        "getattr(graph, '_new_in_some_version')",
        "Patch(owner, '_call_flat', make)",
        "vars(tape)['_tape']",
    ],
)
def test_one_that_is_added_elsewhere_is_found(line):
    assert len(list(private_names(ast.parse(line)))) == 1


def test_no_exception_is_left_over():
    text = "".join(
        file.read_text() for package in ("pyfunc_debug", "jupyter_ext") for file in (ROOT / package).rglob("*.py")
    )
    assert [name for name in OTHERS if not re.search(rf"\b{name}\b", text)] == []
