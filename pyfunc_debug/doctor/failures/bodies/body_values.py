"""A body or a generator gets another kind of value than it expects: a tensor or bytes for text, an array for a tensor.

`py_function` gives its body eager tensors, `numpy_function` gives NumPy arrays, and bytes for text; so does
`Dataset.from_generator(args=...)` to its generator.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.bodies.decorated import Call as Decorated
from pyfunc_debug.doctor.code import local_names, own_nodes
from pyfunc_debug.doctor.failures.bodies.body_numbers import number
from pyfunc_debug.doctor.failures.bodies.body_tensors import array_method, assigns, no_numpy
from pyfunc_debug.doctor.failures.bodies.body_text import bytes_given, printed, takes_text, text_in_array
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, holds, of_a_tensor, of_names
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, failed_node, inputs_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, bytes_of, calls, described, dtype_of

_ARITY = re.compile(r"(\w+)\(\) (?:missing (\d+) required positional arguments?: (.*)|takes (.*) but (\d+) w)")
_ASKS = re.compile(r"(?:num?py|np)[ ._](?:nd)?array|\bndarray", re.IGNORECASE)
"""Words of code that takes arrays only."""
_ASKS_TEXT = re.compile(
    r"\b(?:must|should|has to|have to|expect\w*|need\w*|require\w*)(?: (?:to|be|of|type|an?|is|input|the))*"
    r" [`'\"<]*(?:class ')?(?:str|strings?|text)\b",
    re.IGNORECASE,
)
"""Words of code that takes text only."""
_COMPOSITE = {"SparseTensor": "{tf}.sparse.to_dense({name})", "RaggedTensor": "{name}.to_tensor()"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator failed on what it was given."""
    if not situation.body:
        return None
    spot = situation.last
    for tell in (array_method, no_numpy, assigns, printed, takes_text, text_in_array, bytes_given, number):
        found = tell(situation, spot) if spot is not None else None
        if found is not None:
            return found
    found = _composite(situation, spot) or _arity(situation)
    for ask in (_array_asked, _text_asked, _array_wanted):
        found = found or ask(situation)
    return found


def _composite(situation: Situation, spot: Spot | None) -> Explanation | None:
    """A sparse or ragged tensor that the body has from inp, where its code takes plain ones."""
    node = failed_node(situation) if any(one in situation.message for one in _COMPOSITE) else None
    call, function = (node.call(), node.function()) if node is not None else (None, None)
    inp = argument(call, 1, "inp") if call is not None else None
    if node is None or spot is None or node.site is None or function is None or spot.function is not function:
        return None
    pieces: dict[ast.expr, str] = {}
    for name, one in zip(parameters(function), inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []):
        dense = _COMPOSITE.get(type(spot.variables.get(name)).__name__)
        if dense is not None:
            pieces[one] = dense.format(tf=alias(spot, "tensorflow"), name=node.source.text(one))
    found = node.source.replaced(pieces) if pieces else None
    if found is None:
        return None
    kind = next(one for one in _COMPOSITE if one in situation.message)
    return Explanation(
        RULE, spot.file, spot.line,
        f"inp gives {node.called} a {kind}, and this line takes plain tensors. Its dense form is one.",
        edit_of(node.site[0], found),
    )  # fmt: skip


def _array_asked(situation: Situation) -> Explanation | None:
    """An eager tensor in the body's line that gives it to code which asks for arrays by that word, as OpenCV does."""
    node = failed_node(situation) if _ASKS.search(situation.message) else None
    if node is None or node.kind != "py_function":
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        given = [
            one for call in (calls(statement) if statement is not None else ())
            for one in (*call.args, *(keyword.value for keyword in call.keywords))
            if isinstance(one, ast.Name) and holds(spot, one.id, "EagerTensor")
        ]  # fmt: skip
        if given:
            pieces: dict[ast.expr, str] = {one: f"{one.id}.numpy()" for one in given if isinstance(one, ast.Name)}
            return of_a_tensor(spot, pieces, "what this line calls takes NumPy arrays. `.numpy()` gives its value.")
    return None


