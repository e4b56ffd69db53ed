"""A vocabulary that counts its words from 0, where 0 also stands for unknown words, or fills rows up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.bodies.run_functions import called_by
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding, Node

NAMES = ("taken-id",)
_MARKER = re.compile(
    r"""["'](?:<[\w/ ]+>|\[[a-z]+\]|_*(?:pad(?:ding)?|unk(?:nown)?|oov|blank|other)_*|)["'](?!\.)""", re.I
)
"""Words of a file whose vocabulary may begin with one that is none."""
_WRAPS = ("sorted", "list", "set", "tuple", "unique", "fromkeys", "frozenset", "dict")
_SIZED = ("Embedding", "one_hot", "to_categorical", "Dense", "CategoryEncoding")
_LENGTHS = re.compile(r"sequence_mask|length|ragged|ctc", re.I)


@dataclass(frozen=True)
class _Vocabulary:
    """A dict of words and their ids from 0, and the `enumerate` that counts."""

    name: str
    counts: ast.Call
    words: ast.expr


@dataclass(frozen=True)
class _Use:
    """A line that gives 0 another meaning."""

    line: int
    says: str


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a vocabulary."""
    told: set[tuple[str, str]] = set()
    groups = [[one] for one in facts.nodes.values() if facts.is_generator(one)]
    for group in (*facts.lines, *groups):
        node, function = group[0], facts.function(group[0])
        if function is None or node.file is None or not facts.calls_of(group).count:
            continue
        own = pastes.source(facts, node.file)
        if _MARKER.search("\n".join(own.code)):
            continue
        rows = _rows(facts, group)
        if rows is None:
            continue
        every = [function, *called_by(own.tree, function)]
        for name in dict.fromkeys(one.id for part in every for one in pastes.walk(part, ast.Name)):
            known = _vocabulary(own, name) if (node.file, name) not in told else None
            if known is None:
                continue
            uses = [*_unknown(own, every, known), *(_padding(own, every, known) if rows else ())]
            if uses:
                told.add((node.file, name))
                yield _finding(facts, own, node, known, uses)


def _vocabulary(own: Source, name: str) -> _Vocabulary | None:
    """`{w: i for i, w in enumerate(words)}` of a name that nothing else changes."""
    made = pastes.assigned(own.tree, name)
    comp = made[0] if len(made) == 1 else None
    if not isinstance(comp, ast.DictComp) or len(comp.generators) != 1 or comp.generators[0].ifs:
        return None
    target, counts = comp.generators[0].target, comp.generators[0].iter
    if not isinstance(counts, ast.Call) or ast.unparse(counts.func) != "enumerate" or len(counts.args) != 1:
        return None
    if counts.keywords or ast.unparse(target).strip("()") != f"{ast.unparse(comp.value)}, {ast.unparse(comp.key)}":
        return None
    words = counts.args[0]
    text, named = "\n".join(own.code), ast.unparse(words)
    changed = rf"\b{re.escape(name)}(?:\[[^\]]*\]\s*=[^=]|\.(?:update|setdefault|pop)\()"
    added = rf"(?<![\w.]){re.escape(named)}(?:\.(?:insert|append|extend)\(|\s*\+=)"
    if re.search(changed, text) or re.search(added, text) or not _are_words(own, words):
        return None
    return _Vocabulary(name, counts, words)


def _are_words(own: Source, words: ast.expr, deep: int = 3) -> bool:
    """Whether an expression holds words of the data from its first on: sorted, or as they are written out."""
    if isinstance(words, ast.Name) and deep:
        made = pastes.assigned(own.tree, words.id)
        return len(made) == 1 and _are_words(own, made[0], deep - 1)
    if isinstance(words, ast.Call):
        return pastes.last_name(words.func) in _WRAPS
    return isinstance(words, (ast.List, ast.Tuple, ast.Set, ast.SetComp)) or (
        isinstance(words, ast.Constant) and isinstance(words.value, str)
    )


def _rows(facts: Facts, group: Sequence[Node]) -> bool | None:
    """Whether a body returned rows of ids that are not all of one length; None where it returned no rows of ids."""
    found = None
    for place in range(len(group[0].tout)):
        seen = returned(facts, group, place)
        if not seen or not all("int" in one.dtype and len(one.shape) == 1 for one in seen):
            continue
        found = found or (len({one.shape for one in seen}) > 1 and any(one.low == 0 for one in seen))
    return found


def _unknown(own: Source, functions: Sequence[Definition], known: _Vocabulary) -> Iterator[_Use]:
    """`vocab.get(word, 0)`."""
    for call in (one for part in functions for one in pastes.walk(part, ast.Call)):
        if ast.unparse(call.func) == f"{known.name}.get" and [ast.unparse(one) for one in call.args[1:]] == ["0"]:
            yield _Use(call.lineno, f"{own.text(call)} gives a word that {known.name} does not have 0")
            return


def _padding(own: Source, functions: Sequence[Definition], known: _Vocabulary) -> Iterator[_Use]:
    """What fills rows up with 0, where nothing says how long they were."""
    reads = any(
        isinstance(one.value, ast.Name) and one.value.id == known.name and _for_each(own, one)
        for part in functions for one in pastes.walk(part, ast.Subscript)
    )  # fmt: skip
    gets = any(
        ast.unparse(one.func) == f"{known.name}.get" and _for_each(own, one)
        for part in functions for one in pastes.walk(part, ast.Call)
    )  # fmt: skip
    if not (reads or gets) or _LENGTHS.search("\n".join(own.code)):
        return
    for call in pastes.walk(own.tree, ast.Call):
        if pastes.last_name(call.func) == "padded_batch" and pastes.argument(call, 2, "padding_values") is None:
            hides = ", and mask_zero=True hides both" if "mask_zero=True" in "\n".join(own.code) else ""
            yield _Use(call.end_lineno or call.lineno, f"padded_batch fills rows up with 0{hides}")
            return


def _for_each(own: Source, node: ast.AST) -> bool:
    """Whether an id is asked for each word of a row: a generator's loop may ask for one of each element."""
    outer = own.parent(node)
    appended = isinstance(outer, ast.Call) and pastes.last_name(outer.func) == "append"
    return appended or any(isinstance(one, (ast.ListComp, ast.GeneratorExp)) for one in own.around(node))


