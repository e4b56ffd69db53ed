"""Splits of a shuffled dataset, take(n) here and skip(n) there, whose parts change with each pass over them.

Or by the number of each element: enumerate() and a filter here, and another filter there. list_files shuffles by
itself: a take() of its files, too, is of others in each pass. So does a generator that orders its elements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.reordered_passes import one_order, orders, reordered
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("shuffled-split",)
_STAYS = "reshuffle_each_iteration=False"
_LISTED = "tf.data.Dataset.list_files(..., shuffle=False)"
_BY_GENERATOR = "split the indices once, above, and give each part a generator of its own"
_WORDS = "dataset.shuffle(..., reshuffle_each_iteration=False)  # then split; shuffle the training part again"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a split that both parts were seen of."""
    yield from _filtered(facts)
    yield from _files(facts)
    yield from _generated(facts)
    parts: dict[str, dict[str, dict[str, Any]]] = {}
    for loop in facts.meta.get("inputs") or []:
        kinds, again = _kinds(loop)
        cuts = _cuts(kinds, again)
        if again is None or loop["site"] is None or not cuts or "Cache" in "".join(kinds[cuts[-1] : again]):
            continue
        parts.setdefault(repr(loop["stages"][again:]), {}).setdefault(kinds[cuts[-1]], loop)
    for found in parts.values():
        if len(found) == 2:
            yield _finding(facts, found["Take"], found["Skip"])


def _kinds(loop: dict[str, Any]) -> tuple[list[str], int | None]:
    """The kinds of a loop's stages, the last first, and the place of the last shuffle with an order for each pass."""
    again = next((place for place, stage in enumerate(loop["stages"]) if stage.get("reshuffles")), None)
    return [stage["kind"] for stage in loop["stages"]], again


def _cuts(kinds: Sequence[str], again: int | None) -> list[int]:
    """The places of take() and skip() behind the shuffle."""
    return [place for place in range(again or 0) if kinds[place] in ("Take", "Skip")]


def _filtered(facts: Facts) -> Iterator[Finding]:
    """Two filters of one enumerated dataset, where the numbers are given behind the shuffle."""
    parts: dict[str, dict[int, dict[str, Any]]] = {}
    for loop in facts.meta.get("inputs") or []:
        kinds, again = _kinds(loop)
        if again is None or loop["site"] is None or "Cache" in "".join(kinds[:again]):
            continue
        if "Filter" in kinds[:again] and kinds[again - 1] == "Zip":  # enumerate() zips with a range
            parts.setdefault(repr(loop["stages"][again:]), {})[int(loop["site"][1])] = loop
    for found in parts.values():
        loops = list(found.values())
        file, tree = str(loops[0]["site"][0]), facts.tree(str(loops[0]["site"][0]))
        called = [ast.unparse(one.func).rpartition(".")[2] for one in pastes.walk(tree, ast.Call)]
        if called.count("filter") < 2 or called.count("enumerate") != 1 or len(loops) < 2:
            continue
        sites = [facts.source_line(*one["site"][:2]) for one in loops[:2]]
        fix, place = kept_order(facts, loops[0]["site"]) or ("", None)
        file, line = place or (file, int(loops[0]["site"][1]))
        yield Finding(
            NAMES[0], "error", None, (),
            "filters split this dataset by the number of each element, and the numbers are given after a shuffle that "
            "gives each pass another order: elements that one part had in a pass are in the other part in the next, so "
            "that what is held back is trained on",
            fix or _WORDS,
            file, line, evidence=(f"the parts are read at {' and at '.join(sites)}",), confidence="likely",
        )  # fmt: skip


def _files(facts: Facts) -> Iterator[Finding]:
    """The first n files that list_files gives, in more than one pass."""
    for loop in facts.meta.get("inputs") or []:
        kinds, again = _kinds(loop)
        cuts = _cuts(kinds, again)
        if again is None or loop["site"] is None or len(cuts) != 1 or "Cache" in "".join(kinds[:again]):
            continue
        count, buffer = loop["stages"][cuts[0]].get("takes"), loop["stages"][again].get("buffer", 0)
        if count is None or count >= buffer:
            continue
        repeats = any("repeats" in stage for stage in loop["stages"][: cuts[0]])
        fix = _unshuffled(facts, loop["site"])
        if fix is None or (loop["iterators"] < 2 and not repeats):
            continue
        passes = "a repeat makes several passes" if repeats else f"{loop['iterators']} passes were made"
        yield Finding(
            NAMES[0], "warning", None, (),
            f"list_files, without shuffle=False, gives each pass its {buffer} files in another order: take({count}) "
            f"gives other files each time, and {passes}",
            fix[0] or _LISTED, *fix[1], evidence=(f"they are read at {facts.source_line(*loop['site'][:2])}",),
            confidence="likely",
        )  # fmt: skip


