"""A function of `filter`, `scan`, `reduce` or `group_by_window` that returns another dtype than the method takes."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument, return_values, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "structure"
_PREDICATE = re.compile(
    r"must return a `tf\.bool` scalar tensor,? but its return type is ?TensorSpec\(.*dtype=tf\.(\w+)"
)
_LISTED = "'tuple' object has no attribute 'is_compatible_with'"
_STATE = re.compile(
    r"types for the new state must match the initial state\. Expected (<dtype: '\w+'>|\([\w., ]+\)),? (?:but )?got "
    r"(<dtype: '\w+'>|\([\w., ]+\))"
)
_KEY = re.compile(r"Tensor conversion requested dtype int64 for Tensor with dtype (\w+)")
_TESTS = ("filter", "take_while")
_DTYPE = re.compile(r"(?:tf\.|<dtype: ')(\w+)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what a dataset's function returns is of a dtype that its method refuses."""
    if situation.body or situation.kind not in ("ValueError", "TypeError", "AttributeError"):
        return None
    for pattern, tell in ((_PREDICATE, _predicate), (_STATE, _state), (_KEY, _key)):
        found = pattern.search(situation.message)
        if found is not None:
            return tell(situation, found)
    return _listed(situation) if _LISTED in situation.message else None


def _call(situation: Situation, *methods: str) -> tuple[Spot, ast.Call] | None:
    """The one call of these methods in the user's failing line."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        every = calls(statement) if statement is not None else ()
        found = [one for one in every if isinstance(one.func, ast.Attribute) and one.func.attr in methods]
        if found:
            return (spot, found[0]) if len(found) == 1 else None
    return None


def _node_call(call: ast.Call, index: int, name: str, spot: Spot) -> ast.Call | None:
    """The one py_function that a dataset's function returns."""
    given = argument(call, index, name)
    inside: list[ast.expr] = [given.body] if isinstance(given, ast.Lambda) else []
    if isinstance(given, ast.Name):
        made = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == given.id]
        inside = return_values(made[0]) if len(made) == 1 else []
    found = inside[0] if len(inside) == 1 else None
    is_node = isinstance(found, ast.Call) and dotted(found.func).rpartition(".")[2] in NODE_CALLS
    return found if is_node and isinstance(found, ast.Call) else None


def _predicate(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """`filter` by a number: Tout says so, or a number is meant as a bool."""
    placed = _call(situation, *_TESTS)
    node = _node_call(placed[1], 0, "predicate", placed[0]) if placed is not None else None
    tout = argument(node, 2, "Tout") if node is not None else None
    nodes = user_nodes(situation)
    if placed is None or node is None or tout is None or not nodes or found[1] in ("bool", "string"):
        return None
    spot, call = placed
    tf, function = alias(spot, "tensorflow"), nodes[0].function()
    values = (
        [] if function is None else [function.body] if isinstance(function, ast.Lambda) else return_values(function)
    )
    method = getattr(call.func, "attr", "")
    cause = (
        f"{method} takes a function that gives a bool, and Tout of this one is {short(spot.source.text(tout), 30)}. "
    )
    if values and all(map(_is_test, values)):
        cause += f"{nodes[0].called} returns a bool: Tout has to say so."
        edit = in_place(spot, {tout: f"{tf}.bool"})
    else:
        cause += "A cast makes False of 0, and True of other numbers."
        edit = in_place(spot, {node: f"{tf}.cast({spot.source.text(node)}, {tf}.bool)"})
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "", "likely") if edit is not None else None


def _is_test(node: ast.expr) -> bool:
    """Whether an expression gives a bool, as far as it is written."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_test, node.values))
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in (
            "any",
            "all",
            "bool",
            "startswith",
            "endswith",
            "isfile",
            "exists",
        )
    constant = isinstance(node, ast.Constant) and type(node.value) is bool
    return constant or isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _listed(situation: Situation) -> Explanation | None:
    """`filter` by a list of one bool, which `Tout=[tf.bool]` gives."""
    placed = _call(situation, *_TESTS)
    node = _node_call(placed[1], 0, "predicate", placed[0]) if placed is not None else None
    tout = argument(node, 2, "Tout") if node is not None else None
    if placed is None or node is None or not isinstance(tout, (ast.List, ast.Tuple)) or not tout.elts:
        return None
    spot, call = placed
    method, text = getattr(call.func, "attr", ""), spot.source.text(tout)
    cause = f"{method} takes a function that gives one bool, and Tout={text} gives a list of {len(tout.elts)}. "
    if len(tout.elts) > 1:
        advice = "Return the bool alone, and give Tout its dtype."
        return Explanation(RULE, spot.file, node.lineno, cause.strip(), None, advice)
    edit = in_place(spot, {tout: spot.source.text(tout.elts[0])})
    return Explanation(RULE, spot.file, node.lineno, f"{cause}Without brackets Tout gives one tensor.", edit)


def _state(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """A state that begins with another dtype than its next one has: `reduce(0, ...)` of floats."""
    placed = _call(situation, "scan", "reduce")
    state = argument(placed[1], 0, "initial_state") if placed is not None else None
    if placed is None or state is None:
        return None
    spot, call = placed
    tf, method = alias(spot, "tensorflow"), getattr(call.func, "attr", "")
    begins, gives = (_DTYPE.findall(one) for one in found.groups())
    parts = state.elts if isinstance(state, (ast.Tuple, ast.List)) else [state]
    odd = [place for place, (old, new) in enumerate(zip(begins, gives)) if old != new]
    if len(begins) != len(gives) or not odd:
        return None
    old, new = begins[odd[0]], gives[odd[0]]
    cause = f"the state of {method} begins as {old}, and its function gives a {new}: it has one dtype in all steps. "
    if len(parts) != len(begins) or len(odd) > 1:
        return Explanation(RULE, spot.file, state.lineno, cause.strip(), None, f"Let the state begin as {tf}.{new}.")
    part = parts[odd[0]]
    number = part.value if isinstance(part, ast.Constant) else None
    text = f"{tf}.cast({spot.source.text(part)}, {tf}.{new})"
    if isinstance(number, (int, float)) and type(number) is not bool:
        text = f"{number}.0" if new == "float32" and type(number) is int else f"{tf}.constant({number}, {tf}.{new})"
    edit = in_place(spot, {part: text})
    return Explanation(RULE, spot.file, state.lineno, f"{cause}Here it begins as that.", edit, "", "likely")


def _key(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """A key of `group_by_window` of another dtype than int64."""
    placed = _call(situation, "group_by_window")
    node = _node_call(placed[1], 0, "key_func", placed[0]) if placed is not None else None
    if placed is None or node is None:
        return None
    spot, tf = placed[0], alias(placed[0], "tensorflow")
    cause = f"group_by_window takes an int64 for a key, and its key_func gives a {found[1]}. "
    if found[1] == "string":
        advice = f"Return a number for each key, as its place in a list, with Tout={tf}.int64."
        return Explanation(RULE, spot.file, node.lineno, cause.strip(), None, advice)
    edit = in_place(spot, {node: f"{tf}.cast({spot.source.text(node)}, {tf}.int64)"})
    return Explanation(RULE, spot.file, node.lineno, f"{cause}A cast makes one of it.", edit)