def _text_asked(situation: Situation) -> Explanation | None:
    """Code that refuses what is no `str` in its own words, given a tensor or bytes by a line of the body, or by inp."""
    node = failed_node(situation) if situation.kind in ("TypeError", "ValueError") else None
    if node is None or not _ASKS_TEXT.search(situation.message):
        return None
    for spot in reversed(situation.spots[:-1]):
        statement = spot.statement
        given = [
            one for call in (calls(statement) if statement is not None else ())
            for one in (*call.args, *(keyword.value for keyword in call.keywords))
            if isinstance(one, ast.Name) and _as_text(spot.variables.get(one.id))
        ]  # fmt: skip
        if given and spot.by == "":
            pieces: dict[ast.expr, str] = {one: f"{one.id}{_as_text(spot.variables[one.id])}" for one in given}
            return of_names(spot, pieces, "NAME came as bytes, and what this line calls takes text.")
    return _handed_as_text(node, situation)


def _handed_as_text(node: Node, situation: Situation) -> Explanation | None:
    """A function that takes text and is a body itself, in a lambda that hands it text."""
    call = node.call()
    given, inp = (argument(call, 0, "func"), argument(call, 1, "inp")) if call is not None else (None, None)
    if (
        node.site is None
        or not isinstance(given, (ast.Name, ast.Attribute))
        or not isinstance(inp, (ast.List, ast.Tuple))
    ):
        return None
    dtypes = list(inputs_of(node, situation).values())
    if len(dtypes) != len(inp.elts) or not any(_is_string(one) for one in dtypes):
        return None
    taken = [one.id if isinstance(one, ast.Name) else f"x{at}" for at, one in enumerate(inp.elts)]
    if len({*taken}) < len(taken):
        return None
    text = ".numpy().decode()" if node.kind == "py_function" else ".decode()"
    values = [f"{name}{text}" if _is_string(one) else name for name, one in zip(taken, dtypes)]
    new = f"lambda {', '.join(taken)}: {node.source.text(given)}({', '.join(values)})"
    edit = edit_of(node.site[0], node.source.replaced({given: new}))
    kind = "a tensor of bytes" if node.kind == "py_function" else "bytes"
    cause = f"{node.called} takes text, and a {node.kind} gives it {kind}. The lambda hands it the text."
    return None if edit is None else Explanation(RULE, *node.site, cause, edit, "", "likely")


def _as_text(value: object) -> str:
    """What makes text of bytes, or of an eager tensor of one text; "" of other values."""
    if bytes_of(value) is None:
        return ""
    return ".decode()" if isinstance(value, bytes) else ".numpy().decode()"


def _array_wanted(situation: Situation) -> Explanation | None:
    """Code without TensorFlow that refuses an eager tensor in its own words: the body gets arrays instead."""
    refused = "EagerTensor" in situation.message and "to EagerTensor" not in situation.message
    node = failed_node(situation) if refused else None
    call, function = (node.call(), node.function()) if node is not None else (None, None)
    given, inp = (argument(call, 0, "func"), argument(call, 1, "inp")) if call is not None else (None, None)
    if node is None or node.site is None or node.kind != "py_function" or function is None or given is None:
        return None
    names = parameters(function)
    if not isinstance(inp, (ast.List, ast.Tuple)) or len(names) != len(inp.elts) or isinstance(given, ast.Lambda):
        return None
    made = [one for one in own_nodes(function) if isinstance(one, ast.Call)]
    if any(dotted(one.func).startswith("tf.") for one in made):  # it may need tensors, or a gradient
        return None
    dtypes = inputs_of(node, situation)
    texts = [f"{one}.numpy().decode()" if _is_string(dtypes.get(one)) else f"{one}.numpy()" for one in names]
    found = node.source.replaced({given: f"lambda {', '.join(names)}: {node.source.text(given)}({', '.join(texts)})"})
    return Explanation(
        RULE, *node.site,
        f"a py_function gives {node.called} eager tensors, and its code takes arrays. `.numpy()` gives their values.",
        edit_of(node.site[0], found),
        "Use tf.numpy_function in its place." if found is None else "", "likely",
    )  # fmt: skip


def _is_string(value: object) -> bool:
    return dtype_of(value) == "string"


