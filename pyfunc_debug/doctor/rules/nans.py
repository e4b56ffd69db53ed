"""Where NaN or Inf begins: bodies that turn finite inputs into values that are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several, spread, together
from pyfunc_debug.doctor.bodies.nones_of_calls import none_of_call
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.wrapped_values import wraps
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied
from pyfunc_debug.records import Finding, Node

NAMES = ("nan-born", "inf-born")
_DESIGN = {
    "nan-born": re.compile(r"nan\b|\bnan|NaN", re.IGNORECASE),
    "inf-born": re.compile(r"\binf|inf\b|Inf\b|infty|\bnan", re.IGNORECASE),
}
"""A body whose source names them expects them: padding, masks."""
_TESTED = re.compile(r"\bis_?(?:nan|inf|finite)\b")
_REPLACED = re.compile(r"\b(?:where|boolean_mask)\b")
_CLEANED = re.compile(r"\b(?:nan_to_num|nan(?:mean|sum|max|min|std)|multiply_no_nan|divide_no_nan)\b")
"""What takes NaN and Inf out again where the node was made: a test with a choice, or a function that does both. A
filter does not count: it drops whole elements in silence."""
_SUMMED = ("axis", "keepdims")
_GROWS = re.compile(r"(?:np|numpy|tf|tf\.math)\.(?:exp|expm1|exp2|cosh|sinh)")
_BAD = (
    "WITH bad AS (SELECT call, role, sum(nan) AS nan, sum(inf) AS inf FROM value "
    "WHERE nan > 0 OR inf > 0 GROUP BY call, role)"
)
"""Calls with NaN or Inf in what they were given or returned."""
_USUAL = 5
"""After this many calls, what is in each of them, but not in all their elements, is meant."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body whose outputs hold NaN or Inf although its inputs were finite."""
    rows = facts.reader.rows(
        f"{_BAD} SELECT n.id, n.body, n.file, n.line, o.nan > 0, count(*), min(c.id), "
        "sum(EXISTS (SELECT 1 FROM value v WHERE v.call = o.call AND v.role = 'output' AND v.min IS NOT NULL)), "
        "n.paths = '[]' OR EXISTS (SELECT 1 FROM value v WHERE v.call = o.call AND v.role = 'input') AS known "
        "FROM bad o JOIN call c ON c.id = o.call JOIN node n ON n.id = c.node "
        "LEFT JOIN bad i ON i.call = o.call AND i.role = 'input' "
        "WHERE o.role = 'output' AND i.call IS NULL AND c.kind = 'forward' AND n.origin = 'user' "
        "AND NOT EXISTS (SELECT 1 FROM value u WHERE u.call = c.id AND u.role = 'input' AND u.nan IS NULL "
        "AND u.note <> '') "  # an input that was dropped or cannot be read may have had them
        "GROUP BY n.id, o.nan > 0, known ORDER BY known DESC, n.id"
    )
    said = set()
    for group in together(rows, 4, 8):
        node, body, file, line, is_nan, _, first, _, known = min(group, key=lambda row: int(row[6]))
        if (body, file, line, is_nan) in said:
            continue  # of other calls the inputs are known
        said.add((body, file, line, is_nan))
        counts = {row[0]: row[5] for row in group}
        count, partly = sum(counts.values()), sum(row[7] or 0 for row in group)
        rule, what = ("nan-born", "NaN") if is_nan else ("inf-born", "Inf")
        nodes = [facts.nodes[number] for number in counts]
        same = [one for one in facts.nodes.values() if (one.body, one.file, one.line) == (body, file, line)]
        every = facts.calls_of(same if file is not None else nodes).count  # other graphs have nodes of it too
        nothing = none_of_call(facts, nodes[0]) if is_nan else None
        usual = nothing is None and count == every >= _USUAL and partly == count
        if usual and (is_nan or not _overflows(facts, nodes[0])):
            continue
        text = "\n".join(text for _, text in facts.body(nodes[0]))
        meant = _DESIGN[rule].search(text) or _taken_out(facts, nodes[0]) or _begins_so(facts, nodes[0], _DESIGN[rule])
        if (meant and nothing is None) or wraps(facts, nodes):
            continue  # wrap-around says where negative numbers come from
        calls = "1 call" if every == 1 else f"{count:,} of {every:,} calls"
        given = facts.inputs(first) if known else "(inputs were not stored)"
        suspect, edit = _suspect(facts, nodes[0])
        origin = f". Line {suspect} is likely where it comes from" if edit else ""
        if nothing is not None:
            origin, edit, line = f". In line {nothing.line}, {nothing.words}", nothing.fix, nothing.line
        yield Finding(
            rule, "warning", node, (first,),
            f"{body} returned {what}{' from finite inputs' if known else ''} in {calls}{spread(facts, counts)}, "
            f"first in call #{first}{origin}",
            edit or facts.stop_at(body, "after", "not np.isfinite(outputs[0]).all()"), file, line, several(counts),
            (f"call #{first}: {given} -> {facts.outputs(first)}",),
            "measured" if known else "likely",
        )  # fmt: skip

    yield from _gradients(facts)


