"""jit_compile=True over a py_function: XLA compiles ops, and has none that calls Python."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import Node, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import read

RULE = "xla"
_SAID = re.compile(
    r"unsupported operations when trying to compile|tf2xla conversion failed|No registered '\w*PyFunc\w*' OpKernel"
)
_PYTHON = re.compile(r"\b(?:EagerPyFunc|PyFunc|PyFuncStateless)\b")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_JIT = re.compile(r",?\s*jit_compile\s*=\s*(?:True|\"auto\"|'auto')")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if XLA was to compile a node."""
    text = str(situation.error)
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
        lines = read(file).lines
        found = [number for number, line in enumerate(read(file).code, 1) if _JIT.search(line)]
        if len(found) == 1 or (found and file == files[0]):
            above = [number for number in found if node.site is None or number <= node.site[1]]
            number = above[-1] if above else found[0]
            line = _JIT.sub("", lines[number - 1]).replace("(, ", "(").replace(".function()", ".function")
            if ".compile(" in lines[number - 1]:  # Keras: True is "auto" by default
                line = re.sub(r"jit_compile\s*=\s*(?:True|\"auto\"|'auto')", "jit_compile=False", lines[number - 1])
            return Edit(file, number, number, (line,))
    return None
