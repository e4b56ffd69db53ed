"""Names of TensorFlow 2 in a paste for a file whose `tf` is tensorflow.compat.v1, which has other ones."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.source import Source, read

LACKING = ("experimental.numpy", "experimental.dlpack", "__internal__", "inside_function")
"""What tensorflow.compat.v1 has not, and tensorflow.compat.v1.compat.v2 has."""
OTHER = ("where", "image.resize", "strings.split", "math.in_top_k")
"""What it has by the same name with other arguments or other values: its `where` broadcasts nothing."""
RENAMED = {"random.set_seed": "set_random_seed"}
_OLDER = "tensorflow.compat.v1"


def with_older_names(explanation: Explanation) -> Explanation:
    """The explanation whose paste has names that its file's TensorFlow has."""
    edit = explanation.edit
    source = read(edit.file) if edit is not None else None
    if edit is None or source is None:
        return explanation
    lines = older(source, edit.lines, source.lines[edit.first - 1 : edit.last])
    return explanation if lines == edit.lines else dataclasses.replace(
        explanation, edit=dataclasses.replace(edit, lines=lines)
    )  # fmt: skip


def older(source: Source, lines: Sequence[str], before: Sequence[str]) -> tuple[str, ...]:
    """Pasted lines with names that are there, or mean the same, where a file calls tensorflow.compat.v1 `tf`.

    Args:
      source: The file.
      lines: What is pasted.
      before: The lines in its place, whose names are left as they are.
    """
    own = "\n".join(before)
    text = "\n".join(lines)
    for tf, module in imports(source).items():
        if module != _OLDER or f"import {module} as {tf}" in text or f"import tensorflow as {tf}" in text:
            continue
        start = rf"(?<![\w.\"'`]){re.escape(tf)}\."
        for name in (*LACKING, *OTHER, *RENAMED):
            named = rf"{start}({re.escape(name)})(?!\w)"
            if name in OTHER and re.search(named, own):
                continue
            text = re.sub(named, f"{tf}.{RENAMED.get(name, f'compat.v2.{name}')}", text)
    return tuple(text.split("\n")) if lines else ()
