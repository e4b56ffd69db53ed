"""Datasets that give later epochs the same as the first, or nothing: random numbers, a cache, used-up generators."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import kept_iterators
from pyfunc_debug.doctor.datasets.cached_chains import before, cache_at, is_held_out, method, reordered
from pyfunc_debug.doctor.draws import drawn_by_ops
from pyfunc_debug.doctor.draws.drawn_once import draws_of
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.generators import used_generators, used_sources
from pyfunc_debug.records import Finding, Node

NAMES = ("cached-random", "empty-epochs")
_ONCE = 0.75
"""A body that ran for this share of the elements at most, where a cache stands behind it, ran for the first pass."""
_OF_CHANCE = re.compile(r"\.random\.|\.(?:stateless_)?random_|\brandom\b|\brng\b|_rng\b")
_GENERATOR = re.compile(r"\b(?:default_rng|RandomState|random\.Random|Generator\.from_seed|stateless_\w+)$")
_GLOBAL_DRAW = re.compile(r"(?:^|\.)random\.\w+$|\.random_\w+$")
_CHANGES = re.compile(
    r"\b(?:iaa|imgaug|albumentations)\.|Compose|OneOf|SomeOf|Augment|augment|Random|Flip|Rotat|Crop|Noise|Jitter|Affine"
)
"""What makes an object of such a library, or how it is called."""
_FREE = {"batch", "map", "prefetch", "shuffle"}
"""What may stand behind a cache as well as in front of it."""
_COUNTED = ("Batch", "Cache", "Map", "Model", "Options", "Padded", "Parallel", "Prefetch", "Shuffle", "Skip", "Take")
"""Stages that give as many elements as they take, or batches of a known size, or fewer."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop over a dataset."""
    by_token = facts.by_token
    reported: set[tuple[str | None, int | None]] = set()
    used_up: set[str] = set()
    loops = facts.meta.get("inputs") or []
    sources = list(used_sources.used(facts))
    named = {node.token for one in sources for node in one.nodes}
    for loop in loops:
        repeated = any("Repeat" in stage["kind"] for stage in loop["stages"])
        if loop["iterators"] < 2 and not repeated and not _shared(facts, loop, loops, by_token):
            continue
        found = _cached(facts, loop, by_token) or _cached_ops(facts, loop)
        if found is not None and (found.file, found.line) not in reported:
            reported.add((found.file, found.line))
            yield found
        if loop.get("empty") and loop["taken"]:
            tokens = {token for stage in loop["stages"] for token in stage["tokens"]}
            used_up |= tokens
            if not tokens & named:
                yield _used_up(facts, loop)
    yield from kept_iterators.check(facts, "empty-epochs")
    yield from (one.finding for one in sources)
    keras = list(used_generators.of_keras(facts))
    yield from keras
    if not keras:
        yield from used_generators.of_passes(facts, used_up)


def _shared(facts: Facts, loop: dict[str, Any], loops: list[dict[str, Any]], by_token: dict[str, Node]) -> bool:
    """Whether loops of several lines passed over one cache: its body ran for far fewer elements than they took."""
    behind = _behind_cache(loop)
    alike = [one for one in loops if behind and _behind_cache(one) == behind]
    nodes = [by_token[token] for token in behind if token in by_token]
    if sum(one["iterators"] for one in alike) < 2 or not nodes:
        return False
    taken = 0
    for one in alike:
        mapped = next(at for at, stage in enumerate(one["stages"]) if stage["tokens"])
        if not all(stage["kind"].startswith(_COUNTED) for stage in one["stages"][:mapped]):
            return False
        taken += one["taken"] * math.prod(stage["batch"] or 1 for stage in one["stages"][:mapped])
    return 0 < facts.calls(nodes[0].id).count <= _ONCE * taken


def _behind_cache(loop: dict[str, Any]) -> tuple[str, ...]:
    """Tokens of the nodes whose elements a loop takes from a cache."""
    cache = cache_at(loop["stages"])
    return () if cache is None else tuple(token for stage in loop["stages"][cache + 1 :] for token in stage["tokens"])


