"""`cv2.imread` gives blue, green, red; what the images go to takes red, green, blue."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

NAMES = ("channel-order",)
_READS = ("imread", "imdecode")
_TURNED = re.compile(
    r"BGR2|RGB2BGR|RGB2|::\s*-1\]|\[\s*(?:\.\.\.|:\s*,\s*:)\s*,\s*\[2\s*,\s*1|\b(?:b|B)\s*,\s*(?:g|G)\s*,\s*(?:r|R)\b|"
    r"IMREAD_GRAYSCALE|IMREAD_COLOR_RGB|swap|\bflip\(|\bbgr\b|reverse\(|(?i:rgb)\w*\("
)  # fmt: skip
"""Words of a file that knows of the order of channels, or may."""
_COLORS = re.compile(r"\bIMREAD_COLOR$|^1$")
_PICTURES = re.compile(r"\b(?:plt|ax\w*|axes\[[^\]]*\]|axs\[[^\]]*\]|pyplot)\.imshow\(")
_PRETRAINED = re.compile(r"\bpreprocess_input\(|weights\s*=\s*['\"](?!None)\w|\bhub\.KerasLayer\(|\.from_pretrained\(")
_DECODED = re.compile(r"\bdecode_(?:jpeg|png|image)\(|\bload_img\(|\bImage\.open\(|\bimage_dataset_from_directory\(")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that reads an image."""
    for ran in functions_that_ran(facts):
        own, cv2 = pastes.source(facts, ran.file), pastes.module(facts, ran.file, "cv2")
        if cv2 is None or _TURNED.search("\n".join(own.code)):
            continue
        expects = _expects(own)
        for call in _reads(ran.function, cv2) if expects else ():
            yield _finding(facts, ran, call, cv2, expects)


def _expects(own: Source) -> str:
    """What of a program takes red, green, blue; "" where all images may be read alike."""
    for number, line in enumerate(own.code, 1):
        if _PRETRAINED.search(line):
            return f"line {number} hands them to what was trained with red, green, blue"
    for number, line in enumerate(own.code, 1):
        if _PICTURES.search(line) and "cmap" not in line:
            return f"line {number} shows them as red, green, blue"
    for number, line in enumerate(own.code, 1):
        if _DECODED.search(line):
            return f"line {number} reads others as red, green, blue"
    return ""


def _reads(function: Definition, cv2: str) -> Iterator[ast.Call]:
    """The calls of a function that read an image with its colours."""
    names = [f"{cv2}.{one}" for one in _READS]
    for call in code.own_nodes(function):
        if isinstance(call, ast.Call) and call.args and dotted(call.func) in names:
            flags = argument(call, 1, "flags")
            if flags is None or _COLORS.search(ast.unparse(flags)):
                yield call


def _finding(facts: Facts, ran: Ran, call: ast.Call, cv2: str, expects: str) -> Finding:
    own, file = pastes.source(facts, ran.file), ran.file
    new = f"{cv2}.cvtColor({own.text(call)}, {cv2}.COLOR_BGR2RGB)"
    return Finding(
        NAMES[0], "warning", ran.group[0].id if ran.group else None, (),
        f"{own.text(call)} gives the channels as blue, green, red, and nothing turns them: {expects}",
        pastes.written(pastes.replaced(facts, file, {call: new})) or new, file, call.lineno, confidence="likely",
    )  # fmt: skip
