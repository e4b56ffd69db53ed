"""Bodies that compare bytes with text: TensorFlow gives a body its strings as bytes, and the two are never equal."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.text_inputs import helper_of, is_eager, texts_given
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.program import syntax
from pyfunc_debug.program.frames import is_installed
from pyfunc_debug.records import Finding, Node

NAMES = ("bytes-compared",)
_KEEP = {
    "split", "rsplit", "strip", "lstrip", "rstrip", "lower", "upper", "replace", "removeprefix", "removesuffix",
    "partition", "rpartition", "numpy", "item", "tolist", "copy",
}  # fmt: skip
"""Methods that give bytes, or lists of them, of bytes."""
_PATHS = {"basename", "dirname", "splitext", "split", "join", "normpath", "abspath"}
"""Functions of os.path that give bytes for bytes."""
_TAKES_ALL = {"keys", "tolist", "to_list", "to_numpy", "unique"}
"""Methods that give all keys of a dict, or all elements of an array or a column."""
_FILLS = {"add", "append", "extend", "insert", "setdefault", "update"}


@dataclass(frozen=True)
class _Compared:
    node: ast.expr
    side: ast.expr
    root: str
    outcome: str
    table: str = ""  # its name, where only the program's run tells that it is one of text


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body or generator."""
    every = [(group[0], group[0].id, facts.calls_of(group).count) for group in facts.lines]
    every += [(node, start.id, facts.calls(start.id).count) for node, start in facts.generators.values()]
    known = {node: one["tables"] for node, _, one in facts.notices.get(Notice.TEXT_TABLES, []) if node}
    asked = [
        (*one, function) for one in every
        if (function := _may_compare(facts, one[0], one[0].id in known)) is not None
    ]  # fmt: skip
    given = texts_given(facts, [source for _, source, _, _ in asked])
    seen: set[tuple[str | None, int]] = set()
    for node, source, count, function in asked:
        strings, first = given.get(source, ({}, 0))
        if source != node.id:  # `args` go to a generator's parameters by position
            names = code.parameters(function)
            places = {f"args[{place}]": name for place, name in enumerate(names[names[:1] == ["self"] :])}
            strings = {places[path]: array for path, array in strings.items() if path in places}
        for one in _compared(function, strings, is_eager(node), facts.tree(node.file), known.get(node.id, {})):
            if (node.file, one.node.lineno) in seen:
                continue
            seen.add((node.file, one.node.lineno))
            yield _finding(facts, node, function, one, strings, first, count if source == node.id else None)
            break


def _may_compare(facts: Facts, node: Node, known: bool) -> Definition | None:
    """The function of a node where it, or one that it calls, compares or looks up anything: of most, none does.

    Args:
      facts: The recording.
      node: The node.
      known: Whether it is known to read a table of text.
    """
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or known:
        return function
    helpers = [one for part in code.own_nodes(function) if (one := helper_of(part, tree)) is not None]
    asks = any(
        isinstance(part, ast.Compare) or (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        and part.func.attr == "get") for one in (function, *helpers) for part in code.own_nodes(one)
    )  # fmt: skip
    return function if asks else None


def _finding(
    facts: Facts, node: Node, function: Definition, one: _Compared, strings: dict[str, bool], call: int,
    calls: int | None,
) -> Finding:  # fmt: skip
    text = pastes.text_of(facts, node.file, one.node)
    edit = ""
    array, eager = strings[one.root], is_eager(node)
    if is_installed(node.file or ""):
        edit = f"leave {one.root} out of inp: a lambda hands it to {facts.name(node)} as text"
    elif _takes_bytes(function) or (array and eager):
        edit = pastes.written(pastes.replaced(facts, node.file, {
            one.side: f"{pastes.text_of(facts, node.file, one.side)}.decode()"
        }))  # fmt: skip
    elif eager:
        edit = pastes.all_replaced(facts, node.file, {
            part: f"{pastes.text_of(facts, node.file, part)}.decode()"
            for part in code.own_nodes(function)
            if isinstance(part, ast.Call) and ast.unparse(part) == f"{one.root}.numpy()"
        })  # fmt: skip
    elif (line := pastes.beginning(function)) is not None:
        new = f"[one.decode() for one in {one.root}]" if array else f"{one.root}.decode()"
        tree = facts.tree(node.file)
        if any(helper_of(part, tree) is function for part in pastes.walk(tree, ast.Call)):  # there it may get text
            new += f" if isinstance({one.root}{'[0]' * array}, bytes) else {one.root}"
        edit = pastes.written(pastes.above(facts, node.file, line, f"{one.root} = {new}"))
    of = f"in {facts.name(node)}: from_generator gives a generator the strings of its args"
    if calls is not None:
        of = f"({calls:,} call{'s' if calls != 1 else ''} of {facts.name(node)}): a body gets its strings"
    return Finding(
        "bytes-compared", "warning", node.id, (call,),
        f"`{text}` {one.outcome} {of} as bytes, and b'text' never equals 'text'",
        edit or f"{one.root}.decode()  # once, before it is compared",
        node.file, one.node.lineno, evidence=(
            f"call #{call}: {facts.inputs(call)}",
            *([f"all that `{one.table}` had, as the graph was made, was text"] if one.table else []),
        ),
    )  # fmt: skip


