"""What a PyDataset's `__getitem__`, or a generator given to `fit`, makes of a batch: Keras takes tuples of arrays.

Keras 3 makes a tuple of a list that a PyDataset returns, but not of a generator's, and not of one inside a tuple.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from pyfunc_debug.doctor.failures.models.batch_makers import (
    GIVEN,
    Maker,
    batch_maker,
    gives_its_input,
    is_array,
    leaves,
    twice,
)
from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, shape_of

RULE = "generator"
_TUPLE = re.compile(r"the generator must return a tuple, either \(input,\)")
_BATCH = re.compile(r"PyDataset\.__getitem__\(\) must return a tuple or a dict.*?Received: (None)?", re.DOTALL)
_LISTS = re.compile(r"`output_signature` must contain objects .* but found <class 'list'>")
_INPUTS = re.compile(r"expects (\d+) (?:named )?input\(s\).*?but it received (\d+) input tensors", re.DOTALL)
_RANK = re.compile(r"the arrays must be at least rank 1\. Received: (\S+) of rank 0")
_AXES = re.compile(
    r"Expected shape \((?P<wanted>[^)]*)\), but input has incompatible shape \((?P<got>[^)]*)\)"
    r"|expected (?:min_)?ndim=(?P<least>\d+), found ndim=(?P<found>\d+)"
)
_GROWS = ("append", "extend")
_MOST = 3
"""More returns than these are not a paste."""
_LONGEST = 40
"""A text that may stand in a paste twice."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras does not take the batches that it was given."""
    spot, text = situation.last, situation.message
    statement = situation.statement
    tell = next((tell for said, tell in _CAUSES if said.search(text)), None)
    if spot is None or statement is None or (situation.body and tell is not _other_batch):
        return None
    for call in fits(statement):
        keywords = {one.arg: one.value for one in call.keywords}
        for given in (call.args[0] if call.args else keywords.get("x"), keywords.get("validation_data")):
            maker = batch_maker(given, spot) if given is not None else None
            if maker is None or tell is None or (tell in _AT_FIRST and _had_batches(maker, situation)):
                continue
            model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
            inputs = tuple(getattr(model, "inputs", None) or ())
            found = tell(replace(maker, tensors=inputs, same=gives_its_input(model)), text, call)
            if found is not None:
                return found
    return None


def _had_batches(maker: Maker, situation: Situation) -> bool:
    """Whether batches of it were taken."""
    rows = situation.rows(
        "SELECT 1 FROM call c JOIN node n ON n.id = c.node WHERE n.file = ? AND n.line = ? AND c.status = 'ok' LIMIT 1",
        (maker.spot.file, maker.spot.line),
    )
    return bool(rows)


def _explained(maker: Maker, cause: str, pieces: dict[ast.expr, str], advice: str) -> Explanation:
    """The explanation, with the values of a function written otherwise, if they are on neighbouring lines."""
    line = min(pieces, key=lambda one: one.lineno).lineno if pieces else maker.function.lineno
    edit = None
    if 0 < len(pieces) <= _MOST:
        if len({(one.lineno, one.end_lineno) for one in pieces}) == 1:
            found = maker.source.replaced(pieces)
            edit = edit_of(maker.spot.file, found)
        else:
            first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
            edit = Edit(maker.spot.file, first, last, maker.source.spliced(pieces, first, last))
    return Explanation(RULE, maker.spot.file, line, cause, edit, "" if edit else advice, "likely")


