"""jit_compile=True over a py_function, or an op that XLA has not: it compiles ops, and has none that calls Python."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import Node, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import read, short
from pyfunc_debug.program.frames import is_installed, is_user

RULE = "xla"
_SAID = re.compile(
    r"unsupported operations when trying to compile|tf2xla conversion failed|No registered '\w*PyFunc\w*' OpKernel"
)
_PYTHON = re.compile(r"\b(?:EagerPyFunc|PyFunc|PyFuncStateless)\b")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_LACKED = re.compile(r"No registered '(\w+)' OpKernel for XLA_\w+")
_JIT = re.compile(r",?\s*jit_compile\s*=\s*(?:True|\"auto\"|'auto')")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if XLA was to compile a node."""
    text = situation.text
    if not _SAID.search(text) or not _PYTHON.search(text):
        return None
    node = _named(text, user_nodes(situation))
    if node is None or node.site is None:
        return None
    found = _switch(situation, node)
    cause = (
        f"jit_compile=True asked XLA to compile the graph that holds {node.called}: a {node.kind} runs "
        "Python, which XLA "
        "cannot compile. TensorFlow runs both on its own: keep the node outside of what is compiled."
    )
    return Explanation(
        RULE, *node.site, cause, found, "" if found else f"Leave out jit_compile=True around {node.called}."
    )


def of_op(situation: Situation) -> Explanation | None:
    """The explanation, if XLA was to compile an op that it has not."""
    text = situation.text
    lacked = _LACKED.search(text)
    created = [(f"/{file.lstrip('/')}", int(line)) for file, line in _FRAME.findall(text.partition("created at:")[2])]
    places = [(file, line) for file, line in created if is_user(file) and not is_installed(file) and read(file).lines]
    if lacked is None or not _SAID.search(text) or _PYTHON.search(text) or not places:
        return None
    file, line = places[-1]
    statement = read(file).statement(line)
    code = short(read(file).text(statement).split("\n")[0], 40) if statement is not None else "its line"
    printed = " Or leave the print out." if "print" in code else ""
    edit = _decorator(places) or _only(situation, places)
    cause = (
        f"jit_compile=True asked XLA to compile `{code}`, which is {lacked[1]} in the graph: an op that XLA has not. "
        f"TensorFlow itself runs it.{printed}"
    )
    return Explanation(RULE, file, line, cause, edit, "" if edit else "Leave out jit_compile=True around this line.")


def _decorator(places: list[tuple[str, int]]) -> Edit | None:
    """The decorator with jit_compile=True of a function that one of some lines is in, without it."""
    for file, line in reversed(places):
        source = read(file)
        holding = (source.function(line), *source.around(source.function(line) or source.tree))
        for one in (each for each in holding if isinstance(each, ast.FunctionDef)):
            for number in (each.lineno for each in one.decorator_list):
                if _JIT.search(source.code[number - 1]):
                    return _without(file, number)
    return None


def _only(situation: Situation, places: list[tuple[str, int]]) -> Edit | None:
    """The only line that says jit_compile=True, in the files of some lines and of the frames; without it."""
    files = dict.fromkeys([*(file for file, _ in places), *(spot.file for spot in situation.spots)])
    found = [(one, at) for one in files for at, line in enumerate(read(one).code, 1) if _JIT.search(line)]
    return _without(*found[0]) if len(found) == 1 else None


def _without(file: str, number: int) -> Edit:
    """A line without jit_compile=True."""
    before = read(file).lines[number - 1]
    line = _JIT.sub("", before).replace("(, ", "(").replace(".function()", ".function")
    if ".compile(" in before:  # Keras: True is "auto" by default
        line = re.sub(r"jit_compile\s*=\s*(?:True|\"auto\"|'auto')", "jit_compile=False", before)
    return Edit(file, number, number, (line,))


def _named(text: str, nodes: list[Node]) -> Node | None:
    """The node whose line the text names; the newest where it names none."""
    lines = {(file.lstrip("/"), int(line)) for file, line in _FRAME.findall(text)}
    for node in nodes:
        if node.site is not None and (node.site[0].lstrip("/"), node.site[1]) in lines:
            return node
    return next((node for node in nodes if node.site is not None), None)


def _switch(situation: Situation, node: Node) -> Edit | None:
    """The line that says jit_compile=True: the one nearest above the node, or in a file of the user's frames."""
    files = [node.site[0]] if node.site else []
    files += [spot.file for spot in reversed(situation.spots) if spot.file not in files]
    for file in files:
        found = [number for number, line in enumerate(read(file).code, 1) if _JIT.search(line)]
        if len(found) == 1 or (found and file == files[0]):
            above = [number for number in found if node.site is None or number <= node.site[1]]
            number = above[-1] if above else found[0]
            return _without(file, number)
    return None
