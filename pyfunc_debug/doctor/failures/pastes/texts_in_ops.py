"""A text that Python makes of tensors, as the same text in TensorFlow's ops: `f"{i:04d}"` by `tf.strings.as_string`."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pyfunc_debug.doctor.failures.pastes.printed import quoted
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short

_SPEC = re.compile(r"(?:(0?)(\d+))?d?|\.(\d+)f")
_PERCENT = re.compile(r"%(s|0?\d*d|\.\d+f)")
_WHOLE = re.compile(r"u?int\d+")
_KEPT = {"constant", "convert_to_tensor"}
"""What makes a tensor of a text: in its place stands the text's tensor."""
_ODD = "?"
"""The format of what is not plainly formatted."""


class Tensor(NamedTuple):
    """What a text holds the name of.

    Attributes:
      dtype: `int64`.
      rank: Its number of axes; None where nobody knows.
    """

    dtype: str
    rank: int | None


def tensors(noticed: Iterable[Mapping[str, Any]]) -> dict[str, Tensor]:
    """The tensors of the recording's notices `printed-symbol`, by name; none where one of them has no name."""
    every = list(noticed)
    found = {called: Tensor(one["dtype"], one["rank"]) for one in every for called in one["names"]}
    return found if all(one["names"] for one in every) else {}


def cause(text: str, name: str, tensor: str) -> str:
    """What is wrong with a text of a tensor's name.

    Args:
      text: The expression, as it is written.
      name: The function that makes it.
      tensor: What is in it.
    """
    return (
        f"`{short(text, 40)}` in {name} is made once, while TensorFlow builds the graph: it holds the name of "
        f'{tensor}, `Tensor("...:0", ...)`, and no run puts a value there'
    )


def advice(tf: str) -> str:
    """What to do where no ops make the text."""
    return (
        f"{tf}.strings.as_string(...) gives the text of each value as a tensor; where Python needs the text (a key, a "
        f"file that it opens), do that in a {tf}.py_function"
    )


def is_text(one: ast.AST) -> bool:
    """Whether an expression makes a text of values: an f-string, `%`, `format`, `str`, or texts put together."""
    if isinstance(one, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in one.values)
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod):
        return isinstance(one.left, ast.Constant) and isinstance(one.left.value, str)
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
        return is_text(one.left) or is_text(one.right)
    if not isinstance(one, ast.Call):
        return False
    if _is_path(one):
        return is_text(one.args[-1])
    owner = getattr(one.func, "value", None)
    plain = isinstance(owner, ast.Constant) and getattr(one.func, "attr", "") == "format"
    return dotted(one.func) == "str" or plain or _filled(one) is not None


def texts_at(own: Source, line: int) -> Iterator[ast.expr]:
    """The expressions on a line that make a text, without parts of another one and without those of an error."""
    statement = own.statement(line)
    if statement is None or isinstance(statement, (ast.Raise, ast.Assert)):
        return
    every = [one for one in ast.walk(statement) if isinstance(one, ast.expr) and is_text(one)]
    inner = {id(part) for one in every for part in ast.walk(one) if part is not one}
    for one in every:
        if id(one) not in inner and one.lineno <= line <= (one.end_lineno or one.lineno):
            yield one


def uses(own: Source, function: ast.AST, text: ast.expr) -> list[ast.expr]:
    """Where a text goes: itself, or the names that read it."""
    outer = own.parent(text)
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        name = outer.targets[0].id
        return [
            one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name
            and isinstance(one.ctx, ast.Load)
        ]  # fmt: skip
    return [] if isinstance(outer, ast.Expr) else [text]


def pieces_in_ops(
    own: Source, function: ast.AST, text: ast.expr, tensors: Mapping[str, Tensor], tf: str
) -> dict[ast.expr, str]:
    """What to write in the place of a text, and of the calls that only make a tensor of it.

    Args:
      own: The user's file.
      function: Where the text is made.
      text: The expression.
      tensors: The tensors that it holds, by their names.
      tf: What the user's file calls TensorFlow.

    Returns:
      Expressions and their new texts; nothing where Python needs the text, or where it is not plain how.
    """
    found = uses(own, function, text)
    new = _in_ops(own, text, tensors, tf) if all(_takes_tensor(own, one, tf) for one in found) else None
    if new is None or not found:
        return {}
    made = [(one, own.parent(one)) for one in found]
    kept = {outer: own.text(one) for one, outer in made if isinstance(outer, ast.Call) and _keeps(outer)}
    pieces: dict[ast.expr, str] = {text: new} if text not in found or not kept else {}
    pieces.update({outer: new if text in found else one for outer, one in kept.items()})
    return pieces


def _keeps(call: ast.Call) -> bool:
    """Whether a call makes a tensor of a text and nothing else."""
    return dotted(call.func).rpartition(".")[2] in _KEPT and len(call.args) == 1 and not call.keywords


def _takes_tensor(own: Source, use: ast.expr, tf: str) -> bool:
    """Whether a tensor may stand where a text goes: it is returned, or given to TensorFlow's functions."""
    outer = own.parent(use)
    while isinstance(outer, (ast.Tuple, ast.List, ast.Dict)):
        use, outer = outer, own.parent(outer)
    if isinstance(outer, (ast.Return, ast.Lambda)):
        return True
    called = dotted(outer.func) if isinstance(outer, ast.Call) and use in outer.args else ""
    part = called.removeprefix(f"{tf}.")
    if part in _KEPT:
        return isinstance(outer, ast.Call) and _keeps(outer)
    return called != part and (part.startswith(("io.", "strings.", "image.")) or part == "print")


