"""Classes that are numbered by their place in a set of texts, which is another one in each run of Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.records import Finding

NAMES = ("set-order",)
_SETS = ("set", "frozenset")
_LISTS = ("list", "tuple", "array", "asarray", "constant")
"""What takes the elements in the order in which they come."""
_OF_TEXTS = {"decode", "lower", "upper", "strip", "lstrip", "rstrip", "replace", "format", "join", "title",
             "capitalize", "removeprefix", "removesuffix", "basename", "dirname", "str", "repr"}  # fmt: skip
_LISTS_OF_TEXTS = {"split", "rsplit", "splitlines", "listdir", "glob", "iglob", "splitext", "partition", "rpartition"}
_PARTS_OF_PATHS = ("stem", "suffix")
_LAYERS = ("StringLookup", "KeyValueTensorInitializer")
_KEEPS = (
    "dump",
    "dumps",
    "save",
    "savez",
    "savetxt",
    "write",
    "writelines",
    "write_text",
    "to_json",
    "savez_compressed",
)
_SORTS = ("sort",)
_DEPTH = 6


@dataclass(frozen=True)
class _Unordered:
    """A set whose elements are put in a row.

    Attributes:
      place: What is to be replaced: the set, or the call around it that makes a list.
      made: The set.
      texts: Whether the source says that its elements are texts.
    """

    place: ast.expr
    made: ast.expr
    texts: bool


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a set whose elements get numbers."""
    if facts.meta.get("hash_seed"):
        return
    for file in facts.files:
        if not any("set(" in line or "{" in line for line in facts.code(file)):
            continue
        own = pastes.source(facts, file)
        told: set[tuple[int, int]] = set()
        for use, row, asked in _numbered(own):
            found = _row(own, row, row.lineno, 0)
            if found is None or _is_kept(own, use, row):
                continue
            if not found.texts and (asked is None or not _is_text(own, asked, asked.lineno, 0)):
                continue
            if (place := (found.place.lineno, found.place.col_offset)) not in told:
                told.add(place)
                yield _finding(facts, file, own, use, found)


def _finding(facts: Facts, file: str, own: Source, use: ast.expr, found: _Unordered) -> Finding:
    by = "" if found.texts else ", key=str"
    fix = pastes.written(pastes.replaced(facts, file, {found.place: f"sorted({own.text(found.made)}{by})"}))
    text = short(pastes.text_of(facts, file, use), 60)
    where = "" if use.lineno == found.place.lineno else f" (line {use.lineno})"
    return Finding(
        NAMES[0], "warning", None, (),
        f"{text}{where} takes places in a set of texts for numbers. Hashes of texts differ from one run of a program "
        "to the next, and so does the order of the set: the same classes get other numbers then, and the outputs of a "
        "model that was saved mean other classes",
        fix or "sort the set before it is numbered: sorted(...)", file, found.place.lineno, confidence="likely",
    )  # fmt: skip


def _numbered(own: Source) -> Iterator[tuple[ast.expr, ast.expr, ast.expr | None]]:
    """Where elements get their place as a number: the expression, the row of elements, and which one is asked for."""
    for one in pastes.walk(own.tree, ast.expr):
        if isinstance(one, ast.Call):
            name, first = pastes.last_name(one.func), one.args[0] if one.args else None
            if name == "index" and isinstance(one.func, ast.Attribute) and first is not None and len(one.args) == 1:
                yield one, one.func.value, first
            elif name in _LAYERS:
                given = first or next((each.value for each in one.keywords if each.arg == "vocabulary"), None)
                if given is not None:
                    yield one, given, ast.Constant("", lineno=one.lineno) if name == _LAYERS[0] else None
            elif name == "dict" and isinstance(first, ast.Call) and _is_zip(first) and _is_looked_up(own, one):
                yield one, first.args[0], None
        elif isinstance(one, ast.DictComp) and len(one.generators) == 1 and not one.generators[0].ifs:
            row = _row_of_comprehension(one)
            if row is not None and _is_looked_up(own, one):
                yield one, row, None
    for loop in pastes.walk(own.tree, ast.For):
        counted = loop.iter if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "enumerate" else None
        names = [dotted(one) for one in loop.target.elts] if isinstance(loop.target, ast.Tuple) else []
        if counted is None or not counted.args or len(names) != 2:
            continue
        for stored in pastes.walk(loop, ast.Assign):
            target = stored.targets[0]
            if isinstance(target, ast.Subscript) and [dotted(target.slice), _number(stored.value)] == names[::-1]:
                yield target, counted.args[0], None


def _row_of_comprehension(made: ast.DictComp) -> ast.expr | None:
    """What `{name: i for i, name in enumerate(row)}` numbers."""
    target, given = made.generators[0].target, made.generators[0].iter
    names = [dotted(one) for one in target.elts] if isinstance(target, ast.Tuple) else []
    if not isinstance(given, ast.Call) or len(names) != 2 or not given.args:
        return None
    if dotted(given.func) == "enumerate":
        return given.args[0] if (dotted(made.key), _number(made.value)) == (names[1], names[0]) else None
    return given.args[0] if _is_zip(given) and (dotted(made.key), dotted(made.value)) == (names[0], names[1]) else None


