"""`Dataset.from_generator` and Keras' `fit` on a generator: what was passed, and what it yields."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

import numpy as np

from pyfunc_debug.doctor.failures.datasets import (
    declared_types,
    element_structures,
    generator_calls,
    generator_counts,
    refused_structures,
    scipy_matrices,
    signature_parts,
    swapped_parts,
    yielded_dtypes,
    yielded_keys,
)
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, is_symbolic

RULE = "generator"
_Written = ast.Tuple | ast.List
_CHANNELS = 4
_NEAR = 8
"""Lines in which one paste changes several."""
_NOT_CALLABLE = "`generator` must be a Python callable"
_STRUCTURE = re.compile(
    r"`generator` yielded an element that did not match the expected structure\. The expected structure was (.*), but "
    r"the yielded element was (.*?)\.?$",
    re.DOTALL,
)
_SHAPE = re.compile(
    r"`generator` yielded an element of shape (\(.*?\)) where an element of shape (\(.*?\)) was expected"
)
_TYPE = re.compile(
    r"`generator` yielded an element that could not be converted to the expected type\. The expected type was (\w+), "
    r"but the yielded element was (.*?)\.?$",
    re.DOTALL,
)
_RAGGED = re.compile(
    r"`generator` yielded an element of RaggedTensorSpec\(TensorShape\((.*?)\), tf\.(\w+), (\d+), tf\.\w+\) where an "
    r"element of TensorSpec"
)
_OTHER_SPEC = re.compile(r"`generator` yielded an element of .*Spec\(.* where an element of .* was expected")
_ONE_SPEC = re.compile(r"TensorSpec\(shape=.*dtype=tf\.(\w+)")
_OTHER_DTYPE = "Yield that dtype, or declare the one that it yields."
_KEY = re.compile(r"['\"](\w+)['\"]: ")
_SPEC = "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found <class 'list'>"
_SPEC_AS_TYPE = re.compile(
    r"Cannot convert the argument `type_value`: \w*TensorSpec\(.* to a TensorFlow DType", re.DOTALL
)
_SYMBOLIC = re.compile(r"SymbolicTensor|symbolic|'Tensor' object")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a generator is why the program failed."""
    text = situation.message
    if _NOT_CALLABLE in text:
        return _not_callable(situation)
    if _SPEC in text:
        return _lists(situation)
    if _SPEC_AS_TYPE.search(text):
        return _spec_as_type(situation)
    for pattern, tell in ((_STRUCTURE, _structure), (_RAGGED, _ragged), (_SHAPE, _shape), (_TYPE, _type)):
        found = pattern.search(text)
        if found is not None:
            return tell(situation, found)
    if _OTHER_SPEC.search(text) and (every := generator_calls.calls(situation)):
        return yielded_dtypes.explain(situation, *every[0])
    if situation.body and _SYMBOLIC.search(text):
        return _symbolic(situation)
    return None


_ELEMENTS = re.compile(
    r"Data is expected to be in format `x`|expects \d+ (?:named )?input\(s\).*but it received 1 input"
)


def grouped(situation: Situation) -> Explanation | None:
    """`fit` on a dataset whose signature has inputs and target side by side, where the generator yields groups."""
    found = generator_calls.calls(situation) if not situation.body and _ELEMENTS.search(situation.message) else []
    if len(found) != 1:
        return None
    file, source, call = found[0]
    declared = [one.value for one in call.keywords if one.arg in ("output_types", "output_signature")]
    yields = generator_calls.yields_of(generator_calls.function_of(source, generator_calls.given(call)))
    return _other_nesting(declared[0], file, source, call, yields) if declared else None


