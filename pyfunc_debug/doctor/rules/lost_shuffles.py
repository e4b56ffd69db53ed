"""A table that is shuffled, and of which the rows are then asked for by their labels: in the order from before.

`df = df.sample(frac=1)` keeps each row's label, and `df["x"][i]` asks for the row that is labelled i.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_that_ran
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

NAMES = ("lost-shuffle",)
_LABELS_AGAIN = ("reset_index", "set_index", "ignore_index", "to_numpy", "values", "reindex", "sort_index", "to_dict")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a table."""
    told: set[tuple[str, str]] = set()
    for ran in functions_that_ran(facts):
        own = pastes.source(facts, ran.file)
        asked: dict[str, list[ast.Subscript]] = {}
        for one in code.own_nodes(ran.function):
            table = _asked(own, ran, one)
            if table is not None and isinstance(one, ast.Subscript):
                asked.setdefault(table, []).append(one)
        for table, places in asked.items():
            shuffle = _shuffled(own, ran, table)
            if shuffle is not None and (ran.file, table) not in told:
                told.add((ran.file, table))
                yield _finding(facts, ran, table, places, shuffle)


def _asked(own: Source, ran: Ran, node: ast.AST) -> str | None:
    """The table of `df["x"][i]`, or of `df.loc[i]`, where i counts rows."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(index, ast.Name) or not _counts(own, ran, index):
        return None
    value = node.value
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and type(value.slice.value) is str:
        return dotted(value.value) or None
    return dotted(value.value) or None if isinstance(value, ast.Attribute) and value.attr == "loc" else None


def _counts(own: Source, ran: Ran, index: ast.Name) -> bool:
    """Whether a name goes through `range(...)`, or is what `__getitem__` is asked for."""
    name = index.id
    for one in code.own_nodes(ran.function):
        if isinstance(one, ast.For) and dotted(one.target) == name:
            return isinstance(one.iter, ast.Call) and dotted(one.iter.func) == "range"
    stored = pastes.assigned(ran.function, name)
    item = isinstance(ran.function, ast.FunctionDef) and ran.function.name == "__getitem__"
    return item and not stored and name in code.parameters(ran.function)


def _shuffled(own: Source, ran: Ran, table: str) -> ast.Call | None:
    """The `sample(frac=1)` that made a table what it is, if it kept the labels; also one given to an object."""
    made = _last(own, table)
    if isinstance(made, ast.Name) and table.startswith("self."):
        given = pastes.assigned(own.tree, table)
        holder = next((one for one in own.around(ran.function) if isinstance(one, ast.ClassDef)), None)
        if len(given) != 1 or not isinstance(given[0], ast.Name) or holder is None:
            return None
        outer = [_argument(holder, one, given[0].id) for one in pastes.walk(own.tree, ast.Call)
                 if dotted(one.func) == holder.name]  # fmt: skip
        tables = {dotted(one) for one in outer if one is not None}
        made = _last(own, tables.pop()) if len(tables) == 1 else None
    if not isinstance(made, ast.Call) or any(word in ast.unparse(made) for word in _LABELS_AGAIN):
        return None
    name = pastes.last_name(made.func)
    every = any(word.arg == "frac" and ast.unparse(word.value) in ("1", "1.0") for word in made.keywords)
    return made if name == "sample" and every else None


def _last(own: Source, table: str) -> ast.expr | None:
    """What the last assignment of a file gives a table's name; None where a line below it labels the rows again."""
    made = [one for one in pastes.walk(own.tree, ast.Assign) if [dotted(each) for each in one.targets] == [table]]
    last = max(made, key=lambda one: one.lineno, default=None)
    if last is None or not table:
        return None
    calls = [dotted(one.func) for one in pastes.walk(own.tree, ast.Call)]
    return None if {f"{table}.reset_index", f"{table}.set_index"} & set(calls) else last.value


def _argument(holder: ast.ClassDef, call: ast.Call, name: str) -> ast.expr | None:
    """What a call of a class gives its `__init__` for a parameter."""
    init = next((one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if init is None:
        return None
    named = next((word.value for word in call.keywords if word.arg == name), None)
    names = [one.arg for one in init.args.args[1:]]
    place = names.index(name) if name in names else len(call.args)
    return named or (call.args[place] if place < len(call.args) else None)


def _finding(facts: Facts, ran: Ran, table: str, places: list[ast.Subscript], shuffle: ast.Call) -> Finding:
    own, first = pastes.source(facts, ran.file), places[0]
    text = own.text(first)
    index = first.slice.elts[0] if isinstance(first.slice, ast.Tuple) else first.slice
    pieces: dict[ast.expr, str] = {}
    for one in places:
        if isinstance(one.value, ast.Attribute):  # df.loc[i] and df.loc[i, "x"]
            parts = one.slice.elts if isinstance(one.slice, ast.Tuple) else []
            column = f"[{own.text(parts[1])}]" if len(parts) == 2 and isinstance(parts[1], ast.Constant) else ""
            if not parts or column:
                pieces[one] = f"{table}{column}.iloc[{own.text(index)}]"
        else:
            pieces[one.value] = f"{own.text(one.value)}.iloc"
    return Finding(
        NAMES[0], "warning", ran.group[0].id if ran.group else None, (),
        f"{text} asks for the row that is labelled {own.text(index)}, and {own.text(shuffle)} in line {shuffle.lineno} "
        "keeps each row's label: the rows come in the order from before the shuffle",
        pastes.all_replaced(facts, ran.file, pieces) if pieces else f"ask by position: {table}.iloc[...]",
        ran.file, first.lineno,
        evidence=(f"line {shuffle.lineno}: {facts.line(ran.file, shuffle.lineno)}",), confidence="likely",
    )  # fmt: skip
