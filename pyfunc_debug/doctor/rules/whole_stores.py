"""Fractions that are stored into an array of whole numbers: `out = np.zeros(5, dtype=int); out[1:4] = shares`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import as_given, given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("lost-fraction",)
_MAKERS = {
    "zeros": 1,
    "ones": 1,
    "empty": 1,
    "full": 2,
    "zeros_like": 1,
    "ones_like": 1,
    "empty_like": 1,
    "full_like": 2,
}
"""What makes an array, and where its dtype stands."""
_Cut = tuple[str, ast.Call, str, ast.Assign, str, int | None]


def check(facts: Facts) -> Iterator[Finding]:
    """One finding an array."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        np = pastes.module(facts, node.file, "numpy")
        if function is None or np is None or not facts.calls_of(group).count:
            continue
        if (found := _cut(facts, group, function, np)) is not None:
            yield _finding(facts, group, np, function, *found)


def cuts(facts: Facts, group: Sequence[Node]) -> bool:
    """Whether a body stores fractions into an array of whole numbers."""
    function, np = facts.function(group[0]), pastes.module(facts, group[0].file, "numpy")
    return function is not None and np is not None and _cut(facts, group, function, np) is not None


def _cut(facts: Facts, group: Sequence[Node], function: Definition, np: str) -> _Cut | None:
    for name, made in _arrays(function, np):
        kind = _whole(facts, group, function, made)
        stored = _fractions(facts, group, function, name) if kind else None
        if stored is not None:
            return name, made, kind, *stored
    return None


def _arrays(function: Definition, np: str) -> Iterator[tuple[str, ast.Call]]:
    """The arrays that a body makes to fill, with the calls that make them."""
    for one in code.own_nodes(function):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.value, ast.Call):
            module, _, maker = dotted(one.value.func).rpartition(".")
            if module == np and maker in _MAKERS and one.value.args and isinstance(one.targets[0], ast.Name):
                yield one.targets[0].id, one.value


def _whole(facts: Facts, group: Sequence[Node], function: Definition, made: ast.Call) -> str:
    """The dtype of whole numbers that an array has; "" for others, and where it is not known."""
    maker = pastes.last_name(made.func)
    asked = argument(made, _MAKERS[maker], "dtype")
    if asked is not None:
        kind = str(asked.value) if isinstance(asked, ast.Constant) else pastes.last_name(asked)
        return kind if kind.startswith(("int", "uint")) else ""
    name = as_given(function, made.args[0]) if maker.endswith("_like") else ""
    seen = given(facts, group, name) if name else []
    return seen[0].dtype if seen and all(one.dtype.startswith(("int", "uint")) for one in seen) else ""


def _fractions(
    facts: Facts, group: Sequence[Node], function: Definition, name: str
) -> tuple[ast.Assign, str, int | None] | None:
    """The first line that stores fractions into it, why they are such, and the call that shows it."""
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Assign) or not isinstance(one.targets[0], ast.Subscript):
            continue
        target = one.targets[0].value
        if not isinstance(target, ast.Name) or target.id != name:
            continue
        if isinstance(one.value, ast.BinOp) and isinstance(one.value.op, ast.Div):
            return one, "a quotient", None
        if (by := _factor(facts, group, function, one.value)) is not None:
            return one, f"a product with {by:g}", None
        given_as = as_given(function, one.value)
        for each in given(facts, group, given_as) if given_as else ():
            ends = [end for end in (each.low, each.high) if end is not None]
            if "float" in each.dtype and any(end != int(end) for end in ends if abs(end) < 1e15):
                shown = " and ".join(dict.fromkeys(f"{end:.3g}" for end in ends))
                return one, f"{shown} in call #{each.call}", each.call
    return None


def _factor(facts: Facts, group: Sequence[Node], function: Definition, value: ast.expr) -> float | None:
    """The number with a fraction by which a value is multiplied: of `running = r[t] + gamma * running`, too."""
    products: list[ast.expr] = [value]
    if isinstance(value, ast.Name):
        products = []
        for one in code.own_nodes(function):
            if isinstance(one, (ast.For, ast.With, ast.NamedExpr, ast.comprehension)):
                heads = [one.target] if not isinstance(one, ast.With) else [*one.items]
                if any(value.id in code.stored_names(head) for head in heads):
                    return None
            elif isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and value.id in code.stored_names(one):
                if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Mult):
                    products.append(ast.BinOp(one.target, one.op, one.value))
                elif isinstance(one, ast.AugAssign):
                    products.append(one.value)
                elif not isinstance(one.targets[0] if isinstance(one, ast.Assign) else one.target, ast.Name):
                    return None
                elif isinstance(one.value, ast.Call):
                    return None  # it may be rounded
                elif one.value is not None:
                    products.append(one.value)
    sides = [side for one in products for part in _terms(one) for side in (part.left, part.right)]
    numbers = [_number(facts, group, function, side) for side in sides]
    return next((one for one in numbers if one is not None and one != int(one)), None)


def _terms(node: ast.expr) -> Iterator[ast.BinOp]:
    """The products that are added up to an expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _terms(node.left)
        yield from _terms(node.right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node


def _number(facts: Facts, group: Sequence[Node], function: Definition, side: ast.expr) -> float | None:
    """A number that is written: itself, as the only value of a name of the file, or as a parameter's default."""
    if isinstance(side, ast.Name):
        stored = any(side.id in code.stored_names(one) for one in code.own_nodes(function))
        listed = [*function.args.posonlyargs, *function.args.args]
        defaults = {one.arg: kept for one, kept in zip(reversed(listed), reversed(function.args.defaults))}
        if stored or (side.id in code.parameters(function) and given(facts, group, side.id)):
            return None
        side = defaults[side.id] if side.id in defaults else pastes.behind_name(facts.tree(group[0].file), side)
    value = side.value if isinstance(side, ast.Constant) else None
    return value if type(value) is float else None


def _finding(
    facts: Facts, group: Sequence[Node], np: str, function: Definition, name: str, made: ast.Call, kind: str,
    stored: ast.Assign, why: str, call: int | None,
) -> Finding:  # fmt: skip
    node, own, maker = group[0], pastes.source(facts, group[0].file), pastes.last_name(made.func)
    asked = argument(made, _MAKERS[maker], "dtype")
    floats = f"{np}.float32"
    new = own.text_with(made, {asked: floats}) if asked is not None else own.with_argument(made, f"dtype={floats}")
    bare = [one for one in pastes.returns(function) if _is_bare(one, name)]
    typed = bool(bare) and not any(one.startswith("float32") for one in node.tout)
    fix = "" if typed else pastes.written(pastes.replaced(facts, node.file, {made: new}))
    return Finding(
        NAMES[0], "error", node.id, (call,) if call is not None else (),
        f"line {stored.lineno} stores {own.text(stored.value)}, {why}, into {name}, which line {made.lineno} made of "
        f"{kind}: the fractions are cut",
        fix or f"{new}, and Tout to match", node.file, stored.lineno, several(one.id for one in group),
        (f"line {made.lineno}: {facts.line(node.file, made.lineno)}",
         *([facts.shown(call)] if call is not None else [])),
    )  # fmt: skip


def _is_bare(given: ast.expr, name: str) -> bool:
    """Whether an array is returned as it is, alone or among others."""
    return any(isinstance(one, ast.Name) and one.id == name for one in (given, *getattr(given, "elts", [])))