def _not_callable(situation: Situation) -> Explanation | None:
    spot = situation.last
    call = next(
        (one for one in generator_calls.calls(situation) if spot and one[2].lineno <= spot.line <= _end(one[2])), None
    )
    given = generator_calls.given(call[2]) if call is not None else None
    if spot is None or call is None or given is None:
        return None
    file, source, _ = call
    text = source.text(given)
    plain = isinstance(given, ast.Call) and not given.args and not given.keywords
    new = source.text(given.func) if plain and isinstance(given, ast.Call) else f"lambda: {text}"
    found = source.replaced({given: new})
    cause = (
        f"{short(text, 30)} is a generator already. Dataset.from_generator takes the function that makes one: it calls "
        "it again for each pass over the dataset."
    )
    made = isinstance(given, ast.Call)
    value = spot.value(given.id) if isinstance(given, ast.Name) else None
    if isinstance(given, ast.Name) and type(value).__name__ not in ("generator", "NoneType"):
        made = True
        cause = f"{text} is not a function. Dataset.from_generator takes a function: it calls it for each pass."
        if not hasattr(type(value), "__iter__") and hasattr(type(value), "__len__"):
            # without a length, Python goes on until there is an IndexError: a slice raises none
            cause += f" {text} has a length and items, which the paste goes through."
            found = source.replaced({given: f"lambda: ({text}[i] for i in range(len({text})))"})
    edit = Edit(file, found[0], found[1], (found[2],)) if found is not None and made else _made_each_time(spot, given)
    return Explanation(
        RULE, file, spot.line, cause, edit, "" if edit else "Pass the function that makes it, not called."
    )


def _made_each_time(spot: Spot, given: ast.expr) -> Edit | None:
    """The calls that made the generators, in the place of their names: here, and in the lines below."""
    source = spot.source
    own = assignments(spot.function or source.tree)
    pieces: dict[ast.expr, str] = {}
    for call in source.calls_of(frozenset({"from_generator"})):
        one = generator_calls.given(call)
        made = own.get(one.id) if isinstance(one, ast.Name) else None
        if isinstance(made, ast.Call) and type(spot.value(dotted(one))).__name__ == "generator":
            near = given.lineno <= call.lineno < given.lineno + _NEAR
            pieces |= {one: f"lambda: {source.text(made)}"} if near and one is not None else {}
    if given not in pieces:
        return None
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(spot.file, first, last, source.spliced(pieces, first, last))


def _end(node: ast.Call) -> int:
    return node.end_lineno or node.lineno


def _structure(situation: Situation, found: re.Match[str]) -> Explanation | None:
    calls = generator_calls.calls(situation)
    if not calls:
        return None
    file, source, call = calls[0]
    yields = generator_calls.yields_of(generator_calls.function_of(source, generator_calls.given(call)))
    try:
        nested = _other_nesting(ast.parse(found[1], mode="eval").body, file, source, call, yields)
    except SyntaxError:
        nested = None
    nested = nested if nested is not None else generator_counts.explain(situation)
    if nested is not None:
        return nested
    given = getattr(yields[0], "value", None) if len(yields) == 1 else None
    if found[1].startswith("TensorSpec") and isinstance(given, (ast.Dict, ast.Tuple)):
        cause = "the one dtype that is declared makes one tensor of an element. "
        count = len(given.values if isinstance(given, ast.Dict) else given.elts)
        several = declared_types.several(situation, count, cause, RULE)
        if several is not None:
            return several
    for tell in (yielded_keys.explain, yielded_dtypes.explain):
        if (known := tell(situation, file, source, call)) is not None:
            return known
    if found[1].startswith("{") and found[2].startswith("{"):
        return _keys(found, file, source, call)
    if (refused := refused_structures.explain(situation, file, source, call)) is not None:
        return refused
    shown = refused_structures.said(signature_parts.yielded(situation)) or found[2]
    cause = (
        f"the generator yields {short(shown, 60)}, but its signature says {short(found[1], 50)}. Each yielded "
        "element must have that structure: a tuple for a tuple, a dict for a dict."
    )
    one = _ONE_SPEC.match(found[1])
    if one is not None and is_ndarray(value := signature_parts.yielded(situation)) and value.dtype != object:
        line = yielded_keys.line_of(yields, situation, call)  # arrays have no parts: their values are what is refused
        cause = f"the generator yielded {short(found[2], 40)}, which does not become a {one[1]} tensor."
        return Explanation(RULE, file, line, cause, None, _OTHER_DTYPE)
    wanted = found[1].startswith("(") and not found[2].startswith(("(", "{"))
    if len(yields) == 1 and wanted and yields[0].value is not None:
        value = yields[0].value
        text = f"tuple({source.text(value)})"
        if isinstance(value, ast.List) and len(value.elts) > 1:
            text = f"({source.text(value)[1:-1]})"
            cause = (
                f"the generator yields a list, and its signature says a tuple, {short(found[1], 50)}: tf.data makes "
                "one tensor of a list, and one of each part of a tuple."
            )
        new = source.replaced({value: text})
        if new is not None:
            return Explanation(RULE, file, value.lineno, cause, Edit(file, new[0], new[1], (new[2],)), "", "likely")
    returned = _rows_of_arrays(file, source, generator_calls.function_of(source, generator_calls.given(call)), found[1])
    if returned is not None:
        return returned
    line = yielded_keys.line_of(yields, situation, call)
    edit, said = element_structures.as_signed(found[1], given, file, source) if given is not None else (None, "")
    if edit is not None:
        cause = f"the generator yields {said}, {short(found[1], 50)}: each element must have that form."
        return Explanation(RULE, file, line, cause, edit, "", "likely")
    return Explanation(RULE, file, line, cause, None, "Yield what the signature says, or change the signature.")


