"""Iterators over tf.data datasets: how each is set up, and how long the training loop waits in `next`.

An iterator is made in `OwnedIterator._create_iterator`, and asked in `OwnedIterator._next_internal` when Python asks
(data/ops/iterator_ops.py). A loop that takes its elements inside a graph, as Keras' fit does, makes the iterator
in Python and asks it in C++: of that only the settings are known.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.graphs.zipped import sides
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.patches import disguise
from pyfunc_debug.program.frames import RepeatedCaller

_MOST_LOOPS = 100
_SIZES = frozenset(("buffer", "takes", "skips"))
"""Of a stage: iterators that differ in these alone, as `take(n)` of a growing n makes them, are of one loop."""
_COUNTS = {"Take": "takes", "Skip": "skips"}
_MOST_TOKENS = 500
_MOST_NOTED = 1000


class _Loop:
    """All iterators that one line of the user's made over datasets with the same settings; times in ns."""

    __slots__ = (
        "again", "caches", "empty", "first_ns", "firsts", "iterators", "longest_ns", "made_ns", "pool", "site",
        "stages", "step_ns", "steps", "tokens", "wait_ns",
    )  # fmt: skip

    def __init__(self, site: tuple[str, int, str] | None, pool: int | None, stages: list[dict[str, Any]]) -> None:
        self.site, self.pool, self.stages = site, pool, stages
        self.tokens: list[set[str]] = [set() for _ in stages]
        self.caches = [_written(stage["cache"]) if "cache" in stage else None for stage in stages]
        self.iterators = self.firsts = self.steps = self.empty = self.again = 0
        self.first_ns = self.wait_ns = self.step_ns = self.longest_ns = 0
        self.made_ns = time.monotonic_ns()


def _written(cache: str) -> int | None:
    """When a cache's file was written; None where there is none yet, or it is on another machine."""
    try:
        return os.stat(f"{cache}.index").st_mtime_ns
    except OSError:
        return None


class Asked:
    """One iterator: its loop, when `next` last returned, and whether it ever did; `alive` forgets it.

    What `next` took is only noted there: between two steps all else is out of the caches. Where _next.c was built its
    type of this name adds it up.

    Attributes:
      noted: Begins and ends that were not drained yet; as a truth value only.
    """

    __slots__ = ("_until_ns", "alive", "loop", "noted", "took")

    def __init__(self, loop: _Loop, alive: weakref.ref[Any]) -> None:
        self.loop, self.alive = loop, alive
        self.took = False
        self._until_ns = 0
        self.noted: deque[tuple[int, int]] = deque()

    def note(self, begin_ns: int, end_ns: int) -> bool:
        """`next` began and ended; 0, 0: the iterator did. Whether it is time to drain."""
        self.noted.append((begin_ns, end_ns))
        return len(self.noted) > _MOST_NOTED

    def drain(self) -> tuple[int, int, int, int, int, int]:
        """What was added since the last time: `firsts`, `first_ns`, `steps`, `wait_ns`, `step_ns`, `longest_ns`."""
        firsts = first_ns = steps = wait_ns = step_ns = longest_ns = 0
        while self.noted:
            begin, end = self.noted.popleft()
            before, self._until_ns = self._until_ns, end
            if not begin:
                continue
            if before:
                steps += 1
                wait_ns += end - begin
                step_ns += end - before
                longest_ns = max(longest_ns, end - begin)
            else:
                self.took = True
                firsts += 1
                first_ns += end - begin
        return firsts, first_ns, steps, wait_ns, step_ns, longest_ns


Next: Any = None
"""`Next(full, original, asked, context module, private.IS_EAGER, raised)` of _next.c, or None."""

if not TYPE_CHECKING:
    try:
        from pyfunc_debug.interception._next import Asked, Next
    except ImportError:  # no compiler when it was installed, or another system
        pass


def _add_up(one: Asked) -> None:
    """Adds what was noted to the loop's sums."""
    loop: _Loop = one.loop
    firsts, first_ns, steps, wait_ns, step_ns, longest_ns = one.drain()
    loop.firsts += firsts
    loop.first_ns += first_ns
    loop.steps += steps
    loop.wait_ns += wait_ns
    loop.step_ns += step_ns
    loop.longest_ns = max(loop.longest_ns, longest_ns)