def _number(value: ast.expr) -> str:
    """`i` of `i`, `i + 1`, `np.int64(i)`."""
    if isinstance(value, ast.BinOp) and isinstance(value.right, ast.Constant):
        return _number(value.left)
    return _number(value.args[0]) if isinstance(value, ast.Call) and len(value.args) == 1 else dotted(value)


def _is_zip(call: ast.Call) -> bool:
    """`zip(row, range(...))`."""
    numbers = call.args[1] if dotted(call.func) == "zip" and len(call.args) == 2 else None
    return isinstance(numbers, ast.Call) and pastes.last_name(numbers.func) in ("range", "arange", "count")


def _is_looked_up(own: Source, made: ast.expr) -> bool:
    """Whether a table's name is asked for an element."""
    parent = own.parent(made)
    names = {dotted(one) for one in parent.targets} if isinstance(parent, ast.Assign) else set()
    for one in pastes.walk(own.tree, ast.expr):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and dotted(one.value) in names:
            return True
        if isinstance(one, ast.Attribute) and one.attr in ("get", "__getitem__") and dotted(one.value) in names:
            return True
    return False


def _is_kept(own: Source, use: ast.expr, row: ast.expr) -> bool:
    """Whether the program writes the classes, or the table of their numbers, into a file: then it may read them."""
    parent = own.parent(use)
    names = {dotted(one) for one in parent.targets} if isinstance(parent, ast.Assign) else set()
    names |= {dotted(use.value)} if isinstance(use, ast.Subscript) else set()
    names = (names | {dotted(row)}) - {""}
    return any(
        names & {dotted(part) for part in ast.walk(call)}
        for call in pastes.walk(own.tree, ast.Call) if pastes.last_name(call.func) in _KEEPS
    )  # fmt: skip


def _row(own: Source, given: ast.expr, line: int, depth: int) -> _Unordered | None:
    """The set of whose elements a row is made, if nothing puts them in order."""
    if depth > _DEPTH:
        return None
    if _is_set(own, given, line, depth):
        return _Unordered(given, given, _are_texts(own, given, line, depth))
    if isinstance(given, (ast.Name, ast.Attribute)):
        made = _made(own, given, line)
        return None if made is None else _row(own, made[0], made[1], depth + 1)
    if isinstance(given, ast.Call) and len(given.args) == 1 and pastes.last_name(given.func) in _LISTS:
        found = _row(own, given.args[0], line, depth + 1)
        plain = dotted(given.func) == "list" and found is not None and found.place is found.made is given.args[0]
        return _Unordered(given, found.made, found.texts) if plain and found is not None else found
    if isinstance(given, ast.List) and len(given.elts) == 1 and isinstance(given.elts[0], ast.Starred):
        return _row(own, given.elts[0].value, line, depth + 1)
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)) and len(given.generators) == 1:
        return _row(own, given.generators[0].iter, line, depth + 1)
    return None


def _is_set(own: Source, given: ast.expr, line: int, depth: int) -> bool:
    if isinstance(given, (ast.Set, ast.SetComp)):
        return True
    if isinstance(given, ast.Call):
        return dotted(given.func) in _SETS and len(given.args) == 1
    if isinstance(given, ast.BinOp) and isinstance(given.op, (ast.BitOr, ast.Sub, ast.BitAnd)) and depth < _DEPTH:
        return any(
            _is_set(own, made[0], made[1], depth + 1) for side in (given.left, given.right)
            if (made := _made(own, side, line) if isinstance(side, ast.Name) else (side, line)) is not None
        )  # fmt: skip
    if isinstance(given, ast.Name) and depth < _DEPTH:  # filled by a loop
        made = _made(own, given, line)
        return made is not None and ast.unparse(made[0]) in ("set()", "frozenset()")
    return False


def _made(own: Source, given: ast.expr, line: int) -> tuple[ast.expr, int] | None:
    """What a name, or an attribute of self, was given last above a line; None where that cannot be told."""
    name = dotted(given)
    scope = _scope(own, given, name)
    if not name or scope is None:
        return None
    stored: list[ast.stmt] = []
    for one in pastes.walk(scope, ast.AST):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and dotted(one.func.value) == name:
            if one.func.attr in _SORTS:
                return None
        elif isinstance(one, ast.stmt) and not isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            if any(dotted(part) == name for target in targets if target is not None for part in ast.walk(target)):
                stored.append(one)
    here = [one for one in stored if one.lineno < line]
    own_scope = next((one for one in own.around(given) if isinstance(one, ast.FunctionDef)), own.tree)
    last = max(here if own_scope is scope else stored, key=lambda one: one.lineno, default=None)
    if last is None or not isinstance(last, (ast.Assign, ast.AnnAssign)) or last.value is None:
        return None
    if isinstance(last, ast.Assign) and [dotted(one) for one in last.targets] != [name]:
        return None
    return last.value, last.lineno