def _rows_of_arrays(file: str, source: Source, function: ast.AST | None, wanted: str) -> Explanation | None:
    """`return xs, ys` in a function that is to yield: tf.data goes over the tuple, and each array is an element."""
    if not isinstance(function, ast.FunctionDef) or not wanted.startswith("("):
        return None
    inside = list(ast.walk(function))
    returns = [one for one in inside if isinstance(one, ast.Return)]
    value = returns[0].value if len(returns) == 1 else None
    if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in inside) or not isinstance(value, ast.Tuple):
        return None
    if len(value.elts) != wanted.count(",") + 1 - wanted.endswith(",)"):
        return None
    cause = (
        f"{function.name} returns its arrays at once, in a tuple, and yields nothing: tf.data goes over the tuple, and "
        "takes each array for an element. `zip` pairs their rows."
    )
    first, last = source.span(returns[0])
    text = ", ".join(map(source.text, value.elts))
    line = f"{indent_of(source.lines[first - 1])}yield from zip({text})"
    return Explanation(RULE, file, first, cause, Edit(file, first, last, (line,)), "", "likely")


def _keys(found: re.Match[str], file: str, source: Source, call: ast.Call) -> Explanation:
    """Dicts on both sides: the keys that only one of them has."""
    wanted, given = (list(dict.fromkeys(_KEY.findall(text))) for text in (found[1], found[2]))
    missing, extra = [one for one in wanted if one not in given], [one for one in given if one not in wanted]
    parts = [f"has no {', '.join(map(repr, missing[:3]))}"] * bool(missing)
    parts += [f"has {', '.join(map(repr, extra[:3]))}, of which the signature says nothing"] * bool(extra)
    cause = f"the dict that the generator yields {' and '.join(parts) or 'nests otherwise than its signature says'}. "
    cause += "Each yielded dict needs just the keys of the signature."
    function = generator_calls.function_of(source, generator_calls.given(call))
    written = [
        one for one in ast.walk(function if function is not None else source.tree)
        if isinstance(one, ast.Constant) and extra[:1] == [one.value]
    ]  # fmt: skip
    if len(missing) == len(extra) == len(written) == 1:
        new = source.replaced({written[0]: repr(missing[0])})
        if new is not None:
            edit = Edit(file, new[0], new[1], (new[2],))
            return Explanation(RULE, file, written[0].lineno, cause, edit, "", "likely")
    yields = generator_calls.yields_of(function)
    line = yields[0].lineno if yields else call.lineno
    advice = "Leave it out of the dict, or write it in the signature."
    if missing:
        advice = f"Yield {', '.join(map(repr, missing[:3]))} too, or leave it out of the signature."
    return Explanation(RULE, file, line, cause, None, advice)