def _list_of_generator(maker: Maker, text: str, call: ast.Call) -> Explanation | None:
    """`yield [x, y]`: Keras refuses it."""
    if maker.verb != "yields" or "Received: [" not in text:
        return None
    values = [one for one in maker.values if not isinstance(one, ast.Tuple)]
    array = _ARRAY.search(text) is not None or (bool(values) and all(is_array(maker.made(one)) for one in values))
    pieces = {one: f"({maker.source.text(one)},)" if array else _tupled(one, maker) for one in values}
    what = "an array" if array else "a list"
    cause = f"{maker.name} yields {what}. Keras takes a tuple of a generator: (inputs, targets), or (inputs,)."
    alone = array and not (isinstance(call.func, ast.Attribute) and call.func.attr == "predict")
    if alone and maker.same and (edit := twice(maker)) is not None:
        return Explanation(RULE, maker.spot.file, values[0].lineno, f"{cause}{GIVEN}", edit, "", "likely")
    advice = "Yield a tuple: `yield x, y`" + ", or `yield (x,)` where the model needs no targets." * alone
    return _explained(maker, cause, {} if alone else pieces, f"{advice.rstrip('.')}.")


def _tupled(value: ast.expr, maker: Maker) -> str:
    """`[x, y]` as `x, y`; any other list as `tuple(batch)`."""
    if not isinstance(value, ast.List) or not value.elts:
        return f"tuple({maker.source.text(value)})"
    parts = [_part(one, maker) or maker.source.text(one) for one in value.elts]
    return ", ".join(parts) if len(parts) > 1 else f"({parts[0]},)"


def _part(value: ast.expr, maker: Maker) -> str | None:
    """A list in a batch as what tf.data takes: of inputs a tuple, of rows or numbers an array; None for no list."""
    text = maker.source.text(value)
    if isinstance(value, ast.List):
        rows = value.elts and all(isinstance(one, (ast.Constant, ast.List, ast.UnaryOp)) for one in value.elts)
        inside = ", ".join(_part(one, maker) or maker.source.text(one) for one in value.elts)
        array = f"{alias(maker.spot, 'numpy')}.array({text})"
        return array if rows or not value.elts else f"({inside}{',' * (len(value.elts) == 1)})"
    made = maker.made(value)
    if isinstance(made, ast.List) and isinstance(value, ast.Name):
        if made.elts and not any(isinstance(one, (ast.Constant, ast.List)) for one in made.elts):
            return f"tuple({text})"
        return f"{alias(maker.spot, 'numpy')}.array({text})" if not made.elts and _grown(value.id, maker) else None
    return (
        f"{alias(maker.spot, 'numpy')}.array({text})" if _is_list(made) and not is_array(_last(value, maker)) else None
    )