def _takes_bytes(function: Definition) -> bool:
    """Whether a function works with bytes, too: then its parameters have to stay what they are."""
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, bytes))
        or (isinstance(part, ast.Attribute) and part.attr == "decode")
        for part in ast.walk(function)
    )


def _compared(
    function: Definition, strings: dict[str, bool], eager: bool, tree: ast.Module | None, tables: Mapping[str, str],
    depth: int = 2,
) -> list[_Compared]:  # fmt: skip
    """Comparisons of a value that comes from such an input with text that is in the program.

    Args:
      function: A body, a generator, or a function that it calls.
      strings: Its parameters that are bytes, or tensors of them.
      eager: Whether they are tensors.
      tree: The file.
      tables: Names of what holds text only, and what each is (see `text_tables`).
      depth: How far functions of the file are followed.
    """
    own_names = code.local_names(function) - {"self"}
    known = {one: kind for one, kind in tables.items() if code.root(syntax.expression(one)) not in own_names}
    known = {one: kind for one, kind in known.items() if not _is_filled(function, one)}
    roots = {name: name for name in strings if name in code.parameters(function) and not eager}
    texts: set[str] = set()  # names that loops give one text after the other
    changed = {
        part.id for one in code.own_nodes(function) if isinstance(one, (ast.Assign, ast.AugAssign, ast.NamedExpr))
        for target in getattr(one, "targets", None) or [one.target]  # type: ignore[union-attr]
        for part in ast.walk(target) if isinstance(part, ast.Name)
    }  # fmt: skip
    found: list[_Compared] = []

    def root(node: ast.AST | None) -> str | None:
        if isinstance(node, ast.Name):
            return roots.get(node.id)
        if isinstance(node, ast.Subscript):
            return root(node.value)
        if not isinstance(node, ast.Call):
            return None
        name = ast.unparse(node.func).rpartition(".")[2]
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if eager and name == "numpy" and isinstance(owner, ast.Name) and owner.id in strings:
                return owner.id
            if name in _KEEP and root(owner) is not None:
                return root(owner)
        return root(node.args[0]) if name in _PATHS and node.args else None

    def is_text(node: ast.expr) -> bool:
        if not isinstance(node, ast.Name):
            return _texts([node])
        if node.id in own_names:
            return node.id in texts and node.id not in changed
        made = pastes.assigned(tree, node.id)
        return len(made) == 1 and isinstance(made[0], ast.expr) and _texts([made[0]])

    def look_into(node: ast.AST) -> None:
        """Notes what looks into a table that is known to be one of text."""
        key, whole, outcome = None, None, "never finds anything"
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right, op = node.left, node.comparators[0], node.ops[0]
            if isinstance(op, (ast.In, ast.NotIn)) and _kind(right, known) != "column":
                key, whole, outcome = left, right, f"is always {isinstance(op, ast.NotIn)}"
            elif isinstance(op, ast.Eq):
                key, whole = (left, right) if root(left) else (right, left)
                outcome = "is False for every element"
                whole = whole if _kind(whole, known) in ("array", "column") else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            key, whole = next(iter(node.args), None), node.func.value
            whole = whole if _kind(whole, known) in ("dict", "default") else None
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            kind = _kind(node.value, known)
            key, whole = node.slice, node.value if kind == "default" or (kind == "dict" and node in tried) else None
            outcome = "is always what the dict makes of a new key" if kind == "default" else outcome
        own = root(key) if whole is not None and _kind(whole, known) else None
        if own is not None and isinstance(key, ast.expr) and isinstance(node, ast.expr) and whole is not None:
            found.append(_Compared(node, key, own, outcome, ast.unparse(whole)))

    def look(node: ast.AST) -> None:
        before = len(found)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right, op = node.left, node.comparators[0], node.ops[0]
            if isinstance(op, (ast.In, ast.NotIn)):
                side, own, hit = left, root(left), _are_texts(right, tree)
                hit = hit and not _is_filled(function, ast.unparse(right))
            else:
                side = left if root(left) else right
                own = root(side)
                hit = isinstance(op, (ast.Eq, ast.NotEq)) and is_text(right if root(left) else left)
            if own is not None and hit:
                found.append(_Compared(node, side, own, f"is always {isinstance(op, (ast.NotEq, ast.NotIn))}"))
        if known and len(found) == before:
            look_into(node)
        if not isinstance(node, ast.Call):
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args and len(found) == before:
            own = root(node.args[0])
            whole = node.func.value
            if own is not None and _are_texts(whole, tree, True) and not _is_filled(function, ast.unparse(whole)):
                found.append(_Compared(node, node.args[0], own, "never finds anything"))
        helper = helper_of(node, tree) if depth else None
        if helper is None or helper is function:
            return
        for name, given in zip(code.parameters(helper), node.args):
            own = root(given)
            inside = _compared(helper, {name: False}, False, tree, tables, depth - 1) if own is not None else []
            found.extend(_Compared(one.node, given, own, one.outcome, one.table) for one in inside if own is not None)

    def bind(target: ast.expr, source: ast.AST | None) -> None:
        called = ast.unparse(source.func) if isinstance(source, ast.Call) else ""
        if isinstance(source, ast.Call) and isinstance(target, ast.Tuple) and called in ("zip", "enumerate"):
            for part, given in zip(target.elts[called == "enumerate" :], source.args):
                bind(part, given)
            return
        own = root(source)
        for name in (part.id for part in ast.walk(target) if isinstance(part, ast.Name)):
            if own is None:
                roots.pop(name, None)
            else:
                roots[name] = own

    tried = {
        part for node in code.own_nodes(function) if isinstance(node, ast.Try) and node.handlers for line in node.body
        for part in ast.walk(line)
    }  # fmt: skip
    for node in code.own_nodes(function):
        for one in getattr(node, "generators", ()):  # of a comprehension
            texts.update(_given_texts(one.target, one.iter, tree))
            bind(one.target, one.iter)
        look(node)
        if isinstance(node, ast.For):
            texts.update(_given_texts(node.target, node.iter, tree))
            bind(node.target, node.iter)
        for target in node.targets if isinstance(node, ast.Assign) else ():
            bind(target, node.value)  # type: ignore[attr-defined]  # it is an Assign
    return found