def _other_nesting(
    signature: ast.expr, file: str, source: Source, call: ast.Call, yields: list[ast.Yield]
) -> Explanation | None:
    """As many values as the signature has, in other groups: `yield [a, b], label` for three dtypes side by side."""
    value = yields[0].value if len(yields) == 1 else None
    if not isinstance(value, (ast.Tuple, ast.List)) or not isinstance(signature, ast.Tuple):
        return None
    parts, leaves = _leaves(value), _leaves(signature)
    if len(parts) != len(leaves) or len(parts) == len(value.elts) == len(signature.elts):
        return None
    fitted = any(isinstance(one, ast.Call) and dotted(one.func).endswith(".fit") for one in ast.walk(source.tree))
    declared = [one.value for one in call.keywords if one.arg in ("output_types", "output_shapes", "output_signature")]
    grouped = (
        [_grouped(value, one, source) for one in declared] if fitted and len(leaves) == len(signature.elts) else [""]
    )
    cause = (
        f"the generator yields {len(parts)} values in {len(value.elts)} groups, `{short(source.text(value), 40)}`, but "
        f"its signature has {len(leaves)} in {len(signature.elts)}: both must nest alike, in tuples or dicts. "
    )
    if all(grouped):
        cause += "Keras takes (inputs, targets), as it is yielded."
        pieces: dict[ast.expr, str] = dict(zip(declared, grouped))
    else:
        texts = iter([source.text(one) for one in parts])
        pieces = {value: _like(signature, texts).removeprefix("(").removesuffix(")")}
    new = source.replaced(pieces)
    if new is None:
        return None
    return Explanation(RULE, file, yields[0].lineno, cause.rstrip(), Edit(file, new[0], new[1], (new[2],)))