def _is_list(value: ast.expr) -> bool:
    """Whether an expression makes a list of Python's: `[f(x) for x in xs]`, `[1] * n`, `[1] * n + [0] * n`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult)):
        return any(_is_of_numbers(one) or _is_list(one) for one in (value.left, value.right))
    called = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return isinstance(value, ast.ListComp) or called in ("tolist", "list", "sorted")


def _is_of_numbers(value: ast.expr) -> bool:
    """`[1]` and `[0, 1]`: a list of arrays, repeated, is several inputs."""
    return isinstance(value, ast.List) and all(isinstance(one, (ast.Constant, ast.UnaryOp)) for one in value.elts)


def _last(value: ast.expr, maker: Maker) -> ast.expr:
    """What a name was last assigned above the place where it stands; any other value as it is."""
    above = [
        one.value for one in own_nodes(maker.function)
        if isinstance(one, ast.Assign) and isinstance(value, ast.Name) and one.lineno < value.lineno
        and [ast.unparse(target) for target in one.targets] == [value.id]
    ]  # fmt: skip
    return max(above, key=lambda one: one.lineno, default=value)


def _holds_rows(value: ast.expr, maker: Maker) -> bool:
    """Whether a part of a batch is an array of many rows: `np.array(images)`, and not `np.array([image])`."""
    made = _last(value, maker)
    called = ast.unparse(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
    given = made.args[0] if isinstance(made, ast.Call) and made.args else None
    if called not in ("array", "asarray", "stack", "vstack", "concatenate") or given is None:
        return False
    rows = maker.made(given)
    return _is_list(rows) or (
        isinstance(given, ast.Name) and isinstance(rows, ast.List) and bool(_grown(given.id, maker))
    )


def _is_entry(value: ast.expr, maker: Maker) -> bool:
    """Whether a part of what is yielded is one entry of something: `labels[i]`, `sentence[pos]`, `int(y)`."""
    made = maker.made(value)
    if isinstance(made, ast.Call):
        return ast.unparse(made.func) in ("int", "float")
    index = made.slice if isinstance(made, ast.Subscript) else None
    return isinstance(index, (ast.Name, ast.BinOp)) and not is_array(made) and _is_place(index, maker)


def _is_place(index: ast.expr, maker: Maker) -> bool:
    """Whether an index is the counter of a loop over `range(...)` or `enumerate(...)`, or is computed of one."""
    counters = {
        one.target.id if isinstance(one.target, ast.Name) else getattr(one.target.elts[0], "id", "")
        for one in own_nodes(maker.function)
        if isinstance(one, ast.For) and isinstance(one.target, (ast.Name, ast.Tuple)) and isinstance(one.iter, ast.Call)
        and ast.unparse(one.iter.func) == ("range" if isinstance(one.target, ast.Name) else "enumerate")
    }  # fmt: skip
    return any(isinstance(part, ast.Name) and part.id in counters for part in ast.walk(index))


def _is_of_one(value: ast.expr, maker: Maker) -> bool:
    """Whether a part is written as a batch of one: `x[None]`, `np.expand_dims(x, 0)`, `np.array([x])`."""
    made = _last(value, maker)
    if isinstance(made, ast.Subscript):
        return any(isinstance(one, ast.Constant) and one.value is None for one in ast.walk(made.slice))
    called = ast.unparse(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
    given = made.args[0] if isinstance(made, ast.Call) and made.args else None
    listed = isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) == 1
    return called == "expand_dims" or (called in ("array", "asarray", "stack") and listed) or (
        called == "reshape" and isinstance(made, ast.Call)
        and any(isinstance(one, ast.Constant) and one.value == 1 for one in made.args)
    )  # fmt: skip


def _grown(name: str, maker: Maker) -> list[ast.Call]:
    """The calls with which a function appends to one of its lists."""
    return [
        one for one in own_nodes(maker.function)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _GROWS
        and ast.unparse(one.func.value) == name
    ]  # fmt: skip


def _by_input(maker: Maker) -> dict[ast.expr, str]:
    """A list of rows, each with one array of every input of the model, as one array of each input."""
    pieces: dict[ast.expr, str] = {}
    for value in maker.values:
        given = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
        rows = _grown(given.id, maker) if isinstance(given, ast.Name) else []
        sizes = {
            len(one.args[0].elts) if isinstance(one.args[0], (ast.List, ast.Tuple)) else 0
            for one in rows if len(one.args) == 1 and isinstance(one.func, ast.Attribute) and one.func.attr == "append"
        }  # fmt: skip
        if maker.inputs > 1 and sizes == {maker.inputs}:
            arrays = f"{alias(maker.spot, 'numpy')}.array(one) for one in zip(*{maker.source.text(given)})"
            pieces[given] = f"tuple({arrays})" if given is not value else f"(tuple({arrays}),)"
    return pieces


def _lists_inside(maker: Maker, text: str, call: ast.Call) -> Explanation | None:
    """`return [a, b], y`: tf.data takes the list for one tensor."""
    pieces: dict[ast.expr, str] = {}
    places: set[int] = set()
    for value in maker.values:
        whole = maker.made(value)
        if isinstance(whole, (ast.Tuple, ast.List)):
            made = {place: new for place, one in enumerate(whole.elts) if (new := _part(one, maker)) is not None}
            pieces |= {whole.elts[place]: new for place, new in made.items()}
            places |= set(made)
    pieces |= (by_input := _by_input(maker))
    if not pieces:
        return None
    arrays = [one for one in pieces.values() if ".array(" in one and not one.startswith("(")]
    kind = "targets" if places == {1} and not by_input else "inputs"
    what = "a list of Python values" if arrays else f"a list of {kind}"
    cause = f"{maker.name} {maker.verb} {what} in its batch, and tf.data takes a list for one tensor. "
    cause += "As an array it is one." if arrays else f"Several {kind} are a tuple or a dict."
    return _explained(maker, cause, pieces, "Use tuples for several inputs, and arrays for rows.")


def _other_batch(maker: Maker, text: str, call: ast.Call) -> Explanation | None:
    """What is not a batch at all: None, or more values than inputs, targets and weights."""
    found = _BATCH.search(text)
    takes = "Keras takes (inputs, targets), (inputs,), or (inputs, targets, sample_weights)."
    if found is not None and found[1]:
        cause = f"{maker.name} returned None: "
        cause += "a way through it reaches no `return`. " if maker.values else "it has no `return`. "
        return _explained(maker, cause + takes, {}, "Return the batch on every way.")
    yields = [one for one in own_nodes(maker.function) if isinstance(one, ast.Yield) and one.value is not None]
    if maker.verb == "returns" and yields:
        plain = [one for one in yields if maker.source.parent(maker.source.parent(one) or one) is maker.function]
        made: dict[ast.expr, str] = {
            one: f"return {maker.source.text(one.value)}" for one in plain if one.value is not None
        }
        cause = f"{maker.name} yields, which makes a generator of it. Keras asks it for each batch, by its number. "
        return _explained(maker, cause + takes, made if len(yields) == len(made) == 1 else {}, "Return the batch.")
    counts = {len(one.elts) for one in maker.values if isinstance(one, (ast.Tuple, ast.List))}
    many = f"{counts.pop()} values" if len(counts) == 1 and max(counts) > 3 else "no such tuple"
    pieces: dict[ast.expr, str] = {}
    for value in maker.values:
        if not isinstance(value, (ast.Tuple, ast.List)) and (new := _part(value, maker)) is not None:
            pieces[value] = new if ".array(" in new else f"({maker.source.text(value)},)"
    cause = f"{maker.name} {maker.verb} {many}. {takes} Several inputs are one tuple in it."
    return _explained(maker, cause, pieces, "Group it so: `return (a, b, c), y`.")


def _side_by_side(maker: Maker, text: str, call: ast.Call) -> Explanation | None:
    """`return a, b, y` for a model of two inputs: Keras takes b for the target."""
    found = _INPUTS.search(text)
    inputs = int(found[1]) if found is not None else 0
    if inputs < 2 or found is None or int(found[2]) != 1:
        return None
    predicts = isinstance(call.func, ast.Attribute) and call.func.attr == "predict"
    stacked = _stacked(maker, inputs)
    if stacked:
        cause = (
            f"{maker.name} {maker.verb} one array of the {inputs} inputs, whose first axis Keras takes for the batch. "
        )
        return _explained(maker, f"{cause}Several inputs are a tuple of arrays.", stacked, "")
    pieces: dict[ast.expr, str] = {}
    for value in maker.values:
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        if len(parts) < inputs + (not predicts) or len(parts) > inputs + 2:
            continue
        texts = [maker.source.text(one) for one in parts]
        first = f"({', '.join(texts[:inputs])})"
        pieces[value] = ", ".join([first, *texts[inputs:]]) if len(parts) > inputs else f"({first},)"
    if not pieces:
        return None if predicts else _alone(maker, call)
    cause = (
        f"{maker.name} {maker.verb} the {inputs} inputs side by side: of a tuple Keras takes the first for the inputs, "
        "the second for the targets, and the third for weights. Several inputs are one tuple in it."
    )
    return _explained(maker, cause, pieces, "")


def _alone(maker: Maker, call: ast.Call) -> Explanation | None:
    """`return x, y` for a model of several inputs: the same array for each, if that is meant."""
    pairs = [one for one in maker.values if isinstance(one, ast.Tuple) and len(one.elts) == 2]
    first = {maker.source.text(one.elts[0]) for one in pairs}
    if len(pairs) != len(maker.values) or len(first) != 1:
        return None
    made, other = maker.made(pairs[0].elts[0]), any(one.arg == "validation_data" for one in call.keywords)
    if _is_structure(made) or (other and not (_is_part(made) or is_array(made))):
        return None
    text, count = first.pop(), maker.inputs
    shapes = [shape[1:] for one in maker.tensors if (shape := shape_of(one)) is not None]
    called = short(", ".join(str(one.name) for one in maker.tensors), 40)
    cause = (
        f"{maker.name} {maker.verb} one array for the inputs, {short(text, 40)}, and the model has {count}: {called}. "
        f"Keras takes a tuple of {count} arrays for them."
    )
    advice = (
        f"Let it {maker.verb[:-1]} ((a, b), labels)." if count == 2 else "Group the arrays of the inputs in a tuple."
    )
    if len(shapes) < count or len(set(shapes)) > 1 or len(text) > _LONGEST or count > _MOST:
        return _explained(maker, cause, {}, advice)
    cause += f" If {'both' if count == 2 else 'all'} take the same:"
    return _explained(maker, cause, {one.elts[0]: f"({', '.join([text] * count)})" for one in pairs}, advice)


def _is_structure(value: ast.expr) -> bool:
    """Whether an expression is written as several arrays."""
    return isinstance(value, (ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.Starred))


def _is_part(value: ast.expr) -> bool:
    return isinstance(value, (ast.Subscript, ast.Name, ast.Attribute))


def _stacked(maker: Maker, inputs: int) -> dict[ast.expr, str]:
    """`np.array([left, right])` for two inputs as the tuple of both."""
    pieces: dict[ast.expr, str] = {}
    for value in maker.values:
        given = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
        made = maker.made(given)
        if isinstance(made, ast.Call) and ast.unparse(made.func).rpartition(".")[2] in ("array", "asarray", "stack"):
            listed = made.args[0] if len(made.args) == 1 else None
            if isinstance(listed, (ast.List, ast.Tuple)) and len(listed.elts) == inputs:
                pieces[given] = f"({', '.join(maker.source.text(one) for one in listed.elts)})"
    return pieces


def _numbers(maker: Maker, text: str, call: ast.Call) -> Explanation | None:
    """Numbers where a batch has arrays: a list of them, or one example instead of a batch."""
    found = _RANK.search(text)
    parts = [one for value in maker.values for one in leaves(value)]
    pieces = {one: new for one in parts if (new := _part(one, maker)) is not None}
    single = not pieces
    np = alias(maker.spot, "numpy")
    if single and any(_is_entry(one, maker) for one in parts):
        pieces = {
            one: f"{np}.array([{text}])" if not is_array(_last(one, maker)) else f"{np}.expand_dims({text}, 0)"
            for one in parts if not _is_of_one(one, maker) for text in [maker.source.text(one)]
        }  # fmt: skip
    elif single:
        beside = any(_holds_rows(one, maker) for one in parts)
        single = not beside
        pieces = {
            one: f"{np}.array({maker.source.text(one)})" if beside else f"{np}.array([{maker.source.text(one)}])"
            for one in parts if not is_array(maker.made(one)) and not _holds_rows(one, maker)
        }  # fmt: skip
    else:
        pieces |= _by_input(maker)
    shown = short(found[1], 20) if found is not None else "a number"
    cause = f"{maker.name} {maker.verb} numbers ({shown}) where a batch has arrays. "
    if single and any(_is_unpacked(one, maker) for one in parts):  # of a call: it may be a whole batch in lists
        cause += "Keras takes each element of a list for an array of its own."
        return _explained(maker, cause, {}, f"Let it {maker.verb[:-1]} arrays, and a tuple of them for several inputs.")
    cause += (
        "One example is a batch of one." if single else "Keras takes each element of a list for an array of its own."
    )
    return _explained(maker, cause, pieces, f"Let it {maker.verb[:-1]} arrays with a first axis for the batch.")


def _examples(maker: Maker, text: str, call: ast.Call) -> Explanation | None:
    """Single examples: they have one axis less than the model's input, whose first is the batch's."""
    said = _AXES.search(text)
    if said is None:
        return None
    sizes, given = ([one.strip() for one in (said[name] or "").split(",") if one.strip()] for name in ("wanted", "got"))
    wanted, got = len(sizes) or int(said["least"] or 0), len(given) or int(said["found"] or 0)
    parts = [one for value in maker.values for one in leaves(value)]
    if got == wanted + 1:
        return _one_more(maker, sizes, given)
    if wanted != got + 1 or not parts:
        return None
    np = alias(maker.spot, "numpy")
    shown = f", [batch, {', '.join(sizes[1:])}]" if len(sizes) > 1 and "None" not in sizes[1:] else ""
    cause = (
        f"what {maker.name} {maker.verb} has {got} ax{'e' if got > 1 else 'i'}s, and the model's input {wanted}{shown}"
        ": Keras takes the first axis for the batch. One example is a batch of one."
    )
    pieces = {one: f"{np}.expand_dims({maker.source.text(one)}, 0)" for one in parts}
    return _explained(maker, cause, pieces, f"Let it {maker.verb[:-1]} batches: x[None] is one of one example.")


def _one_more(maker: Maker, sizes: list[str], given: list[str]) -> Explanation | None:
    """Inputs with an axis of one in front: `np.array([batch])` of what is a batch already."""
    pieces: dict[ast.expr, str] = {}
    for value in maker.values:
        first = value.elts[0] if isinstance(value, (ast.Tuple, ast.List)) and value.elts else value
        made = maker.made(first)
        inside = _inside(made, maker)
        if inside:
            pieces[made] = inside
    if not pieces:
        return None
    shown = f" ([{', '.join(given)}] for [{', '.join(sizes)}])" if given and sizes else ""
    text = maker.source.text(next(iter(pieces)))
    cause = (
        f"{short(text, 40)} in {maker.name} puts an axis of one in front of a batch{shown}: Keras takes the first axis "
        "for the batch, and would have one row there."
    )
    return _explained(maker, cause, pieces, "")


def _inside(made: ast.expr, maker: Maker) -> str:
    """`x` of `np.array([x])`, `np.expand_dims(x, 0)` and `x[None]`; "" for others."""
    if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Constant) and made.slice.value is None:
        return maker.source.text(made.value)
    if not isinstance(made, ast.Call) or not made.args:
        return ""
    name, part = ast.unparse(made.func).rpartition(".")[2], made.args[0]
    if name in ("array", "asarray", "stack") and isinstance(part, (ast.List, ast.Tuple)) and len(part.elts) == 1:
        return maker.source.text(part.elts[0])
    first = [ast.unparse(one) for one in (*made.args[1:], *(word.value for word in made.keywords))] in (["0"], [])
    return maker.source.text(part) if name == "expand_dims" and first else ""


def _is_unpacked(value: ast.expr, maker: Maker) -> bool:
    """Whether a name is one of several that a call's result is unpacked to: `x, y = self.batch(i)`."""
    return any(
        isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and isinstance(one.targets[0], ast.Tuple)
        and any(isinstance(name, ast.Name) and name.id == getattr(value, "id", "") for name in one.targets[0].elts)
        for one in own_nodes(maker.function)
    )  # fmt: skip


_CAUSES: tuple[tuple[re.Pattern[str], Callable[[Maker, str, ast.Call], Explanation | None]], ...] = (
    (_TUPLE, _list_of_generator),
    (_BATCH, _other_batch),
    (_LISTS, _lists_inside),
    (_INPUTS, _side_by_side),
    (_RANK, _numbers),
    (_AXES, _examples),
)
_ARRAY = re.compile(r"Received: \[[-+\[\]\s\d.einfa]*[\d.naf]\s+[-+\[\d.ni][-+\[\]\s\d.einfa]*\Z")
"""Numbers without a comma between them, as NumPy writes an array."""
_AT_FIRST = (_list_of_generator, _lists_inside, _numbers)
"""What Keras says before it takes the first batch."""
