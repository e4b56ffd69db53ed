"""`Dataset.from_generator` and Keras' `fit` on a generator: what was passed, and what it yields."""

from __future__ import annotations

import ast
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
    yielded_dtypes,
    yielded_forms,
    yielded_keys,
    yielded_nones,
    yielded_objects,
    yielded_shapes,
)
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, is_symbolic

RULE = "generator"
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
    if (_SHAPE.search(text) or _TYPE.search(text)) and (told := yielded_nones.explain(situation)) is not None:
        return told
    for pattern, tell in (
        (_STRUCTURE, _structure),
        (_RAGGED, _ragged),
        (_SHAPE, yielded_shapes.explain),
        (_TYPE, _type),
    ):
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
    own = _kept_name(source, call[2], given)
    new = f"lambda{own and f' {own}={text}'}: {own or text}"
    new = source.text(given.func) if plain and isinstance(given, ast.Call) else new
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
            items = f"({own or text}[i] for i in range(len({own or text})))"
            found = source.replaced({given: f"lambda{own and f' {own}={text}'}: {items}"})
    edit = Edit(file, found[0], found[1], (found[2],)) if found is not None and made else _made_each_time(spot, given)
    return Explanation(
        RULE, file, spot.line, cause, edit, "" if edit else "Pass the function that makes it, not called."
    )


def _kept_name(source: Source, call: ast.Call, given: ast.expr) -> str:
    """A name for what a lambda keeps, where its line gives the dataset the object's own name; "" elsewhere."""
    statement = source.statement(call.lineno)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    same = any(ast.unparse(one) == ast.unparse(given) for one in targets)
    return source.unused_name("data") if same else ""


def _made_each_time(spot: Spot, given: ast.expr) -> Edit | None:
    """The calls that made the generators, in the place of their names: here, and in the lines below."""
    source = spot.source
    own = assignments(spot.function or source.tree)
    pieces: dict[ast.expr, str] = {}
    for call in source.calls_of(frozenset({"from_generator"})):
        one = generator_calls.given(call)
        made = own.get(one.id) if isinstance(one, ast.Name) else None
        if isinstance(made, ast.Call) and type(spot.value(dotted(one))).__name__ == "generator":
            near = given.lineno <= call.lineno < given.lineno + yielded_shapes.NEAR
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
    element, at = yielded_keys.element(situation)[0], yielded_keys.line_of(yields, situation, call)
    if (known := yielded_forms.explain(file, source, call, at, given, element, found[1])) is not None:
        return known
    shown = refused_structures.said(yielded_keys.element(situation)[0]) or found[2]
    cause = (
        f"the generator yields {short(shown, 60)}, but its signature says {short(found[1], 50)}. Each yielded "
        "element must have that structure: a tuple for a tuple, a dict for a dict."
    )
    one = _ONE_SPEC.match(found[1])
    if one is not None and is_ndarray(value := yielded_keys.element(situation)[0]) and value.dtype != object:
        line = yielded_keys.line_of(yields, situation, call)  # arrays have no parts: their values are what is refused
        cause = f"the generator yielded {short(found[2], 40)}, which does not become {_a(one[1])} tensor."
        return Explanation(RULE, file, line, cause, None, yielded_objects.advice(value, one[1]) or _OTHER_DTYPE)
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
    if any(isinstance(one, (ast.For, ast.While)) for one in source.around(returns[0]) if one in inside):
        line = f"{indent_of(source.lines[first - 1])}yield {text}"
        cause = (
            f"{function.name} returns in the first turn of its loop, and yields nothing: tf.data goes over the tuple "
            "that it returned. `yield` gives an element in each turn."
        )
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
    cause = f"the generator yielded {shown}{where}, which does not become {_a(found[1])} tensor"
    if ragged:
        if where:
            cause = f"what the generator yielded{where} does not become {_a(found[1])} tensor"
        tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
        return Explanation(
            RULE, file, line, f"{cause}: its rows have different lengths.", None,
            f"Yield {tf}.ragged.constant(rows, {tf}.{found[1]}), with output_signature="
            f"{tf}.RaggedTensorSpec([None, None], {tf}.{found[1]}, 1) for it; or pad the rows to one length.",
        )  # fmt: skip
    if scipy_matrices.is_matrix(failed) and given is not None:
        element = yielded_keys.element(situation)[0]
        return scipy_matrices.yielded((file, source, line), given, element, failed, cause)
    plain = failed is None or is_ndarray(failed) or isinstance(failed, (bool, int, float, str, bytes, np.generic))
    advice = yielded_objects.advice(failed, found[1]) if failed is not None else ""
    advice = advice or (_OTHER_DTYPE if plain else "Yield an array of NumPy's or a number.")
    return Explanation(RULE, file, line, f"{cause}.", None, advice)


def _a(dtype: str) -> str:
    return f"an {dtype}" if dtype.startswith("i") else f"a {dtype}"


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
