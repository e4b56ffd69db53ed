"""An attribute that `call` sets while Keras traces it, printed after `fit`: a symbol, where its values are wanted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

_RUNS = ("fit", "evaluate", "predict")
_ARRAYS = ("np.", "numpy.")


def printed_later(facts: Facts) -> Iterator[Finding]:
    """One finding a line outside of graphs that prints a tensor of a graph which a method of Keras' kept.

    Args:
      facts: The recording.
    """
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices["printed-symbol"]:
        file, line = str(noticed["file"]), int(noticed["line"])
        statement = pastes.source(facts, file).statement(line) if noticed["graph"] else None
        if statement is None or (file, line) in told:
            continue
        for one in (part for part in ast.walk(statement) if isinstance(part, ast.Attribute)):
            kept = [
                (method, each) for holder in pastes.walk(facts.tree(file), ast.ClassDef) for method in holder.body
                if isinstance(method, ast.FunctionDef) and method.name != "__init__" and not method.decorator_list
                for each in pastes.walk(method, ast.Assign)
                if [ast.unparse(target) for target in each.targets] == [f"self.{one.attr}"]
            ]  # fmt: skip
            if len(kept) == 1 and isinstance(one.ctx, ast.Load):
                told.add((file, line))
                yield _finding(facts, file, statement, one, *kept[0])
                break


def _finding(
    facts: Facts, file: str, statement: ast.stmt, printed: ast.Attribute, method: ast.FunctionDef, kept: ast.Assign
) -> Finding:
    own = pastes.source(facts, file)
    text = own.text(printed)
    model, data = _ran(facts, file, statement)
    again = f"{model}({data}[:32])  # outside of fit: {text} has values then"
    fix = pastes.written(pastes.above(facts, file, statement.lineno, again)) if data else (
        f"call {model or 'the model'} with a batch, outside of fit, above line {statement.lineno}: then it has values"
    )  # fmt: skip
    return Finding(
        "printed-symbol", "note", None, (),
        f"{text} is a symbol without values: {method.name} set it (line {kept.lineno}) as TensorFlow traced it, and "
        "no run of the graph does",
        fix, file, statement.lineno, evidence=(f"line {kept.lineno}: {facts.line(file, kept.lineno)}",),
    )  # fmt: skip


def _ran(facts: Facts, file: str, statement: ast.stmt) -> tuple[str, str]:
    """The model that Keras ran above a line, and the array of NumPy's that it got; "" for what is not known."""
    tree = facts.tree(file)
    for at, line in sorted(pastes.keras_sites(facts), reverse=True):
        for name in _RUNS if at == file and line < statement.lineno else ():
            call = pastes.call_at(facts, file, line, name)
            data = pastes.argument(call, 0, "x") if call is not None else None
            if call is None or data is None:
                continue
            made = pastes.assigned(tree, data.id) if isinstance(data, ast.Name) else [data]
            known = bool(made) and all(ast.unparse(one).startswith(_ARRAYS) for one in made)
            return ast.unparse(call.func).rpartition(".")[0], ast.unparse(data) if known else ""
    return "", ""