def _finding(facts: Facts, own: Source, node: Node, known: _Vocabulary, uses: Sequence[_Use]) -> Finding:
    file, line = str(node.file), known.counts.lineno
    says = " and ".join(f"{one.says} (line {one.line})" for one in uses)
    words = f"enumerate({own.text(known.words)}, 1)"
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{known.name} counts its words from 0, and {says}: a model cannot tell that from the first word. Counted from "
        "1, no word has 0",
        _from_one(facts, own, file, known, words)
        or f"{words} in line {line}, and one more where its length is the size of a layer",
        file, line, evidence=tuple(
            f"line {one}: {facts.line(file, one)}" for one in dict.fromkeys((line, *(use.line for use in uses)))
        ), confidence="likely",
    )  # fmt: skip


def _from_one(facts: Facts, own: Source, file: str, known: _Vocabulary, words: str) -> str:
    """The lines that count from 1, and give layers one more; "" where it is unknown what else depends on the ids."""
    named = own.text(known.words)
    sizes = [
        one for one in pastes.walk(own.tree, ast.Call)
        if ast.unparse(one.func) == "len" and len(one.args) == 1 and own.text(one.args[0]) in (known.name, named)
    ]  # fmt: skip
    layers = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) in _SIZED]
    embeds = [one for one in layers if pastes.last_name(one.func) != "Dense"]
    if any(not any(part in sizes for part in ast.walk(one)) for one in embeds):
        return ""
    indexed = any(ast.unparse(one.value) == named for one in pastes.walk(own.tree, ast.Subscript))
    if indexed or any(not any(one in [*ast.walk(layer)] for layer in layers) for one in sizes):
        return ""
    pieces: dict[ast.expr, str] = {known.counts: words, **{one: f"{own.text(one)} + 1" for one in sizes}}
    return pastes.all_replaced(facts, file, pieces)