def _cached(facts: Facts, loop: dict[str, Any], by_token: dict[str, Node]) -> Finding | None:
    """A body that draws random numbers in front of a cache: it runs in the first epoch only."""
    stages = loop["stages"]  # the last first
    cache = cache_at(stages)
    if cache is None:
        return None
    for stage in stages[cache + 1 :]:
        for token in stage["tokens"]:
            node = by_token.get(token)
            if node is None or node.origin != "user":
                continue
            function, tree = facts.function(node), facts.tree(node.file)
            if function is None or tree is None or not _draws(function, tree):
                continue
            calls = facts.calls(node.id)
            others = facts.meta.get("inputs") or []
            passes = sum(one["iterators"] for one in others if _behind_cache(one) == _behind_cache(loop))
            return Finding(
                "cached-random", "warning", node.id, (calls.first,) if calls.first is not None else (),
                f"{node.body} draws random numbers, but .cache() stands behind it: it ran {calls.count:,} times, and "
                "every pass over the dataset got these same results",
                _cache_first(facts, node)
                or f"dataset.cache().map({facts.name(node)}, ...)  # cache first, then what differs in each epoch",
                node.file, node.line,
                evidence=(f"{passes} iterators, {calls.count:,} calls",), confidence="likely",
            )  # fmt: skip
    return None


def _cached_ops(facts: Facts, loop: dict[str, Any]) -> Finding | None:
    """A map whose ops draw random numbers in front of the file's only cache."""
    kinds, cache = [stage["kind"] for stage in loop["stages"]], cache_at(loop["stages"])
    file = str(loop["site"][0]) if loop["site"] else ""
    own = pastes.source(facts, file)
    calls = [one for one in pastes.walk(own.tree, ast.Call) if method(one) == "cache"]
    if cache is None or len(calls) != 1 or not any("Map" in kind for kind in kinds[cache + 1 :]):
        return None
    if is_held_out(own, calls[0]):
        return None
    chain = before(own, calls[0])
    for place, stage in enumerate(chain[:-1]):
        given = stage.args[0] if method(stage) == "map" and stage.args else None
        drawn = None if given is None else drawn_by_ops.drawn(own, given)
        if given is None or drawn is None:
            continue
        moved, name = [chain[-1], *chain[place:-1]], own.text(given) if isinstance(given, ast.Name) else "the lambda"
        free = all(method(one) in _FREE for one in chain[place:-1])
        return Finding(
            "cached-random", "warning", None, (),
            f"{name} draws random numbers (line {drawn.lineno}), but .cache() stands behind it: it runs in the first "
            "pass over the dataset, and every later one gets these same results",
            pastes.written(reordered(own, file, chain[place:], moved)) if free
            else f"dataset.cache().map({name}, ...)  # cache first, then what differs in each epoch",
            file, calls[0].end_lineno or calls[0].lineno,
            evidence=(
                f"line {drawn.lineno}: {facts.line(file, drawn.lineno)}",
                *(["delete the files of the cache before: they hold the old elements"] if calls[0].args else []),
            ),
            confidence="likely",
        )  # fmt: skip
    return None


def _draws(function: Definition, tree: ast.AST) -> bool:
    """Whether a body draws for certain: a name that only sounds like it, as `augment`, proves nothing."""
    if not code.is_random(function, tree) or _is_seeded(function):
        return False
    called = [function, *(
        one for one in pastes.walk(tree, ast.FunctionDef)
        if one.name in {pastes.last_name(call.func) for call in pastes.walk(function, ast.Call)}
    )]  # fmt: skip
    texts = [ast.unparse(call.func) for one in called for call in pastes.walk(one, ast.Call)]
    return (
        bool(draws_of(function, tree))
        or any(_OF_CHANCE.search(f".{one}") for one in texts)
        or _of_library(called, tree)
    )


def _is_seeded(function: Definition) -> bool:
    """Whether a body draws from generators that it seeds by its own inputs only: the same each time for an element."""
    given, seeded = set(code.parameters(function)), False
    for one in pastes.walk(function, ast.Assign):
        if given & {part.id for part in ast.walk(one.value) if isinstance(part, ast.Name)}:
            given |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    for call in pastes.walk(function, ast.Call):
        text = ast.unparse(call.func)
        if _GENERATOR.search(text):
            if not given & {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}:
                return False
            seeded = True
        elif _GLOBAL_DRAW.search(text):
            return False
    return seeded


