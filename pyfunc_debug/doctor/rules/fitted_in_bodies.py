"""An encoder, a vocabulary or a scaler that a body fits to what one call gets: its results mean another thing in each.

`LabelEncoder().fit_transform([label])` numbers the labels of one call: its only one is always 0.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.numbered_values import Numbered, numbered_values
from pyfunc_debug.doctor.bodies.numbered_words import numbered_words
from pyfunc_debug.doctor.bodies.run_functions import called_by
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding, Node

NAMES = ("fitted-in-body",)
_NUMBERS = re.compile(r"(Label|OneHot|Ordinal|Target|MultiLabel)\w*(Encoder|Binarizer)$|StringLookup$|IntegerLookup$")
_WORDS = re.compile(r"Vectorizer$|Tokenizer$|TextVectorization$")
_SCALES = re.compile(
    r"Scaler$|Imputer$|QuantileTransformer$|PowerTransformer$|KBinsDiscretizer$|layers\.Normalization$"
)
_FITS = {"fit_transform": "transform", "fit_on_texts": "", "fit": "", "adapt": "", "build_vocab": ""}
"""Methods that fit, and the one that does the rest of them with what is fitted."""
_LEAST_CALLS = 3


@dataclass(frozen=True)
class _Fit:
    """A call that fits: the class's name, what it is fitted to, and the line of the function that makes the object."""

    call: ast.Call
    made: str
    data: ast.expr
    inside: int | None


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    told: set[tuple[str, int]] = set()
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        count = facts.calls_of(group).count
        if function is None or count < _LEAST_CALLS or node.file is None:
            continue
        own = pastes.source(facts, node.file)
        holders = (function, *called_by(own.tree, function))
        numbered = numbered_words(facts, group, holders)
        if numbered is not None and (node.file, numbered[1].lineno) not in told:
            told.add((node.file, numbered[1].lineno))
            yield _words(facts, group, count, *numbered)
        values = numbered_values(facts, group, holders)
        if values is not None and (node.file, values.node.lineno) not in told:
            told.add((node.file, values.node.lineno))
            yield _values(facts, group, count, values)
        for holder in holders:
            fit = _fit(holder, own)
            if fit is not None and (node.file, fit.call.lineno) not in told:
                told.add((node.file, fit.call.lineno))
                yield _finding(facts, node, count, fit)
                break
    for node, _ in facts.generators.values():
        function, count = facts.function(node), facts.calls(node.id).count
        if function is None or node.file is None or count < _LEAST_CALLS:
            continue
        own = pastes.source(facts, node.file)
        for holder in (function, *called_by(own.tree, function)):
            fit = _fit(holder, own)
            if fit is None or (node.file, fit.call.lineno) in told or not _each_time(own, function, holder, fit):
                continue
            told.add((node.file, fit.call.lineno))
            yield _finding(facts, node, None, fit)
            break


def _each_time(own: Source, generator: Definition, holder: Definition, fit: _Fit) -> bool:
    """Whether a generator, or the `__getitem__` of a Sequence, fits for each element, to a part of the data."""
    item = isinstance(generator, ast.FunctionDef) and generator.name == "__getitem__"
    use: ast.AST = fit.call
    if holder is not generator:
        uses = [
            one for one in pastes.walk(generator, ast.Call)
            if isinstance(holder, ast.FunctionDef) and pastes.last_name(one.func) == holder.name
        ]  # fmt: skip
        if len(uses) != 1:
            return False
        use = uses[0]
    elif not item and not _is_part(generator, fit.data):
        return False
    loops = [one for one in own.around(use) if isinstance(one, (ast.For, ast.While)) and one in ast.walk(generator)]
    inner = loops[0] if loops else None
    yields = inner is not None and any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(inner))
    of_loop = isinstance(inner, ast.For) or (inner is not None and _counts(inner))
    return item if inner is None else item or (yields and of_loop)


def _counts(loop: ast.AST) -> bool:
    """Whether a `while` moves a place on: `i += batch_size`."""
    return any(isinstance(one, ast.AugAssign) for one in ast.walk(loop))


def _is_part(function: Definition, node: ast.expr, deep: int = _LEAST_CALLS) -> bool:
    """Whether an expression is a part of other data: `labels[i:j]`, or a name that was given such a part."""
    if any(isinstance(one, ast.Subscript) for one in ast.walk(node)):
        return True
    names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    targets = {name for one in pastes.walk(function, ast.For) for name in code.stored_names(one.target)}
    if targets & set(names):
        return True
    return deep > 0 and any(_is_part(function, made, deep - 1) for n in names for made in pastes.assigned(function, n))


def _fit(function: Definition, own: Source) -> _Fit | None:
    """A call of a function that fits an object of such a class to a value of its own."""
    local = code.local_names(function)
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute) or len(one.args) != 1:
            continue
        if one.func.attr not in _FITS:
            continue
        made, inside = _class(one.func.value, function, own), {
            name.id for name in ast.walk(one.args[0]) if isinstance(name, ast.Name)
        }  # fmt: skip
        if inside & local and any(kind.search(made) for kind in (_NUMBERS, _WORDS, _SCALES)):
            return _Fit(one, made, one.args[0], _made_at(function, one.func.value))
    return None