def _mapped(node: Node, call: Decorated, takes: list[str], given: int) -> Explanation | None:
    """`.map(body)` of a decorated body that takes fewer parts than the elements have."""
    if given <= len(takes) or node.site is None:
        return None
    name, listed = node.source.text(call.written), ", ".join(takes)
    place = node.source.kept_lines({call.written: f"lambda {listed}, *others: {name}({listed})"})
    several = "s" if len(takes) != 1 else ""
    cause = f"{name} takes {len(takes)} value{several} ({listed}), and map gives it the {given} parts of each element."
    return Explanation(RULE, *node.site, cause, edit_of(node.site[0], (*place[:2], "\n".join(place[2]))))


def _arity(situation: Situation) -> Explanation | None:
    """`inp` has more or fewer values than the body takes."""
    match = _ARITY.search(situation.message)
    node = failed_node(situation) if match is not None and situation.kind == "TypeError" else None
    function, call = (node.function(), node.call()) if node is not None else (None, None)
    if match is None or node is None or node.site is None or function is None or call is None:
        return None
    if isinstance(function, ast.Lambda) or match[1] != function.name:
        return None
    given = argument(call, 1, "inp")
    takes = parameters(function)
    if not isinstance(given, (ast.List, ast.Tuple)):
        return _arity_of_list(situation, node, function, given)
    source, count = node.source, len(given.elts)
    if count == len(takes):
        return _mapped(node, call, takes, int(match[5] or 0)) if isinstance(call, Decorated) and call.head else None
    texts = [source.text(one) for one in given.elts]
    flat = [part for one in given.elts for part in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    new = texts[: len(takes)]
    missing: list[str] = []
    if count < len(takes):
        known = [_seen_as(name, call, source) for name in takes[count:]]
        missing = [name for name, text in zip(takes[count:], known) if not text]
        new = [*texts, *known]
    if len(flat) == len(takes):
        new, missing = [source.text(one) for one in flat], []
    found = source.replaced({given: f"[{', '.join(new)}]"}) if not missing else None
    cause = (
        f"{node.called} takes {len(takes)} value{'s' if len(takes) != 1 else ''} ({', '.join(takes)}), but inp gives "
        f"it {count} ({', '.join(texts)}). A body gets one argument for each value in inp."
    )
    edit = edit_of(node.site[0], found)
    advice = f"Add to inp what is meant for {' and '.join(missing)}." if missing else (
        "Give inp one value for each parameter."
    )  # fmt: skip
    return Explanation(RULE, *node.site, cause, edit, "" if edit else advice, "likely")


def _arity_of_list(
    situation: Situation, node: Node, function: ast.FunctionDef | ast.AsyncFunctionDef, given: ast.expr | None
) -> Explanation | None:
    """`inp=list(op.inputs)` with more values than a body takes: what they are, and the parameters for them."""
    takes, values = parameters(function), list(inputs_of(node, situation).values())
    if given is None or len(values) <= len(takes) or function.args.vararg is not None or node.file is None:
        return None
    shown = ", ".join(described(one) for one in values)
    others = [f"value_{place + 1}" for place in range(len(takes), len(values))]
    written = f"def {function.name}({', '.join([*takes, *others])}):"
    return Explanation(
        RULE, node.file, function.lineno,
        f"{node.called} takes {len(takes)} value{'s' if len(takes) != 1 else ''} ({', '.join(takes)}), and "
        f"{short(node.source.text(given), 40)} gives it {len(values)}: {shown}. A body gets one argument for each.",
        None, f"Give it a parameter for each, `{written}`, or hand over what it takes only.", "likely",
    )  # fmt: skip


def _seen_as(name: str, call: ast.expr, source: Source) -> str:
    """What a parameter's value is called where a node is made: by its own name, or as an attribute of the object."""
    around = list(source.around(call))
    bound = {
        part.id for one in source.tree.body if isinstance(one, (ast.Assign, ast.For, ast.With))
        for part in ast.walk(one) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }.union(*(local_names(one) for one in around if isinstance(one, (ast.FunctionDef, ast.Lambda))))  # fmt: skip
    if name in bound:
        return name
    holder = next((one for one in around if isinstance(one, ast.ClassDef)), None)
    kept = {
        dotted(one) for one in (ast.walk(holder) if holder is not None else ())
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
    }  # fmt: skip
    return next((text for text in (f"self.{name}", f"self._{name}") if text in kept), "")