def _leaves(node: ast.expr) -> list[ast.expr]:
    """The values in nested tuples and lists."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return [leaf for one in node.elts for leaf in _leaves(one)]
    return [node]


def _like(signature: ast.expr, texts: Iterator[str]) -> str:
    """Values, nested as a signature is."""
    if isinstance(signature, (ast.Tuple, ast.List)):
        inside = [_like(one, texts) for one in signature.elts]
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    return next(texts)


def _grouped(value: ast.expr, declared: ast.expr, source: Source) -> str:
    """What is declared side by side, in the groups that are yielded; "" where their numbers differ."""
    given = declared.elts if isinstance(declared, (ast.Tuple, ast.List)) else []
    texts = iter([source.text(one) for one in given])
    return _like(value, texts) if len(given) == len(_leaves(value)) else ""


def _shape(situation: Situation, found: re.Match[str]) -> Explanation | None:
    got, wanted = ast.literal_eval(found[1]), ast.literal_eval(found[2])
    for file, source, call in generator_calls.calls(situation):
        edit = element_structures.declared_each(situation, file, source, call)
        if edit is not None:
            cause = f"the generator yields {got[0]} values, but one tensor of shape {wanted} is declared. "
            cause += "These are the dtypes and shapes of its first element."
            return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")
        declared = [call, *generator_calls.assigned(call, source)]
        sizes = _numbers(source, situation)
        places = [
            part for one in declared for part in ast.walk(one)
            if isinstance(part, (ast.Tuple, ast.List)) and _sizes(part, sizes) == wanted
        ]  # fmt: skip
        places = places or [
            part for one in declared for part in ast.walk(one)
            if isinstance(part, (ast.Tuple, ast.List)) and _may_be(part, sizes, wanted)
        ]  # fmt: skip
        if not places:
            continue
        parts = signature_parts.failed_parts(situation)[0]
        if len(places) > 1 and parts:
            places = _within(places, call, parts[0]) or places
        function = generator_calls.function_of(source, generator_calls.given(call))
        # Where what yields is not there to be read (df.iterrows), the signature may be wrong as a whole.
        key = _key_of(source, places[0]) if len(places) == 1 else ""
        seen = generator_calls.yields_of(function) or len(got) == len(wanted) or key
        fits = _differing(got, wanted) if _had_elements(situation) else _of_source(got, function, file, situation)
        fits = _left_open(fits, wanted)
        said = _written(fits, places[0], sizes)
        pieces: dict[ast.expr, str] = {places[0]: said, **_others(situation, call, parts[1:], sizes)}
        number = _elements_before(situation)
        batch = _batch_behind(source, call) if number and fits != got and len(fits) == len(got) else None
        if batch is not None and abs(batch.lineno - places[0].lineno) < _NEAR:
            pieces[batch] = "padded_batch"
        else:
            batch = None
        new = source.replaced(pieces) if len(places) == 1 and seen else None
        edit = edit_of(file, new)
        if edit is not None and edit.first < edit.last:  # perhaps two statements: their lines stay as they are
            edit = Edit(file, edit.first, edit.last, source.spliced(pieces, edit.first, edit.last))
        swapped = swapped_parts.alike(situation)
        whose = key or (swapped[0] if swapped is not None else "")
        of = f" for {whose}" if whose else ""
        cause = f"the generator yielded an element of shape {got}{of}, but its signature says {wanted}. "
        if swapped is not None:
            cause += f"Either that is declared wrongly, or the value is another part's: {swapped[1]} this shape too."
            advice = f"If the value is the right one, write {said} there. Else yield the one that belongs there: data "
            advice += "and labels, say, may be unpacked in another order than they were returned."
            return Explanation(RULE, file, places[0].lineno, cause, None, advice, "likely")
        if number and fits != got:
            before = f"the {number:,} elements before it" if number > 1 else "the one before it"
            cause = f"{cause[:-2]}, as {before} had. If that one is wrong, leave it out in the generator; else "
            cause += "None stands for any size" + (", and padded_batch fills rows up." if batch is not None else ".")
        else:
            cause += "It describes one yielded element, before any batch()."
            cause += " None stands for any size." * (None in fits)
            if got[:-1] == wanted and 1 < got[-1] <= _CHANNELS:
                cause += f" If one of its {got[-1]} channels is meant, yield [..., 0] of it."
        return Explanation(
            RULE, file, places[0].lineno, cause, edit,
            "" if edit else f"Write {said} there, or yield elements of shape {wanted}, in the signature's order.",
            "likely",
        )  # fmt: skip
    return None


def _key_of(source: Source, declared: ast.expr) -> str:
    """The key under which a dict declares a shape, as the program writes it; "" where it is in no dict."""
    around = [declared, *source.around(declared)]
    for inner, outer in itertools.pairwise(around):
        if isinstance(outer, ast.Dict):
            return next((source.text(key) for key, one in zip(outer.keys, outer.values) if one is inner and key), "")
        if isinstance(outer, ast.stmt):
            break
    return ""


def _others(situation: Situation, call: ast.Call, parts: list[int], sizes: dict[str, int]) -> dict[ast.expr, str]:
    """The shapes of the further parts that failed, in the places of those that are declared."""
    found: dict[ast.expr, str] = {}
    for frame in frames(situation.inner.__traceback__):
        arrays, declared = (frame.f_locals.get(name) for name in ("ret_arrays", "flattened_shapes"))
        for part in parts if isinstance(arrays, list) and declared is not None else ():
            got, wanted = tuple(arrays[part].shape), tuple(declared[part].as_list())
            shapes_of = [one for one in ast.walk(call) if isinstance(one, (ast.Tuple, ast.List))]
            places = _within([one for one in shapes_of if _sizes(one, sizes) == wanted], call, part)
            if len(places) == 1 and len(got) == len(wanted):
                found[places[0]] = _written(_left_open(_differing(got, wanted), wanted), places[0], sizes)
    return found


def _within(places: list[_Written], call: ast.Call, part: int) -> list[_Written]:
    """Those of some shapes that stand in one part of a tuple that from_generator is given."""
    said = [one.value for one in call.keywords if one.arg in ("output_shapes", "output_signature")] + call.args[2:3]
    if len(said) != 1 or not isinstance(said[0], (ast.Tuple, ast.List)) or part >= len(said[0].elts):
        return []
    inside = list(ast.walk(said[0].elts[part]))
    return [one for one in places if one in inside]


def _of_source(
    got: tuple[int, ...], function: ast.FunctionDef | None, file: str, situation: Situation
) -> tuple[int | None, ...]:
    """The shape of an element that failed, with None where the source that yields it leaves a size open."""
    spot = next((one for one in situation.spots if one.file == file), None)
    yields = generator_calls.yields_of(function)
    if function is None or spot is None or len(yields) != 1 or yields[0].value is None:
        return got
    value: ast.expr = yields[0].value
    inside = Spot(file, function.lineno, {}, spot.module, "")
    parts = list(value.values) if isinstance(value, ast.Dict) else getattr(value, "elts", [value])
    guesses = {shapes.shape_of_value(one, function, inside) for one in parts}
    made = assignments(function)
    listed = [made.get(one.id) if isinstance(one, ast.Name) else one for one in parts]
    if any(isinstance(one, ast.ListComp) for one in listed) and guesses <= {None, ()}:
        return (None, *got[1:])
    fitting = [
        one for one in guesses
        if one is not None and len(one) == len(got) and all(size in (None, own) for size, own in zip(one, got))
    ]  # fmt: skip
    return fitting[0] if len(fitting) == 1 else got


def _had_elements(situation: Situation) -> bool:
    """Whether the generator gave elements before, which did fit its signature."""
    return _elements_before(situation) > 0


def _elements_before(situation: Situation) -> int:
    """How many elements the generator gave before the one that failed."""
    failed = "FROM call WHERE status = 'error' ORDER BY id LIMIT 1"  # a prefetch goes on behind it
    rows = situation.rows(
        f"SELECT count(*) FROM call WHERE status = 'ok' AND node = (SELECT node {failed}) AND id < (SELECT id {failed})"
    )
    return int(rows[0][0]) if rows else 0


def _batch_behind(source: Source, call: ast.Call) -> ast.expr | None:
    """`batch` of `from_generator(...).batch(2)`, as a place in the text."""
    attribute = source.parent(call)
    if not isinstance(attribute, ast.Attribute) or attribute.attr != "batch" or attribute.end_col_offset is None:
        return None
    place = ast.Name("batch", ast.Load())
    place.lineno = place.end_lineno = attribute.end_lineno or attribute.lineno
    place.end_col_offset = attribute.end_col_offset
    place.col_offset = attribute.end_col_offset - len("batch")
    return place


def _differing(got: tuple[int, ...], wanted: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape that fits both."""
    if len(got) != len(wanted):
        return got
    return tuple(one if one == other else None for one, other in zip(got, wanted))