def _in_ops(own: Source, text: ast.expr, tensors: Mapping[str, Tensor], tf: str) -> str | None:
    """The text as a tensor; None where it is not plain how."""
    pieces: list[tuple[str, bool]] = []  # a text of Python's or of an op, and whether it is an op
    for part, spec in _parts(own, text):
        if isinstance(part, ast.Constant):
            pieces += [(quoted(str(part.value)), False)] * bool(part.value)
            continue
        known = tensors.get(dotted(part))
        if known is None and _is_folder(part):
            pieces.append((ast.unparse(part), False))
        elif known is None and dotted(part) and spec != _ODD:
            pieces.append((f"format({dotted(part)}, {quoted(spec)})" if spec else f"str({dotted(part)})", False))
        else:
            made = _as_string(own.text(part), known, spec, tf) if known is not None else None
            if made is None:
                return None
            pieces.append((made, True))
    if not any(op for _, op in pieces):
        return None
    return pieces[0][0] if len(pieces) == 1 else f"{tf}.strings.join([{', '.join(one for one, _ in pieces)}])"


def _as_string(name: str, known: Tensor, spec: str, tf: str) -> str | None:
    found = _SPEC.fullmatch(spec)
    if known.rank != 0 or found is None:
        return None
    if known.dtype == "string":
        return name if not spec else None
    if _WHOLE.fullmatch(known.dtype) and found[3] is None:
        width = f", width={found[2]}" if found[2] else ""
        return f"{tf}.strings.as_string({name}{width}{', fill=' + quoted('0') if found[1] else ''})"
    if "float" in known.dtype and found[2] is None:
        return f"{tf}.strings.as_string({name}, {f'precision={found[3]}' if found[3] else 'shortest=True'})"
    return None


def _parts(own: Source, text: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """The constants and values of a text, and how each is formatted."""
    if isinstance(text, ast.JoinedStr):
        for one in text.values:
            if not isinstance(one, ast.FormattedValue):
                yield one, ""
                continue
            spec = one.format_spec.values if isinstance(one.format_spec, ast.JoinedStr) else []
            fixed = "".join(str(part.value) if isinstance(part, ast.Constant) else _ODD for part in spec)
            yield one.value, fixed if one.conversion == -1 else _ODD
    elif isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        yield from _parts(own, text.left)
        yield from _parts(own, text.right)
    elif isinstance(text, ast.Call) and dotted(text.func) == "str" and len(text.args) == 1:
        yield text.args[0], ""
    elif isinstance(text, ast.Call) and (filled := _filled(text)) is not None:
        yield filled
    elif isinstance(text, ast.Call) and _is_path(text):
        folders = [own.text(one) for one in text.args[:-1]]
        yield ast.parse(f"{dotted(text.func)}({', '.join(folders)}, {quoted('')})", mode="eval").body, ""
        yield from _parts(own, text.args[-1])
    elif isinstance(text, ast.BinOp):
        values = text.right.elts if isinstance(text.right, ast.Tuple) else [text.right]
        yield from _formatted(text, _of_percent(text.left), values)
    elif isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute):
        yield from _formatted(text, None if text.keywords else _of_format(text.func.value), text.args)
    else:
        yield text, ""


def _formatted(
    text: ast.expr, written: tuple[list[str], list[str]] | None, values: list[ast.expr]
) -> Iterator[tuple[ast.expr, str]]:
    """Words and values in turn, of what a template says between and in its places."""
    if written is None or len(written[1]) != len(values):
        yield text, _ODD
        return
    words, specs = written
    for before, value, spec in zip(words, values, specs):
        yield ast.Constant(before), ""
        yield value, spec
    yield ast.Constant(words[-1]), ""


def _of_percent(template: ast.expr) -> tuple[list[str], list[str]] | None:
    """The words of a `%` template, one more than its places, and the format of each place."""
    written = template.value if isinstance(template, ast.Constant) else None
    if not isinstance(written, str):
        return None
    pieces = _PERCENT.split(written)
    specs = [one.removesuffix("s") for one in pieces[1::2]]
    return None if any("%" in one for one in pieces[::2]) else (pieces[::2], specs)


def _of_format(template: ast.expr) -> tuple[list[str], list[str]] | None:
    """The same of the template of `"{:04d}.png".format(i)`, where its places are asked in their order."""
    written = template.value if isinstance(template, ast.Constant) else None
    if not isinstance(written, str):
        return None
    words, specs = [""], list[str]()
    for before, field, spec, conversion in string.Formatter().parse(written):
        words[-1] += before
        if field is None:
            continue
        if field not in ("", str(len(specs))) or conversion:
            return None
        specs.append(spec or "")
        words.append("")
    return words, specs


def _filled(call: ast.Call) -> tuple[ast.expr, str] | None:
    """What `str(i).zfill(4)` makes a text of, and its format."""
    inner = getattr(call.func, "value", None)
    width = call.args[0].value if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) else None
    if getattr(call.func, "attr", "") != "zfill" or type(width) is not int or not isinstance(inner, ast.Call):
        return None
    return (inner.args[0], f"0{width}") if dotted(inner.func) == "str" and len(inner.args) == 1 else None


def _is_path(call: ast.Call) -> bool:
    """Whether a call is `os.path.join(folder, name)`."""
    joins = dotted(call.func).endswith("path.join") and len(call.args) > 1 and not call.keywords
    return joins and not any(map(is_text, call.args[:-1]))


def _is_folder(part: ast.expr) -> bool:
    """Whether it is what `_parts` makes of the folders of a path: they end with the separator."""
    last = part.args[-1] if isinstance(part, ast.Call) and _is_path(part) else None
    return isinstance(last, ast.Constant) and last.value == ""
