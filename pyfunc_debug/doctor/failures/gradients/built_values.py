"""What a layer's `build` computes of its weights and keeps: a value of then, whatever the weights become."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_MAKERS = ("Variable", "add_weight", "add_variable")
_MOST_LINES = 30


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an optimizer got no gradient, and one layer of the user's computes so in `build`."""
    if situation.body or _SAID not in situation.message:
        return None
    found = [
        (file, source, one, lines) for file, source in situation.sources() for one in all_nodes(source.tree)
        if isinstance(one, ast.ClassDef) and (lines := computed(one))
    ]  # fmt: skip
    return told(*found[0], RULE, "No variable has a gradient.") if len(found) == 1 else None


def computed(layer: ast.ClassDef) -> list[ast.Assign]:
    """The lines of `build` that compute what `call` reads, of the layer's weights."""
    build, call = (_method(layer, name) for name in ("build", "call"))
    if build is None or call is None:
        return []
    weights = {
        dotted(one.targets[0]) for one in all_nodes(layer) if isinstance(one, ast.Assign) and _is_made(one.value)
    }  # fmt: skip
    found: list[ast.Assign] = []
    for one in build.body:
        kept = dotted(one.targets[0]) if isinstance(one, ast.Assign) and len(one.targets) == 1 else ""
        if not isinstance(one, ast.Assign) or not kept.startswith("self.") or kept in weights or _is_made(one.value):
            continue
        computes = isinstance(one.value, (ast.BinOp, ast.UnaryOp)) or (
            isinstance(one.value, ast.Call) and not dotted(one.value.func).startswith("self.")
        )
        if computes and _reads(one.value) & (weights | {dotted(each.targets[0]) for each in found}):
            found.append(one)
    return found if {dotted(one.targets[0]) for one in found} & _reads(call) else []


def told(file: str, source: Source, layer: ast.ClassDef, lines: list[ast.Assign], rule: str, so: str) -> Explanation:
    """What to say of such lines: they belong into `call`.

    Args:
      file: The file.
      source: Its text.
      layer: The class.
      lines: Its lines.
      rule: The rule.
      so: What follows.
    """
    cause = (
        f"`{short(source.text(lines[0]).split(chr(10))[0], 44)}` runs once, in build: {dotted(lines[0].targets[0])} "
        f"keeps the value that the weights had then. In call it is computed of what they are. {so}"
    )
    edit = _moved(file, source, layer, lines)
    advice = f"Compute {', '.join(dotted(one.targets[0]) for one in lines)} in call."
    return Explanation(rule, file, lines[0].lineno, cause, edit, "" if edit is not None else advice)


def _method(layer: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((one for one in layer.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _is_made(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in _MAKERS


def _reads(node: ast.AST) -> set[str]:
    return {dotted(one) for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)}


def _moved(file: str, source: Source, layer: ast.ClassDef, lines: list[ast.Assign]) -> Edit | None:
    """The lines at the beginning of `call`, with names of its own in the place of attributes."""
    build, call = _method(layer, "build"), _method(layer, "call")
    if build is None or call is None or call.body[0].lineno == call.lineno:
        return None
    kept = [dotted(one.targets[0]) for one in lines]
    names = {one: one.removeprefix("self.").lstrip("_") for one in kept}
    taken = {one.id for one in own_nodes(call) if isinstance(one, ast.Name)} | {one.arg for one in call.args.args}
    values = {part.id for one in lines for part in ast.walk(one.value) if isinstance(part, ast.Name)} - {"self"}
    local = {one.id for one in own_nodes(build) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    local |= {one.arg for one in build.args.args}
    if len(set(names.values()) - taken) < len(kept) or values & local or len(lines) == len(build.body):
        return None
    inside = {id(one) for part in (call, *lines) for one in ast.walk(part)}
    if any(
        isinstance(one, ast.Attribute) and dotted(one) in names and id(one) not in inside
        for one in all_nodes(source.tree)
    ):
        return None

    def renamed(node: ast.AST) -> dict[ast.expr, str]:
        return {one: names[dotted(one)] for one in ast.walk(node)
                if isinstance(one, ast.Attribute) and dotted(one) in names}  # fmt: skip

    first = call.body[0]
    doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    start = call.body[1] if doc and len(call.body) > 1 else first
    blanks = indent_of(source.lines[start.lineno - 1])
    new = tuple(
        f"{blanks}{names[dotted(one.targets[0])]} = {source.text_with(one.value, renamed(one.value))}" for one in lines
    )
    if any("\n" in one for one in new):
        return None
    edits: list[Edit | None] = [Edit(file, one.lineno, one.end_lineno or one.lineno, ()) for one in lines]
    for one in call.body:
        pieces = renamed(one)
        changed = edit_of(file, source.replaced(pieces)) if pieces else None
        if one is start:
            kept_lines = changed.lines if changed is not None else tuple(source.lines[one.lineno - 1 : one.lineno])
            last = changed.last if changed is not None else one.lineno
            edits.append(None if changed is not None and changed.first != one.lineno
                         else Edit(file, one.lineno, last, (*new, *kept_lines)))  # fmt: skip
        elif pieces:
            edits.append(changed)
    known = [one for one in edits if one is not None]
    if len(known) < len(edits) or max(one.last for one in known) - min(one.first for one in known) > _MOST_LINES:
        return None
    whole = together(known, source.lines)
    empty = next((at for at, line in enumerate(whole.lines) if line.strip()), 0)  # a paste begins with text
    return Edit(file, whole.first, whole.last, whole.lines[empty:])