def _kind(node: ast.AST, known: Mapping[str, str]) -> str:
    """What table of text an expression is, or all of such a one (`df["file"].values`); "" where it is none."""
    text = ast.unparse(node)
    if text in known:
        return known[text]
    if isinstance(node, ast.Attribute) and f"{ast.unparse(node.value)}[{node.attr!r}]" in known:  # df.file
        return known[f"{ast.unparse(node.value)}[{node.attr!r}]"]
    whole: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKES_ALL:
        whole = node.func.value
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("sorted", "list", "tuple", "set") and node.args:
        whole = node.args[0]
    elif isinstance(node, ast.Attribute) and node.attr == "values":
        whole = node.value
    return "list" if whole is not None and _kind(whole, known) else ""


def _is_filled(function: Definition, table: str) -> bool:
    """Whether a function puts anything into a table."""
    for node in code.own_nodes(function):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if ast.unparse(node.value) == table:
                return True
        elif isinstance(node, ast.Attribute) and node.attr in _FILLS and ast.unparse(node.value) == table:
            return True
    return False


def _texts(nodes: list[ast.expr]) -> bool:
    return bool(nodes) and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in nodes)


def _are_texts(node: ast.expr | None, tree: ast.Module | None, tables: bool = False) -> bool:
    """Whether it is a list of texts, or a dict with such keys, which the file writes out.

    Args:
      node: The expression, or a name that is given such a one once.
      tree: The file.
      tables: Whether only a dict counts.
    """
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = pastes.assigned(tree, ast.unparse(node))
        return len(made) == 1 and not isinstance(made[0], ast.Name) and _are_texts(made[0], tree, tables)
    if isinstance(node, ast.Dict):
        return _texts([one for one in node.keys if one is not None])
    if isinstance(node, ast.DictComp):
        return _is_one_of_texts(node.key, node.generators[0], tree)
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if called == "dict" and isinstance(given, ast.Call) and ast.unparse(given.func) == "zip" and given.args:
        return _are_texts(given.args[0], tree)
    if tables:
        return False
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return _texts(node.elts)
    return called in ("sorted", "list", "tuple", "set") and _are_texts(given, tree)


def _given_texts(target: ast.expr, source: ast.expr, tree: ast.Module | None) -> Iterator[str]:
    """The names that a loop gives one text after the other: of a list of them, or the keys of a dict."""
    called = ast.unparse(source.func).rpartition(".")[2] if isinstance(source, ast.Call) else ""
    if isinstance(source, ast.Call) and isinstance(target, ast.Tuple) and called in ("zip", "enumerate"):
        for part, given in zip(target.elts[called == "enumerate" :], source.args):
            yield from _given_texts(part, given, tree)
    elif isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and called in ("items", "keys"):
        key = target.elts[0] if called == "items" and isinstance(target, ast.Tuple) and target.elts else target
        if isinstance(key, ast.Name) and _are_texts(source.func.value, tree, True):
            yield key.id
    elif isinstance(target, ast.Name) and _are_texts(source, tree):
        yield target.id


def _is_one_of_texts(key: ast.expr, part: ast.comprehension, tree: ast.Module | None) -> bool:
    """Whether the key of a dict is what a comprehension takes from texts, `for i, name in enumerate(names)`."""
    target, source = part.target, part.iter
    if isinstance(source, ast.Call) and ast.unparse(source.func) in ("enumerate", "zip") and source.args:
        first = ast.unparse(source.func) == "enumerate"
        target = target.elts[first] if isinstance(target, ast.Tuple) and len(target.elts) > first else target
        source = source.args[0]
    return ast.unparse(key) == ast.unparse(target) and _are_texts(source, tree)
