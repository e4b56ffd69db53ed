"""What gives logits their columns, where labels need more of them: a slice, a layer or a model, or something else."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.refused_ops import RULE
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras


def with_columns(
    spot: Spot, cause: str, logits: ast.expr | None, columns: int, needed: int, rule: str = RULE
) -> Explanation:
    """The cause, and where the columns that lack come from.

    Args:
      spot: The line that computes the loss.
      cause: What is wrong.
      logits: What it gives the loss.
      columns: How many columns that has.
      needed: How many it needs.
      rule: The explanation's.
    """
    made = _made(spot, logits)
    size = _cut(made)
    if made is None or size is None:
        advice = f"Give the {'logits' if rule == RULE else 'predictions'} {needed} columns."
        if made is not None and _is_model(spot, made):
            advice = f"Give the last layer {needed} outputs."
        return Explanation(rule, spot.file, spot.line, cause, None, advice, "likely")
    text = short(spot.source.text(size), 30)
    cause += f" {'They' if rule == RULE else 'The predictions'} are `{short(spot.source.text(made), 40)}`"
    known = computed(size, spot)
    constant = _constant(spot, size, columns) if known in (None, columns) else None
    if constant is None:
        advice = f"Make {text} {needed} or more, and what it cuts as wide."
        return Explanation(rule, spot.file, spot.line, f"{cause}.", None, advice, "likely")
    edit = edit_of(spot.file, spot.source.replaced({constant: str(needed)}))
    advice = "" if edit else f"Make {text} {needed} or more."
    return Explanation(rule, spot.file, constant.lineno, f"{cause}, and {text} is {columns}.", edit, advice, "likely")


def is_cut(spot: Spot, logits: ast.expr | None) -> bool:
    """Whether logits are columns of something wider: `x[..., :n]`."""
    return _cut(_made(spot, logits)) is not None


def _made(spot: Spot, logits: ast.expr | None) -> ast.expr | None:
    """What a name of the line was assigned in its function; the expression itself where it is another."""
    around = spot.function or spot.source.tree
    known = assignments(around)
    return known.get(logits.id, logits) if isinstance(logits, ast.Name) else logits


def _cut(made: ast.expr | None) -> ast.expr | None:
    """`n` of `x[..., :n]`."""
    last = made.slice.elts[-1] if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Tuple) else None
    if not isinstance(last, ast.Slice) or last.step is not None or last.lower is not None:
        return None
    return last.upper


def _is_model(spot: Spot, made: ast.expr) -> bool:
    """Whether a call of a layer or a model gives it."""
    called = lookup(made.func, spot) if isinstance(made, ast.Call) else None
    return called is not None and of_keras(type(called), "Layer")


def _constant(spot: Spot, size: ast.expr, columns: int) -> ast.Constant | None:
    """The number of a name that the file assigns once, and by which it makes layers, too: they grow with it."""
    if not isinstance(size, ast.Name):
        return None
    tree = spot.source.tree
    stored = [
        one for one in ast.walk(tree)
        if (isinstance(one, ast.Name) and one.id == size.id and isinstance(one.ctx, ast.Store))
        or (isinstance(one, ast.arg) and one.arg == size.id)
    ]  # fmt: skip
    values = [
        one.value for one in tree.body
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and one.targets[0] in stored
    ]  # fmt: skip
    layers = (one for one in calls(tree) if dotted(one.func).rpartition(".")[2][:1].isupper())
    sizes = any(
        isinstance(part, ast.Name) and part.id == size.id
        for one in layers for given in (*one.args, *(more.value for more in one.keywords)) for part in ast.walk(given)
    )  # fmt: skip
    value = values[0] if len(values) == len(stored) == 1 else None
    return value if sizes and isinstance(value, ast.Constant) and value.value == columns else None