def _left_open(shape: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape with None where the declared one has it, as for the size of batches: the last may be smaller."""
    if len(shape) != len(wanted):
        return shape
    return tuple(None if other is None else one for one, other in zip(shape, wanted))


def _numbers(source: Source, situation: Situation) -> dict[str, int]:
    """Whole numbers that names of a file stand for, as far as it, or a frame of it, gives each one value."""
    found: dict[str, set[int]] = {}
    own = {one.name for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef)}
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and type(one.value.value) is int:
            for target in one.targets:
                found.setdefault(dotted(target), set()).add(one.value.value)
    for function in (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)):
        for given, default in zip(reversed(function.args.args), reversed(function.args.defaults)):
            if isinstance(default, ast.Constant) and type(default.value) is int:
                found.setdefault(given.arg, set()).add(default.value)
    for spot in situation.spots:
        if spot.source is source:
            for name, value in [*spot.module.items(), *spot.variables.items()]:
                if type(value) is int:
                    found.setdefault(name, set()).add(value)
                elif type(value).__name__ in own:
                    kept = getattr(value, "__dict__", {})
                    for attribute, size in kept.items():
                        if type(size) is int:
                            found.setdefault(f"self.{attribute}", set()).add(size)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _may_be(node: ast.Tuple | ast.List, numbers: dict[str, int], wanted: tuple[int | None, ...]) -> bool:
    """Whether a written shape may stand for `wanted`: by names of sizes that nothing tells the values of."""
    if len(node.elts) != len(wanted) or not node.elts:
        return False
    open_sizes = [isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) not in numbers for one in node.elts]
    known = [
        numbers.get(dotted(one)) if dotted(one) else getattr(one, "value", "?") for one in node.elts
    ]  # fmt: skip
    return any(open_sizes) and all(free or one == size for free, one, size in zip(open_sizes, known, wanted))


def _sizes(node: ast.Tuple | ast.List, numbers: dict[str, int]) -> object:
    """What a written shape stands for; None where some of it is not known."""
    sizes = [
        numbers.get(dotted(one), "?") if isinstance(one, (ast.Name, ast.Attribute)) else getattr(one, "value", "?")
        for one in node.elts
    ]  # fmt: skip
    return tuple(sizes) if all(one is None or type(one) is int for one in sizes) else None


def _written(shape: tuple[int | None, ...], place: ast.expr, numbers: dict[str, int]) -> str:
    """A shape as text, with the names that the shape in its place has for sizes."""
    elements = place.elts if isinstance(place, (ast.Tuple, ast.List)) else []
    named = {numbers[dotted(one)]: dotted(one) for one in elements if dotted(one) in numbers}
    parts = [named.get(one, str(one)) if one is not None else "None" for one in shape]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _type(situation: Situation, found: re.Match[str]) -> Explanation | None:
    calls = generator_calls.calls(situation)
    if not calls:
        return None
    file, source, call = calls[0]
    yields = generator_calls.yields_of(generator_calls.function_of(source, generator_calls.given(call)))
    line = yielded_keys.line_of(yields, situation, call)
    value = found[2]
    ragged = value.startswith("[[") or "list(" in value
    declared = [one.value for one in call.keywords if one.arg in ("output_types", "output_signature")] or call.args[1:2]
    given = getattr(yields[0], "value", None) if len(yields) == 1 else None
    alone = bool(declared) and not isinstance(declared[0], (ast.Tuple, ast.List, ast.Dict))
    if value.startswith("(") and isinstance(given, ast.Tuple) and alone:
        tf, several = alias(situation.spots[0], "tensorflow") if situation.spots else "tf", len(given.elts)
        cause = f"the one dtype that is declared, {found[1]}, makes one tensor of an element. "
        edit = element_structures.declared_each(situation, file, source, call)
        said = f"the generator yields {several} values (line {line}), but one {found[1]} tensor is declared."
        if edit is not None:
            said += " These are the dtypes and shapes of its first element."
            return Explanation(RULE, file, call.lineno, said, edit, "", "likely")
        return declared_types.several(situation, several, cause, RULE) or Explanation(
            RULE, file, line, said, None,
            f"Declare each: output_signature=({tf}.TensorSpec(shape, dtype), ...) with {several} of them.",
        )  # fmt: skip
    where, failed = signature_parts.failed_value(situation)
    ragged = ragged if failed is None else signature_parts.is_uneven(failed)
    if (told := signature_parts.ragged(situation, failed, where)) is not None:
        return told
    shown = short(value, 40)
    shown = "rows" if shown.startswith("...") else shown
    cause = f"the generator yielded {shown}{where}, which does not become a {found[1]} tensor"
    if ragged:
        if where:
            cause = f"what the generator yielded{where} does not become a {found[1]} tensor"
        tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
        return Explanation(
            RULE, file, line, f"{cause}: its rows have different lengths.", None,
            f"Yield {tf}.ragged.constant(rows, {tf}.{found[1]}), with output_signature="
            f"{tf}.RaggedTensorSpec([None, None], {tf}.{found[1]}, 1) for it; or pad the rows to one length.",
        )  # fmt: skip
    if scipy_matrices.is_matrix(failed) and given is not None:
        element = signature_parts.yielded(situation)
        return scipy_matrices.yielded((file, source, line), given, element, failed, cause)
    plain = failed is None or is_ndarray(failed) or isinstance(failed, (bool, int, float, str, bytes, np.generic))
    advice = (
        "Yield that dtype, or declare the one that it yields." if plain else "Yield an array of NumPy's or a number."
    )
    return Explanation(RULE, file, line, f"{cause}.", None, advice)


def _ragged(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """Ragged tensors where plain ones are declared: only output_signature can say so."""
    calls = generator_calls.calls(situation)
    if len(calls) != 1:
        return None
    file, source, call = calls[0]
    yields = generator_calls.yields_of(generator_calls.function_of(source, generator_calls.given(call)))
    tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
    rank = len([part for part in found[1].strip("[]").split(",") if part.strip()])
    spec = f"{tf}.RaggedTensorSpec([{', '.join(['None'] * rank)}], {tf}.{found[2]}, {found[3]})"
    types = generator_calls.types_alone(call)
    edit = None
    if types is not None and not isinstance(types, (ast.Tuple, ast.List, ast.Dict)):
        rest = [source.text(one) for one in call.args if one is not types]
        rest += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.value is not types]
        placed = source.replaced({call: f"{source.text(call.func)}({', '.join([*rest, f'output_signature={spec}'])})"})
        edit = edit_of(file, placed)
    cause = (
        f"the generator (line {yields[0].lineno if yields else call.lineno}) yields ragged tensors, but its dtype "
        "alone declares plain ones. output_signature says ragged."
    )
    return Explanation(
        RULE, file, call.lineno, cause, edit, "" if edit else f"Write {spec} for it in output_signature."
    )


def _spec_as_type(situation: Situation) -> Explanation | None:
    """A signature that was given where the dtypes go: as the second argument, or as output_types."""
    spot = situation.last
    found = [
        one[2]
        for one in generator_calls.calls(situation)
        if spot and one[0] == spot.file and one[2].lineno <= spot.line <= _end(one[2])
    ]
    if spot is None or len(found) != 1 or (types := generator_calls.types_alone(found[0])) is None:
        return None
    call, text = found[0], spot.source.text
    rest = [text(one) for one in call.args if one is not types]
    rest += [f"{one.arg}={text(one.value)}" for one in call.keywords if one.value is not types]
    new = f"{text(call.func)}({', '.join([*rest, f'output_signature={text(types)}'])})"
    placed = spot.source.replaced({call: new})
    cause = (
        f"{short(text(types), 30)} is a signature, and from_generator takes it for output_types: its second one is "
        "dtypes alone. output_signature takes TensorSpecs."
    )
    edit = edit_of(spot.file, placed)
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Pass it as output_signature=.")


def _signed_lists(spot: Spot) -> Explanation | None:
    """Lists in the `output_signature` that the failing line gives."""
    statement, text = spot.statement, spot.source.text
    for call in calls(statement) if statement is not None else ():
        given = next((one.value for one in call.keywords if one.arg == "output_signature"), None)
        lists = [one for one in ast.walk(given) if isinstance(one, ast.List)] if given is not None else []
        inner = [one for one in lists if not any(one is not other and one in ast.walk(other) for other in lists)]
        specs = [one for one in inner if one.elts and all("Spec" in text(part) for part in one.elts)]
        if not specs or len(specs) != len(lists):
            continue
        pieces: dict[ast.expr, str] = {
            one: f"({', '.join(map(text, one.elts))}{',' if len(one.elts) == 1 else ''})" for one in specs
        }
        cause = (
            "output_signature holds a list, and tf.data takes a list for one tensor: several are a tuple in it. What "
        )
        cause += "the generator yields has to be one there, too."
        first, last, lines = spot.source.kept_lines(pieces)
        return Explanation(RULE, spot.file, given.lineno if given is not None else call.lineno, cause,
                           Edit(spot.file, first, last, lines))  # fmt: skip
    return None


def _lists(situation: Situation) -> Explanation | None:
    """Keras takes lists in a yielded element for structure, which tf.data does not know."""
    spot = situation.last
    if spot is None:
        return None
    statement = spot.statement
    called = names(statement) if statement is not None else []
    for file, source in situation.sources():
        for name in called:
            function = next(
                (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name), None
            )
            for one in generator_calls.yields_of(function):
                lists = [part for part in getattr(one.value, "elts", [one.value]) if isinstance(part, ast.List)]
                pieces: dict[ast.expr, str] = {
                    part: f"({', '.join(map(source.text, part.elts))}{',' if len(part.elts) == 1 else ''})"
                    for part in lists
                }
                new = source.replaced(pieces) if pieces else None
                if new is not None:
                    parts = one.value.elts if isinstance(one.value, ast.Tuple) else []
                    what = "targets" if len(parts) > 1 and [*pieces] == parts[1:2] else "inputs"
                    return Explanation(
                        RULE, file, one.lineno,
                        f"{name} yields a list of {what}, and tf.data takes a list for one tensor. Several {what} are "
                        "a tuple or a dict.",
                        Edit(file, new[0], new[1], (new[2],)),
                    )  # fmt: skip
    signed = _signed_lists(spot)
    if signed is not None:
        return signed
    return Explanation(
        RULE, spot.file, spot.line, "the generator yields a list, and tf.data takes a list for one tensor.", None,
        "Yield tuples (or dicts) where there are several inputs or targets.",
    )  # fmt: skip


def _symbolic(situation: Situation) -> Explanation | None:
    """A symbolic tensor of the function around from_generator: the generator runs later, without it."""
    for spot in reversed(situation.spots):
        for file, source, call in generator_calls.calls(situation):
            given = generator_calls.given(call)
            inner = given.body if isinstance(given, ast.Lambda) else None
            if not isinstance(inner, ast.Call) or not inner.args or inner.keywords:
                continue
            if not any(is_symbolic(value) for value in spot.variables.values()):
                continue
            args = ", ".join(map(source.text, inner.args)) + ","
            assert given is not None
            new = source.replaced({given: f"{source.text(inner.func)}, args=({args})"})
            if new is None:
                continue
            return Explanation(
                RULE, file, call.lineno,
                f"`{source.text(inner)}` runs when the dataset is iterated, but {source.text(inner.args[0])} is a "
                "symbolic tensor of the function around it. args=(...) gives the generator its value, as NumPy (bytes "
                "for text).",
                Edit(file, new[0], new[1], (new[2],)),
            )  # fmt: skip
    return None
