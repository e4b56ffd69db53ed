"""The user's source: statements, functions and calls by line, and pieces of text put in the place of others."""

from __future__ import annotations

import ast
import functools
import io
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, MappingProxyType
from typing import Any

from pyfunc_debug.doctor.bodies.decorated import Call as _Decorated
from pyfunc_debug.doctor.bodies.decorated import List as _Inputs
from pyfunc_debug.doctor.bodies.decorated import Name as _Parameter
from pyfunc_debug.doctor.bodies.decorated import desugar, undecorated, undone
from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.program import syntax
from pyfunc_debug.program.file_lines import current_lines

_FARTHEST = 30
"""A paste has no more lines than these, where a decorator and a call of its body change."""
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class InlineName(ast.Name):  # named as its base, by which `ast.NodeVisitor` takes it
    """What an expression that has no name is read by (`reading/inline_values.py`)."""


InlineName.__name__ = "Name"


def is_inline(node: ast.AST) -> bool:
    """Whether a statement is the assignment by which such an expression is read: it is not in the text."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], InlineName)


class Source:
    """A file's text and tree; empty where it cannot be read or is not Python.

    Args:
      lines: The text.
      above: Of several files that are read as one, the lines that stand above each.
      tree: The tree, where it is another than that of the text.
    """

    def __init__(
        self,
        lines: list[str],
        above: Mapping[str, int] = MappingProxyType({}),
        tree: ast.Module | None = None,
    ) -> None:
        self.lines = [line.rstrip("\n") for line in lines]
        self.above = above
        try:
            self.tree: ast.Module = syntax.parse("\n".join(_without_magics(self.lines))) if tree is None else tree
            decorated = any(line.lstrip().startswith("@") and "_function" in line for line in self.lines)
            self.mapped: list[tuple[_Decorated, ast.Call]] = desugar(self.tree) if decorated else []
        except (SyntaxError, ValueError, RecursionError):
            self.tree, self.mapped = ast.Module([], []), []
        self._calls: dict[frozenset[str], list[ast.Call]] = {}

    def renewed(self) -> Source:
        """The same of a tree that was changed, for which nothing has been looked up yet."""
        made = Source([], self.above)
        made.lines, made.mapped = self.lines, self.mapped
        made.tree = ast.Module(self.tree.body, self.tree.type_ignores)
        return made

    @functools.cached_property
    def decorated(self) -> list[_Decorated]:
        """The calls of bodies that are decorated to be a node's."""
        written = [one for one in all_nodes(self.tree) if isinstance(one, _Decorated)]
        return [*written, *(call for call, _ in self.mapped)]

    @functools.cached_property
    def code(self) -> list[str]:
        """The lines without comments and docstrings: blanks in their places, so that columns stay."""
        lines = list(self.lines)
        if not self.tree.body:
            return lines
        try:
            gone = list(_comments(self.lines))
        except (tokenize.TokenError, SyntaxError):
            return lines
        gone += [
            ((one.lineno, one.col_offset), (one.end_lineno or one.lineno, one.end_col_offset or 0))
            for one in all_nodes(self.tree)
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
        ]
        for (first, left), (last, right) in gone:
            for number in range(first, last + 1):
                line = lines[number - 1]
                start, end = left if number == first else 0, right if number == last else len(line)
                lines[number - 1] = line[:start] + " " * (min(end, len(line)) - start) + line[end:]
        return lines

    def code_of(self, node: ast.AST) -> str:
        """The lines of a node, without comments and docstrings."""
        return "\n".join(self.code[getattr(node, "lineno", 1) - 1 : getattr(node, "end_lineno", None)])

    @functools.cached_property
    def _parents(self) -> dict[int, ast.AST]:
        every = (self.tree, *all_nodes(self.tree))
        found = {id(child): node for node in every for child in ast.iter_child_nodes(node)}
        return found | {id(call): around for call, around in self.mapped}

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around another."""
        return self._parents.get(id(node))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around another, innermost first."""
        found = self.parent(node)
        while found is not None:
            yield found
            found = self.parent(found)

    def block(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """The statements among which one stands, itself among them."""
        parent = self.parent(statement)
        lists = [getattr(parent, part, None) for part in ("body", "orelse", "finalbody")]
        return next((one for one in lists if isinstance(one, list) and statement in one), None)

    def together(self, *lines: int) -> bool:
        """Whether lines are of one file: one paste goes there."""
        return len({sum(above < line for above in self.above.values()) for line in lines}) == 1

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement that holds a line."""
        found: ast.stmt | None = None
        for node in self._statements:
            if not _first(node) <= line <= (node.end_lineno or node.lineno):
                continue
            if found is None or (node.lineno, -(node.end_lineno or 0)) >= (found.lineno, -(found.end_lineno or 0)):
                found = node
        return found

    def function(self, line: int) -> Function | None:
        """The innermost function or lambda that holds a line."""
        found: Function | None = None
        for node in self._functions:
            first = node.body[0].lineno if not isinstance(node, ast.Lambda) else node.lineno
            if first <= line <= (node.end_lineno or node.lineno) and (found is None or node.lineno >= found.lineno):
                found = node
        return found

    @functools.cached_property
    def _statements(self) -> list[ast.stmt]:
        return [one for one in all_nodes(self.tree) if isinstance(one, ast.stmt)]

    @functools.cached_property
    def _functions(self) -> list[Function]:
        return [
            one for one in all_nodes(self.tree)
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        ]  # fmt: skip

    def calls_of(self, functions: frozenset[str]) -> list[ast.Call]:
        """Calls of functions of these names, whatever module they are asked of."""
        if functions not in self._calls:
            calls = [one for one in all_nodes(self.tree) if isinstance(one, ast.Call)]
            self._calls[functions] = [one for one in calls if dotted(one.func).rpartition(".")[2] in functions]
        return self._calls[functions]

    def text(self, node: ast.AST) -> str:
        """A node as it is written, on one line if it can be."""
        if isinstance(node, _Inputs):
            return f"[{', '.join(map(self.text, node.elts))}]"
        if isinstance(node, (_Parameter, InlineName)):
            return node.id
        if isinstance(node, _Decorated) and node.head:
            return f"{self.text(node.args[0])}({self.text(node.args[1])[1:-1]})"
        found = ast.get_source_segment("\n".join(self.lines), node) or ""
        return found if "\n" not in found else ast.unparse(undone(node))

    def atom(self, node: ast.expr) -> str:
        """An expression's text, in brackets where an index behind it would belong to a part of it only."""
        whole = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        return self.text(node) if whole else f"({self.text(node)})"

    def operand(self, node: ast.expr) -> str:
        """An expression's text, in brackets where an operator beside it would take a part of it only."""
        return self.text(node) if isinstance(node, ast.Constant) else self.atom(node)

    def given_to(self, name: str) -> list[ast.expr]:
        """What the assignments of the file give to a name, or to an attribute, alone."""
        return [
            one.value for one in ast.walk(self.tree)
            if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
        ]  # fmt: skip

    def text_with(self, node: ast.expr, pieces: Mapping[ast.expr, str]) -> str:
        """A node's text with other text in the place of some expressions in it."""
        lines, first = self.spliced(pieces, node.lineno, node.end_lineno or node.lineno), node.col_offset
        left = len(self.lines[(node.end_lineno or node.lineno) - 1].encode()) - (node.end_col_offset or 0)
        text = _joined(list(lines)).encode()
        return text[first : len(text) - left].decode()

    def augmented(self, statement: ast.AugAssign, left: str) -> str:
        """What `k += x` computes, with another left side: `left + x`."""
        sign = ast.unparse(ast.BinOp(ast.Name("k"), statement.op, ast.Name("k")))[1:-1].strip()
        return f"{left} {sign} {self.operand(statement.value)}"

    def arguments(self, call: ast.Call, changed: Mapping[str, str] = MappingProxyType({})) -> str:
        """The arguments of a call, on one line.

        Args:
          call: The call.
          changed: What stands in the place of some keywords: `{"period": 'save_freq="epoch"'}`; nothing for "".
        """
        named = [
            changed.get(one.arg, f"{one.arg}={self.text(one.value)}") if one.arg else f"**{self.text(one.value)}"
            for one in call.keywords
        ]
        return ", ".join([*map(self.text, call.args), *filter(None, named)])

    def unused_name(self, name: str, but: tuple[str, ...] = ()) -> str:
        """`name`, or `name_2`, `name_3` where the file, or `but`, has it already."""
        taken = {one.id for one in ast.walk(self.tree) if isinstance(one, ast.Name)} | set(but)
        taken |= {one.arg for one in ast.walk(self.tree) if isinstance(one, ast.arg)}
        taken |= {one.name for one in ast.walk(self.tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        return next(one for one in (name, *(f"{name}_{number}" for number in range(2, 99))) if one not in taken)

    def with_argument(self, call: ast.Call, argument: str) -> str:
        """A call with one argument more."""
        glue = ", " if call.args or call.keywords else ""
        return f"{self.text(call)[:-1].rstrip(', ')}{glue}{argument})"

    def ended(
        self, call: ast.Call, argument: str = "", behind: str = "", pieces: Mapping[ast.expr, str] | None = None
    ) -> tuple[str, ...]:
        """The lines of a call with one argument more, and text behind it; their breaks are kept.

        Args:
          call: The call.
          argument: The argument: `drop_remainder=True`.
          behind: What is asked of its result: `.cache()`.
          pieces: Expressions in it that get other text, too.
        """
        first, last = call.lineno, call.end_lineno or call.lineno
        end = ast.Name("end", ast.Load())
        end.lineno = end.end_lineno = last
        end.col_offset, end.end_col_offset = (call.end_col_offset or 1) - 1, call.end_col_offset
        before = self.lines[last - 1].encode()[: end.col_offset].decode().rstrip()
        glue = (
            "" if not argument or before.endswith("(") else " " if before.endswith(",") else ", " if before else "    "
        )
        return self.spliced({**(pieces or {}), end: f"{glue}{argument}){behind}"}, first, last)

    def replaced(self, pieces: dict[ast.expr, str], bare: bool = False) -> tuple[int, int, str] | None:
        """The lines that hold some expressions, with other text in the place of these.

        Args:
          pieces: Expressions, none inside another, and their new texts.
          bare: Whether the new text of a decorated body's call is to call the function itself: its decorator goes.

        Returns:
          The first and the last of the lines, and one line for them; None where that cannot be written on one line.
        """
        if self.decorated:
            return self._placed(pieces, bare)
        first, last, lines = self.kept_lines(pieces)
        return first, last, _joined(list(lines))

    def _placed(self, pieces: dict[ast.expr, str], bare: bool) -> tuple[int, int, str] | None:
        """The same in a file with decorated bodies: a piece may be one of the decorator's, far above the others."""
        found = undecorated(self.decorated, pieces, self.text, bare)
        if found is None:
            return None
        first, last, lines = self.kept_lines(found.texts)
        if not found.gone and self.statement(first) is self.statement(last):
            return first, last, _joined(list(lines))
        gone = {line for one in found.gone for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
        top = min([first, *gone])
        every = enumerate([*self.lines[top - 1 : first - 1], *lines], top)
        return (top, last, "\n".join(line for at, line in every if at not in gone)) if last - top < _FARTHEST else None

    def kept_lines(self, pieces: Mapping[ast.expr, str]) -> tuple[int, int, tuple[str, ...]]:
        """The same with the breaks between lines kept: first and last line, and the lines in their place."""
        first = min(node.lineno for node in pieces)
        last = max(node.end_lineno or node.lineno for node in pieces)
        return first, last, self.spliced(pieces, first, last)

    def spliced(self, pieces: Mapping[ast.expr, str], first: int, last: int) -> tuple[str, ...]:
        """Lines `first` to `last` with other text in the place of some expressions, and the breaks between lines kept.

        Where an expression goes over several lines, its new text stands on one.
        """
        lines = [line.encode() for line in self.lines[first - 1 : last]]
        for node, text in sorted(pieces.items(), key=lambda one: (one[0].lineno, one[0].col_offset), reverse=True):
            start, end = node.lineno - first, (node.end_lineno or node.lineno) - first
            if start < 0:
                raise ValueError("a decorator stands above these lines")
            after = lines[end][node.end_col_offset :]
            text = f"{node.head}{text}" if isinstance(node, _Decorated) else text
            lines[start : end + 1] = [lines[start][: node.col_offset] + text.encode() + after]
        return tuple(line.decode() for line in lines)

    def span(self, statement: ast.stmt) -> tuple[int, int]:
        """First and last line of a statement, or of a compound statement's header."""
        return statement.lineno, _header_end(statement)


def _joined(lines: list[str]) -> str:
    """Lines as one, without their comments and backslashes; a string that goes over several keeps its breaks."""
    if len(lines) == 1:
        return lines[0]
    comments, kept = _ends(lines)
    text = lines[0]
    for number, line in enumerate(lines[1:], 1):
        if number in kept:
            text += "\n" + line
            continue
        cut = comments.get(number)
        text = text[: len(text) - (len(lines[number - 1]) - cut)] if cut is not None else text.removesuffix("\\")
        text, line = text.rstrip(), line.lstrip()
        glue = "" if text.endswith(("(", "[", "{")) or line.startswith((")", "]", "}", ".", ",")) else " "
        text += glue + line if line else ""
    return text


def _ends(lines: list[str]) -> tuple[dict[int, int], set[int]]:
    """How lines end: where the comments of some begin, and which end inside a string."""
    comments: dict[int, int] = {}
    kept: set[int] = set()
    opened: list[int] = []
    try:
        for one in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            kind = tokenize.tok_name[one.type]
            if kind == "COMMENT":
                comments[one.start[0]] = one.start[1]
            elif kind == "STRING":
                kept.update(range(one.start[0], one.end[0]))
            elif kind in ("FSTRING_START", "TSTRING_START"):  # of Python 3.12 and later
                opened.append(one.start[0])
            elif kind in ("FSTRING_END", "TSTRING_END"):
                kept.update(range(opened.pop(), one.end[0]))
    except (tokenize.TokenError, SyntaxError):  # a part of a statement: what stands before its end has been read
        pass
    return comments, kept


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(int(one.lineno) for one in decorators)])


def _header_end(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        if body[0].lineno == statement.lineno:
            return statement.end_lineno or statement.lineno
        return min(max(_first(body[0]) - 1, statement.lineno), _last_of_header(statement))
    return int(statement.end_lineno or statement.lineno)


def _last_of_header(statement: ast.stmt) -> int:
    last = statement.lineno
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "handlers", "decorator_list"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                last = max([last, *(getattr(node, "end_lineno", 0) or 0 for node in ast.walk(one))])
    return last


def _without_magics(lines: list[str]) -> list[str]:
    return ["pass" if line.startswith(("%", "!")) else line for line in lines]


def _comments(lines: list[str]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where comments begin and end: line and column of each."""
    if any("#" in line for line in lines):
        text = "\n".join(_without_magics(lines)) + "\n"
        for one in tokenize.generate_tokens(io.StringIO(text).readline):
            if one.type == tokenize.COMMENT:
                yield one.start, one.end


def parsed(text: str) -> Source:
    """The source that a text is. It is kept, and read by many: who changes a node takes a copy."""
    return _parsed(text.rstrip("\n"))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Source:
    return Source(text.split("\n") if text else [])


_put: ContextVar[tuple[str, Source] | None] = ContextVar("put", default=None)
"""What is read under the name of a file that is none. Of each thread its own: programs may fail in several at once."""


def read(file: str) -> Source:
    """The source of a file, or of a cell."""
    put = _put.get()
    return put[1] if put is not None and put[0] == file else parsed("".join(current_lines(file)))


def as_read(file: str, line: int) -> tuple[str, int]:
    """Where a line is read that a frame, a message or the recording names: in the text that has it as a part, if any.

    The one answer to that question: what is named otherwise is a line of the user's file itself.
    """
    put = _put.get()
    return (file, line) if put is None or file not in put[1].above else (put[0], put[1].above[file] + line)


def begins(code: CodeType) -> tuple[str, int]:
    """Where the first line of a function's code is read."""
    return as_read(code.co_filename, code.co_firstlineno)


def definition_of(code: CodeType | None) -> tuple[str, ast.FunctionDef] | None:
    """The file and the definition of the function that a code is of; None of lambdas, and where it is not found."""
    if code is None:
        return None
    file, first = begins(code)
    for one in all_nodes(read(file).tree):
        if not isinstance(one, ast.FunctionDef) or one.name != code.co_name:
            continue
        if first in (one.lineno, *(decorator.lineno for decorator in one.decorator_list)):
            return file, one
    return None


@contextmanager
def put(file: str, source: Source) -> Iterator[None]:
    """Lets a source be read under the name of a file that is none, and in it the lines of the files that it has.

    Args:
      file: The name.
      source: The source.
    """
    before = _put.set((file, source))
    try:
        yield
    finally:
        _put.reset(before)


def dotted(node: ast.AST | None) -> str:
    """`tf.data.Dataset` for such an expression; empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def as_literal(node: ast.expr | str) -> Any:
    """What an expression, or its text, is that is written out: a number, a text, a list of them; None of others."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def names(node: ast.AST) -> list[str]:
    """Names that an expression reads, each once, in their order; those that it binds itself are left out."""
    found: list[ast.Name] = []
    _free(node, frozenset(), found)
    found.sort(key=lambda one: (one.lineno, one.col_offset))
    return list(dict.fromkeys(one.id for one in found))


def _free(node: ast.AST, bound: frozenset[str], found: list[ast.Name]) -> None:
    if isinstance(node, ast.Name):
        if node.id not in bound:
            found.append(node)
        return
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        targets = [one.target for one in node.generators]
        bound |= {part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)}
    elif isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
        bound |= {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    for one in parts:
        _free(one, bound, found)


def is_tape(node: ast.AST) -> bool:
    """Whether a statement is `with tf.GradientTape() as tape:`."""
    return isinstance(node, ast.With) and any("GradientTape(" in ast.unparse(item) for item in node.items)


def tapes_around(source: Source, line: int) -> list[ast.With]:
    """The blocks of tapes that a line is in, innermost first; its own statement, if it is one."""
    statement = source.statement(line)
    around = [] if statement is None else [statement, *source.around(statement)]
    return [one for one in around if isinstance(one, ast.With) and is_tape(one)]


def tapes(source: Source) -> list[ast.With]:
    """The blocks of tapes of a file."""
    if not any("GradientTape" in one for one in source.lines):  # a file of a library's may have 10,000 nodes
        return []
    return [one for one in all_nodes(source.tree) if isinstance(one, ast.With) and is_tape(one)]


def tapes_before(source: Source, line: int) -> list[ast.With]:
    """The blocks of tapes that a line may be about: the last above it in its function, and those of other functions."""
    blocks = tapes(source)
    here = source.function(line)
    own = [one for one in blocks if source.function(one.body[0].lineno) is here]
    above = [one for one in own if one.lineno <= line]
    last = [max(above, key=lambda one: one.lineno)] if above else own
    return [*last, *(one for one in blocks if one not in own)]


def asked_of_tape(source: Source, block: ast.With) -> list[ast.expr]:
    """What is asked of a tape in its function, or else in the file, before the next block with its name begins."""
    given = [
        [*one.args, *(each.value for each in one.keywords if each.arg == "target")]
        for one in gradients_of_tape(source, block)
    ]
    return [one[0] for one in given if one]


def gradients_of_tape(source: Source, block: ast.With) -> list[ast.Call]:
    """The calls of `tape.gradient` that ask so."""
    tapes = _names_of(block)
    function = next((one for one in source.around(block) if isinstance(one, ast.FunctionDef)), source.tree)
    same = [one for one in ast.walk(function) if isinstance(one, ast.With) and is_tape(one) and _names_of(one) & tapes]
    return [
        one for one in ast.walk(function)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "gradient"
        and dotted(one.func.value) in tapes
        and max((other for other in same if other.lineno < one.lineno), key=lambda each: each.lineno, default=block)
        is block
    ]  # fmt: skip


def _names_of(block: ast.With) -> set[str]:
    """The names of a block's tapes."""
    return {dotted(item.optional_vars) for item in block.items if item.optional_vars is not None}


def parameters(function: Function) -> list[str]:
    """Names of a function's positional parameters, without `self`."""
    found = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return found[1:] if found[:1] in (["self"], ["cls"]) else found


def indent_of(line: str) -> str:
    """The blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def short(text: str, width: int) -> str:
    """A text on one line, cut to a width."""
    text = " ".join(text.split())
    return (
        text
        if len(text) <= width
        else textwrap.shorten(text, width, placeholder=" ...")
        if " " in text[:width]
        else text[: width - 3] + "..."
    )
