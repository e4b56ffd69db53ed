"""Elements that Keras takes itself, in Python: to learn their shapes, or on threads of its own.

No node calls the user's code there. For breakpoints each of these is a call all the same; a recording has none of them.
Beside them, the rows that `fit` takes out of arrays for its validation.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyfunc_debug.events import NodeFacts, Observer, Taken
from pyfunc_debug.interception import splits
from pyfunc_debug.interception.arrays import Arrays
from pyfunc_debug.interception.batches import digests, tell
from pyfunc_debug.interception.bodies import SourceMaps, element_body
from pyfunc_debug.interception.calls import ENTERING, IN_PROGRESS, drop_our_frame, fields_of
from pyfunc_debug.interception.failures import Failures
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.patches import Patch, Patches
from pyfunc_debug.program.imports import when_imported


class Elements:
    """Watches Keras' adapters of a PyDataset and of a generator, from `start` to `stop`. Keras is not imported for it.

    Args:
      names: TensorFlow's names.
      observer: To whom calls are reported.
      failures: Where exceptions are remembered.
      maps: AutoGraph's source maps.
    """

    def __init__(self, names: TensorFlowNames, observer: Observer, failures: Failures, maps: SourceMaps) -> None:
        self._names = names
        self._observer = observer
        self._failures = failures
        self._maps = maps
        self._numbers = itertools.count(1)
        self._tokens: dict[int, tuple[weakref.ref[Any], str]] = {}  # by id() of what the elements come from
        self._cancel: list[Callable[[], None]] = []
        self._patches: list[Patches] = []

    def start(self) -> None:
        """Watches what Keras has, now or as soon as the program imports it."""
        arrays = Arrays(self._observer)
        for module, replacements in (
            (private.KERAS_DATASETS, {"get_index": self._get_index, "PyDatasetAdapter.get_tf_dataset": self._first}),
            (private.KERAS_GENERATORS, {"peek_and_restore": self._peek}),
            (private.KERAS_SLICES, {"train_validation_split": self._split}),
            (private.KERAS_WEIGHTS, {"class_weight_to_sample_weights": arrays.weighted}),
            (private.KERAS_WEIGHTED, {"TFDatasetAdapter.__init__": arrays.weighted_dataset}),
            (private.KERAS_TRAINER, {"potentially_ragged_concat": arrays.predicted}),
            (private.KERAS_LAMBDAS, {"Lambda.call": arrays.lambda_called}),
            (private.KERAS_EPOCHS, {"Trainer._get_metrics_result_or_logs": arrays.compiled}),
        ):
            self._cancel.append(when_imported(module, functools.partial(self._apply, module, replacements)))

    def stop(self) -> tuple[str, ...]:
        """Puts everything back.

        Returns:
          Names of attributes that somebody else replaced meanwhile and that were therefore left alone.
        """
        for cancel in self._cancel:
            cancel()
        self._cancel.clear()
        foreign = [name for patches in self._patches for name in patches.revert()]
        self._patches.clear()
        return tuple(foreign)

    def _apply(self, module: str, replacements: Mapping[str, Callable[[Any], Any]]) -> None:
        patches = Patches()
        for name, replacement in replacements.items():
            owner, _, function = name.rpartition(".")
            found = private.keras_function(sys.modules[module], owner, function)
            if found is not None:
                patches.apply([Patch(found, function, replacement)])
        self._patches.append(patches)

    # -- what Keras calls ---------------------------------------------------------------------------------------------

    def _first(self, original: Any) -> Any:
        """The replacement of `PyDatasetAdapter.get_tf_dataset`, which asks for the first two batches."""

        @functools.wraps(original)
        def get_tf_dataset(adapter: Any) -> Any:
            try:
                return original(_Adapter(adapter, self._item))
            except BaseException as error:
                drop_our_frame(error)
                raise

        return get_tf_dataset

    def _get_index(self, original: Any) -> Any:
        """The replacement of `get_index`, which threads of Keras' own call; other processes find it as it was."""

        @functools.wraps(original)
        def get_index(uid: Any, index: Any) -> Any:
            dataset = private.keras_shared(sys.modules[private.KERAS_DATASETS], uid)
            if dataset is None:
                return original(uid, index)
            return self._take(self._token(dataset), dataset.__getitem__, lambda: original(uid, index), False)

        return get_index

    def _peek(self, original: Any) -> Any:
        """The replacement of `peek_and_restore`, which takes the first two elements of a generator."""

        @functools.wraps(original)
        def peek_and_restore(generator: Any) -> Any:
            if not isinstance(generator, types.GeneratorType):
                return original(generator)
            watched = self._watched(generator)
            try:
                batches, restored = original(watched)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                if len(batches) > 1:
                    tell(generator, batches[0], watched.first or {}, self._observer)
            except Exception as trouble:
                self._observer.trouble("looking at a batch again", trouble)
            for cell in getattr(restored, "__closure__", None) or ():
                if cell.cell_contents is watched:  # the others are TensorFlow's to take
                    cell.cell_contents = generator
            return batches, restored

        return peek_and_restore

    def _split(self, original: Any) -> Any:
        """The replacement of `train_validation_split`, which takes the last rows of arrays for the validation."""
        return splits.watched(original, self._observer)

    def _watched(self, generator: Any) -> _Taking:
        """Takes a generator's elements as calls."""
        return _Taking(
            generator,
            lambda: self._take(self._token(generator), generator, lambda: next(generator), True),
            self._observer.trouble,
        )

    def _item(self, dataset: Any, index: Any) -> Any:
        return self._take(self._token(dataset), dataset.__getitem__, lambda: dataset[index], True)

    # -- as calls -----------------------------------------------------------------------------------------------------

    def _token(self, source: Any) -> str:
        """A token of ours for what makes the elements, which the observer knows."""
        known = self._tokens.get(id(source))
        if known is not None and known[0]() is source:
            return known[1]
        token = f"keras_{next(self._numbers)}"
        key, tokens, gone = id(source), self._tokens, self._observer.node_gone

        def forget(reference: Any) -> None:
            if tokens.get(key, (None, ""))[1] == token:
                del tokens[key]
            gone(token)

        self._tokens[key] = weakref.ref(source, forget), token
        try:
            body = element_body(source, self._names, self._maps)
            self._observer.keras_takes(
                NodeFacts(token, "numpy_function", body, None, None, None, (), (), (), (), body.internal, None, None)
            )
        except Exception as error:
            self._observer.trouble("describing a node", error)
        return token

    def _take(self, token: str, body: Any, take: Callable[[], Any], direct: bool) -> Any:
        """One element, as a call; `direct`: what it raises comes to the program itself."""
        enter, leave, fail = self._observer.taking()
        thread = get_ident()
        outer = fields_of(thread)
        IN_PROGRESS[thread] = (outer, token, (), ENTERING, (), body)
        try:
            ticket = enter(token, ())
            IN_PROGRESS[thread] = (outer, token, (), ticket, (), body)
            try:
                found = take()
            except StopIteration:
                leave(ticket, Taken(None))
                raise
            except BaseException as error:
                fail(ticket, error)
                if direct:
                    self._failures.add(error, token, ticket, becomes_text=False)
                else:
                    self._failures.on_failure(error)
                drop_our_frame(error)
                raise
            return leave(ticket, Taken(found)).value
        finally:
            IN_PROGRESS[thread] = outer


class _Adapter:
    """A PyDatasetAdapter whose PyDataset gives its items as calls."""

    def __init__(self, adapter: Any, item: Callable[[Any, Any], Any]) -> None:
        vars(self).update(_adapter=adapter, _item=item)

    def __getattr__(self, name: str) -> Any:
        found = getattr(vars(self)["_adapter"], name)
        return _Dataset(found, vars(self)["_item"]) if name == "py_dataset" else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_adapter"], name, value)


class _Dataset:
    """A PyDataset that gives its items as calls."""

    def __init__(self, dataset: Any, item: Callable[[Any, Any], Any]) -> None:
        self._dataset = dataset
        self._item = item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._item(self._dataset, index)


class _Taking:
    """An iterator that takes a generator's elements as calls; not itself a generator, whose frame would be one more."""

    def __init__(self, generator: Any, take: Callable[[], Any], trouble: Callable[[str, Exception], None]) -> None:
        self._generator = generator
        self._take = take
        self._trouble = trouble
        self.first: dict[tuple[int, ...], bytes | None] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        element = self._take()
        if self.first is None:
            self.first = {}
            try:
                self.first = digests(element)
            except Exception as trouble:
                self._trouble("looking at a batch", trouble)
        return element