def _generated(facts: Facts) -> Iterator[Finding]:
    """take() and skip() of a generator that gives its elements in another order in each pass."""
    for node, start in facts.generators.values():
        parts: dict[str, dict[str, Any]] = {}
        for loop in facts.meta.get("inputs") or []:
            stages = loop["stages"]
            made = next((place for place, one in enumerate(stages) if {node.token, start.token} & {*one["tokens"]}), 0)
            before = stages[:made]
            keeps = any("Cache" in one["kind"] or one.get("reshuffles") for one in before)
            cuts = [one["kind"] for one in before if one["kind"] in ("Take", "Skip")]
            if loop["site"] is not None and not keeps and len(cuts) == 1:
                parts.setdefault(cuts[0], loop)
        calls = orders(facts, node) if len(parts) == 2 else []
        if node.file is None or len(calls) != 1 or not reordered(facts, node):
            continue
        (call,) = calls
        fix = one_order(facts, node, call)
        again = "to shuffle what is trained on in each pass: .shuffle(...) behind its take() or skip()"
        yield Finding(
            NAMES[0], "error", node.id, (),
            f"take() and skip() split what {facts.name(node)} gives, and it gives another order in each pass (line "
            f"{call.lineno}: {ast.unparse(call.func)}): elements that one part had in a pass are in the other part in "
            "the next, so that what is held back is trained on",
            fix or _BY_GENERATOR, node.file, call.lineno,
            evidence=(_read_at(facts, parts["Take"], parts["Skip"]), *((again,) if fix else ())),
        )  # fmt: skip


def _finding(facts: Facts, take: dict[str, Any], skip: dict[str, Any]) -> Finding:
    passes = take["iterators"] + skip["iterators"]
    fix, place = kept_order(facts, take["site"]) or kept_order(facts, skip["site"]) or ("", None)
    file, line = place or take["site"][:2]
    return Finding(
        NAMES[0], "error", None, (),
        "take() and skip() split this dataset after a shuffle that gives each pass another order: elements that one "
        f"part had in a pass are in the other part in the next, so that what is held back is trained on. {passes} "
        "passes were made over the two parts",
        fix or _WORDS,
        file, line, evidence=(_read_at(facts, take, skip),),
    )  # fmt: skip


def _read_at(facts: Facts, take: dict[str, Any], skip: dict[str, Any]) -> str:
    first, second = (facts.source_line(*one["site"][:2]) for one in (take, skip))
    return f"the part of take() is read at {first}, that of skip() at {second}"


def kept_order(facts: Facts, site: Sequence[Any]) -> tuple[str, tuple[str, int]] | None:
    """The line of the shuffle with an order that stays, and where it is; None where several may be it.

    It is looked for in the functions around the loop, the innermost first, and then in the whole file.
    """
    file, tree = str(site[0]), facts.tree(str(site[0]))
    for scope in (*reversed(pastes.around(tree, int(site[1]), ast.FunctionDef)), tree):
        shuffles = [
            one for one in pastes.walk(scope, ast.Call)
            if isinstance(one.func, ast.Attribute) and one.func.attr == "shuffle" and len(one.args) < 3
            and (one.args or any(word.arg == "buffer_size" for word in one.keywords))
            and not any(word.arg == "reshuffle_each_iteration" for word in one.keywords)
        ]  # fmt: skip
        if len(shuffles) == 1:
            call = shuffles[0]
            new = pastes.source(facts, file).with_argument(call, _STAYS)
            fix = pastes.written(pastes.replaced(facts, file, {call: new}))
            return (fix, (file, call.end_lineno or call.lineno)) if fix else None
        if shuffles:
            return None
    return _unshuffled(facts, site)


def _unshuffled(facts: Facts, site: Sequence[Any]) -> tuple[str, tuple[str, int]] | None:
    """The same for the one `list_files` of a file, where nothing else shuffles; no text if it cannot be pasted."""
    file, tree = str(site[0]), facts.tree(str(site[0]))
    named = [one for one in pastes.walk(tree, ast.Call) if isinstance(one.func, ast.Attribute)]
    named = [one for one in named if one.func.attr in ("list_files", "shuffle")]  # type: ignore[attr-defined]
    call = named[0] if len(named) == 1 else None
    if call is None or call.func.attr != "list_files" or len(call.args) != 1:  # type: ignore[attr-defined]
        return None
    words: dict[ast.expr, str] = {
        word.value: "False" for word in call.keywords if word.arg == "shuffle" and isinstance(word.value, ast.Constant)
    }
    if not words and any(word.arg == "shuffle" for word in call.keywords):
        return None
    words = words or {call: pastes.source(facts, file).with_argument(call, "shuffle=False")}
    return pastes.written(pastes.replaced(facts, file, words)), (file, call.end_lineno or call.lineno)