def _made_at(function: Definition, value: ast.expr) -> int | None:
    """The line of a function that gives a name its object; None where it does not."""
    made = pastes.assigned(function, ast.unparse(value))
    return made[0].lineno if made else None


def _class(value: ast.expr, function: Definition, own: Source) -> str:
    """The class of an object that is made where it is used, or by the one assignment of its name; "" for others."""
    if isinstance(value, (ast.Name, ast.Attribute)):
        made = pastes.assigned(function, ast.unparse(value)) or pastes.assigned(own.tree, ast.unparse(value))
        if len(made) != 1:
            return ""
        value = made[0]
    return ast.unparse(value.func) if isinstance(value, ast.Call) else ""


def _finding(facts: Facts, node: Node, count: int | None, fit: _Fit) -> Finding:
    """Of an object that is fitted in a body, or for each element of a generator where no count of calls is given."""
    one = "call" if count is not None else "element"
    own, kind = pastes.source(facts, node.file), fit.made.rpartition(".")[2]
    if _NUMBERS.search(fit.made):
        means = f"{kind} numbers what one {one} holds: the first is 0 in each, whatever it is"
    elif _WORDS.search(fit.made):
        means = f"{kind} numbers the words of one {one}: a word has another number in another {one}"
    else:
        means = f"{kind} takes its bounds or its mean from one {one}: how a whole input differs from others is lost"
    whole = own.text(fit.call)
    value = fit.call.func.value  # type: ignore[attr-defined]  # a method's
    name = ast.unparse(value) if isinstance(value, (ast.Name, ast.Attribute)) else _name(own, kind)
    made = own.text(pastes.assigned(own.tree, name)[0]) if pastes.assigned(own.tree, name) else f"{fit.made}()"
    rest = _FITS[fit.call.func.attr]  # type: ignore[attr-defined]
    fits = "fit" if rest else fit.call.func.attr  # type: ignore[attr-defined]
    where = "in __init__" if name.startswith("self.") else "above the function"
    once = f"{name} = {made}; {name}.{fits}(...)  # with all training data"
    then = f"{name}.{rest}({own.text(fit.data)})" if rest else "nothing: what it is fitted to stays"
    goes = "" if fit.inside is None else f"; without line {fit.inside}"
    return Finding(
        NAMES[0], "warning", node.id, (),
        (f"{whole} fits in each of {count:,} calls, to that call's input alone. {means}" if count is not None else
         f"{whole} fits for each element of {node.body}, to that element's values alone. {means}"),
        f"once, {where}: {once}\nin line {fit.call.lineno}, for {whole}: {then}{goes}",
        node.file, fit.call.lineno,
        evidence=(f"line {fit.call.lineno}: {facts.line(node.file, fit.call.lineno)}",), confidence="likely",
    )  # fmt: skip


def _words(facts: Facts, group: list[Node], count: int, name: str, made: ast.expr) -> Finding:
    """Of a vocabulary that each call makes of its own text."""
    node, line = group[0], made.lineno
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{facts.name(node)} makes {name} in each of {count:,} calls, of the words of that call's text: a word has "
        "another number in another text, and one number stands for many words",
        f"once, above the function: {name} of the words of all training texts, which the body reads\n"
        f"in line {line}: nothing; and a number for words that {name} does not have",
        node.file, line, several(one.id for one in group),
        (f"line {line}: {facts.line(node.file, line)}",), "likely",
    )  # fmt: skip


def _values(facts: Facts, group: list[Node], count: int, found: Numbered) -> Finding:
    """Of numbers, or columns, that each call gives to the values of its own input."""
    node, line, own = group[0], found.node.lineno, pastes.source(facts, group[0].file)
    whole, values = own.text(found.node), own.text(found.values)
    if found.columns:
        what, means = "columns", "a column stands for another value in another call"
        once = "kinds = sorted(...)  # the values of all training data, as they are in the body"
        then = own.text_with(found.node, {found.values: f"pd.Categorical({values}, categories=kinds)"})
    else:
        what, means = "numbers", "a number stands for another value in another call"
        once = "numbers = {value: i for i, value in enumerate(...)}  # the values of all training data"
        one = "one" if found.decoded else "one.decode()"
        then = f"np.array([numbers[{one}] for one in {values}])"
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{whole} {found.does}, in {count:,} calls: {means}",
        f"once, above the function: {once}\nin line {line}, for these {what}: {then}",
        node.file, line, several(one.id for one in group),
        (f"line {line}: {facts.line(node.file, line)}",), "likely",
    )  # fmt: skip


def _name(own: Source, kind: str) -> str:
    """A free name for the object: `label_encoder`."""
    return own.unused_name(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower())