class Inputs:
    """Notes iterators while interception is on.

    Args:
      names: TensorFlow's.
      library: Which nodes a function holds.
      trouble: Called when something of ours failed.
      passed: Called with the graph of each function of a dataset that is passed over.
    """

    def __init__(
        self, names: TensorFlowNames, library: Library, trouble: Callable[[str, BaseException], None],
        passed: Callable[[Any], None],
    ) -> None:  # fmt: skip
        self._names = names
        self._passed = passed
        self._library = library
        self._caller = RepeatedCaller()
        self._trouble = trouble
        self._lock = threading.Lock()
        self._summing = threading.Lock()
        self._loops: dict[Any, _Loop] = {}
        self._asked: dict[int, Asked] = {}  # by id: a WeakKeyDictionary takes 2 us in place
        self._ended: set[int] = set()
        self._gone: deque[Asked] = deque(maxlen=_MOST_NOTED)  # with notes that are not in the sums yet

    def create_iterator(self, original: Any) -> Any:
        """The replacement of `OwnedIterator._create_iterator`."""

        def _create_iterator(iterator: Any, dataset: Any) -> None:
            original(iterator, dataset)
            try:
                number = id(iterator)
                # It is called before another object can have this number.
                self._asked[number] = Asked(self._loop(dataset), weakref.ref(iterator, lambda _: self._forget(number)))
            except Exception as error:
                self._trouble("describing a dataset", error)

        return _create_iterator

    def next_internal(self, original: Any) -> Any:
        """The replacement of `OwnedIterator._next_internal`."""
        asked, clock = self._asked, time.monotonic_ns
        eagerly = private.eager_test(self._names.context_module)

        def _next_internal(iterator: Any) -> Any:
            one = asked.get(id(iterator))
            if one is None or not eagerly():
                return original(iterator)
            begin = clock()
            try:
                element = original(iterator)
            except BaseException as error:
                self._failed(one, error)
                drop_our_frame(error)
                raise
            if one.note(begin, clock()):
                self._sum(one, patience_s=0.0)
            return element

        def raised(one: Asked, error: BaseException) -> None:
            """The same for an exception that C met: raises it again."""
            context = error.__context__
            try:
                raise error
            except BaseException:
                error.__context__ = context
                self._failed(one, error)
                drop_our_frame(error)
                raise

        if Next is None:
            return _next_internal
        disguise(_next_internal, original)
        disguise(raised, original)
        return Next(_next_internal, original, asked, self._names.context_module, private.IS_EAGER, raised)

    def _forget(self, number: int) -> None:
        self._ended.discard(number)
        one = self._asked.pop(number, None)  # the garbage collector may call this while sums are made
        if one is not None and one.noted:
            self._gone.append(one)

    def _failed(self, one: Asked, error: BaseException) -> None:
        """The end, or a failure: what follows is not a step."""
        one.note(0, 0)
        self._sum(one)
        if "End of sequence" not in str(error):
            return
        if not one.took:
            one.took = True
            one.loop.empty += 1
        number = id(one.alive())
        one.loop.again += number in self._ended
        self._ended.add(number)

    def _sum(self, *iterators: Asked, patience_s: float = 1.0) -> bool:
        """Adds up what was noted; False if another thread is at it for long: one that a fork left behind."""
        if not self._summing.acquire(timeout=patience_s):
            return False
        try:
            for one in iterators:
                _add_up(one)
        finally:
            self._summing.release()
        return True

    def facts(self) -> list[dict[str, Any]]:
        """What is known by now, as JSON can hold it: one entry a loop.

        `taken` elements; the first of each iterator took `first_ns` in sum. Of the `steps` after them, each from one
        `next`'s return to the following one's, `step_ns` is the whole and `wait_ns` the part inside `next`.
        The first iterator was made at `made_ns`; `predicate` of a filter is the file, the line and the name of what it
        asks. `empty` iterators ended before their first element; `again`: how often iterators were asked after their
        end.

        `parallel` of a stage is num_parallel_calls: None is one at a time, -1 is AUTOTUNE. `reshuffles` is there for a
        shuffle only: whether each pass has an order of its own, with its `buffer`. `below` is the count of a take or
        skip that is less than 0, which means all, `takes` that of a take, `skips` that of a skip, and `repeats` that
        of a repeat. `shards` is of how many parts a shard gives one. `cache` is the file of a cache that has one, and
        `cached_ns` when that was written (wall clock) if it was there before the loop's first iterator. `sides` is
        what a zip pairs: see `zipped.sides`.
        """
        gone = list(self._gone)
        if self._sum(*gone, *list(self._asked.values())):
            for _ in gone:
                self._gone.popleft()
        with self._lock:
            loops = list(self._loops.values())
        return [
            {
                "site": loop.site, "pool": loop.pool, "iterators": loop.iterators, "taken": loop.firsts + loop.steps,
                "empty": loop.empty, "again": loop.again,
                "first_ns": loop.first_ns, "steps": loop.steps, "step_ns": loop.step_ns, "wait_ns": loop.wait_ns,
                "longest_ns": loop.longest_ns, "made_ns": loop.made_ns,
                "stages": [
                    {**stage, "tokens": sorted(tokens), **({"cached_ns": written} if written is not None else {})}
                    for stage, tokens, written in zip(loop.stages, loop.tokens, loop.caches)
                ],
            }
            for loop in loops
        ]  # fmt: skip

    def over(self, token: str) -> list[tuple[tuple[str, int, str] | None, int | None]]:
        """The site and the private_threadpool_size of each loop over data that a node makes."""
        with self._lock:
            return [(loop.site, loop.pool) for loop in self._loops.values() if any(token in one for one in loop.tokens)]

    def _loop(self, dataset: Any) -> _Loop:
        options = dataset.options()
        pool = getattr(options.threading, "private_threadpool_size", None) or None
        found, tokens = [], []
        for stage in stages(dataset):
            found.append(self._stage(stage))
            tokens.append(self._tokens(stage))
            for wrapper in private.dataset_functions(stage):
                self._passed(getattr(wrapper.function, "graph", None))
        site = self._caller("iterator")
        with self._lock:
            if len(self._loops) >= _MOST_LOOPS:
                site = None
            alike = repr([{name: one for name, one in stage.items() if name not in _SIZES} for stage in found])
            loop = self._loops.setdefault((site, pool, alike), _Loop(site, pool, found))
            loop.iterators += 1
            for kept, stage in zip(loop.stages, found):
                for name in _SIZES & kept.keys():
                    if kept[name] != stage.get(name):
                        del kept[name]
            for known, more in zip(loop.tokens, tokens):
                if len(known) < _MOST_TOKENS:
                    known |= more
        return loop

    def _stage(self, dataset: Any) -> dict[str, Any]:
        import tensorflow as tf

        def number(value: Any) -> int | None:
            value = tf.get_static_value(value) if value is not None and not isinstance(value, int) else value
            return None if value is None else int(value)

        cache = private.cache_name(dataset)
        cache = tf.get_static_value(cache) if cache is not None else None
        count, order, kind = number(private.counted(dataset)) or 0, private.shuffle_order(dataset), _kind(dataset)
        return {
            "kind": kind,
            "parallel": number(private.parallel_calls(dataset)),
            "batch": number(private.batch_size(dataset)),
            **({"reshuffles": bool(number(again))} if (again := private.reshuffles(dataset)) is not None else {}),
            **({"buffer": buffer} if order is not None and (buffer := number(order[2])) is not None else {}),
            **({"below": count} if count < 0 else {_COUNTS[kind]: count} if count and kind in _COUNTS else {}),
            **({"shards": parts} if (parts := number(private.shards(dataset))) else {}),
            **({"repeats": times} if (times := number(private.repeats(dataset))) else {}),
            **({"cache": os.path.abspath(os.fsdecode(cache))} if cache else {}),
            **({"predicate": asked} if kind == "Filter" and (asked := _predicate(dataset)) is not None else {}),
            **({"sides": paired} if (paired := sides(dataset, _kind)) is not None else {}),
        }

    def _tokens(self, dataset: Any) -> frozenset[str]:
        found: set[str] = set()
        for wrapper in private.dataset_functions(dataset):
            name = wrapper.function.name
            found |= self._library.tokens(name.decode() if isinstance(name, bytes) else str(name)) or frozenset()
        return frozenset(found)


def _predicate(dataset: Any) -> tuple[str, int, str] | None:
    """File, line and name of the function that a filter asks."""
    for wrapper in private.dataset_functions(dataset):
        function = private.mapped_function(wrapper)
        code = getattr(function, "__code__", None)
        if code is not None:
            return code.co_filename, code.co_firstlineno, function.__name__
    return None


def _kind(dataset: Any) -> str:
    return type(dataset).__name__.strip("_").removesuffix("Dataset").removesuffix("DatasetV2")


def stages(dataset: Any) -> Iterator[Any]:
    """A dataset's transformations, the last first."""
    seen: set[int] = set()
    todo = [dataset]
    while todo and len(seen) < 1000:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            todo.extend(private.dataset_inputs(one))