def _gradients(facts: Facts) -> Iterator[Finding]:
    """One finding a body whose gradient has NaN although its values, and the gradient that came in, were finite."""
    if not any(facts.calls(node, "gradient").count for node in facts.nodes):
        return
    rows = facts.reader.rows(
        f"{_BAD} SELECT n.id, n.body, n.file, n.line, count(*), min(c.id), c.forward FROM bad o "
        "JOIN call c ON c.id = o.call JOIN node n ON n.id = c.node "
        "LEFT JOIN bad i ON i.call = c.id AND i.role = 'input' "
        "LEFT JOIN bad f ON f.call = c.forward WHERE o.role = 'output' AND o.nan > 0 AND i.call IS NULL "
        "AND f.call IS NULL AND c.kind = 'gradient' AND c.forward IS NOT NULL AND n.origin = 'user' "
        "AND EXISTS (SELECT 1 FROM value v WHERE v.call = c.forward AND v.role = 'output') GROUP BY n.id ORDER BY n.id"
    )
    for group in together(rows, 4):
        node, body, file, line, _, first, forward = min(group, key=lambda row: int(row[5]))
        counts = {row[0]: row[4] for row in group}
        every = sum(facts.calls(number, "gradient").count for number in counts)
        suspect, edit = _suspect(facts, facts.nodes[node], slope=True)
        origin = (
            f". Line {suspect} is likely where: a slope without bounds there, times zero, is NaN" if edit else
            ". A slope without bounds (of a root, a norm, a division or a logarithm at 0), times zero, is NaN"
        )  # fmt: skip
        yield Finding(
            "nan-born", "warning", node, (first,),
            f"the gradient of {body} was NaN in {sum(counts.values()):,} of {every:,} gradient calls, where its values "
            f"were finite{spread(facts, counts)}, first in call #{first}, of call #{forward}{origin}",
            edit or facts.stop_at(body, "after", "not np.isfinite(outputs[0]).all()"),
            file, suspect or line, several(counts),
            (facts.shown(forward),
             f"its gradient, {facts.shown(first)}"),
        )  # fmt: skip


def _overflows(facts: Facts, node: Node) -> bool:
    """Whether a body computes what grows beyond all numbers for inputs that are none too large: nobody means that."""
    calls = pastes.walk(facts.function(node), ast.Call)
    return any(_GROWS.fullmatch(ast.unparse(one.func)) is not None for one in calls)


def _begins_so(facts: Facts, node: Node, design: re.Pattern[str]) -> bool:
    """Whether a body reads what the file gives such a value: `self.best = float("inf")`."""
    function = facts.function(node)
    read = (
        {ast.unparse(one) for one in ast.walk(function) if isinstance(one, (ast.Name, ast.Attribute))}
        if function
        else set()
    )
    return any(
        design.search(ast.unparse(one.value)) and read & {ast.unparse(target) for target in one.targets}
        for one in pastes.walk(facts.tree(node.file), ast.Assign)
    )


def _taken_out(facts: Facts, node: Node) -> bool:
    """Whether a function that a node was made in, or the file outside of functions, replaces what is not finite."""
    for frame in node.stack:
        tree = facts.tree(frame.file)
        own = pastes.around(tree, frame.line, ast.FunctionDef)
        outside = (
            [] if tree is None else [one for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        )
        text = "\n".join(map(ast.unparse, own[-1:] or outside))
        if _CLEANED.search(text) or (_TESTED.search(text) and _REPLACED.search(text)):
            return True
    return False


def _suspect(facts: Facts, node: Node, slope: bool = False) -> tuple[int, str]:
    """The first line of the body that can make NaN or Inf of finite numbers, and its edit; "" if there is none.

    Args:
      facts: The recording.
      node: A node of the body.
      slope: Whether it is the gradient that is not finite.
    """
    for number, statement in facts.statements(node):
        value = getattr(statement, "value", None)
        if (
            isinstance(statement, ast.AugAssign)
            and isinstance(statement.op, ast.Div)
            and not isinstance(value, ast.Constant)
        ):
            return number, pastes.written(
                pastes.replaced(
                    facts, node.file, {statement.value: f"{pastes.text_of(facts, node.file, statement.value)} + 1e-12"}
                )
            )
        fixed = _Guard(slope)
        after = fixed.visit(copied(value)) if isinstance(value, ast.expr) else None
        if fixed.changed and isinstance(value, ast.expr) and after is not None:
            text = ast.unparse(ast.fix_missing_locations(after))
            return number, pastes.written(pastes.replaced(facts, node.file, {value: text}))
    return 0, ""


class _Guard(ast.NodeTransformer):
    """Puts guards around what can make NaN or Inf."""

    def __init__(self, slope: bool = False) -> None:
        self.changed = False
        self._least = "1e-12" if slope else "0.0"
        self._slope = slope

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        head, _, last = name.rpartition(".")
        tensorflow = head.startswith("tf")
        most, least = ("tf.minimum", "tf.maximum") if tensorflow else ("np.minimum", "np.maximum")
        guard = {
            "log": (least, "1e-12"), "log2": (least, "1e-12"), "log10": (least, "1e-12"), "sqrt": (least, self._least),
            "exp": (most, "80.0"), "reciprocal": (least, "1e-12"), "rsqrt": (least, "1e-12"),
        }.get(last)  # fmt: skip
        if self._slope and last in ("norm", "euclidean_norm", "reduce_euclidean_norm") and node.args and tensorflow:
            rest = "".join(f", {one.arg}={ast.unparse(one.value)}" for one in node.keywords if one.arg in _SUMMED)
            if len(node.args) == 1 and all(one.arg in _SUMMED for one in node.keywords):
                self.changed = True
                total = f"tf.reduce_sum(tf.square({ast.unparse(node.args[0])}){rest})"
                return syntax.expression(f"tf.sqrt(tf.maximum({total}, 1e-12))")
        if guard is not None and node.args and head not in ("math", ""):
            self.changed = True
            node.args[0] = syntax.expression(f"{guard[0]}({ast.unparse(node.args[0])}, {guard[1]})")
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant):
            self.changed = True
            below = ast.unparse(node.right)
            node.right = syntax.expression(f"({below} + 1e-12)")
        return node
