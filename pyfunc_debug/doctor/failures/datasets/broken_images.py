"""A file that is not an image, among those that a dataset decodes: TensorFlow names the op, and not the file.

The names are in the dataset that the program holds; the beginning of each file says whether it is an image.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import datasets
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import method_calls
from pyfunc_debug.interception.names.private import slices

RULE = "broken-image"
_SAID = re.compile(
    r"Unknown image file format|Input is empty|Invalid (?:PNG|GIF|BMP|WebP|JPEG) data|jpeg::Uncompress failed"
)
_NODE = re.compile(r"Decode(?:Image|Jpeg|Png|Gif|Bmp|WebP|AndCropJpeg)|decode_image|image format")
_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"\xff\x0a", b"\x00\x00\x00\x0cJXL ")
_DECODE = re.compile(r"decode_(?:image|jpeg|png|gif|bmp|webp|and_crop_jpeg)")
_DIRECTORY = "image_dataset_from_directory"
_MOST = 50_000
_LONG = 4096
"""Bytes at the end of a file in which the mark of its end stands."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an op that decodes images failed in a dataset."""
    said = situation.message
    if situation.body or not (_SAID.search(said) and _NODE.search(said)):
        return None
    names = file_names(situation)
    broken = [(name, what) for name in names if (what := _broken(name)) is not None]
    if not broken:
        return None  # what was decoded may be something else
    shown = " and ".join(f"{'/'.join(name.split(os.sep)[-2:])} {what}" for name, what in broken[:2])
    more = f", and {len(broken) - 2:,} more" if len(broken) > 2 else ""
    cause = f"Of {len(names):,} files {shown}{more}."
    for file, source in situation.sources():
        place, edit = _left_out(file, source)
        if place is None:
            continue
        folder = f" in {os.path.dirname(broken[0][0])}"
        if edit is None:
            return Explanation(RULE, file, place.lineno, cause, None, f"Delete it{folder}, or put an image there.")
        cause += " ignore_errors leaves out what fails."
        return Explanation(RULE, file, place.lineno, cause, edit)
    return None


def file_names(situation: Situation, of: Iterable[Any] | None = None) -> list[str]:
    """The texts of which datasets of the program were made, each once: the paths of files, where it reads files.

    Args:
      situation: The failure.
      of: The datasets; those that the program holds, where none are given.
    """
    return list(dict.fromkeys(_names(datasets.held(situation) if of is None else of)))


def _names(every: Iterable[Any]) -> Iterator[str]:
    """The paths of files that some datasets were made of."""
    for dataset in every:
        listed = getattr(dataset, "file_paths", None)
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, str))
        for part in slices(dataset):
            if getattr(part, "dtype", None) == "string" and len(part.shape) == 1 and part.shape[0] < _MOST:
                yield from (one.decode("utf-8", "replace") for one in part.numpy().tolist())


def _broken(name: str) -> str | None:
    """What is wrong with a file; None of an image, and of what is not a file here."""
    try:
        if not os.path.isfile(name):
            return None
        size = os.path.getsize(name)
        with open(name, "rb") as file:
            head = file.read(16)
            file.seek(max(size - _LONG, 0))
            end = file.read()
    except OSError:
        return None
    if not head:
        return "is empty"
    if not head.startswith(_BEGINNINGS) and not (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return f"is not an image (it begins with {head[:8]!r})"
    whole = b"\xff\xd9" in end if head.startswith(b"\xff\xd8") else b"IEND" in end if head[1:4] == b"PNG" else True
    return None if whole else "is not whole (its end is missing)"


def _left_out(file: str, source: Source) -> tuple[ast.Call | None, Edit | None]:
    """The call whose elements may fail, and the lines that leave those out."""
    every = list(ast.walk(source.tree))
    decoding: set[str] = set()
    for _ in range(3):  # who calls those, decodes, too
        decoding |= {one.name for one in every if isinstance(one, ast.FunctionDef) and _decodes(one, decoding)}
    maps = [
        one for one in method_calls(source.tree, "map")
        if one.args and (dotted(one.args[0]).rpartition(".")[2] in decoding or _decodes(one.args[0], decoding))
    ]  # fmt: skip
    if len(maps) == 1:
        return maps[0], _edit(file, source, maps[0], ".ignore_errors()", {})
    made = source.calls_of(frozenset({_DIRECTORY}))
    if maps or len(made) != 1:
        return next(iter(maps or made), None), None
    size = argument(made[0], 4, "batch_size")
    named = any(isinstance(one, ast.Attribute) and one.attr in ("class_names", "file_paths") for one in every)
    if named or len(made[0].args) > 4 or any(one.arg == "subset" and _is_both(one.value) for one in made[0].keywords):
        return made[0], None
    if size is None:
        return made[0], _edit(file, source, made[0], ".ignore_errors().batch(32)", {}, "batch_size=None")
    if isinstance(size, ast.Constant) and size.value is None:
        return made[0], _edit(file, source, made[0], ".ignore_errors()", {})
    return made[0], _edit(file, source, made[0], f".ignore_errors().batch({source.text(size)})", {size: "None"})


def _is_both(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant) or node.value == "both"


def _decodes(node: ast.AST, others: set[str]) -> bool:
    """Whether something calls an op that decodes images, or one of some functions."""
    called = [dotted(one.func).rpartition(".")[2] for one in ast.walk(node) if isinstance(one, ast.Call)]
    return any(_DECODE.fullmatch(one) or one in others for one in called)


def _edit(
    file: str, source: Source, call: ast.Call, behind: str, pieces: dict[ast.expr, str], argument: str = ""
) -> Edit:
    lines = source.ended(call, argument, behind, pieces)
    return Edit(file, call.lineno, call.end_lineno or call.lineno, lines)