def _of_library(functions: Sequence[ast.AST], tree: ast.AST) -> bool:
    """Whether a body calls an object of a library's that changes things by chance: `transform(image=image)`."""
    called = {
        ast.unparse(one.func) for part in functions for one in ast.walk(part)
        if isinstance(one, ast.Call) and not one.args and one.keywords
    }  # fmt: skip
    made = [
        ast.unparse(one.value) for one in pastes.walk(tree, ast.Assign)
        if called & {ast.unparse(target) for target in one.targets}
    ]  # fmt: skip
    return any(_CHANGES.search(text) for text in (*called, *made))


def _cache_first(facts: Facts, node: Node) -> str:
    """The lines that map and cache, the other way round; "" where they cannot be told."""
    for frame in reversed(node.stack):
        tree = facts.tree(frame.file)
        maps = [one for one in pastes.around(tree, frame.line, ast.Call) if method(one) == "map"]
        maps = [one for one in maps if any(arg.lineno <= frame.line <= (arg.end_lineno or 0) for arg in one.args)]
        if len(maps) > 1:
            continue
        caches = [one for one in pastes.walk(tree, ast.Call) if method(one) == "cache"]
        for mapped in maps:
            owner = mapped.func.value if isinstance(mapped.func, ast.Attribute) else mapped
            for cache in caches:
                if any(one is mapped for one in ast.walk(cache)):
                    text, own = pastes.text_of(facts, frame.file, cache), pastes.source(facts, frame.file)
                    inner = own.text(cache.func.value) if isinstance(cache.func, ast.Attribute) else ""
                    before, call = own.text(owner), text.removeprefix(inner)
                    if inner.startswith(before):
                        new = f"{before}{call}{inner.removeprefix(before)}"
                        return pastes.written(pastes.replaced(facts, frame.file, {cache: new}))
            found = _moved(facts, frame.file, mapped, owner, caches)
            if found:
                return found
    return ""


def _moved(facts: Facts, file: str, mapped: ast.Call, owner: ast.expr, caches: list[ast.Call]) -> str:
    """The same for a cache in a statement of its own, `data = data.cache()`, which goes to the dataset of the map."""
    own = pastes.source(facts, file)
    for cache in caches:
        inner = cache.func.value if isinstance(cache.func, ast.Attribute) else None
        statement = own.statement(cache.lineno)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        alone = statement is not None and isinstance(target, ast.Name) and isinstance(inner, ast.Name)
        made = own.statement(mapped.lineno)
        names = [ast.unparse(one) for one in made.targets] if isinstance(made, ast.Assign) else []
        if alone and isinstance(inner, ast.Name) and inner.id in names and cache.lineno > mapped.lineno:
            call = own.text(cache).removeprefix(inner.id)
            return pastes.written(
                pastes.replaced(facts, file, {cache: inner.id}),
                pastes.replaced(facts, file, {owner: f"{own.text(owner)}{call}"}),
            )
    return ""


def _used_up(facts: Facts, loop: dict[str, Any]) -> Finding:
    """A generator that only the first iterator gets something of."""
    file, line = (loop["site"] or (None, None, ""))[:2]
    maker, given = used_generators.maker(facts, file, line)
    edit = pastes.replaced(facts, file, {given: maker}) if given is not None else None
    return Finding(
        "empty-epochs", "error", None, (),
        f"{loop['empty']} of {loop['iterators']} passes over this dataset got no element at all. "
        "Dataset.from_generator calls its function once a pass, and that has to make a new iterator: it gave one "
        "that was used up",
        pastes.written(edit)
        or f"tf.data.Dataset.from_generator({maker}, ...)  # it is called for each pass, and begins again",
        file, line, evidence=(f"{loop['iterators']} iterators, {loop['taken']:,} elements in all",),
    )  # fmt: skip