def _scope(own: Source, given: ast.expr, name: str) -> ast.AST | None:
    """The innermost function around a name that assigns it, or the file; None where it is a parameter."""
    if name.startswith("self."):
        return own.tree
    for one in own.around(given):
        if isinstance(one, (ast.FunctionDef, ast.Lambda)):
            if name in code.parameters(one):
                return None
            if isinstance(one, ast.FunctionDef) and name in code.local_names(one):
                return one
        generators = getattr(one, "generators", ())
        if any(name in code.stored_names(each.target) for each in generators):
            return None
    return own.tree


def _are_texts(own: Source, given: ast.expr, line: int, depth: int) -> bool:
    """Whether the elements of something are texts, as far as the source says."""
    if depth > _DEPTH:
        return False
    if isinstance(given, (ast.Set, ast.List, ast.Tuple)):
        return bool(given.elts) and all(_is_text(own, one, line, depth + 1) for one in given.elts)
    if isinstance(given, (ast.SetComp, ast.ListComp, ast.GeneratorExp)):
        return _is_text(own, given.elt, line, depth + 1)
    if isinstance(given, ast.BinOp) and not isinstance(given.op, ast.Div):
        return _are_texts(own, given.left, line, depth + 1)
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice):
        return _are_texts(own, given.value, line, depth + 1)
    if isinstance(given, ast.Call):
        name, first = pastes.last_name(given.func), given.args[0] if given.args else None
        if name in _LISTS_OF_TEXTS:
            return isinstance(given.func, ast.Attribute) or name in ("glob", "listdir")
        if name == "map" and len(given.args) == 2:
            return pastes.last_name(given.args[0]) in _OF_TEXTS
        inside = name in (*_SETS, *_LISTS, "sorted") and first is not None
        return inside and first is not None and _are_texts(own, first, line, depth + 1)
    if isinstance(given, (ast.Name, ast.Attribute)):
        filled = _filled(own, given)
        made = _made(own, given, line)
        if made is not None and not (filled and ast.unparse(made[0]) in ("set()", "[]", "list()")):
            return _are_texts(own, made[0], made[1], depth + 1)
        return bool(filled) and all(
            (_are_texts if many else _is_text)(own, one, one.lineno, depth + 1) for one, many in filled
        )
    return False


def _filled(own: Source, given: ast.expr) -> list[tuple[ast.expr, bool]]:
    """What is added to a set or a list, and whether that is several elements."""
    return [
        (one.args[0], one.func.attr in ("update", "extend")) for one in pastes.walk(own.tree, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("add", "append", "update", "extend")
        and len(one.args) == 1 and dotted(one.func.value) == dotted(given) != ""
    ]  # fmt: skip


def _is_text(own: Source, given: ast.expr, line: int, depth: int) -> bool:
    """Whether an expression is a text, as far as the source says."""
    if depth > _DEPTH:
        return False
    if isinstance(given, ast.Constant):
        return isinstance(given.value, (str, bytes))
    if isinstance(given, ast.JoinedStr):
        return True
    if isinstance(given, ast.BinOp):
        return isinstance(given.op, (ast.Add, ast.Mod)) and _is_text(own, given.left, line, depth + 1)
    if isinstance(given, ast.Call):
        return pastes.last_name(given.func) in _OF_TEXTS
    if isinstance(given, ast.Attribute):
        return given.attr in _PARTS_OF_PATHS or (given.attr == "name" and dotted(given.value).endswith("parent"))
    if isinstance(given, ast.Subscript):
        inside = _is_text(own, given.value, line, depth + 1)
        return inside or (not isinstance(given.slice, ast.Slice) and _are_texts(own, given.value, line, depth + 1))
    if not isinstance(given, ast.Name):
        return False
    for one in own.around(given):
        loops: Mapping[ast.expr, ast.expr] = {}
        if isinstance(one, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            loops = {each.target: each.iter for each in one.generators}
        elif isinstance(one, ast.For):
            loops = {one.target: one.iter}
        for target, values in loops.items():
            if dotted(target) == given.id:
                return _are_texts(own, values, line, depth + 1)
            if isinstance(target, ast.Tuple) and given.id in [dotted(part) for part in target.elts]:
                at = [dotted(part) for part in target.elts].index(given.id)
                return _is_column_of_texts(own, values, at, line, depth)
    made = _made(own, given, line)
    return made is not None and _is_text(own, made[0], made[1], depth + 1)


def _is_column_of_texts(own: Source, values: ast.expr, at: int, line: int, depth: int) -> bool:
    """Whether the values at one place of written pairs are texts: `[("a.png", "cat"), ...]`."""
    made = _made(own, values, line) if isinstance(values, ast.Name) else (values, line)
    rows = made[0].elts if made is not None and isinstance(made[0], (ast.List, ast.Tuple)) else []
    found = [one.elts[at] for one in rows if isinstance(one, (ast.Tuple, ast.List)) and len(one.elts) > at]
    return bool(rows) and len(found) == len(rows) and all(_is_text(own, one, line, depth + 1) for one in found)
